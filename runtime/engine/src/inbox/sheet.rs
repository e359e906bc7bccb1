//! Prepared answers: a file with one answer per line in order, or `node: answer` (decision answers-file).
//!
//! Each line is used once. After the last line, the run behaves as if no person answers.

use glovebox_journal::event::{Digest, NodeId, Record, RecoveryAction, SheetLine};
use glovebox_pipeline::ir::{Handler, Pipeline};
use std::collections::{BTreeMap, VecDeque};

/// The prepared answers that are not used yet.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AnswerSheet {
    digest: Option<Digest>,
    of_node: BTreeMap<NodeId, VecDeque<Line>>,
    in_order: VecDeque<Line>,
}

/// The number of a line, and its answer.
type Line = (u32, String);

impl AnswerSheet {
    /// Parses a file. The text before a colon names a node only if the pipeline has a human gate with this name, or if
    /// it has a stage with this name and the answer is about the scope of the stage. Empty lines and lines that begin
    /// with `#` are skipped.
    pub fn parse(text: &str, pipeline: &Pipeline) -> Self {
        let mut sheet = Self { digest: Some(Digest::hash(text.as_bytes())), ..Self::default() };
        let lines = (1..).zip(text.lines().map(str::trim));
        for (number, line) in lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#')) {
            let named = line.split_once(':').map(|(node, answer)| (NodeId::from(node.trim()), answer.trim()));
            match named.filter(|(node, answer)| is_asked(pipeline, node, answer)) {
                Some((node, answer)) => sheet.of_node.entry(node).or_default().push_back((number, answer.to_owned())),
                None => sheet.in_order.push_back((number, line.to_owned())),
            }
        }
        sheet
    }

    /// Removes and returns the next answer for a gate: a line that names the gate, or else the next line in order.
    pub fn next(&mut self, node: &NodeId) -> Option<(String, SheetLine)> {
        self.next_named(node).or_else(|| {
            let next = self.in_order.pop_front()?;
            self.numbered(next)
        })
    }

    /// Removes and returns the next answer that names a node. A question about a scope gets no other answers, so that a
    /// line for a gate never grants anything.
    pub fn next_named(&mut self, node: &NodeId) -> Option<(String, SheetLine)> {
        let next = self.of_node.get_mut(node)?.pop_front()?;
        self.numbered(next)
    }

    fn numbered(&self, (line, value): Line) -> Option<(String, SheetLine)> {
        Some((value, SheetLine { digest: self.digest?, line }))
    }

    /// Returns the sheet without the lines that the run has used according to these records, and without the lines before
    /// them. Records of a file with other content are ignored.
    #[must_use]
    pub fn without_used<'a>(mut self, records: impl IntoIterator<Item = &'a Record>) -> Self {
        for record in records {
            let Some(answered) = record.event.question_answered() else { continue };
            let Some(used) = answered.sheet.filter(|used| Some(used.digest) == self.digest) else { continue };
            let queues = self.of_node.get_mut(&answered.node).into_iter().chain([&mut self.in_order]);
            let of_line = |queue: &&mut VecDeque<Line>| queue.iter().any(|(line, _)| *line == used.line);
            queues.filter(of_line).for_each(|queue| queue.retain(|(line, _)| *line > used.line));
        }
        self
    }
}

fn is_asked(pipeline: &Pipeline, id: &NodeId, answer: &str) -> bool {
    let is_action = || RecoveryAction::ALL.into_iter().any(|action| action.as_str() == answer);
    pipeline.node(id).is_some_and(|node| match node.handler {
        Handler::Human => true,
        Handler::Component(_) => is_action(),
        _ => false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use glovebox_state::simulation;

    #[test]
    fn a_line_names_a_gate_or_is_the_next_answer() {
        let pipeline = simulation::pipeline("digraph g { start; a [shape=hexagon] b [shape=hexagon] start -> a -> b }");
        let mut sheet = AnswerSheet::parse("# who ships\n\nb: Fix: all\n S \nc: x\n", &pipeline);
        let mut next = |node: &str| sheet.next(&node.into()).map(|(value, _)| value);
        assert_eq!(next("a").as_deref(), Some("S"));
        assert_eq!(next("b").as_deref(), Some("Fix: all"));
        assert_eq!(next("b").as_deref(), Some("c: x"), "`c` is no gate");
        assert_eq!(next("a"), None);
        assert_eq!(sheet.next(&"b".into()), None);
    }

    #[test]
    fn only_a_line_that_names_a_stage_answers_about_its_scope() {
        let pipeline = simulation::pipeline("digraph g { start; exit; a [shape=hexagon] w; start -> a -> w -> exit }");
        let mut sheet = AnswerSheet::parse("allow\nw: allow\nw: yes\n", &pipeline);
        assert_eq!(sheet.next_named(&"w".into()).map(|(value, _)| value).as_deref(), Some("allow"));
        assert_eq!(sheet.next_named(&"w".into()), None, "`yes` is no such answer");
        assert_eq!(sheet.next(&"a".into()).map(|(value, line)| (value, line.line)), Some(("allow".to_owned(), 1)));
        assert_eq!(sheet.next(&"a".into()).map(|(value, _)| value).as_deref(), Some("w: yes"));
    }
}
