//! Which key may go to which host, as the user has confirmed it.
//!
//! `glovebox.toml` comes with a project, and a stranger may have written it. It names the key of a model and the host that gets it, so a
//! key goes only where its provider's own tools would send it, to this machine, or where the user said yes: once for each project
//! folder, host, key and file of certificates. What was confirmed is kept beside the user's key, with its MAC, and never in a project.

use crate::exit::{Exit, Stop};
use crate::models::{self, Configured};
use crate::project::Project;
use crate::terminal::{self, visible};
use crate::{shell, user_key};
use glovebox_engine::config::KeySource;
use glovebox_models::target::Endpoint;
use glovebox_record::Digest;
use glovebox_sandbox::regular_file::{self, Links};
use serde::{Deserialize, Serialize};
use std::fs::{self, DirBuilder};
use std::io::{self, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// The folder beside the user's key.
const FOLDER: &str = "trusted-keys";
const PURPOSE: &str = "glovebox 2026 key and host v1";
const FILE_BYTES_MAX: u64 = 64 << 10;

/// A key and where it goes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyUse {
    /// The folder of glovebox.toml.
    pub project: String,
    /// Scheme, host and port.
    pub host: String,
    /// `env NAME` or `file PATH`.
    pub key: String,
    /// The certificates that are trusted beside the bundled ones.
    pub authorities: Option<Digest>,
    /// What no two folders have in common, whatever characters are in their names.
    folder: Digest,
}

impl KeyUse {
    /// What a model's key would be used for, if that must be confirmed. Not asked for: a model without a key, a model on this machine, and
    /// the usual variable of a provider for the provider's own host.
    pub fn to_confirm(project: &Project, (_, access): Configured<'_>) -> Option<Self> {
        let family = access.family;
        let (key, is_usual) = match &access.key {
            KeySource::None => return None,
            KeySource::Variable(name) => (format!("env {name}"), family.key_variable() == Some(name)),
            KeySource::File(file) => {
                let file = models::place(project, Path::new(file));
                let file = fs::canonicalize(&file).unwrap_or(file);
                (format!("file {}", file.display()), false)
            }
        };
        let usual: Option<Endpoint> = family.endpoint().and_then(|text| text.parse().ok());
        let is_own = usual.is_some_and(|usual| usual.origin() == access.endpoint.origin());
        if access.endpoint.is_local() || (is_usual && is_own && access.ca_file.is_none()) {
            return None;
        }
        // A file that cannot be read is an error later, and confirmed as none by nobody.
        let authorities = access
            .ca_file
            .as_ref()
            .map(|file| Digest::of(&models::read(&models::place(project, Path::new(file))).unwrap_or_default()));
        let folder = fs::canonicalize(&project.config_dir).unwrap_or_else(|_| project.config_dir.clone());
        Some(Self {
            project: folder.display().to_string(),
            host: access.endpoint.origin(),
            key,
            authorities,
            folder: Digest::of(folder.as_os_str().as_bytes()),
        })
    }

    /// True if this user has confirmed it.
    pub fn is_trusted(&self) -> Result<bool, Stop> {
        let Some((folder, key)) = user_key::folder().zip(user_key::to_verify()?) else { return Ok(false) };
        let known = read(&folder.join(FOLDER).join(self.file_name()), |text| key.mac(PURPOSE, text));
        Ok(known.as_ref() == Some(self))
    }

    /// Keeps that this user has confirmed it.
    pub fn trust(&self) -> Result<(), Stop> {
        let Some((state, key)) = user_key::folder().zip(user_key::to_sign()?) else {
            return Err(Stop::new(Exit::Policy, "there is no folder to keep it in, and no key to sign it with")
                .with_help("set GLOVEBOX_STATE_DIR to a folder of your own"));
        };
        let text = terminal::json(self)?;
        let folder = state.join(FOLDER);
        let file = folder.join(self.file_name());
        let mac = key.mac(PURPOSE, text.as_bytes());
        let kept = DirBuilder::new().recursive(true).mode(0o700).create(&folder);
        kept.and_then(|()| write(&file, format!("{}\n{text}", mac.to_hex())))
            .map_err(|error| Stop::io(format!("write `{}`", file.display()), &error))
    }

