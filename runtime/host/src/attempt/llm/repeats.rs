//! Detects a model that repeats the same tool calls.
//!
//! The rule is that of the coding-agent-loop specification (§2.10), with one difference: because three does not divide the window of
//! ten calls, a cycle of three calls is looked for in the last nine. The host does this because it cannot rely on the component.

use glovebox_models::chat::{Answer, FieldName};
use glovebox_record::Digest;
use std::collections::VecDeque;

/// Number of most recent calls that are compared.
const WINDOW: usize = 10;
/// Maximum length of a cycle that is detected.
const CYCLE_MAX: usize = 3;
/// Number of answers that may continue a cycle before the stage fails.
const REPEATS_MAX: u32 = 2;

/// The last calls of a conversation.
#[derive(Debug, Default)]
pub(super) struct Repeats {
    calls: VecDeque<Digest>,
    in_a_row: u32,
}

/// How the host reacts to an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RepeatAction {
    /// The answer is passed on.
    New,
    /// The calls are not executed, and the model gets the reason.
    Warn,
    /// The stage fails.
    Stop,
}

impl Repeats {
    /// Adds the tool calls of an answer, and returns the reaction.
    pub(super) fn note(&mut self, answer: &Answer) -> RepeatAction {
        let mut has_calls = false;
        for call in answer.tool_calls() {
            has_calls = true;
            let key = format!("{}\n{}", FieldName::Name.value_in(call), call.text);
            self.calls.push_back(Digest::hash(key.as_bytes()));
        }
        self.calls.drain(..self.calls.len().saturating_sub(WINDOW));
        if !has_calls || !self.is_cycle() {
            self.in_a_row = 0;
            return RepeatAction::New;
        }
        self.in_a_row += 1;
        if self.in_a_row > REPEATS_MAX { RepeatAction::Stop } else { RepeatAction::Warn }
    }

    fn is_cycle(&self) -> bool {
        self.calls.len() >= WINDOW
            && (1..=CYCLE_MAX).any(|length| {
                let last = WINDOW / length * length;
                let calls: Vec<&Digest> = self.calls.iter().skip(WINDOW - last).collect();
                // A single repeated call is a cycle of length one. It is reported only if it fills the whole window.
                let is_of_one = calls.iter().all(|call| *call == calls[0]);
                (last == WINDOW || !is_of_one) && calls.chunks(length).all(|cycle| cycle == &calls[..length])
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use glovebox_models::chat::call_part;

    fn run(words: &str) -> String {
        let mut repeats = Repeats::default();
        let found = words.chars().map(|name| {
            let parts = if name == '-' { Vec::new() } else { vec![call_part("1", name.to_string(), "{}")] };
            match repeats.note(&Answer { parts, ..Answer::default() }) {
                RepeatAction::New => '.',
                RepeatAction::Warn => 'w',
                RepeatAction::Stop => 'S',
            }
        });
        found.collect()
    }

    #[test]
    fn cycles_of_one_two_and_three_are_found() {
        let check = |calls: &str, expected: &str| assert_eq!(run(calls), expected, "{calls}");
        check("aaaaaaaaaaaa", ".........wwS");
        check("abababababab", ".........wwS");
        check("xabcabcabcabc", ".........wwSS");
        check("aaaaaaaaabaaaaaaaaaa", "...................w");
        check("aaaaaaaaaaba", ".........w..");
        check("abcdabcdabcdabcd", "................");
        check("aaaaaaaaa-a", "..........w");
        check("----------", "..........");
    }
}
