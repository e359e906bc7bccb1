//! The text of `glovebox plugin lock`: what each component asks for, what it gets, and what it asks for and does not
//! get.
//!
//! The text is for a person who decides whether to run the component. The component's author chooses the names and
//! paths, so all of them are escaped.

use crate::terminal::rows::Rows;
use crate::terminal::{counted, visible};
use glovebox_host::grants::{FileTier, Grants};
use glovebox_plan::lock::growth::{growth, is_base};
use glovebox_plan::lock::line::Line;
use glovebox_plan::lock::{Lock, LockedPlugin};
use glovebox_record::Network;

/// The requests of a plugin, the grants of the operator, and their intersection.
pub struct Agreement<'a> {
    /// The author's wants.
    pub wants: Grants,
    /// The operator's grants.
    pub offered: Grants,
    /// The intersection of wants and grants.
    pub granted: Grants,
    /// The network access of commands under `[sandbox]`.
    pub network: &'a Network,
}

/// Renders a plugin that is to be locked: what grew since it was locked, what it may do, and then the facts about its bytes.
/// A handler has an agreement, a rule plugin has none.
pub fn render(plugin: &LockedPlugin, before: &Lock, agreement: Option<&Agreement<'_>>) -> String {
    let mut rows = Rows::below_a_title(8);
    let known = before.plugins.get(&plugin.name);
    let grown = known.map(|known| growth(known, plugin)).unwrap_or_default();
    grown.iter().for_each(|growth| rows.row("grew", growth));
    match agreement {
        Some(agreement) => agreement.add_to(&mut rows),
        None => plugin.grants.iter().for_each(|grant| rows.row("granted", grant)),
    }
    let tools = plugin.grants.iter().filter_map(|grant| match Line::parse(grant) {
        Line::Tool(name) => Some(name),
        _ => None,
    });
    tools
        .for_each(|name| rows.row("tool", format_args!("`{name}`: agents may call it, and a model reads its answers")));
    if plugin.grants.iter().any(|grant| grant == "role verifier") {
        rows.row("role", "verifier: its commands see hold-outs, and their exit codes decide");
    }
    add_facts(&mut rows, plugin);
    format!("{} ({}, {})\n{}", visible::line(&plugin.name), plugin.world, news(plugin, known), rows.finish())
}

/// Adds the rows about the bytes of a plugin. Interfaces of WASI that every component has are one row.
pub fn add_facts(rows: &mut Rows, plugin: &LockedPlugin) {
    plugin.signer.iter().for_each(|signer| rows.row("signed", format_args!("by {signer}")));
    rows.row("digest", plugin.digest);
    let (base, own): (Vec<&String>, Vec<&String>) = plugin.imports.iter().partition(|import| is_base(import));
    own.iter().for_each(|import| rows.row("import", import));
    if !base.is_empty() {
        let interfaces = counted(base.len(), "interface");
        rows.row(
            "import",
            format_args!("{interfaces} of WASI without files and network, which every component may have"),
        );
    }
}

/// Returns what is new about a plugin since the last lock.
fn news(plugin: &LockedPlugin, before: Option<&LockedPlugin>) -> &'static str {
    match before {
        None => "new",
        Some(known) if known.digest != plugin.digest => "changed bytes",
        Some(known) if known.grants != plugin.grants || known.offered != plugin.offered => "changed grants",
        Some(known) if known.wants != plugin.wants => "changed wants",
        Some(_) => "unchanged",
    }
}

impl Agreement<'_> {
    fn add_to(&self, rows: &mut Rows) {
        let (wants, offered, granted) = (words(&self.wants), words(&self.offered), words(&self.granted));
        all_or_nothing(rows, "wants", &wants);
        all_or_nothing(rows, "granted", &granted);
        for line in wants.iter().filter(|line| !granted.contains(line)) {
            rows.row(
                "refused",
                format_args!("{line}: wanted, but the operator grants less or none of it (see the rows `granted`)"),
            );
        }
        for line in offered.iter().filter(|line| !granted.contains(line) && !wants.contains(line)) {
            rows.row(
                "unused",
                format_args!("{line}: granted, but the plugin wants less or none of it (see the rows `wants`)"),
            );
        }
        if self.granted.commands.is_empty() {
            rows.row("reach", "nothing: components have no network, and this one runs no commands");
        } else {
            let network = self.network;
            rows.row("reach", format_args!("nothing by itself; its commands: network `{network}` (`[sandbox]`)"));
        }
    }
}

fn all_or_nothing(rows: &mut Rows, title: &str, lines: &[String]) {
    if lines.is_empty() {
        rows.row(title, "nothing");
    }
    lines.iter().for_each(|line| rows.row(title, line));
}

/// Returns grants in plain words, one line each. Limits are not included, because they are bounds and not permissions.
fn words(grants: &Grants) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    match grants.filesystem {
        FileTier::None => {}
        FileTier::Workspace => lines.push("open files through the interface `files` (`workspace`)".to_owned()),
        FileTier::Posix => lines.push("open files as any program does (`posix`)".to_owned()),
    }
    lines.extend(grants.read.iter().map(|entry| format!("read {entry}")));
    lines.extend(grants.write.iter().map(|entry| format!("write {entry}")));
    lines.extend(grants.commands.iter().map(|command| match command.trim() {
        "*" => "run any command".to_owned(),
        command => format!("run `{command} …`"),
    }));
    lines.extend(grants.model.then(|| "ask the model of its node".to_owned()));
    lines
}
