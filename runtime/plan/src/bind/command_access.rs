//! Decides what the commands of a node can reach in addition to its scope: the operator's `[sandbox]`, narrowed by the node.
//!
//! Pure. A node can lower the network access and never raise it. Its `scratch` and `cache` folders are added to those
//! of the operator, because they are never committed. A node's `codex.*` read scope (decision codex-read-scope) becomes
//! entries of the scope. Paths outside of the scope do not exist for the node, whatever its handler is.

use super::inputs::{Effective, GrantInputs, record_all};
use super::request::Place;
use crate::config::sandbox::cache_folder;
use crate::plan::{Capability, CommandAccess, Origin, OriginPart, reached};
use glovebox_pipeline::diagnostic::Diagnostic;
use glovebox_pipeline::ir::Confinement;
use glovebox_pipeline::key::{self, Key};
use glovebox_record::Network;
use glovebox_record::path::ScopePath;
use glovebox_record::scope::Entry;

/// Returns the entries that a strict read scope leaves visible in addition to the write scope. `None` if the node's read
/// scope is not strict.
pub(super) fn strict_scope(said: &Confinement) -> Option<Vec<Entry>> {
    let named = said.workdir.iter().chain(&said.add_dirs).chain(&said.program);
    said.strict_read_scope.then(|| named.cloned().collect())
}

/// Decides what the commands of a node reach. An attribute that asks for more than the operator grants becomes a diagnostic.
pub(super) fn command_access(inputs: GrantInputs<'_>, effective: &mut Effective) {
    let network = network(inputs, effective);
    let mut scratch = inputs.sandbox.scratch.clone();
    let mut cache = inputs.sandbox.cache.clone();
    let said = inputs.request.confinement;
    add_folders(inputs.place, key::SCRATCH, &said.scratch, &mut scratch, effective);
    add_folders(inputs.place, key::CACHE, &said.cache, &mut cache, effective);
    for entry in scratch.iter().cloned() {
        let origin = folder_origin(inputs.sandbox.scratch.contains(&entry), key::SCRATCH);
        effective.record_origin(Capability::Scratch(entry), origin);
    }
    for entry in cache.iter().cloned() {
        let origin = folder_origin(inputs.sandbox.cache.contains(&entry), key::CACHE);
        effective.record_origin(Capability::Cache(entry), origin);
    }
    check_overlaps(inputs, &scratch, &cache, effective);
    lost_writes(inputs.place, [(key::SCRATCH, &scratch), (key::CACHE, &cache)], effective);
    let workdir = said.workdir.as_ref().map_or_else(ScopePath::root, |entry| entry.path().clone());
    effective.command_access = CommandAccess { network, scratch, cache, workdir, cache_from_base: false };
}

fn network(inputs: GrantInputs<'_>, effective: &mut Effective) -> Network {
    let granted = &inputs.sandbox.network;
    let operator = Origin::from_part(OriginPart::Config("sandbox", "network"));
    let Some(asked) = &inputs.request.confinement.network else {
        // An agent program reaches its model through the gateway. Other hosts must be named in the node's `network`.
        if inputs.request.backend.is_some() {
            return Network::None;
        }
        record_all(&mut effective.grants, &operator, reached(granted).into_iter());
        return granted.clone();
    };
    if !granted.covers(asked) {
        let message =
            format!("node `{}` asks for the network `{asked}`, but the operator grants `{granted}`", inputs.place);
        let remedy = toml_of(asked);
        let help = format!("`network = {remedy}` under `[sandbox]` in glovebox.toml grants it");
        let error =
            Diagnostic::error("network_not_granted", message, inputs.place.span_of(key::NETWORK)).with_help(help);
        effective.diagnostics.push(inputs.place.named_in(error));
        return Network::None;
    };
    let origin = operator.and(OriginPart::Attribute("network".into()));
    record_all(&mut effective.grants, &origin, reached(asked).into_iter());
    asked.clone()
}

