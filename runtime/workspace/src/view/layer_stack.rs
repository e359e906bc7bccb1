//! A layer and the folders below it, opened for a view, and counters of what was copied into the layer.

use super::OpenViewError;
use crate::layer::Layer;
use crate::root::Root;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

/// A layer and the folders below it.
#[derive(Debug)]
pub(super) struct LayerStack {
    layer: Arc<Layer>,
    lower: Vec<Root>,
    pub(super) copied_bytes: AtomicU64,
    pub(super) copied_entries: AtomicU64,
}

impl LayerStack {
    pub(super) fn open(layer: &Arc<Layer>) -> Result<Self, OpenViewError> {
        let roots = layer.lower.trees().map(|tree| tree.duplicate().map(Root::new));
        let lower = roots.collect::<Result<Vec<_>, _>>();
        let lower = lower.map_err(|error| OpenViewError::Root {
            root: "the workspace".to_owned(),
            source: rustix::io::Errno::from_io_error(&error).unwrap_or(rustix::io::Errno::IO),
        })?;
        Ok(Self { layer: Arc::clone(layer), lower, copied_bytes: AtomicU64::new(0), copied_entries: AtomicU64::new(0) })
    }

    pub(super) fn layer(&self) -> &Arc<Layer> {
        &self.layer
    }

    /// Returns the folders below the layer, the first on top.
    pub(super) fn lower(&self) -> impl Iterator<Item = &Root> {
        self.lower.iter()
    }

    /// Returns the folder at which the layer is mounted, or `None` if it is not mounted.
    pub(super) fn merged(&self) -> Option<&Root> {
        self.layer.merged()
    }
}
