//! Reads the schema of the answer of an agent's model: `output_schema`, as JSON or as the name of a file.
//!
//! A schema keyword that Glovebox does not enforce is an error here, before the first stage runs.

use super::node::GraphScope;
use super::reader::Findings;
use super::scope::Attributes;
use crate::diagnostic::Diagnostic;
use crate::files;
use crate::ir::{Handler, HandlerKind, Schema};
use crate::key;
use std::sync::Arc;

/// Returns the schema of the answer of a node's model. `None` if the answer may have any form.
pub(super) fn lower(
    handler: &Handler,
    from: &Attributes,
    scope: &GraphScope<'_, '_>,
    findings: &mut Findings<'_>,
) -> Option<Arc<Schema>> {
    let attribute = from.get(key::OUTPUT_SCHEMA).filter(|attribute| !attribute.value.trim().is_empty())?;
    let mut refuse = |message: String, help: &str| {
        findings.push(Diagnostic::error("output_schema", message, attribute.span).with_help(help));
        None
    };
    if handler.kind() != HandlerKind::Codergen {
        let message = format!(
            "`{}` is set on a `{}` node, which asks no model for an answer",
            key::OUTPUT_SCHEMA,
            handler.name()
        );
        return refuse(message, "remove it, or make the node a `box`");
    }
    if let Some(backend) = from.get(key::AGENT_BACKEND).filter(|backend| !backend.value.trim().is_empty()) {
        let message = format!(
            "`{}` has no effect together with `{}`: the answer of an agent program is not checked",
            key::OUTPUT_SCHEMA,
            key::AGENT_BACKEND
        );
        let help = format!("remove it, or remove `{}=\"{}\"`", key::AGENT_BACKEND, backend.value.trim());
        return refuse(message, &help);
    }
    let text = match files::text(attribute, scope.inputs, scope.sealed) {
        Ok(text) => text,
        Err((path, reason)) => {
            let help = "write the path from the folder of the pipeline file, such as `@schemas/review.json`";
            return refuse(format!("cannot read the schema file `{path}`: {reason}"), help);
        }
    };
    match Schema::parse(text) {
        Ok(schema) => Some(Arc::new(schema)),
        Err(error) => {
            let help = error.help().unwrap_or_else(|| "docs/models.md says what a schema may contain".to_owned());
            refuse(format!("`{}` cannot be enforced: {error}", key::OUTPUT_SCHEMA), &help)
        }
    }
}
