//! One edge of a pipeline.

use super::{NodeId, SessionSettings, Text};
use crate::condition::Condition;
use crate::keyed::Attributes;
use crate::span::Span;

/// Index of an edge in [`super::Pipeline::edges`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EdgeIndex(pub usize);

/// One edge of a pipeline.
#[derive(Debug, Clone)]
pub struct Edge {
    /// Name of the source node.
    pub from: NodeId,
    /// Name of the target node.
    pub to: NodeId,
    /// Displayed text and routing key.
    pub label: Text,
    /// The condition. `None` for an unconditional edge.
    pub condition: Option<Condition>,
    /// Priority; the edge with the higher weight wins.
    pub weight: i64,
    /// True if the edge is selected before weights are compared, when no condition, label or id decides
    /// (decision edge-order).
    pub default: bool,
    /// True if the edge begins a new generation of the run at its target.
    pub loop_restart: bool,
    /// Session settings for the target.
    pub session: SessionSettings,
    /// Every attribute by key.
    pub attributes: Attributes,
    /// Span of the source's name.
    pub from_span: Span,
    /// Span of the target's name.
    pub to_span: Span,
    /// Span from one name to the other.
    pub span: Span,
}
