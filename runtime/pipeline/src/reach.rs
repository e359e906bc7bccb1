//! Decides which hold-out folders a verifier has in reach. `check` and the binding of plans use the same decision.
//!
//! A verifier gets hold-outs only if one of these names them: its attribute `holdouts`, a path in its command or in the
//! commands that its plan may contain, its verify contract, or `read_paths`. Commands are only searched for paths, so a
//! script that runs hold-outs without naming them needs the attribute. A wrong guess never shows a hold-out to a
//! builder.

use crate::fixability::workdir;
use crate::ir::holdouts::covers;
use crate::ir::{HandlerKind, Node, NodeId, Pipeline};
use crate::key::{self, Key};
use glovebox_record::path::ScopePath;
use glovebox_record::scope::Entry;
use std::fmt;

/// The reason why a verifier has a hold-out folder in reach.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ReachReason<'a> {
    /// The attribute `holdouts` names the folder.
    Attribute,
    /// A path in the value of this attribute is in the folder or contains it.
    Command(Key<'a>),
    /// A path in a command of the verify contract is in the folder or contains it.
    Contract,
    /// `read_paths` lists the folder, or a path in it.
    ReadPaths,
}

/// The hold-out folders of one pipeline, to decide which verifiers have them in reach.
#[derive(Debug, Clone)]
pub struct HoldoutReach {
    folders: Vec<Entry>,
}

impl HoldoutReach {
    /// Creates the value for the hold-out folders of a pipeline.
    pub fn new(pipeline: &Pipeline) -> Self {
        Self { folders: pipeline.scenario_entries() }
    }

    /// Returns the pipeline's hold-out folders.
    pub fn folders(&self) -> &[Entry] {
        &self.folders
    }

    /// Returns true if the attributes of a verifier give it at least one of the folders.
    pub fn reaches(&self, node: &Node) -> bool {
        self.folders.iter().any(|folder| reach_reason(node, folder).is_some())
    }
}

/// Returns the attribute that gives a verifier this folder. `None` if no attribute does.
pub fn reach_reason<'a>(node: &'a Node, folder: &Entry) -> Option<ReachReason<'a>> {
    if let Some(named) = &node.access.holdouts.named {
        return (named.covers(folder) && !is_blocked(node, folder)).then_some(ReachReason::Attribute);
    }
    if !may_see(node, folder) {
        return None;
    }
    let command = command_attribute(node, folder).or_else(|| schema_attribute(node, folder)).map(ReachReason::Command);
    let inside = |entry: &Entry| entry.path().starts_with(folder.path());
    command.or_else(|| node.access.read_paths.iter().flatten().any(inside).then_some(ReachReason::ReadPaths))
}

/// Returns [`ReachReason::Contract`] if a command of the verify contract gives a verification stage this folder.
pub fn contract_reason<'a>(
    node: &Node,
    folder: &Entry,
    mut lines: impl Iterator<Item = &'a str>,
) -> Option<ReachReason<'static>> {
    let may_name = may_have_contract(node) && may_see(node, folder);
    (may_name && lines.any(|line| names(line, base(node), folder.path()))).then_some(ReachReason::Contract)
}

/// Returns true for a stage whose verify contract may name hold-outs. This crate does not read contracts.
pub fn may_have_contract(node: &Node) -> bool {
    is_verification(node) && node.access.holdouts.named.is_none()
}

/// Returns the message that the writes of a stage with a hold-out folder in reach are discarded.
pub fn writes_dropped(id: &NodeId, folder: &Entry, reason: ReachReason<'_>, written: &[Entry]) -> String {
    format!(
        "the writes of `{id}` in {} are discarded, because {reason} lets it read the hold-outs in `{folder}`",
        listed(written)
    )
}

/// Lists paths for a message.
pub(crate) fn listed(paths: &[Entry]) -> String {
    paths.iter().map(|path| format!("`{path}`")).collect::<Vec<_>>().join(", ")
}

impl fmt::Display for ReachReason<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Attribute => f.write_str("`holdouts`"),
            Self::Command(key) => write!(f, "`{key}`"),
            Self::Contract => f.write_str("its verify contract"),
            Self::ReadPaths => f.write_str("`read_paths`"),
        }
    }
}

fn is_verification(node: &Node) -> bool {
    node.handler.kind() == HandlerKind::Verification
}

/// Returns the folder in which the commands of a verifier start.
fn base(node: &Node) -> &str {
    let own = node.attributes.get(key::VERIFICATION_WORKDIR).filter(|_| is_verification(node));
    own.map_or_else(|| workdir(node), |attribute| attribute.value.trim())
}

/// Returns the attribute of a `json-schema` stage if its schema is in the folder.
fn schema_attribute<'a>(node: &'a Node, folder: &Entry) -> Option<Key<'a>> {
    let attribute = node.attributes.get(key::JSON_SCHEMA_HOLDOUT);
    let attribute = attribute.filter(|_| node.handler.kind() == HandlerKind::JsonSchema)?;
    let path = ScopePath::parse(attribute.value.trim()).ok()?;
    path.starts_with(folder.path()).then_some(key::JSON_SCHEMA_HOLDOUT)
}

