//! One edge of a route decision: its line in the file, why it was taken or not, and each value that its condition read.

use crate::context::Context;
use glovebox_journal::event::{NodeId, RouteCandidate, RouteTaken};
use glovebox_pipeline::ir::{EdgeIndex, Pipeline};
use glovebox_pipeline::outcome::Answer;
use glovebox_pipeline::route::{self, Candidate, FailureTarget};
use glovebox_pipeline::source::Source;
use glovebox_record::{Outcome, Status};
use schemars::JsonSchema;
use serde::Serialize;

/// An edge, and why it was taken or not.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct EdgeWhy {
    /// The target of the edge.
    pub to: NodeId,
    /// The line of the edge in the pipeline file; absent if the file no longer has this edge.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<usize>,
    /// The condition as written; empty if the edge has none.
    pub condition: String,
    /// The values that the condition read.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub values: Vec<ValueRead>,
    /// True for the edge that was taken.
    pub taken: bool,
    /// True if the rule that decided could have taken the edge.
    pub matched: bool,
    /// Why the edge was taken or not.
    pub reason: String,
}

/// A value that a condition read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ValueRead {
    /// The key as written.
    pub key: String,
    /// The value of the key at that time; empty if it had none.
    pub value: String,
    /// True if the comparison was true.
    pub holds: bool,
    /// Size of a value that is stored as a blob, bytes, in which case the condition compares the digest; absent for any
    /// other value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stored_bytes: Option<u64>,
}

impl From<&RouteCandidate> for EdgeWhy {
    fn from(candidate: &RouteCandidate) -> Self {
        let RouteCandidate { to, condition, matched, reason, .. } = candidate.clone();
        Self { to, line: None, condition, values: Vec::new(), taken: false, matched, reason }
    }
}

/// Reads the values that edges depend on.
pub(super) struct Reader<'a> {
    pub(super) pipeline: &'a Pipeline,
    pub(super) source: Source<'a>,
    pub(super) context: &'a Context,
}

impl Reader<'_> {
    /// Explains an edge from its record in the journal.
    pub(super) fn recorded(&self, candidate: &RouteCandidate, taken: bool, outcome: &Outcome) -> EdgeWhy {
        let known = self.pipeline.edges.get(candidate.edge).filter(|edge| edge.to == candidate.to);
        let line = known.map(|edge| self.source.line(edge.span));
        EdgeWhy { line, values: self.values(candidate.edge, outcome), taken, ..EdgeWhy::from(candidate) }
    }

    /// Returns the outcome that a route was chosen for. After the last retry, `retry` counts as a failure if no
    /// condition matches `retry`.
    pub(super) fn as_decided(&self, outcome: Outcome, route: &RouteTaken) -> Outcome {
        let lookup = |key: &str| self.context.text(key);
        let taken = route.edge.and_then(|index| self.pipeline.edges.get(index));
        let holds = taken.and_then(|edge| edge.condition.as_ref()).is_some_and(|c| c.holds(&answer(&outcome), &lookup));
        match outcome.status == Status::Retry && !holds {
            true => Outcome { status: Status::Fail, ..outcome },
            false => outcome,
        }
    }

    /// Returns all edges of a node if the run ends there with this outcome. Returns `None` if an edge or a retry target
    /// would be taken.
    pub(super) fn nowhere(&self, node: &NodeId, outcome: &Outcome) -> Option<Vec<EdgeWhy>> {
        let lookup = |key: &str| self.context.text(key);
        let is_failure = matches!(outcome.status, Status::Fail | Status::Retry);
        let candidates = match is_failure {
            true => {
                let found = route::failure_target(self.pipeline, node, &answer(outcome), &lookup);
                (found.target == FailureTarget::Stop).then_some(found.candidates)
            }
            false => {
                let found = route::select(self.pipeline, node, &answer(outcome), &lookup);
                found.edge.is_none().then_some(found.candidates)
            }
        };
        Some(candidates?.into_iter().map(|candidate| self.looked_at(candidate, outcome)).collect())
    }

    fn looked_at(&self, candidate: Candidate, outcome: &Outcome) -> EdgeWhy {
        let EdgeIndex(index) = candidate.edge;
        let edge = &self.pipeline.edges[index];
        EdgeWhy {
            to: edge.to.clone(),
            line: Some(self.source.line(edge.span)),
            condition: candidate.condition_text,
            values: self.values(index, outcome),
            taken: false,
            matched: candidate.matched,
            reason: candidate.reason,
        }
    }

    fn values(&self, edge: usize, outcome: &Outcome) -> Vec<ValueRead> {
        let lookup = |key: &str| self.context.text(key);
        let condition = self.pipeline.edges.get(edge).and_then(|edge| edge.condition.as_ref());
        let clauses = condition.iter().flat_map(|condition| &condition.clauses);
        let read = clauses.map(|clause| {
            let value = clause.value(&answer(outcome), &lookup);
            let stored_bytes = self.context.stored(clause.key.as_str()).map(|stored| stored.bytes);
            ValueRead { key: clause.key.to_string(), holds: clause.admits(&value), value, stored_bytes }
        });
        read.collect()
    }
}

fn answer(outcome: &Outcome) -> Answer<'_> {
    Answer {
        status: outcome.status,
        preferred_label: outcome.preferred_label.as_deref().unwrap_or(""),
        suggested_next_ids: &outcome.suggested_next_ids,
    }
}
