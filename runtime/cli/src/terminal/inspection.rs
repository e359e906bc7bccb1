//! The text of `glovebox plugin inspect`: what the bytes of a component contain.

use crate::terminal::rows::Rows;
use crate::terminal::{counted, visible};
use glovebox_host::grants::{FileTier, Grants};
use glovebox_host::inspect::{Import, Inspection};
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
    let wants = inspection.manifest.as_ref().map(|manifest| grant_lines(&manifest.wants)).unwrap_or_default();
    for want in &wants {
        rows.block("wants", want);
    }
    if wants.is_empty() {
        rows.row("wants", "nothing");
    }
    rows.row("world", inspection.world);
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
    rows.finish()
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