/// Returns the first attribute of a verifier with a path that is in the folder or contains it.
pub fn command_attribute<'a>(node: &'a Node, folder: &Entry) -> Option<Key<'a>> {
    let list = node.handler.kind().allow_list();
    let read = |key: &Key<'_>| key.is_command_input() || *key == list;
    let mut attributes = node.attributes.iter().filter(|(key, _)| read(key));
    attributes.find(|(_, attribute)| names(&attribute.value, base(node), folder.path())).map(|(key, _)| key)
}

/// Returns true unless the node's read scope or `codex.block_read_paths` hides the folder.
pub fn may_see(node: &Node, folder: &Entry) -> bool {
    let meets = |entry: &Entry| folder.path().starts_with(entry.path()) || entry.path().starts_with(folder.path());
    let confinement = &node.access.confinement;
    let mut strict = confinement.workdir.iter().chain(&confinement.add_dirs).chain(&confinement.program);
    let is_read = node.access.read_paths.as_ref().is_none_or(|paths| paths.iter().any(meets));
    is_read && (!confinement.strict_read_scope || strict.any(meets)) && !is_blocked(node, folder)
}

fn is_blocked(node: &Node, folder: &Entry) -> bool {
    node.access.holdouts.block_read.as_ref().is_some_and(|blocked| covers(blocked, folder))
}

/// Returns true if a path in the text is in the folder or contains it. The workspace itself is ignored: `pytest .` does not name
/// hold-outs.
fn names(text: &str, workdir: &str, folder: &ScopePath) -> bool {
    let in_path =
        |c: char| c.is_alphanumeric() || matches!(c, '/' | '.' | '_' | '-' | '+' | '@' | '%' | '~' | '$' | '*' | '?');
    let folder: Vec<&str> = folder.names().collect();
    let mut words = text.split(|c: char| !in_path(c)).filter(|word| !word.is_empty());
    words.any(|word| is_at(word, "", &folder) || (!workdir.is_empty() && is_at(word, workdir, &folder)))
}

fn is_at(word: &str, workdir: &str, folder: &[&str]) -> bool {
    // The meaning of a variable, a home or a parent folder is unknown, so look for the folder at any place in the path.
    let is_open = word.starts_with(['/', '$', '~']) || word.split('/').any(|name| name == "..");
    let base = if is_open { "" } else { workdir };
    let path: Vec<&str> =
        base.split('/').chain(word.split('/')).filter(|name| !matches!(*name, "" | "." | "..")).collect();
    if is_open {
        return path.windows(folder.len()).any(|part| meet(part, folder));
    }
    // A pattern in the first name would match everything.
    let is_pattern = path.first().is_none_or(|name| name.contains(['*', '?']));
    !is_pattern && meet(&path, folder)
}

/// Returns true if each name of the shorter path matches the name at the same place of the other path.
fn meet(path: &[&str], folder: &[&str]) -> bool {
    path.iter().zip(folder).all(|(pattern, name)| fits(pattern.as_bytes(), name.as_bytes()))
}

/// Returns true if a pattern with `*` and `?` matches this name.
fn fits(pattern: &[u8], name: &[u8]) -> bool {
    match (pattern.first(), name.first()) {
        (Some(b'*'), _) => fits(&pattern[1..], name) || (!name.is_empty() && fits(pattern, &name[1..])),
        (Some(b'?'), Some(_)) => fits(&pattern[1..], &name[1..]),
        (Some(one), Some(other)) => one == other && fits(&pattern[1..], &name[1..]),
        (one, other) => one.is_none() && other.is_none(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(text: &str, workdir: &str) -> bool {
        names(text, workdir, &ScopePath::parse("scripts/scenarios").expect("a path"))
    }

    #[test]
    fn a_path_in_the_folder_or_over_it_names_it() {
        for text in [
            "bash scripts/scenarios/run.sh",
            "sh ./scripts//scenarios/./a.sh --all",
            "make check DIR=scripts/scenarios",
            "cd scripts && ./scenarios/run.sh",
            "ls ./scripts/",
            "sh \"$PWD/scripts/scenarios/a.sh\"",
            "cd src; sh ../scripts/scenarios/a.sh",
            "cat scripts/*/a.sh scripts/scen*",
            "python -c 'open(\"scripts/scenarios/a\")'",
        ] {
            assert!(named(text, ""), "{text}");
        }
        assert!(named("sh scenarios/run.sh", "scripts"));
        assert!(named("sh run.sh", "scripts/scenarios"), "it starts there");
    }

    #[test]
    fn other_paths_do_not() {
        for text in [
            "python -m pytest tests/",
            "go test ./...",
            "pytest .",
            "make verify",
            "wc -l * ; ls ./",
            "sh scripts/build.sh",
            "sh scripts/scenarios2/a.sh",
            "sh lib/scripts/scenarios/a.sh",
            "echo scenarios",
        ] {
            assert!(!named(text, ""), "{text}");
        }
        assert!(!named("sh run.sh", "src"));
    }
}
