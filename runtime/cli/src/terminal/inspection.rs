//! The text of `glovebox plugin inspect`: what the bytes of a component contain.

use crate::terminal::rows::Rows;
use crate::terminal::{counted, visible};
use glovebox_host::grants::{FileTier, Grants};
use glovebox_host::inspect::{CustomSections, Import, Inspection, Manifest};
use glovebox_host::interfaces::ImportState;
use glovebox_plan::lock::growth::is_base;

/// Renders an inspection: what the component asks for, then the facts about its bytes. Interfaces of WASI that every component
/// has are one row, unless `shows_all`. Escapes all names, because the component's author chooses them.
pub fn render(inspection: &Inspection, shows_all: bool) -> String {
    let mut rows = Rows::new(9);
    match &inspection.manifest {
        Some(manifest) => {
            rows.row("plugin", format_args!("{} {}", manifest.name, manifest.version));
            if !manifest.description.is_empty() {
                rows.row("about", &manifest.description);
            }
        }
        None => rows.row("plugin", "has no manifest; set `wants` in glovebox.toml"),
    }
    origin_rows(&mut rows, inspection);
    let wants = inspection.manifest.as_ref().map(|manifest| grant_lines(&manifest.wants)).unwrap_or_default();
    for want in &wants {
        rows.block("wants", want);
    }
    if wants.is_empty() {
        rows.row("wants", "nothing");
    }
    if let Some(manifest) = &inspection.manifest {
        attribute_rows(&mut rows, manifest);
    }
    rows.row("world", inspection.world);
    match inspection.world {
        "tool-provider" => {
            rows.row("use", "agents call its tools: `tools` in its table under `[plugins]`, and `tools` on a node")
        }
        "policy" => rows.row("use", "it judges the tool calls and edges of every run: a table under `[policy]`"),
        _ => {}
    }
    rows.row("digest", inspection.digest);
    rows.row("bytes", inspection.bytes);
    for export in &inspection.exports {
        rows.row("export", export);
    }
    let is_folded = |import: &&Import| !shows_all && import.state == ImportState::Provided && is_base(&import.name);
    let (base, own): (Vec<&Import>, Vec<&Import>) = inspection.imports.iter().partition(is_folded);
    for import in own {
        rows.block("import", import_line(import));
    }
    if !base.is_empty() {
        let interfaces = counted(base.len(), "interface");
        rows.row("import", format_args!("{interfaces} of WASI that every component may have; `--all` lists them"));
    }
    if shows_all {
        for CustomSections { name, count, bytes } in &inspection.custom_sections {
            let sections = counted(usize::try_from(*count).unwrap_or(usize::MAX), "section");
            rows.block("custom", format!("{}: {sections}, {bytes} bytes", visible::line(name)));
        }
    }
    let docs = inspection.manifest.as_ref().and_then(|manifest| manifest.docs.as_deref());
    match docs {
        Some(docs) if shows_all => format!("{}\n{}\n", rows.finish(), visible::block(docs.trim_end())),
        Some(docs) => {
            rows.row("docs", format_args!("{}; `--all` prints them", counted(docs.lines().count(), "line")));
            rows.finish()
        }
        None => rows.finish(),
    }
}

/// Adds who made the component, and from what. The manifest comes first; without it, only the standard sections tell. Nobody has
/// checked these texts.
fn origin_rows(rows: &mut Rows, inspection: &Inspection) {
    let standard = &inspection.standard;
    if inspection.manifest.is_none() {
        for (title, text) in [("name", standard.name.as_ref()), ("version", standard.texts.get("version"))] {
            if let Some(text) = text {
                rows.block(title, visible::line(text));
            }
        }
    }
    let manifest = inspection.manifest.as_ref();
    let texts = [
        ("licence", "licenses", manifest.and_then(|manifest| manifest.licenses.as_ref())),
        ("source", "source", manifest.and_then(|manifest| manifest.source.as_ref())),
        ("revision", "revision", manifest.and_then(|manifest| manifest.revision.as_ref())),
        ("authors", "authors", manifest.and_then(|manifest| manifest.authors.as_ref())),
        ("homepage", "homepage", manifest.and_then(|manifest| manifest.homepage.as_ref())),
    ];
    for (title, section, own) in texts {
        if let Some(text) = own.or_else(|| standard.texts.get(section)) {
            rows.block(title, visible::line(text));
        }
    }
    let tools: Vec<String> =
        standard.producers.iter().map(|tool| format!("{} {}", tool.name, tool.version).trim_end().to_owned()).collect();
    if !tools.is_empty() {
        rows.block("made by", visible::line(&tools.join(", ")));
    }
}

/// Adds the attributes that the plugin declares for its nodes.
fn attribute_rows(rows: &mut Rows, manifest: &Manifest) {
    for (name, schema) in manifest.attributes.iter().flatten() {
        let value = match &schema.default {
            Some(default) => format!("{}, by default `{default}`", schema.expected()),
            None if schema.required => format!("{}, required", schema.expected()),
            None => schema.expected(),
        };
        let doc = if schema.doc.is_empty() { String::new() } else { format!("; {}", schema.doc) };
        rows.block("attribute", format!("{name}: {value}{doc}"));
    }
}

fn import_line(import: &Import) -> String {
    let name = visible::line(&import.name);
    match &import.state {
        ImportState::Provided => name.into_owned(),
        ImportState::Newer { provided, .. } => {
            format!("{name} (not linked: this host has the earlier version {provided})")
        }
        ImportState::OtherVersion { provided } => format!("{name} (not linked: this host has version {provided})"),
        ImportState::Denied { reason } => format!("{name} (never granted: {reason})"),
        ImportState::Unknown => format!("{name} (unknown to this host)"),
    }
}

/// Returns grants or wants as lines of `glovebox.toml`; empty if there are none.
pub fn grant_lines(grants: &Grants) -> Vec<String> {
    let mut lines = Vec::new();
    match grants.filesystem {
        FileTier::None => {}
        FileTier::Workspace => lines.push("filesystem = \"workspace\"".to_owned()),
        FileTier::Posix => lines.push("filesystem = \"posix\"".to_owned()),
    }
    let lists =
        [("read", quoted(&grants.read)), ("write", quoted(&grants.write)), ("commands", quoted(&grants.commands))];
    lines.extend(lists.iter().filter(|(_, list)| !list.is_empty()).map(|(name, list)| format!("{name} = [{list}]")));
    if grants.model {
        lines.push("model = true".to_owned());
    }
    lines.extend(grants.limits.iter().map(|(name, value)| format!("limits.{name} = {value}")));
    lines
}

fn quoted(values: &[impl ToString]) -> String {
    let quoted: Vec<String> = values.iter().map(|value| format!("\"{}\"", visible::line(&value.to_string()))).collect();
    quoted.join(", ")
}