    /// Forgets it. False if it was not confirmed.
    pub fn forget(&self) -> Result<bool, Stop> {
        let Some(state) = user_key::folder() else { return Ok(false) };
        let file = state.join(FOLDER).join(self.file_name());
        match fs::remove_file(&file) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(Stop::io(format!("remove `{}`", file.display()), &error)),
        }
    }

    /// In a few words: what goes where.
    pub fn words(&self) -> String {
        let authorities = self.authorities.map(|digest| format!(", by the certificates {digest}")).unwrap_or_default();
        visible::line(&format!("the key of `{}` goes to {}{authorities}", self.key, self.host)).into_owned()
    }

    fn file_name(&self) -> String {
        let authorities = self.authorities.map(|digest| digest.hex()).unwrap_or_default();
        let text = [&self.folder.hex(), &self.host, &self.key, &authorities].map(String::as_str).join("\n");
        Digest::of(text.as_bytes()).hex()
    }
}

/// Everything that this user has confirmed, for all projects.
pub fn all() -> Result<Vec<KeyUse>, Stop> {
    let Some((state, key)) = user_key::folder().zip(user_key::to_verify()?) else { return Ok(Vec::new()) };
    let entries = match fs::read_dir(state.join(FOLDER)) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(Stop::io("read what was confirmed", &error)),
    };
    let files: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    let mut found: Vec<KeyUse> = files.iter().filter_map(|file| read(file, |text| key.mac(PURPOSE, text))).collect();
    found.sort_by(|a, b| (&a.project, &a.host, &a.key).cmp(&(&b.project, &b.host, &b.key)));
    Ok(found)
}

/// Refuses a model whose key may not go where it would go.
pub fn require(project: &Project, model: Configured<'_>) -> Result<(), Stop> {
    let Some(found) = KeyUse::to_confirm(project, model) else { return Ok(()) };
    if found.is_trusted()? {
        return Ok(());
    }
    let (name, words) = (model.0, found.words());
    let message = format!("model `{name}`: {words}, and you have not confirmed that for this project");
    let help = format!("if that host may have the key: `glovebox models trust {}`", shell::word(name));
    Err(Stop::new(Exit::Policy, message).with_help(help))
}

/// Asks for each model whose use of a key is not confirmed. What is declined, or cannot be asked, is refused later.
pub fn ask<'a>(project: &Project, models: impl Iterator<Item = Configured<'a>>) -> Result<(), Stop> {
    if !terminal::can_ask() {
        return Ok(());
    }
    for model in models {
        let Some(found) = KeyUse::to_confirm(project, model) else { continue };
        if found.is_trusted()? {
            continue;
        }
        let (name, file) = (visible::line(model.0), project.config_dir.join("glovebox.toml"));
        let file = file.display().to_string();
        terminal::say(format_args!("model `{name}` in {}: {}\n", visible::line(&file), found.words()));
        terminal::say("may that host have this key? [y/N] ");
        let mut answer = String::new();
        io::stdin().read_line(&mut answer).map_err(|error| Stop::io("read the answer", &error))?;
        if matches!(answer.trim(), "y" | "Y" | "yes") {
            found.trust()?;
        }
    }
    Ok(())
}

/// Reads a file: a line with its MAC, and the text. Anything else is nothing.
fn read(file: &Path, mac: impl Fn(&[u8]) -> blake3::Hash) -> Option<KeyUse> {
    let mut text = String::new();
    regular_file::open(file, Links::Follow).ok()?.take(FILE_BYTES_MAX).read_to_string(&mut text).ok()?;
    let (signed, text) = text.split_once('\n')?;
    // Compared in constant time.
    (blake3::Hash::from_hex(signed).ok()? == mac(text.as_bytes())).then(|| serde_json::from_str(text).ok()).flatten()
}

fn write(file: &Path, bytes: impl AsRef<[u8]>) -> io::Result<()> {
    let beside = file.with_extension(format!("{}.new", std::process::id()));
    let mut written = fs::File::options().write(true).create(true).truncate(true).mode(0o600).open(&beside)?;
    let done = written.write_all(bytes.as_ref()).and_then(|()| written.sync_all());
    done.and_then(|()| fs::rename(&beside, file)).inspect_err(|_| drop(fs::remove_file(&beside)))
}
