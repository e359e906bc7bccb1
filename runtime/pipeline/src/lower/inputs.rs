//! Replaces `$goal` and the inputs of `--set` (spec §9.2).
//!
//! Each `$name` is replaced once. The inserted text is not searched for names, so an input cannot insert another input. A name
//! that is not an input stays unchanged, because prompts may mention names such as `$PWD`.

use super::reader::Findings;
use super::scope::Attributes;
use crate::diagnostic::Diagnostic;
use crate::inputs::Inputs;
use crate::ir::Text;
use crate::key::{self, Key};
use crate::nearest::nearest;
use crate::span::Span;
use std::collections::BTreeSet;

/// The inputs of a run, and which of them the file has used so far.
pub(super) struct Expansion<'a> {
    inputs: &'a Inputs,
    /// The goal with inputs replaced. `None` while the goal itself is expanded, because a goal cannot contain itself.
    goal: Option<Text>,
    used: BTreeSet<&'a str>,
    /// Every `$name` that is not an input, for suggestions.
    seen: BTreeSet<String>,
    /// True if the values are already final, so that nothing is replaced.
    is_settled: bool,
    /// Buffer for the text that is being expanded.
    expanded: String,
}

impl<'a> Expansion<'a> {
    /// Replaces graph attributes by inputs with the same key, then expands the goal.
    pub(super) fn new(inputs: &'a Inputs, graph: &mut Attributes) -> Self {
        let mut expansion = Self {
            inputs,
            goal: None,
            used: BTreeSet::new(),
            seen: BTreeSet::new(),
            is_settled: false,
            expanded: String::new(),
        };
        for (key, value) in &inputs.set {
            if let Some(attribute) = graph.get_mut(Key::new(key)) {
                attribute.value = value.into();
                expansion.used.insert(key);
            }
        }
        let raw = graph.get(key::GOAL).map(|attribute| attribute.value.clone());
        let raw = raw.or_else(|| inputs.set.get(key::GOAL.as_str()).map(Text::from)).unwrap_or_default();
        expansion.goal = Some(if inputs.set.contains_key(key::GOAL.as_str()) { raw } else { expansion.expand(&raw) });
        expansion
    }

    /// Creates the expansion for a graph whose values are already final. It replaces nothing.
    pub(super) fn settled(inputs: &'a Inputs, graph: &mut Attributes) -> Self {
        let goal = graph.get(key::GOAL).map(|attribute| attribute.value.clone());
        Self { inputs, goal, used: BTreeSet::new(), seen: BTreeSet::new(), is_settled: true, expanded: String::new() }
    }

    /// Returns true if the values are already final, so that `@path` in a prompt is plain text.
    pub(super) fn is_settled(&self) -> bool {
        self.is_settled
    }

    /// Returns the goal with inputs replaced.
    pub(super) fn goal(&self) -> &str {
        self.goal.as_deref().unwrap_or_default()
    }

    /// Replaces the goal and the inputs in a prompt.
    pub(super) fn expand(&mut self, text: &str) -> Text {
        if self.is_settled || !text.as_bytes().contains(&b'$') {
            return text.into();
        }
        self.expanded.clear();
        let mut pieces = text.split('$');
        self.expanded.push_str(pieces.next().unwrap_or_default());
        for piece in pieces {
            let length = piece.bytes().take_while(|byte| byte.is_ascii_alphanumeric() || *byte == b'_').count();
            let (name, rest) = piece.split_at(length);
            self.append_value(name);
            self.expanded.push_str(rest);
        }
        Text::new(&self.expanded)
    }

    /// Appends the value of `$name`, or `$name` itself if it is not an input.
    fn append_value(&mut self, name: &str) {
        let expanded = &mut self.expanded;
        let input = self.inputs.set.get_key_value(name);
        if let Some((key, _)) = input {
            self.used.insert(key);
        }
        match (input, &self.goal) {
            (_, Some(goal)) if name == key::GOAL.as_str() => expanded.push_str(goal),
            (Some((_, value)), _) => expanded.push_str(value),
            (None, _) => {
                if !name.is_empty() && !self.seen.contains(name) {
                    self.seen.insert(name.to_owned());
                }
                expanded.push('$');
                expanded.push_str(name);
            }
        }
    }

    /// Reports inputs that the file does not use.
    pub(super) fn finish(self, graph: &Attributes, span: Span, findings: &mut Findings<'_>) {
        for key in self.inputs.set.keys().filter(|key| !self.used.contains(key.as_str())) {
            let message = format!(
                "the file does not use the input `{key}`: it has neither `${key}` nor a graph attribute `{key}`"
            );
            let known = self.seen.iter().map(String::as_str).chain(graph.keys().map(|key| key.as_str()));
            let help = match nearest(key, known) {
                Some(meant) => format!("did you mean `{meant}`?"),
                None => format!("write `${key}` in the goal or in a prompt, or `graph [{key}=\"…\"]`"),
            };
            findings.push(Diagnostic::error("input_declared", message, span).with_help(help));
        }
    }
}
