//! What a plugin of the project says about itself: its attributes for nodes, with types, defaults and documentation.
//!
//! Nothing of the component is executed, and whether it may run is not checked here.

use crate::commands::plugin::component_of;
use crate::exit::{Exit, Stop};
use crate::prepare;
use crate::terminal::rows::Rows;
use crate::terminal::visible;
use glovebox_host::inspect::attribute_schema::AttributeSchema;
use glovebox_host::inspect::{Inspection, Manifest};
use glovebox_pipeline::nearest::nearest;
use std::collections::BTreeMap;
use std::path::Path;

type Attributes = BTreeMap<String, AttributeSchema>;

/// Returns the names of the plugins of a project, in their order.
pub(super) fn names(workdir: &Path) -> Result<Vec<String>, Stop> {
    Ok(prepare::read_project(workdir, None)?.config.plugins.into_keys().collect())
}

/// Returns the page of a plugin.
pub(super) fn page(workdir: &Path, name: &str) -> Result<String, Stop> {
    let inspection = component_of(workdir, name)?;
    let mut rows = Rows::new(9);
    let manifest = inspection.manifest.as_ref();
    let version = manifest.map(|manifest| format!(" {}", manifest.version)).unwrap_or_default();
    rows.row("plugin", format_args!("{name}{version} ({})", inspection.world));
    if let Some(manifest) = manifest.filter(|manifest| !manifest.description.is_empty()) {
        rows.row("about", &manifest.description);
    }
    match manifest.and_then(|manifest| manifest.attributes.as_ref()) {
        None => rows.row("attribute", "any: the plugin declares none"),
        Some(declared) if declared.is_empty() => rows.row("attribute", "none"),
        Some(declared) => declared.iter().for_each(|(name, schema)| add_attribute(&mut rows, name, schema)),
    }
    let mut text = rows.finish();
    if let Some(docs) = manifest.and_then(|manifest| manifest.docs.as_deref()) {
        text.push_str(&format!("\n{}\n", visible::block(docs).trim_end()));
    }
    text.push_str(&format!("\nUse it in a node: {}\n", example(name, manifest)));
    Ok(text)
}

/// Returns the page of one attribute of a plugin.
pub(super) fn attribute(workdir: &Path, name: &str, attribute: &str) -> Result<String, Stop> {
    let inspection = component_of(workdir, name)?;
    let declared = declared(&inspection);
    let Some(schema) = declared.get(attribute) else {
        let shown = visible::line(attribute);
        let stop = Stop::new(Exit::Usage, format!("plugin `{name}` declares no attribute `{shown}`"));
        let names = || declared.keys().map(String::as_str);
        return Err(match nearest(attribute, names()) {
            Some(meant) => stop.with_help(format!("did you mean `{meant}`?")),
            None if declared.is_empty() => stop.with_help("it declares no attributes, so its nodes may have any"),
            None => stop.with_help(format!("it has `{}`", names().collect::<Vec<_>>().join("`, `"))),
        });
    };
    let mut rows = Rows::new(9);
    add_attribute(&mut rows, attribute, schema);
    Ok(rows.finish())
}

/// Returns the attributes of a plugin, each with its documentation in one line.
pub(super) fn attribute_names(workdir: &Path, name: &str) -> Result<Vec<(String, String)>, Stop> {
    let text = |schema: AttributeSchema| match schema.doc.is_empty() {
        true => schema.expected(),
        false => schema.doc,
    };
    Ok(declared(&component_of(workdir, name)?).into_iter().map(|(name, schema)| (name, text(schema))).collect())
}

fn declared(inspection: &Inspection) -> Attributes {
    inspection.manifest.as_ref().and_then(|manifest| manifest.attributes.clone()).unwrap_or_default()
}

fn add_attribute(rows: &mut Rows, name: &str, schema: &AttributeSchema) {
    rows.row("attribute", name);
    rows.row("  value", schema.expected());
    match &schema.default {
        Some(default) => rows.row("  default", default),
        None if schema.required => rows.row("  default", "none: every node must have it"),
        None => rows.row("  default", "none"),
    }
    if !schema.doc.is_empty() {
        rows.row("  meaning", &schema.doc);
    }
}

/// Returns a node of the plugin with its required attributes.
fn example(name: &str, manifest: Option<&Manifest>) -> String {
    let required = manifest.and_then(|manifest| manifest.attributes.as_ref()).into_iter().flatten();
    let required = required.filter(|(_, schema)| schema.required).map(|(name, _)| format!(", {name}=\"…\""));
    format!("[type=\"{name}\"{}]", required.collect::<String>())
}
