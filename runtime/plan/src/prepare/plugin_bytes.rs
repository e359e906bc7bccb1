//! The bytes of a project's plugins: from a file of the project, or from the store of plugins. The network is not used.

use super::admission::{read_provenance, read_signatures};
use super::folders::data_dir;
use super::project::Project;
use super::source::read_component;
use crate::components::ReadProblem;
use crate::config::{ComponentSource, RegistrySource};
use crate::lock::LockedPlugin;
use glovebox_record::Digest;
use glovebox_registry::reference::Reference;
use glovebox_registry::store::{AttachmentKind, Store, StoreError};
use std::path::Path;

/// Reads the component of a plugin.
///
/// # Errors
///
/// The file cannot be read, the lock file does not have the version, or the store does not have the bytes.
pub fn read(project: &Project, name: &str, source: &ComponentSource) -> Result<Vec<u8>, ReadProblem> {
    let bytes_max = project.config.component_bytes(name);
    match source {
        ComponentSource::File(path) => Ok(read_component(&project.config_dir.join(path), bytes_max)?),
        ComponentSource::Registry(source) => {
            let locked = locked(project, name, source)?;
            let store = store()?;
            let bytes = store.read(locked.digest, bytes_max).map_err(|error| unread(name, &error))?;
            require_origin(&store, name, locked)?;
            Ok(bytes)
        }
    }
}

/// Reads the files of a plugin's signatures. Empty if there are none, and in a project that trusts no keys.
///
/// # Errors
///
/// Fails with a reason for people.
pub fn signatures(project: &Project, name: &str, source: &ComponentSource) -> Result<Vec<Vec<u8>>, String> {
    if project.trust.is_none() {
        return Ok(Vec::new());
    }
    unchecked_signatures(project, name, source)
}

/// As [`signatures`], also in a project that trusts no keys. For commands that only show them.
///
/// # Errors
///
/// As [`signatures`].
pub fn unchecked_signatures(project: &Project, name: &str, source: &ComponentSource) -> Result<Vec<Vec<u8>>, String> {
    attached(project, name, source, AttachmentKind::Signatures, read_signatures)
}

/// Reads the files of a plugin's provenance. Empty if there are none.
///
/// # Errors
///
/// As [`signatures`].
pub fn provenance(project: &Project, name: &str, source: &ComponentSource) -> Result<Vec<Vec<u8>>, String> {
    attached(project, name, source, AttachmentKind::Provenance, read_provenance)
}

fn attached(
    project: &Project,
    name: &str,
    source: &ComponentSource,
    kind: AttachmentKind,
    read_beside: fn(&Path) -> Result<Vec<Vec<u8>>, String>,
) -> Result<Vec<Vec<u8>>, String> {
    let reason = |problem: ReadProblem| problem.reason;
    match source {
        ComponentSource::File(path) => read_beside(&project.config_dir.join(path)),
        ComponentSource::Registry(source) => {
            let locked = locked(project, name, source).map_err(reason)?;
            store().map_err(reason)?.attached(locked.digest, kind).map_err(|error| error.to_string())
        }
    }
}

/// Returns the store of plugins of this user.
///
/// # Errors
///
/// The user has no folder for data.
pub fn store() -> Result<Store, ReadProblem> {
    data_dir().map(|folder| Store::in_data_folder(&folder)).ok_or_else(|| ReadProblem {
        reason: "there is no folder for plugins".to_owned(),
        help: Some("set `GLOVEBOX_DATA_DIR` or `HOME` to an absolute path".to_owned()),
    })
}

/// Returns the entry of the lock file for the version in `glovebox.toml`.
fn locked<'a>(project: &'a Project, name: &str, source: &RegistrySource) -> Result<&'a LockedPlugin, ReadProblem> {
    let update = || Some(format!("look at it and agree to it with `glovebox plugin update {name}`"));
    let Some(locked) = project.lock.plugins.get(name) else {
        return Err(ReadProblem { reason: "`glovebox.lock` does not have it".to_owned(), help: update() });
    };
    let wanted = source.reference();
    match locked.source.reference().is_some_and(|pinned| pinned.is_version(&wanted)) {
        true => Ok(locked),
        false => {
            let reason = format!("`glovebox.lock` has it from `{}`", locked.source);
            Err(ReadProblem { reason, help: update() })
        }
    }
}

/// Refuses a locked origin from which this user never pulled the bytes. The lock file could name any registry for bytes that the store
/// has, and the next update would come from there.
fn require_origin(store: &Store, name: &str, locked: &LockedPlugin) -> Result<(), ReadProblem> {
    let Some(reference) = locked.source.reference() else { return Ok(()) };
    match has_origin(store, locked.digest, reference).map_err(|error| unread(name, &error))? {
        true => Ok(()),
        false => Err(ReadProblem {
            reason: format!("the store has its bytes, but not from `{reference}`"),
            help: Some(format!("fetch it with `glovebox plugin pull {name}`, which asks that registry for it")),
        }),
    }
}

/// Returns true if bytes of the store were pulled from a reference.
///
/// # Errors
///
/// The store cannot be read.
pub fn has_origin(store: &Store, digest: Digest, reference: &Reference) -> Result<bool, StoreError> {
    let text = reference.to_string();
    let known = store.attached(digest, AttachmentKind::Origin)?;
    Ok(known.iter().any(|known| known == text.as_bytes()))
}

fn unread(name: &str, error: &StoreError) -> ReadProblem {
    let pull = match error {
        StoreError::Absent { .. } | StoreError::Damaged { .. } => {
            Some(format!("fetch it with `glovebox plugin pull {name}`; its digest must be that of `glovebox.lock`"))
        }
        StoreError::Io { .. } | StoreError::Busy { .. } | StoreError::Attachments => None,
    };
    ReadProblem { reason: error.to_string(), help: pull }
}
