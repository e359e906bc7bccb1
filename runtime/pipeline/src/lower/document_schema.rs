//! The inputs of a `json-schema` stage: a file in the workspace, and a schema that no stage of the run can write.
//!
//! A schema from the pipeline becomes the value of the attribute here, so the component does not open a file. A schema
//! among the hold-outs is read from the sealed folder when the stage runs, so its path must be in a hold-out folder.

use super::node::GraphScope;
use super::reader::Findings;
use super::scope::RawNode;
use crate::diagnostic::Diagnostic;
use crate::files;
use crate::ir::{Attribute, Handler, HandlerKind, Schema};
use crate::key;

/// The message and the help about a mistake.
type Fault = (String, String);

/// Replaces the value of the schema attribute of a `json-schema` node by the text of the schema.
pub(super) fn settle(raw: &mut RawNode, handler: &Handler, scope: &GraphScope<'_, '_>, findings: &mut Findings<'_>) {
    if handler.kind() != HandlerKind::JsonSchema {
        return;
    }
    match schema(raw, scope) {
        Ok(Some(schema)) => {
            if let Some(attribute) = raw.attributes.get_mut(key::JSON_SCHEMA) {
                attribute.value = schema.text().into();
            }
        }
        Ok(None) => {}
        Err((message, help)) => {
            let keys = [key::JSON_SCHEMA, key::JSON_SCHEMA_HOLDOUT];
            let written = keys.into_iter().find_map(|key| raw.attributes.get(key));
            let span = written.map_or(raw.span, |attribute| attribute.span);
            findings.push(Diagnostic::error("json_schema", message, span).with_node(raw.id.as_str()).with_help(help));
        }
    }
}

/// Returns the schema in the pipeline. `None` if the schema is among the hold-outs.
fn schema(raw: &RawNode, scope: &GraphScope<'_, '_>) -> Result<Option<Schema>, Fault> {
    let text = |key| raw.attributes.get(key).filter(|attribute| !attribute.value.trim().is_empty());
    if text(key::JSON_FILE).is_none() {
        let message = format!("`{}` has no `{}`", raw.id, key::JSON_FILE);
        return Err((message, format!("name the file to check: `{}=\"config.json\"`", key::JSON_FILE)));
    }
    match (text(key::JSON_SCHEMA), text(key::JSON_SCHEMA_HOLDOUT)) {
        (Some(_), Some(_)) => {
            let message = format!("`{}` has both `{}` and `{}`", raw.id, key::JSON_SCHEMA, key::JSON_SCHEMA_HOLDOUT);
            Err((message, "remove one of them".to_owned()))
        }
        (None, None) => {
            let message = format!("`{}` has no `{}`", raw.id, key::JSON_SCHEMA);
            Err((message, format!("add `{}=\"@schemas/config.json\"`", key::JSON_SCHEMA)))
        }
        (Some(attribute), None) => {
            let text = files::text(attribute, scope.inputs, scope.sealed).map_err(|(path, reason)| {
                let help = format!("a schema among the hold-outs must be named by `{}`", key::JSON_SCHEMA_HOLDOUT);
                (format!("cannot read the schema file `{path}`: {reason}"), help)
            })?;
            Schema::parse_any(text).map(Some).map_err(|error| {
                let help =
                    error.help().unwrap_or_else(|| "docs/verifiers.md says what a schema may contain".to_owned());
                (format!("`{}` cannot be enforced: {error}", key::JSON_SCHEMA), help)
            })
        }
        (None, Some(attribute)) => in_holdouts(attribute, scope.sealed).map(|()| None),
    }
}

fn in_holdouts(attribute: &Attribute, sealed: &[String]) -> Result<(), Fault> {
    let path = attribute.value.trim();
    let is_sealed = sealed.iter().any(|folder| path.starts_with(folder.as_str()));
    let reason = files::fault(path, &[]).or_else(|| (!is_sealed).then(|| "no hold-out folder contains it".to_owned()));
    let message = |reason| format!("`{}` is `{path}`: {reason}", key::JSON_SCHEMA_HOLDOUT);
    reason.map_or(Ok(()), |reason| Err((message(reason), format!("the hold-outs are in {}", sealed.join(", ")))))
}
