//! One edge.

use super::{NodeId, SessionSettings, Text};
use crate::condition::Condition;
use crate::keyed::Attributes;
use crate::span::Span;

/// Index of an edge in [`super::Pipeline::edges`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EdgeIndex(pub usize);

/// One edge.
#[derive(Debug, Clone)]
pub struct Edge {
    /// Source.
    pub from: NodeId,
    /// Target.
    pub to: NodeId,
    /// Caption and routing key.
    pub label: Text,
    /// The condition; none for an unconditional edge.
    pub condition: Option<Condition>,
    /// Priority, higher first.
    pub weight: i64,
    /// Wins over weights if no condition, label or id decides (decision edge-order).
    pub default: bool,
    /// Begins a new generation of the run at the target.
    pub loop_restart: bool,
    /// The session settings for its target.
    pub session: SessionSettings,
    /// Every attribute by key.
    pub attributes: Attributes,
    /// The span of the source's name.
    pub from_span: Span,
    /// The span of the target's name.
    pub to_span: Span,
    /// Its span, from one name to the other.
    pub span: Span,
}
