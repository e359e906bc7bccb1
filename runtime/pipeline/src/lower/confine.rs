//! Converts the confinement of a node's commands to types: the `codex.*` read scope (decision codex-read-scope), `scratch`,
//! `cache` and `network`.
//!
//! The wording of messages about paths is fixed, because other tools match it (decision workspace-relative-paths). This module
//! does not know the operator's grants.

use super::reader::Findings;
use super::scope::Attributes;
use crate::diagnostic::Diagnostic;
use crate::ir::{CACHE_SOURCES, Confinement};
use crate::key;
use crate::nearest::nearest;
use crate::path::{entry_of, part_of_workspace};
use glovebox_record::Network;
use glovebox_record::network::NetworkError;
use glovebox_record::scope::Entry;

pub(super) fn lower(from: &Attributes, findings: &mut Findings<'_>) -> Confinement {
    Confinement {
        workdir: workdir(from, findings),
        add_dirs: add_dirs(from, findings),
        strict_read_scope: findings.boolean(from, key::CODEX_STRICT_READ_SCOPE),
        program: program(from, findings),
        scratch: findings.checked_paths(from, key::SCRATCH, subtree).unwrap_or_default(),
        cache: findings.checked_paths(from, key::CACHE, subtree).unwrap_or_default(),
        cache_from: findings.choice(from, key::CACHE_FROM, CACHE_SOURCES),
        network: network(from, findings),
    }
}

fn workdir(from: &Attributes, findings: &mut Findings<'_>) -> Option<Entry> {
    let attribute = from.get(key::CODEX_WORKDIR).filter(|attribute| !attribute.value.trim().is_empty())?;
    let path = attribute.value.trim();
    let fault = match entry_of(path) {
        Ok(entry) => return Some(entry.as_folder()),
        Err(fault) => fault,
    };
    let message = format!("codex.workdir contains {fault}: {path}");
    let help = "name a folder of the workspace, such as `crates/app`";
    findings.push(Diagnostic::error("path_list", message, attribute.span).with_help(help));
    None
}

fn add_dirs(from: &Attributes, findings: &mut Findings<'_>) -> Vec<Entry> {
    findings.scope(from, key::CODEX_ADD_DIRS).unwrap_or_default().iter().map(Entry::as_folder).collect()
}

/// Returns the path of a program in the workspace. `None` for a name without `/`, which is looked up on PATH, and for
/// an absolute path.
fn program(from: &Attributes, findings: &mut Findings<'_>) -> Option<Entry> {
    let attribute = from.get(key::CODEX_PATH)?;
    let path = attribute.value.trim();
    if !path.contains('/') || path.starts_with('/') {
        return None;
    }
    let fault = match entry_of(path).and_then(part_of_workspace) {
        Ok(entry) => return Some(entry),
        Err(fault) => fault,
    };
    let message = format!("codex.path contains {fault}: {path}");
    let help = "write the path relative to the workspace, such as `.factory/bin/codex`";
    findings.push(Diagnostic::error("path_list", message, attribute.span).with_help(help));
    None
}

fn network(from: &Attributes, findings: &mut Findings<'_>) -> Option<Network> {
    let attribute = from.get(key::NETWORK).filter(|attribute| !attribute.value.trim().is_empty())?;
    let text = attribute.value.trim();
    let has_gap = text.strip_prefix("proxy:").is_some_and(|list| list.split(',').any(|host| host.trim().is_empty()));
    match text.parse() {
        Ok(network) => return Some(network),
        Err(NetworkError::Hosts(error)) if !has_gap => {
            findings.invalid(attribute, format!("`network`: {error}"));
        }
        Err(_) => {
            let message = format!("`network` expects `none`, `full` or `proxy:api.example.com`, found `{text}`");
            findings.corrected(attribute, message, nearest(text, ["none", "full"]));
        }
    }
    None
}

/// Accepts only folders, because a single file cannot be mounted and deleted after the stage.
fn subtree(entry: Entry) -> Result<Entry, &'static str> {
    let entry = part_of_workspace(entry)?;
    if entry.is_subtree() { Ok(entry) } else { Err("path without final `/`") }
}
