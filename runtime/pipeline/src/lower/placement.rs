//! Converts `runs_on`: what the machine of a stage must have. A node adds to its graph.
//!
//! A need that no machine can meet and a need without effect are errors, because the author expects the stage on certain
//! machines.

use super::defaults::{VERIFYING, is_set};
use super::reader::Findings;
use super::scope::{Attributes, RawNode};
use crate::diagnostic::Diagnostic;
use crate::ir::{Attribute, Handler};
use crate::key;
use crate::span::Span;
use glovebox_record::Need;
use glovebox_record::placement::NeedFault;
use std::sync::Arc;

/// The rule of needs that cannot be met or have no effect.
const RULE: &str = "runs_on";
const FORM: &str = "write labels, `arch=` and `tier=`, separated by commas: `gpu, arch=arm64, tier=full`";

/// Returns what the graph asks of the machine of each stage. `None` for nothing.
pub(super) fn graph(from: &Attributes, findings: &mut Findings<'_>) -> Option<Arc<Need>> {
    parse(from.get(key::RUNS_ON)?, findings).map(Arc::new)
}

/// Returns what a node and its graph ask of the machine of the node. `None` for nothing, and for a node that makes no
/// attempts.
pub(super) fn node(
    raw: &RawNode,
    handler: &Handler,
    of_graph: Option<&Arc<Need>>,
    findings: &mut Findings<'_>,
) -> Option<Arc<Need>> {
    let Some(attribute) = raw.attributes.get(key::RUNS_ON) else {
        return of_graph.filter(|_| makes_attempts(raw, handler)).cloned();
    };
    let own = parse(attribute, findings);
    if !makes_attempts(raw, handler) {
        let message = format!("`runs_on` has no effect on `{}`, which makes no attempts", raw.id);
        own.iter().for_each(|_| findings.push(found(raw, &message, attribute.span, "remove it, or set it on a stage")));
        return None;
    }
    match (own, of_graph) {
        (None, of_graph) => of_graph.cloned(),
        (Some(own), None) => Some(Arc::new(own)),
        (Some(own), Some(of_graph)) => match of_graph.and(&own) {
            Ok(both) => Some(Arc::new(both)),
            Err(archs) => {
                let message = format!("the graph and `{}` need {archs}, and no machine has both", raw.id);
                let help = "remove one of them: a node adds to `runs_on` of its graph";
                findings.push(found(raw, &message, attribute.span, help));
                None
            }
        },
    }
}

/// Returns true if attempts of the node run on a machine: its component executes it, it is verified, or it runs a child
/// pipeline, whose stages inherit the need.
pub(super) fn makes_attempts(raw: &RawNode, handler: &Handler) -> bool {
    let has_own = handler.component().is_some() || matches!(handler, Handler::Unavailable(_));
    has_own || VERIFYING.iter().any(|key| is_set(&raw.attributes, *key))
}

/// Parses a value, and reports a mistake at its entry. `None` for a need that every machine meets.
fn parse(attribute: &Attribute, findings: &mut Findings<'_>) -> Option<Need> {
    match Need::parse(&attribute.value) {
        Ok(need) => (!need.is_empty()).then_some(need),
        Err(error) => {
            let span = findings.places(attribute).span(error.range);
            let rule = if matches!(error.fault, NeedFault::ArchConflict(_)) { RULE } else { "attribute_value" };
            findings.push(Diagnostic::error(rule, format!("`runs_on`: {}", error.fault), span).with_help(FORM));
            None
        }
    }
}

fn found(raw: &RawNode, message: &str, span: Span, help: &str) -> Diagnostic {
    Diagnostic::error(RULE, message, span).with_help(help).with_node(raw.id.as_str())
}
