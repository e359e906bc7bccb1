//! `glovebox plugin revoke`: stops a component here and now, or publishes that it must not run.
//!
//! A list is only ever replaced as a whole, by another file. A process with a run under way sees the new file before its next
//! call of a component, and during a call within moments.

use super::{folder_lock, read_bytes, registries};
use crate::arguments::RevokeArguments;
use crate::exit::{CommandResult, Exit, Stop};
use crate::key_files;
use crate::replaced_file;
use crate::terminal::{self, visible};
use glovebox_plan::config::{Config, LIST_TAG};
use glovebox_plan::prepare::admission::own_list;
use glovebox_record::Digest;
use glovebox_registry::error::RegistryError;
use glovebox_registry::reference::{Reference, Tag};
use glovebox_signing::key::SigningKey;
use glovebox_signing::revocation::{FILE_BYTES_MAX, LIST_MEDIA_TYPE, ListFault, Revocation, RevocationList};
use glovebox_signing::trust::{NamePattern, Trust, TrustedKey};
use glovebox_workspace::regular_file::{self, Links};
use jiff::Timestamp;
use std::fs::{self, DirBuilder, File};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// Revokes a component, takes a revocation back, or lists all.
pub fn revoke(arguments: &RevokeArguments) -> CommandResult {
    if arguments.list {
        return list(arguments.json);
    }
    let target = Target::new(arguments)?;
    let _guard = target.lock()?;
    let mut list = target.read()?;
    let push = arguments.push.as_deref().map(|text| Publication::new(text, &target)).transpose()?;
    if let Some(push) = &push {
        // Before the file is changed: a later list of another machine would be lost.
        push.refuse_later(&list)?;
    }
    if let Some(digest) = &arguments.undo {
        let Some(taken_back) = list.remove(digest) else {
            let stop = Stop::new(Exit::Usage, format!("{digest} is not revoked in `{}`", target.shown()));
            return Err(stop.with_help("see all with `glovebox plugin revoke --list`"));
        };
        target.write(&mut list)?;
        terminal::say(format_args!("{digest} may run again; it was revoked because: {}\n", taken_back.reason));
        return push.map_or(Ok(Exit::Ok), |push| push.publish(&list));
    }
    let (Some(component), Some(reason)) = (&arguments.component, &arguments.reason) else {
        return Err(Stop::new(Exit::Internal, "the command line has neither a component nor a reason"));
    };
    let digest = digest_of(component)?;
    let added = list.add(Revocation { digest, reason: reason.clone(), at: Timestamp::now() });
    let is_new = added.map_err(|fault| Stop::new(Exit::Usage, format!("it was not revoked: {fault}")))?;
    if !is_new {
        let before = list.get(&digest).map(|known| known.reason.as_str()).unwrap_or_default();
        terminal::say(format_args!("{digest} is revoked already: {before}\n"));
        if push.is_some() && list.sequence().is_none() {
            // It was signed without a number, and nobody would take it.
            target.write(&mut list)?;
        }
        return push.map_or(Ok(Exit::Ok), |push| push.publish(&list));
    }
    target.write(&mut list)?;
    terminal::say(match &target {
        Target::Own(_) => {
            format!("revoked {digest}: it does not run any more, and calls that are under way are stopped\n")
        }
        Target::Signed { file, .. } if push.is_none() => {
            format!("revoked {digest} in `{}`: publish the file for those whose `[trust]` names it\n", shown(file))
        }
        Target::Signed { file, .. } => format!("revoked {digest} in `{}`\n", shown(file)),
    });
    push.map_or(Ok(Exit::Ok), |push| push.publish(&list))
}

/// Where a signed list is published.
struct Publication<'t> {
    reference: Reference,
    tag: Tag,
    key: &'t SigningKey,
}

impl<'t> Publication<'t> {
    fn new(text: &str, target: &'t Target) -> Result<Self, Stop> {
        let Target::Signed { key, .. } = target else {
            return Err(Stop::new(Exit::Usage, "only a signed list is published: name it with `--publish FILE`"));
        };
        let reference = registries::parse_reference(text)?;
        if reference.digest.is_some() {
            let stop = Stop::new(Exit::Usage, format!("`{reference}` has a digest, which a push cannot choose"));
            return Err(stop.with_help(format!("write `{}`", reference.repository)));
        }
        let default = || LIST_TAG.parse().map_err(|_| Stop::new(Exit::Internal, "the default tag is no tag"));
        let tag = reference.tag.clone().map_or_else(default, Ok)?;
        Ok(Self { reference: reference.repository.at(tag.clone()), tag, key })
    }

    /// Refuses to replace a list that is later than the one in the file, or that another key signed.
    fn refuse_later(&self, list: &RevocationList) -> Result<(), Stop> {
        let client = registries::client()?;
        let found = match client.document(&self.reference, LIST_MEDIA_TYPE, FILE_BYTES_MAX) {
            Err(RegistryError::Missing { status: 404, .. }) => return Ok(()),
            found => found?,
        };
        let refused = |reason: String| {
            let reason = visible::line(&reason).into_owned();
            let message = format!("the list in `{}` is not replaced: {reason}", self.reference);
            Stop::new(Exit::Plugin, message).with_help("name the latest list with `--publish`; nothing was written")
        };
        let published =
            RevocationList::parse_signed(&found, &only(self.key)).map_err(|fault| refused(fault.to_string()))?;
        match published.list.sequence() > list.sequence() {
            true => {
                let number = published.list.sequence().unwrap_or_default();
                Err(refused(format!("it is number {number}, which is later than that of the file")))
            }
            false => Ok(()),
        }
    }

