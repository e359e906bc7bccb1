//! Decides which files write recovery may propose for a stage that writes outside of its write scope. These are the
//! files that the operator lists, and the files that a command usually writes, if the author or the operator names the
//! command.
//!
//! Pure, and decided before the first stage. Only files that both plugin author and operator allow are proposed, and
//! never a path that no stage may write.

use super::role::HandlerSource;
use crate::config::{Config, RecoverySetting};
use crate::plan::{Binding, NodeRecovery, PlannedRecovery};
use crate::verify;
use glovebox_pipeline::ir::{Node, NodeId, Pipeline};
use glovebox_pipeline::key;
use glovebox_record::path::ScopePath;
use glovebox_record::scope::Entry;
use glovebox_workspace::protect::Protected;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The files that a command usually writes in addition to its result.
const RULES: &[(&str, &[&str])] = &[
    ("cargo", &["Cargo.toml", "Cargo.lock"]),
    ("npm", &["package.json", "package-lock.json"]),
    ("npx", &["package.json", "package-lock.json"]),
    ("pnpm", &["package.json", "pnpm-lock.yaml", "pnpm-workspace.yaml"]),
    ("yarn", &["package.json", "yarn.lock"]),
    ("bun", &["package.json", "bun.lock", "bun.lockb"]),
    ("go", &["go.mod", "go.sum"]),
    ("make", &["Makefile"]),
    ("uv", &["pyproject.toml", "uv.lock"]),
    ("pip", &["requirements.txt"]),
    ("poetry", &["pyproject.toml", "poetry.lock"]),
    ("bundle", &["Gemfile", "Gemfile.lock"]),
    ("composer", &["composer.json", "composer.lock"]),
];

/// A command that the author or the operator names, and where it is written.
struct CommandPlace<'a> {
    place: &'static str,
    text: &'a str,
}

/// Returns the write recovery for runs of this pipeline. `None` unless the operator enables it.
pub(super) fn plan(
    pipeline: &Pipeline,
    bindings: &BTreeMap<NodeId, Arc<Binding>>,
    config: &Config,
    holdouts: &[Entry],
) -> Option<PlannedRecovery> {
    let setting = config.recovery.as_ref()?;
    let mut nodes = BTreeMap::new();
    let builders = pipeline.nodes.iter().filter_map(|node| Some((node, bindings.get(&node.id)?)));
    for (node, binding) in builders.filter(|(_, binding)| binding.is_builder() && binding.starts_processes()) {
        let may_propose = |path: &ScopePath| {
            let is_held_back = holdouts.iter().chain(&setting.deny).any(|entry| entry.as_folder().contains(path));
            let is_written = binding.scope.commits(path) || binding.scope.is_hidden(path);
            let is_granted = binding.may_write.iter().any(|entry| entry.contains(path));
            is_granted && !is_held_back && !is_written && Protected::default().reason(path.as_str()).is_none()
        };
        let mut proposals = proposals(setting, node, binding, config);
        proposals.retain(|path, _| may_propose(path));
        nodes.insert(node.id.clone(), NodeRecovery { proposals });
    }
    let RecoverySetting { discard, deny, timeout, .. } = setting.clone();
    Some(PlannedRecovery { discard, deny, timeout, nodes })
}

fn proposals(
    setting: &RecoverySetting,
    node: &Node,
    binding: &Binding,
    config: &Config,
) -> BTreeMap<ScopePath, String> {
    let mut proposals = BTreeMap::new();
    let of_operator = || "`paths` under `[recovery]` in glovebox.toml".to_owned();
    proposals.extend(setting.paths.iter().map(|path| (path.clone(), of_operator())));
    if !setting.command_rules {
        return proposals;
    }
    let source = HandlerSource { name: node.handler.name(), plugin: config.plugins.get(node.handler.name()) };
    let operator = source.plugin.and_then(|plugin| plugin.grants.as_ref());
    let commands = operator.map(|grants| grants.commands.as_slice()).unwrap_or_default();
    let checks =
        config.verify.as_deref().map(|verify| verify.commands(verify::Role::for_node(node))).unwrap_or_default();
    let named = attributes(node)
        .chain(commands.iter().map(|text| CommandPlace { place: "`commands` of the plugin in glovebox.toml", text }))
        .chain(checks.into_iter().map(|check| CommandPlace { place: "`[verify]`", text: &check.line }));
    let folders = [ScopePath::root(), binding.command_access.workdir.clone()];
    for one in named {
        for (command, files) in RULES.iter().filter(|(command, _)| one.runs(command)) {
            let why = || format!("the command `{command}` in {}", one.place);
            let paths = folders.iter().flat_map(|folder| files.iter().filter_map(|file| folder.join(file).ok()));
            paths.for_each(|path| _ = proposals.entry(path).or_insert_with(why));
        }
    }
    proposals
}

/// Returns the commands in the pipeline file that run in the stage or check its work.
fn attributes(node: &Node) -> impl Iterator<Item = CommandPlace<'_>> {
    let allowed = node.access.allowed_commands.iter().flatten();
    let allowed = allowed.map(|text| CommandPlace { place: "`allowed_commands`", text });
    let check = node.attributes.get(key::VERIFY_COMMAND);
    allowed.chain(check.map(|attribute| CommandPlace { place: "`verify_command`", text: attribute.value.as_str() }))
}

impl CommandPlace<'_> {
    /// Returns true if the text runs a command of this name: the name is the first word of one of its commands, after
    /// assignments of variables.
    fn runs(&self, command: &str) -> bool {
        let is_setting = |word: &&str| word.split_once('=').is_some_and(|(name, _)| !name.contains('/'));
        self.text.split(['\n', ';', '|', '&', '(', ')']).any(|one| {
            let first = one.split_whitespace().find(|word| !is_setting(word));
            first.is_some_and(|word| word.rsplit('/').next() == Some(command))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_named_where_it_runs() {
        for text in ["cargo", "cargo test", "cd a && cargo build", "A=1 /usr/bin/cargo x", "true; cargo", "(cargo t)"] {
            assert!(CommandPlace { place: "", text }.runs("cargo"), "{text}");
        }
        for text in ["echo cargo", "cargo-fuzz run", "mycargo", "./cargo.sh", "*", "", "sh -c 'cargo'"] {
            assert!(!CommandPlace { place: "", text }.runs("cargo"), "{text}");
        }
    }

    #[test]
    fn no_rule_proposes_what_no_stage_may_write() {
        for (command, files) in RULES {
            for file in *files {
                assert_eq!(Protected::default().reason(file), None, "{command}");
            }
        }
    }
}
