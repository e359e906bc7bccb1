//! Decides whether a stage after a failure can fix the cause of that failure (`unfixable_failure_source`,
//! decision unfixable-failures-end-the-run).
//!
//! A tool stage can run scripts. If a script is wrong and the builder after the failure must not write the script, a
//! loop of the two stages cannot succeed. Scripts in hold-out folders are exempt: they are meant to fail on wrong code,
//! and no builder may change them. The warning of `check` and the end of a run use the same pure functions.

use crate::hash::HashSet;
use crate::ir::{Attribute, HandlerKind, Node, NodeId, Pipeline};
use crate::key;
use glovebox_record::path::ScopePath;
use glovebox_record::scope::Entry;

/// Returns the scripts (`*.sh`) in the command of a failed tool stage that the builder must not write, in the order and the
/// spelling of the command. Empty if the builder has no explicit write scope, and for all other pairs of nodes.
pub fn out_of_reach(pipeline: &Pipeline, failed: &Node, builder: &Node) -> Vec<String> {
    let scope = builder.access.allowed_write_paths.as_deref();
    scope.map_or_else(Vec::new, |scope| out_of_scope(pipeline, failed, builder, scope))
}

/// As [`out_of_reach`], but for the builder's bound scope, which the operator's grants may have narrowed.
pub fn out_of_scope(pipeline: &Pipeline, failed: &Node, builder: &Node, scope: &[Entry]) -> Vec<String> {
    if failed.handler.kind() != HandlerKind::Tool || !builder.is_builder() {
        return Vec::new();
    }
    let Some(command) = failed.attributes.get(key::TOOL_COMMAND) else { return Vec::new() };
    let base = workdir(failed);
    let sealed = pipeline.scenario_folders();
    let mut found: Vec<String> = Vec::new();
    for script in scripts(command) {
        let path = resolved(base, script);
        let is_sealed = |path: &str| sealed.iter().any(|folder| path.starts_with(folder.as_str()));
        // No stage may write a path outside the workspace.
        let exempt = path.as_deref().is_some_and(|path| is_sealed(path) || writes(scope, path));
        if !exempt && !found.iter().any(|known| known == script) {
            found.push(script.to_owned());
        }
    }
    found
}

/// Returns the reason that is recorded when a run ends because of scripts that the builder must not write.
pub fn reason(failed: &NodeId, scripts: &[String], builder: &NodeId) -> String {
    let scripts = scripts.join(",");
    format!(
        "unfixable_failure_source: failed node {failed} references {scripts} outside allowed_write_paths for {builder}"
    )
}

/// Returns true if there is a path of edges and retry targets from one node to the other.
pub fn leads_to(pipeline: &Pipeline, from: &NodeId, to: &NodeId) -> bool {
    let (mut seen, mut open) = (HashSet::default(), vec![from]);
    while let Some(node) = open.pop() {
        let retry = pipeline.node(node).map(|node| [&node.routing.retry_target, &node.routing.fallback_retry_target]);
        let retry = retry.into_iter().flatten().flatten();
        for target in pipeline.outgoing(node).map(|(_, edge)| &edge.to).chain(retry) {
            if target == to {
                return true;
            }
            if seen.insert(target) {
                open.push(target);
            }
        }
    }
    false
}

/// Returns the directory in which the command of a tool or verify stage starts.
pub(crate) fn workdir(node: &Node) -> &str {
    let own =
        node.attributes.get(key::WORKING_DIR).map(|attribute| attribute.value.trim()).filter(|path| !path.is_empty());
    own.or(node.access.confinement.workdir.as_ref().map(|folder| folder.path().as_str())).unwrap_or_default()
}

/// Returns the words of a command that name a script, without shell syntax.
fn scripts(command: &Attribute) -> impl Iterator<Item = &str> {
    let in_path = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '/' | '+' | '@' | '%');
    let words = command.value.split(move |c: char| !in_path(c));
    words.filter(|word| word.strip_suffix(".sh").is_some_and(|stem| !stem.is_empty() && !stem.ends_with('/')))
}

/// Returns the path relative to the root of the workspace. `None` if it leads out of the workspace.
pub(crate) fn resolved(base: &str, path: &str) -> Option<String> {
    if path.starts_with('/') {
        return None;
    }
    let mut names: Vec<&str> = Vec::new();
    for name in base.split('/').chain(path.split('/')) {
        match name {
            "" | "." => {}
            ".." => drop(names.pop()?),
            _ => names.push(name),
        }
    }
    Some(names.join("/"))
}

fn writes(scope: &[Entry], path: &str) -> bool {
    let Ok(path) = ScopePath::parse(path) else { return false };
    scope.iter().any(|entry| if entry.is_subtree() { path.is_below(entry.path()) } else { path == *entry.path() })
}
