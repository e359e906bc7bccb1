//! Rules about human gates: a question must have a possible answer, and a default answer must be one of the choices.

use super::rule_findings::RuleFindings;
use super::{LintContext, Rule};
use crate::diagnostic::Diagnostic;
use crate::gate::{Gate, choices};
use crate::ir::{GateRequires, Handler, HandlerKind, Node};
use crate::key;
use glovebox_record::QuestionType;

/// Reports human gates whose question cannot be answered.
pub(super) fn human_gate(rule: &Rule, context: &LintContext<'_>) -> RuleFindings {
    let mut found = RuleFindings::none();
    for node in &context.pipeline.nodes {
        if found.is_full() {
            break;
        }
        if node.handler.kind() == HandlerKind::Human {
            problems(rule, context, node).into_iter().for_each(|problem| found.push(problem));
        }
    }
    found
}

fn problems(rule: &Rule, context: &LintContext<'_>, node: &Node) -> Vec<Diagnostic> {
    let gate = Gate::new(context.pipeline, node);
    let at = |message: String, span| rule.found(message, span).with_node(node.id.as_str());
    let mut problems = Vec::new();
    if context.pipeline.outgoing(&node.id).next().is_none() {
        return vec![at(
            format!("human gate `{}` has no outgoing edges, so no answer is possible", node.id),
            node.span,
        )];
    }
    let count = gate.choices.len();
    let expected = match gate.kind {
        QuestionType::YesNo if count != 2 => Some("two: one for yes and one for no"),
        QuestionType::Confirmation if !(1..=2).contains(&count) => Some("one or two"),
        QuestionType::MultipleChoice if count == 0 => Some("at least one"),
        _ => None,
    };
    if let Some(expected) = expected {
        let message = format!("human gate `{}` has {count} choices, expected {expected}", node.id);
        problems.push(at(message, node.span));
    }
    if let (Some(default), None) = (&node.gate.default, &gate.default) {
        let span = node.attributes.get(key::HUMAN_DEFAULT_CHOICE).map_or(node.span, |attribute| attribute.span);
        let message = format!("`{default}` is not a choice of human gate `{}`", node.id);
        problems.push(at(message, span));
    }
    problems
}

/// Reports nodes with `gate_requires="receipt"` that are not goal gates or can never get a receipt.
pub(super) fn gate_receipt(rule: &Rule, context: &LintContext<'_>) -> RuleFindings {
    let asks = |node: &&Node| node.checks.gate_requires == GateRequires::Receipt;
    let is_proven = |node: &Node| node.stages().any(Node::is_verifier);
    let found = |node: &Node| {
        let attribute =
            node.attributes.get(key::GATE_REQUIRES).filter(|_| !node.checks.goal_gate || !is_proven(node))?;
        let problem = match node.checks.goal_gate {
            true => "the node runs no verifier, so no receipt can satisfy the gate",
            false => "it is not a goal gate",
        };
        let message = format!("`{}` has `gate_requires=\"receipt\"`, but {problem}", node.id);
        Some(rule.found(message, attribute.key_span.to(attribute.span)).with_node(node.id.as_str()))
    };
    context.pipeline.nodes.iter().filter(asks).filter_map(found).collect()
}

/// Reports choices with the same key. Such a key selects none of them.
pub(super) fn human_gate_keys(rule: &Rule, context: &LintContext<'_>) -> RuleFindings {
    let mut found = RuleFindings::none();
    for node in context.pipeline.nodes.iter().filter(|node| node.handler == Handler::Human) {
        if found.is_full() {
            break;
        }
        let choices: Vec<_> = choices(context.pipeline, node).collect();
        for (index, (edge, choice)) in choices.iter().enumerate() {
            let Some((first, other)) = choices[..index].iter().find(|(_, other)| other.key == choice.key) else {
                continue;
            };
            let message = format!(
                "two choices of human gate `{}` have the key `{}`, so the key selects neither of them",
                node.id, choice.key
            );
            let span = edge.attributes.get(key::LABEL).map_or(edge.span, |label| label.span);
            let finding = rule.found(message, span).with_edge(edge.from.as_str(), edge.to.as_str());
            found.push(finding.with_label(first.span, format!("the other is `{}`", other.shown().escape_debug())));
        }
    }
    found
}