/// Returns the network setting as it is written in `glovebox.toml`.
fn toml_of(network: &Network) -> String {
    match network {
        Network::None | Network::Full => format!("\"{network}\""),
        Network::Proxy(hosts) => {
            let quoted: Vec<String> = hosts.iter().map(|host| format!("\"{host}\"")).collect();
            format!("{{ proxy = [{}] }}", quoted.join(", "))
        }
    }
}

fn folder_origin(is_operators: bool, field: Key<'static>) -> Origin {
    match is_operators {
        true => Origin::from_part(OriginPart::Config("sandbox", field.as_str())),
        false => Origin::attribute(field.as_str()),
    }
}

/// Adds the folders of the node. A folder that is not allowed becomes a diagnostic.
fn add_folders(
    place: Place<'_>,
    field: Key<'static>,
    list: &[Entry],
    folders: &mut Vec<Entry>,
    effective: &mut Effective,
) {
    for written in list.iter().cloned() {
        let text = written.to_string();
        match cache_folder(written) {
            Ok(entry) if folders.contains(&entry) => {}
            Ok(entry) => folders.push(entry),
            Err((fault, help)) => {
                let error = refused(place, field, format!("`{field}` of node `{place}` contains `{text}`: {fault}"));
                effective.diagnostics.push(match help {
                    Some(help) => error.with_help(help),
                    None => error,
                });
            }
        }
    }
}

/// Checks that no folder has two uses: scratch, cache and hidden folders exclude each other.
fn check_overlaps(inputs: GrantInputs<'_>, scratch: &[Entry], cache: &[Entry], effective: &mut Effective) {
    let place = inputs.place;
    let hidden: Vec<Entry> = effective.scope.hidden.iter().chain(inputs.scenarios()).cloned().collect();
    for (field, folders) in [(key::SCRATCH, scratch), (key::CACHE, cache)] {
        for entry in folders {
            let Some(hidden) = hidden.iter().find(|hidden| overlap(hidden, entry)) else { continue };
            let message = format!("`{field}` of node `{place}` contains `{entry}`, which overlaps `{hidden}`");
            let error =
                refused(place, field, message).with_help(format!("stages cannot see `{hidden}`; name another folder"));
            effective.diagnostics.push(error);
        }
    }
    let both = scratch.iter().flat_map(|one| cache.iter().map(move |other| (one, other)));
    for (one, other) in both.filter(|(one, other)| overlap(one, other)) {
        let message = format!("node `{place}` has `{one}` as scratch and `{other}` as cache, and they overlap");
        let error = refused(place, key::SCRATCH, message)
            .with_help("name the folder once: `scratch` is removed after the stage, `cache` is kept");
        effective.diagnostics.push(error);
    }
}

/// Warns of a write scope inside a scratch or cache folder, because nothing in such a folder is ever committed.
fn lost_writes(place: Place<'_>, folders: [(Key<'_>, &[Entry]); 2], effective: &mut Effective) {
    for (field, folders) in folders {
        for folder in folders {
            let Some(written) = effective.scope.write.iter().find(|entry| folder.covers(entry)) else { continue };
            let message =
                format!("node `{place}` may write `{written}`, but `{folder}` is {field} and never committed");
            let warning = Diagnostic::warning("write_not_committed", message, place.span_of(key::ALLOWED_WRITE_PATHS))
                .with_help(format!("remove `{written}` from `allowed_write_paths`, or `{folder}` from `{field}`"));
            effective.diagnostics.push(place.named_in(warning));
        }
    }
}

fn overlap(one: &Entry, other: &Entry) -> bool {
    one.covers(other) || other.covers(one)
}

fn refused(place: Place<'_>, attribute: Key<'_>, message: String) -> Diagnostic {
    place.named_in(Diagnostic::error("sandbox_folder", message, place.span_of(attribute)))
}

#[cfg(test)]
mod tests;
