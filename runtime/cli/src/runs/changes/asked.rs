//! The changes that a question of a human gate is about: the changes of stages that led to the gate, since the last
//! question that a person answered.
//!
//! A question that was answered by a default, a timeout or `--auto-approve` is ignored, because no person saw the
//! changes before it. So is a question about write recovery. For a gate on a branch, changes of the parent branches
//! before the branch began are included.

use super::changing;
use glovebox_journal::event::{AnsweredBy, BranchId, QuestionAsked, QuestionId, Record, StageFinished};
use glovebox_journal::rewind;
use jiff::Timestamp;
use std::collections::BTreeMap;

/// The records that a question is about.
pub struct AskedAbout<'a> {
    /// The records that no resume has undone, in order.
    pub records: Vec<&'a Record>,
    /// The last earlier question that a person answered; `None` if there is none.
    pub since: Option<&'a QuestionId>,
    /// Sequence number of the record of that answer; 0 if there is none.
    answered: u64,
    /// Sequence number of the record of the question.
    asked: u64,
    /// The branch of the question and its ancestors, each with the sequence number at which it began.
    begun: BTreeMap<&'a BranchId, u64>,
}

impl<'a> AskedAbout<'a> {
    /// Finds a question by its id, or the last question of a node. Returns `None` if the run never asked it.
    pub fn find(records: &'a [Record], question: &QuestionId) -> Option<(Self, &'a QuestionAsked)> {
        let records = rewind::in_force(records);
        let is_meant = |asked: &QuestionAsked| asked.question == *question || asked.node == *question.as_str();
        let asked = records.iter().enumerate().rev();
        let mut asked = asked.filter_map(|(at, record)| Some((at, record.event.question_asked()?)));
        let (at, asked) = asked.find(|(_, asked)| is_meant(asked))?;
        let before = &records[..at];
        let begun = lineage(before, &asked.branch);
        let last = before.iter().rev().find_map(|record| {
            let answered = record.event.question_answered();
            let answered = answered.filter(|answered| is_of_person(answered.how) && !answered.recovery)?;
            let is_here = begun.get(&answered.branch).is_some_and(|begun| *begun <= record.seq);
            is_here.then_some((record.seq, &answered.question))
        });
        let (answered, since) = last.unzip();
        let (answered, asked_at) = (answered.unwrap_or(0), records[at].seq);
        Some((Self { since, answered, asked: asked_at, begun, records }, asked))
    }

    /// Returns true for a record that is before the question, on a branch that leads to the gate.
    pub fn is_before(&self, branch: &BranchId, seq: u64) -> bool {
        seq < self.asked && self.begun.get(branch).is_some_and(|begun| *begun <= seq)
    }

    /// Returns the changes before the last answer, and the changes after it.
    pub(super) fn split(&self) -> (Changing, Changing) {
        let before = changing(&self.records, |branch, seq| seq < self.answered && self.is_before(branch, seq));
        let since = changing(&self.records, |branch, seq| seq > self.answered && self.is_before(branch, seq));
        (before, since)
    }
}

type Changing = Vec<(Timestamp, StageFinished)>;

fn is_of_person(how: AnsweredBy) -> bool {
    matches!(how, AnsweredBy::Terminal | AnsweredBy::Command | AnsweredBy::Http | AnsweredBy::File)
}

/// Returns a branch and its ancestors, with the sequence numbers at which they began. If a branch began more than once,
/// because the run restarted at a stage, the last beginning is returned.
fn lineage<'a>(records: &[&'a Record], branch: &'a BranchId) -> BTreeMap<&'a BranchId, u64> {
    let mut begun = BTreeMap::new();
    let mut next = branch;
    for record in records.iter().rev() {
        if let Some(started) = record.event.branch_started().filter(|started| started.branch == *next) {
            begun.insert(next, record.seq);
            next = &started.parent;
        }
    }
    begun.insert(next, 0);
    begun
}
