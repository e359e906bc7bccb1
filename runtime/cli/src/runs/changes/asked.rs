//! Which changes a question of a human gate is about: those since the last question that a person answered, on the way to the gate.
//!
//! A gate that a default, a timeout or `--auto-approve` answered does not count: nobody looked at what came before it. On a branch, what
//! its parents changed before they forked counts too.

use super::changing;
use glovebox_journal::event::{AnsweredBy, BranchId, QuestionAsked, QuestionId, Record, StageFinished};
use glovebox_journal::rewind;
use jiff::Timestamp;
use std::collections::BTreeMap;

/// The records that a question is about.
pub struct AskedAbout<'a> {
    /// Those that lead to the end of the journal, in order.
    pub records: Vec<&'a Record>,
    /// The last question before it that a person answered.
    pub since: Option<&'a QuestionId>,
    /// The record of that answer; 0 for none.
    answered: u64,
    /// The record of the question.
    asked: u64,
    /// Its branch and those that it comes from, each with the record at which it began.
    begun: BTreeMap<&'a BranchId, u64>,
}

impl<'a> AskedAbout<'a> {
    /// Finds a question by its id, or the last one of a node. None if the run never asked it.
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

    /// True for a record of the branches that lead to the gate, before the question.
    pub fn is_before(&self, branch: &BranchId, seq: u64) -> bool {
        seq < self.asked && self.begun.get(branch).is_some_and(|begun| *begun <= seq)
    }

    /// Changes before the last answer, and changes since.
    pub(super) fn split(&self) -> (Changing, Changing) {
        let before = changing(&self.records, |branch, seq| seq < self.answered && self.is_before(branch, seq));
        let since = changing(&self.records, |branch, seq| seq > self.answered && self.is_before(branch, seq));
        (before, since)
    }
}

type Changing = Vec<(Timestamp, StageFinished)>;

fn is_of_person(how: AnsweredBy) -> bool {
    matches!(how, AnsweredBy::Terminal | AnsweredBy::Command | AnsweredBy::File)
}

/// A branch and those that it comes from. A name may have begun more than once, if the run began again at a stage.
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
