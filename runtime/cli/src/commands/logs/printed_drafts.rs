//! What `logs --follow` prints of the unfinished answers of models.
//!
//! A terminal cannot take a line back, so only complete lines are printed: the escapes of a line depend on its beginning. A
//! long line is broken between two words. If an answer is discarded, the next line says so.

use super::title;
use crate::terminal::visible;
use glovebox_engine::live::DraftChange;
use glovebox_journal::event::{Attempt, AttemptId};
use std::collections::BTreeMap;

/// The line below the lines of an answer that was discarded.
pub(super) const DISCARDED: &str = "the answer was discarded";
/// Length from which an incomplete line is broken, in bytes.
const LINE_BYTES: usize = 100;
/// Maximum number of printed bytes that are kept, to recognize them in the finished answer.
const KEPT_BYTES_MAX: usize = 64 << 10;

/// The unfinished answers, by attempt.
#[derive(Default)]
pub(super) struct PrintedDrafts(BTreeMap<AttemptId, PrintedDraft>);

#[derive(Default)]
struct PrintedDraft {
    /// The end of the text that was printed.
    printed: String,
    /// The text after it.
    waiting: String,
}

impl PrintedDrafts {
    /// Takes note of a change, and returns the lines to print.
    pub(super) fn change(&mut self, attempt: &Attempt, change: DraftChange) -> Vec<String> {
        let (text, is_new) = match change {
            DraftChange::New(text) => (text, true),
            DraftChange::More(text) => (text, false),
            // Either its turn follows, or another answer.
            DraftChange::Gone => return Vec::new(),
        };
        let said = |what: &str| format!("==> {}: {what}", title(attempt));
        let mut lines = Vec::new();
        if is_new && self.forget(&attempt.id) {
            lines.push(said(DISCARDED));
        }
        let draft = self.0.entry(attempt.id.clone()).or_default();
        let is_first = draft.printed.is_empty();
        let added = indented(&draft.add(&text));
        lines.extend((is_first && !added.is_empty()).then(|| said("the model writes")));
        lines.extend(added);
        lines
    }

    /// Takes note of a finished answer. Returns the length of its beginning that is printed; `None` if what was printed is not in
    /// it.
    pub(super) fn finish(&mut self, attempt: &AttemptId, text: &str) -> Option<usize> {
        let Some(PrintedDraft { printed, .. }) = self.0.remove(attempt) else { return Some(0) };
        if printed.is_empty() { Some(0) } else { text.find(&printed).map(|at| at + printed.len()) }
    }

    /// Forgets the unfinished answer of an attempt. Returns true if a part of it was printed.
    pub(super) fn forget(&mut self, attempt: &AttemptId) -> bool {
        self.0.remove(attempt).is_some_and(|draft| !draft.printed.is_empty())
    }
}

impl PrintedDraft {
    /// Adds text, and returns the text that can be printed now.
    fn add(&mut self, text: &str) -> String {
        self.waiting.push_str(text);
        let lines = self.waiting.rfind('\n').map_or(0, |at| at + 1);
        let rest = &self.waiting[lines..];
        let words = rest.rfind(' ').filter(|_| rest.len() >= LINE_BYTES).map_or(0, |at| at + 1);
        let shown: String = self.waiting.drain(..lines + words).collect();
        self.printed.push_str(&shown);
        let excess = self.printed.len().saturating_sub(KEPT_BYTES_MAX);
        self.printed.drain(..self.printed.ceil_char_boundary(excess));
        shown
    }
}

/// Returns the lines of an untrusted text, escaped and indented.
pub(super) fn indented(text: &str) -> Vec<String> {
    visible::block(text.trim_end()).lines().map(|line| format!("    {line}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use glovebox_journal::event::{BranchId, NodeId, Task};

    fn attempt() -> Attempt {
        let task = Task::for_handler(0, &BranchId::main(), &NodeId::from("look"), 1);
        Attempt { task, ordinal: 1, id: AttemptId::from("a") }
    }

    fn more(text: &str) -> DraftChange {
        DraftChange::More(text.to_owned())
    }

    #[test]
    fn complete_lines_are_printed_once() {
        let (attempt, mut drafts) = (attempt(), PrintedDrafts::default());
        let mut check = |change: DraftChange, lines: &[&str]| assert_eq!(drafts.change(&attempt, change), lines);
        check(DraftChange::New("first".to_owned()), &[]);
        check(
            more(" I look\x1b[2J\n\n::error::no\nthen"),
            &["==> look visit 1: the model writes", "    first I look\\x1b[2J", "    ", "    \\x3a:error::no"],
        );
        check(DraftChange::Gone, &[]);
        let text = "first I look\x1b[2J\n\n::error::no\nthen I act";
        assert_eq!(drafts.finish(&attempt.id, text).map(|at| &text[at..]), Some("then I act"));
        assert_eq!(drafts.finish(&attempt.id, text), Some(0), "another answer");
    }

    #[test]
    fn a_long_line_is_broken_between_words() {
        let (attempt, mut drafts) = (attempt(), PrintedDrafts::default());
        let text = "word ".repeat(30) + "wo";
        let lines = drafts.change(&attempt, DraftChange::New(text));
        assert_eq!(lines[1..], [format!("    {}", "word ".repeat(30).trim_end())]);
        assert_eq!(drafts.change(&attempt, more("rd\n")), ["    word"]);
    }

    #[test]
    fn an_answer_that_is_discarded_is_said_to_be() {
        let (attempt, mut drafts) = (attempt(), PrintedDrafts::default());
        drafts.change(&attempt, DraftChange::New("wrong\n".to_owned()));
        drafts.change(&attempt, DraftChange::Gone);
        let lines = drafts.change(&attempt, DraftChange::New("right\n".to_owned()));
        assert_eq!(
            lines,
            ["==> look visit 1: the answer was discarded", "==> look visit 1: the model writes", "    right"]
        );
        assert_eq!(drafts.finish(&attempt.id, "neither"), None);
        // Nothing was printed of this one, so nothing was discarded.
        drafts.change(&attempt, DraftChange::New("wrong".to_owned()));
        assert_eq!(drafts.change(&attempt, DraftChange::New("right".to_owned())), [""; 0]);
        assert_eq!(drafts.finish(&attempt.id, "neither"), Some(0));
    }

    #[test]
    fn of_a_long_answer_the_end_is_recognized() {
        let (attempt, mut drafts) = (attempt(), PrintedDrafts::default());
        let text: String = (0..20_000).map(|number| format!("{number}\n")).collect();
        drafts.change(&attempt, DraftChange::New(text.clone()));
        assert_eq!(drafts.finish(&attempt.id, &(text.clone() + "end")), Some(text.len()));
    }
}
