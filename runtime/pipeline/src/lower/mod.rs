//! `Ast` to `Pipeline`: the only place where a string attribute becomes a type.

use crate::Inputs;
use crate::diagnostic::Diagnostic;
use crate::dot::Ast;
use crate::ir::{Bounds, NodeId, Pipeline, STEPS_MAX_DEFAULT};

/// Lowers what was parsed. With an error among the diagnostics the pipeline is a draft that must not run.
pub fn lower(_source: &str, ast: &Ast<'_>, _inputs: &Inputs) -> (Pipeline, Vec<Diagnostic>) {
    let name = ast.name.as_ref().map(|name| name.text.to_string()).unwrap_or_default();
    let draft = Pipeline {
        label: name.clone(),
        name,
        goal: String::new(),
        nodes: Vec::new(),
        edges: Vec::new(),
        start: NodeId::new(""),
        default_max_retries: 0,
        retry_target: None,
        fallback_retry_target: None,
        bounds: Bounds { steps_max: STEPS_MAX_DEFAULT, wall_max: None },
        attributes: Default::default(),
    };
    (draft, Vec::new())
}
