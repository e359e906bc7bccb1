//! Whether a stage that follows a failure could mend its source at all (seed 2, `unfixable_failure_source`; design §9 #19).
//!
//! A tool that fails runs scripts; when a builder after it may not write them, no loop over the two ends well if the script is
//! what is wrong. Scripts among the hold-outs are exempt: to fail is their work, and nobody is to mend them. Pure; the same
//! rule warns in `check` and stops a run.

use crate::holdouts::is_builder;
use crate::ir::{Node, NodeId, PathList, Pipeline};
use crate::lower::WHOLE;
use std::collections::{HashMap, HashSet};

/// The scripts (`*.sh`) that the command of a failed tool stage names and a builder with an explicit write scope may not write,
/// as they are written, in order. Empty for every other pair of nodes.
pub fn out_of_reach(pipeline: &Pipeline, failed: &Node, builder: &Node) -> Vec<String> {
    let (Some(scope), "tool", true) = (&builder.allowed_write_paths, failed.handler.name(), is_builder(builder)) else {
        return Vec::new();
    };
    let Some(command) = failed.attributes.get("tool_command") else { return Vec::new() };
    let base = workdir(failed);
    let sealed = pipeline.scenario_folders();
    let mut found: Vec<String> = Vec::new();
    for script in scripts(&command.value) {
        let path = resolved(base, script);
        let is_sealed = |path: &str| sealed.iter().any(|folder| path.starts_with(folder));
        // A path that climbs out of the workspace is nobody's to write.
        let exempt = path.as_deref().is_some_and(|path| is_sealed(path) || writes(scope, path));
        if !exempt && !found.iter().any(|known| known == script) {
            found.push(script.to_owned());
        }
    }
    found
}

/// The reason that a run ends with.
pub fn reason(failed: &NodeId, scripts: &[String], builder: &NodeId) -> String {
    let scripts = scripts.join(",");
    format!(
        "unfixable_failure_source: failed node {failed} references {scripts} outside allowed_write_paths for {builder}"
    )
}

/// True when some way leads from one node to the other, by edges and jumps to retry targets.
pub fn leads_to(pipeline: &Pipeline, from: &NodeId, to: &NodeId) -> bool {
    let mut next: HashMap<&NodeId, Vec<&NodeId>> = HashMap::new();
    pipeline.edges.iter().for_each(|edge| next.entry(&edge.from).or_default().push(&edge.to));
    for node in &pipeline.nodes {
        let targets = [&node.retry_target, &node.fallback_retry_target].into_iter().flatten();
        next.entry(&node.id).or_default().extend(targets);
    }
    let (mut seen, mut open) = (HashSet::new(), vec![from]);
    while let Some(node) = open.pop() {
        for target in next.get(node).into_iter().flatten() {
            if *target == to {
                return true;
            }
            if seen.insert(*target) {
                open.push(target);
            }
        }
    }
    false
}

/// Where the command of a tool or verify stage starts.
pub(crate) fn workdir(node: &Node) -> &str {
    let own =
        node.attributes.get("working_dir").map(|attribute| attribute.value.trim()).filter(|path| !path.is_empty());
    own.or(node.confinement.workdir.as_deref()).unwrap_or_default()
}

/// The words of a command that name a script, whatever shell syntax stands around them.
fn scripts(command: &str) -> impl Iterator<Item = &str> {
    let in_path = |letter: char| letter.is_alphanumeric() || matches!(letter, '_' | '-' | '.' | '/' | '+' | '@' | '%');
    let words = command.split(move |letter: char| !in_path(letter));
    words.filter(|word| word.strip_suffix(".sh").is_some_and(|stem| !stem.is_empty() && !stem.ends_with('/')))
}

/// The path from the root of the workspace; none when it leads out of it.
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

fn writes(scope: &PathList, path: &str) -> bool {
    let grants = |entry: &String| match entry.as_str() {
        WHOLE => true,
        entry if entry.ends_with('/') => path.starts_with(entry),
        entry => path == entry,
    };
    scope.0.iter().any(grants)
}
