//! The decision about the status files of a stage (decision status-files): which file decides, and what it may change.
//!
//! The caller reads the three places and enforces the bounds of files. This module does no I/O. A file can lower the outcome of a
//! stage and choose the next stage. It never turns a failure of the stage into a success, and it decides neither class nor code
//! of a failure.

mod decode;

pub use decode::{StatusError, decode};

use glovebox_journal::event::{Attempt, SearchedStatus, StatusEffect, StatusFound, StatusOwnership, StatusPlace};
use glovebox_record::{Failure, FailureClass, FailureCode, Outcome, Status};

/// What was found at a place.
#[derive(Debug, Clone, PartialEq)]
pub enum FoundStatus {
    /// No file.
    Missing,
    /// Something that is no usable status: what it is, and why.
    Unusable(StatusFound, String),
    /// A status.
    Parsed(Box<StatedStatus>),
}

impl FoundStatus {
    /// Returns true for a status that does not belong to another attempt.
    fn is_usable(&self, attempt: &Attempt) -> bool {
        matches!(self, Self::Parsed(stated) if stated.owner.ownership(attempt) != StatusOwnership::Foreign)
    }
}

/// The content of a status file.
#[derive(Debug, Clone, PartialEq)]
pub struct StatedStatus {
    /// The outcome that the file states. The class and the code of a failure are the host's.
    pub outcome: Outcome,
    /// The owner fields of the file.
    pub owner: StatedOwner,
}

/// The owner fields of a status file. Absent fields claim nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StatedOwner {
    /// `status_owner_node_id`.
    pub node: Option<String>,
    /// `status_owner_branch_id`.
    pub branch: Option<String>,
    /// `status_owner_attempt_id`.
    pub attempt: Option<String>,
    /// `status_owner_run_generation`.
    pub generation: Option<String>,
}

/// An owner field that names something else than the attempt.
struct ForeignField<'a> {
    field: &'static str,
    stated: &'a str,
    expected: String,
}

impl StatedOwner {
    /// Returns to whom the file belongs, for the attempt that may have written it.
    fn ownership(&self, attempt: &Attempt) -> StatusOwnership {
        match (*self == Self::default(), self.foreign(attempt)) {
            (true, _) => StatusOwnership::ByPath,
            (false, None) => StatusOwnership::Named,
            (false, Some(_)) => StatusOwnership::Foreign,
        }
    }

    /// Returns the first field that does not name the attempt.
    fn foreign(&self, Attempt { task, id, .. }: &Attempt) -> Option<ForeignField<'_>> {
        let fields = [
            ("status_owner_node_id", &self.node, task.node.to_string()),
            ("status_owner_branch_id", &self.branch, task.branch.to_string()),
            ("status_owner_attempt_id", &self.attempt, id.to_string()),
            ("status_owner_run_generation", &self.generation, task.generation.to_string()),
        ];
        let stated = fields
            .into_iter()
            .filter_map(|(field, stated, expected)| Some(ForeignField { field, stated: stated.as_deref()?, expected }));
        stated.into_iter().find(|field| field.stated != field.expected)
    }
}

/// The decision about the status files of an attempt.
#[derive(Debug, Clone, PartialEq)]
pub struct StatusDecision {
    /// The places that were searched, in order.
    pub searched: Vec<SearchedStatus>,
    /// The file that decides.
    pub verdict: StatusVerdict,
    /// Places after the one that decides that have a usable file, too.
    pub unused: Vec<StatusPlace>,
}

/// The file that decides.
#[derive(Debug, Clone, PartialEq)]
pub enum StatusVerdict {
    /// No place has a file that may decide.
    NoFile,
    /// The file at this place, with its outcome.
    Accepted(StatusPlace, Box<Outcome>),
    /// The file in the drop folder fails the attempt.
    Refused(Failure),
}

