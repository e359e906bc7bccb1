//! Who listens to a conversation with a model, so that something secret is not told.
//!
//! It knows no secret: it is asked about each text before the text goes anywhere, and says where the secret stands, for the
//! record only. Nothing of that is told to guest or model.

use std::fmt;
use std::sync::Arc;

/// Says where in the secret a text was found.
type Find = dyn Fn(&str) -> Option<String> + Send + Sync;

/// Says of a text where in the secret it was found, or nothing.
#[derive(Clone)]
pub struct TextGuard(Arc<Find>);

impl TextGuard {
    /// Makes a guard; `find` is called for every text of a conversation and must not block.
    pub fn new(find: impl Fn(&str) -> Option<String> + Send + Sync + 'static) -> Self {
        Self(Arc::new(find))
    }

    /// Returns where the first secret of the texts stands.
    pub fn first<'t>(&self, texts: impl IntoIterator<Item = &'t str>) -> Option<String> {
        texts.into_iter().find_map(|text| (self.0)(text))
    }
}

impl fmt::Debug for TextGuard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TextGuard").finish_non_exhaustive()
    }
}