    fn publish(&self, list: &RevocationList) -> CommandResult {
        let client = registries::client()?;
        let bytes = list.sign(self.key);
        client.push_document(&self.reference.repository, &self.tag, LIST_MEDIA_TYPE, bytes.as_bytes())?;
        let number = list.sequence().unwrap_or_default();
        terminal::say(format_args!("published list {number} as `oci://{}`\n", self.reference));
        Ok(Exit::Ok)
    }
}

/// Returns the trust in one key for all names.
fn only(key: &SigningKey) -> Trust {
    let (name, plugins) = (String::new(), vec![NamePattern::All]);
    let trusted = TrustedKey { name, key: key.public(), plugins, not_after: None };
    Trust { keys: vec![trusted], ..Trust::default() }
}

fn list(json: bool) -> CommandResult {
    let list = match own_list() {
        Some(file) => Target::Own(file).read()?,
        None => RevocationList::default(),
    };
    if json {
        terminal::print(list.to_json());
        return Ok(Exit::Ok);
    }
    if list.iter().next().is_none() {
        terminal::say("you have revoked nothing\n");
    }
    for Revocation { digest, reason, at } in list.iter() {
        terminal::print(format_args!("{digest}  {}  {}\n", terminal::moment(*at), visible::line(reason)));
    }
    Ok(Exit::Ok)
}

/// Returns the digest that the user wrote, or that of the file that the user named.
fn digest_of(component: &str) -> Result<Digest, Stop> {
    if component.starts_with("blake3:") {
        return component.parse().map_err(|error| Stop::new(Exit::Usage, format!("{error}")));
    }
    let hex = component.rsplit_once(':').map_or(component, |(_, hex)| hex);
    if hex.len() == 64 && hex.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        let stop = Stop::new(Exit::Usage, format!("`{}` is no digest of a component", visible::line(component)));
        return Err(match hex.len() == component.len() {
            true => stop.with_help(format!("write `blake3:{}`", hex.to_ascii_lowercase())),
            false => {
                stop.with_help("name its BLAKE3 digest, which `glovebox plugin inspect FILE` and glovebox.lock have")
            }
        });
    }
    Ok(Digest::hash(&read_bytes(Path::new(component), Config::default().component_bytes(""))?))
}

/// The list that is changed.
enum Target {
    /// The list of the user.
    Own(PathBuf),
    /// A signed list for other people.
    Signed { file: PathBuf, key: SigningKey },
}

impl Target {
    fn new(arguments: &RevokeArguments) -> Result<Self, Stop> {
        match (&arguments.publish, &arguments.key) {
            (Some(file), Some(key)) => {
                Ok(Self::Signed { file: file.clone(), key: key_files::read_private(key, Path::new("."))? })
            }
            _ => own_list().map(Self::Own).ok_or_else(|| {
                Stop::new(Exit::Usage, "there is no folder for your list of revocations")
                    .with_help("set GLOVEBOX_DATA_DIR to a folder of your own")
            }),
        }
    }

    fn file(&self) -> &Path {
        let (Self::Own(file) | Self::Signed { file, .. }) = self;
        file
    }

    fn shown(&self) -> String {
        shown(self.file())
    }

    /// Waits until no other process changes the list. The folder itself is locked, so that no file is left behind.
    fn lock(&self) -> Result<File, Stop> {
        let folder = match self.file().parent() {
            Some(folder) if !folder.as_os_str().is_empty() => folder,
            _ => Path::new("."),
        };
        let failed = |error: &io::Error| Stop::io(format!("open the folder `{}`", shown(folder)), error);
        if matches!(self, Self::Own(_)) {
            DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(|error| failed(&error))?;
        }
        folder_lock::lock(folder)
    }

    /// Reads the list as it is. A missing list is empty.
    fn read(&self) -> Result<RevocationList, Stop> {
        let bytes = match regular_file::read(self.file(), Links::Follow, FILE_BYTES_MAX) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(RevocationList::default()),
            read => read.map_err(|error| self.unreadable(&error.to_string()))?,
        };
        let read = match self {
            Self::Own(_) => RevocationList::parse(&bytes),
            Self::Signed { key, .. } => RevocationList::parse_signed(&bytes, &only(key)).map(|signed| signed.list),
        };
        read.map_err(|fault: ListFault| self.unreadable(&fault.to_string()))
    }

    fn unreadable(&self, fault: &str) -> Stop {
        let message = format!("the list of revocations `{}` cannot be read: {}", self.shown(), visible::line(fault));
        Stop::new(Exit::Plugin, message).with_help("restore the list from a backup; nothing was written")
    }

    /// Writes the list. One for other people gets the next number.
    fn write(&self, list: &mut RevocationList) -> Result<(), Stop> {
        if matches!(self, Self::Signed { .. }) {
            list.advance();
        }
        match self {
            Self::Own(file) => write_own(file, &list.to_json())
                .map_err(|error| Stop::io(format!("write the list of revocations `{}`", shown(file)), &error)),
            Self::Signed { file, key } => replaced_file::put(file, list.sign(key)),
        }
    }
}

/// Replaces the user's list atomically, and makes the change durable. A link at its path is replaced, not followed.
fn write_own(file: &Path, text: &str) -> io::Result<()> {
    let beside = file.with_extension("json.new");
    match fs::remove_file(&beside) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut new = File::options().write(true).create_new(true).mode(0o600).open(&beside)?;
    let written = new.write_all(text.as_bytes()).and_then(|()| new.sync_all());
    written.and_then(|()| fs::rename(&beside, file)).inspect_err(|_| drop(fs::remove_file(&beside)))?;
    file.parent().map_or(Ok(()), regular_file::flush_folder)
}

fn shown(file: &Path) -> String {
    visible::line(&file.to_string_lossy()).into_owned()
}