/// Decides which file is the answer of the attempt. `found` has what is at each place of [`StatusPlace::ALL`]. The drop folder
/// decides alone if it has an entry. A file in the workspace that cannot be used is passed over.
pub fn decide(found: [FoundStatus; 3], attempt: &Attempt) -> StatusDecision {
    let mut searched = Vec::new();
    let mut places = StatusPlace::ALL.into_iter().zip(found);
    while let Some((place, found)) = places.next() {
        let (kind, owner) = match &found {
            FoundStatus::Missing => (StatusFound::Missing, None),
            FoundStatus::Unusable(kind, _) => (*kind, None),
            FoundStatus::Parsed(stated) => (StatusFound::Parsed, Some(stated.owner.ownership(attempt))),
        };
        searched.push(SearchedStatus { place, path: place.path().to_owned(), found: kind, owner });
        let verdict = match found {
            FoundStatus::Missing => continue,
            FoundStatus::Parsed(stated) if owner != Some(StatusOwnership::Foreign) => {
                StatusVerdict::Accepted(place, Box::new(stated.outcome))
            }
            _ if place != StatusPlace::Drop => continue,
            FoundStatus::Unusable(_, why) => StatusVerdict::Refused(unusable(&why)),
            FoundStatus::Parsed(stated) => StatusVerdict::Refused(foreign(&stated.owner, attempt)),
        };
        let unused = places.filter(|(_, found)| found.is_usable(attempt)).map(|(place, _)| place).collect();
        return StatusDecision { searched, verdict, unused };
    }
    StatusDecision { searched, verdict: StatusVerdict::NoFile, unused: Vec::new() }
}

fn unusable(why: &str) -> Failure {
    let shown = StatusPlace::Drop.shown();
    Failure::new(FailureClass::Deterministic, FailureCode::STATUS_UNREADABLE, format!("`{shown}` is no status: {why}"))
}

fn foreign(owner: &StatedOwner, attempt: &Attempt) -> Failure {
    let shown = StatusPlace::Drop.shown();
    let reason = match owner.foreign(attempt) {
        Some(ForeignField { field, stated, expected }) => format!(
            "`{shown}` belongs to another attempt: `{field}` is `{stated}`, expected `{expected}`; write the values of \
             the GLOVEBOX_STATUS_ variables, or leave the field out"
        ),
        None => format!("`{shown}` belongs to another attempt"),
    };
    Failure::new(FailureClass::Deterministic, FailureCode::STATUS_FOREIGN, reason)
}

/// Returns the outcome of an attempt whose stage returned `own`, after the decision about its status files, and what the decision
/// changed. A failed stage stays failed. Hints, context and notes are taken only from a file that also states a failure.
pub fn settle(own: Outcome, verdict: StatusVerdict) -> (Outcome, StatusEffect) {
    let has_failed = is_failure(own.status);
    match verdict {
        StatusVerdict::NoFile => (own, StatusEffect::None),
        StatusVerdict::Refused(failure) if has_failed => {
            let notes = joined(own.notes, &failure.reason);
            (Outcome { notes, ..own }, StatusEffect::Refused)
        }
        StatusVerdict::Refused(failure) => {
            (Outcome { notes: own.notes, ..Outcome::failed(failure) }, StatusEffect::Refused)
        }
        StatusVerdict::Accepted(_, stated) if has_failed && !is_failure(stated.status) => {
            (own, StatusEffect::Overruled)
        }
        StatusVerdict::Accepted(_, stated) => (merged(own, *stated), StatusEffect::Accepted),
    }
}

/// Returns the outcome of the stage with the hints of the file, and with the worse of the two statuses.
fn merged(own: Outcome, stated: Outcome) -> Outcome {
    let mut notes = joined(own.notes, &stated.notes);
    let is_lowered = rank(stated.status) < rank(own.status);
    if let Some(failure) = stated.failure.as_ref().filter(|_| !is_lowered) {
        notes = joined(notes, &format!("the status file says: {}", failure.reason));
    }
    let mut context_updates = stated.context_updates;
    // What the host and the component observed, such as `tool.output`, is not the file's to change.
    context_updates.extend(own.context_updates);
    let (status, failure) = if is_lowered { (stated.status, stated.failure) } else { (own.status, own.failure) };
    Outcome {
        status,
        failure,
        preferred_label: stated.preferred_label.or(own.preferred_label),
        suggested_next_ids: match stated.suggested_next_ids.is_empty() {
            true => own.suggested_next_ids,
            false => stated.suggested_next_ids,
        },
        context_updates,
        notes,
    }
}

fn is_failure(status: Status) -> bool {
    matches!(status, Status::Fail | Status::Retry)
}

/// Returns how good a status is. A file can only replace a status by a worse one.
fn rank(status: Status) -> u8 {
    match status {
        Status::Success => 3,
        Status::PartialSuccess => 2,
        Status::Skipped => 1,
        Status::Retry | Status::Fail => 0,
    }
}

fn joined(notes: String, line: &str) -> String {
    match (notes.is_empty(), line.is_empty()) {
        (_, true) => notes,
        (true, false) => line.to_owned(),
        (false, false) => format!("{notes}\n{line}"),
    }
}

#[cfg(test)]
mod tests;
