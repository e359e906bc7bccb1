//! A component as its bytes describe it, for people.

use crate::terminal::visible;
use glovebox_host::grants::{FileTier, Grants};
use glovebox_host::inspect::{Import, Inspection};
use glovebox_host::provided::State;
use std::fmt::Write;

/// Renders an inspection. Every name in it was chosen by the component's author and is escaped.
pub fn render(inspection: &Inspection) -> String {
    let mut text = String::new();
    let mut row = |title: &str, body: &str| {
        let written = writeln!(text, "{title:<9} {body}");
        debug_assert!(written.is_ok(), "writing to a string cannot fail");
    };
    match &inspection.manifest {
        Some(manifest) => {
            row("plugin", &visible::line(&format!("{} {}", manifest.name, manifest.version)));
            if !manifest.description.is_empty() {
                row("about", &visible::line(&manifest.description));
            }
        }
        None => row("plugin", "has no manifest; set `wants` in glovebox.toml"),
    }
    row("world", inspection.world);
    row("digest", &inspection.digest.to_string());
    row("bytes", &inspection.bytes.to_string());
    for import in &inspection.imports {
        row("import", &import_line(import));
    }
    for export in &inspection.exports {
        row("export", &visible::line(export));
    }
    let wants = inspection.manifest.as_ref().map(|manifest| grant_lines(&manifest.wants)).unwrap_or_default();
    for want in &wants {
        row("wants", want);
    }
    if wants.is_empty() {
        row("wants", "nothing");
    }
    text
}

fn import_line(import: &Import) -> String {
    let name = visible::line(&import.name);
    match &import.state {
        State::Provided => name.into_owned(),
        State::OtherVersion { provided } => format!("{name} (not linked: this host has {provided})"),
        State::Denied { reason } => format!("{name} (never granted: {reason})"),
        State::Unknown => format!("{name} (unknown to this host)"),
    }
}

/// Grants or wants as they are written in `glovebox.toml`, one line each; none for nothing at all.
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
