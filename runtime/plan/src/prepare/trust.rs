//! The user's confirmations: which data of the user may leave the machine, and its destination.
//!
//! `glovebox.toml` and pipelines come with a project, and an untrusted person may have written them. The plan lists the data
//! of the user that a run could send to each destination ([`Plan::egress`]). The user confirms each pair once, for one
//! project folder. Confirmations are stored next to the user's key, each with a MAC, and never in a project. Before the
//! confirmation no host is looked up and no connection is made.

use super::folders::state_dir;
use super::keys;
use super::project::Project;
use super::refusal::{Class, Refusal};
use super::user_key::{self, Signing};
use crate::config::ConfiguredModel;
use crate::plan::{Client, Egress, EgressSink, EgressSource, Plan, PlanEgress};
use glovebox_jail::jail;
use glovebox_models::target::Target;
use glovebox_names::{shell, visible};
use glovebox_record::Digest;
use glovebox_workspace::regular_file::{self, Links};
use serde::{Deserialize, Serialize};
use std::fs::{self, DirBuilder};
use std::io::{self, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// The folder of confirmations, in the same folder as the user's key.
const FOLDER: &str = "trusted";
const PURPOSE: &str = "glovebox 2026 source and sink v1";
const FILE_BYTES_MAX: u64 = 64 << 10;
/// Number of hex digits of an id. It is enough for the confirmations of one user.
const ID_DIGITS: usize = 12;

/// Data of the user and a destination that may get it, for one project.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Transfer {
    /// The folder of `glovebox.toml`.
    pub project: String,
    /// `env NAME`, `file PATH` or `folder PATH`. Symbolic links in the path are resolved.
    pub source: String,
    /// Scheme, host and port, `proxy HOST` or `network full`.
    pub sink: String,
    /// Digest of the certificates that are trusted for the host in addition to the bundled ones.
    pub authorities: Option<Digest>,
    /// Digest of the folder's path. It identifies the folder even if the path is not UTF-8.
    folder: Digest,
}

/// A transfer for which a project asks.
#[derive(Debug)]
pub struct Wanted {
    /// The data and its destination.
    pub transfer: Transfer,
    /// Where the source is named.
    named_in: String,
    /// What reaches the sink, such as `model m`.
    reached_by: String,
    /// An explanation of the sink. May be empty.
    note: &'static str,
}

impl Wanted {
    /// Creates the transfer of a pair on this machine, with real paths. `None` if the source is in the project or belongs to
    /// the system.
    fn from_egress(project: &Project, pair: Egress) -> Option<Self> {
        let source = match &pair.source {
            EgressSource::Variable(_)
            | EgressSource::History
            | EgressSource::LocalService(_)
            | EgressSource::Network => pair.source.to_string(),
            EgressSource::KeyFile(file) => format!("file {}", shown(&real(keys::place(project, Path::new(file))))),
            EgressSource::Folder(folder) => {
                let folder = real(PathBuf::from(&folder.0));
                if jail::is_system(&folder) || folder.starts_with(real(project.workdir.clone())) {
                    return None;
                }
                format!("folder {}", shown(&folder))
            }
        };
        let (authorities, note) = match &pair.sink {
            // An unreadable file counts as empty here. Loading the certificates fails later and names the file.
            EgressSink::Model(_, Some(file)) => {
                (Some(Digest::hash(&keys::read(&keys::place(project, Path::new(file))).unwrap_or_default())), "")
            }
            EgressSink::OpenLoopback(_) => (None, ", where a process with network `full` could listen"),
            EgressSink::Model(_, None) | EgressSink::Proxy(_) | EgressSink::FullNetwork | EgressSink::Fleet => {
                (None, "")
            }
        };
        let folder = real(project.config_dir.clone());
        let transfer = Transfer {
            project: folder.display().to_string(),
            source,
            sink: pair.sink.to_string(),
            authorities,
            folder: Digest::hash(folder.as_os_str().as_bytes()),
        };
        Some(Self { transfer, named_in: pair.named_in, reached_by: pair.reached_by, note })
    }

    /// Returns a short text: the data, the destination and the reason.
    pub fn words(&self) -> String {
        let Self { transfer, named_in, reached_by, note } = self;
        let words = format!("{}{note} ({named_in}; {reached_by})", transfer.plain_words());
        visible::line(&words).into_owned()
    }

    /// Returns the transfer as a plan prints it.
    pub fn to_plan(&self) -> Result<PlanEgress, Refusal> {
        Ok(PlanEgress {
            source: self.transfer.source.clone(),
            sink: self.transfer.sink.clone(),
            named_in: self.named_in.clone(),
            reached_by: self.reached_by.clone(),
            confirmed: self.transfer.is_trusted()?,
        })
    }
}

impl Transfer {
    /// Returns true if this user has confirmed the transfer.
    fn is_trusted(&self) -> Result<bool, Refusal> {
        let Some((folder, key)) = state_dir().zip(user_key::to_verify()?) else { return Ok(false) };
        let known = read(&folder.join(FOLDER).join(self.file_name()), |text| key.mac(PURPOSE, text));
        Ok(known.as_ref() == Some(self))
    }

    /// Returns the destination. It includes the digest of the certificates of the project, with which another host than the
    /// named one could answer.
    pub fn full_sink(&self) -> String {
        match &self.authorities {
            Some(digest) => format!("{} with {digest}", self.sink),
            None => self.sink.clone(),
        }
    }

    /// Stores that this user has confirmed the transfer.
    pub fn trust(&self) -> Result<(), Refusal> {
        let (Some(state), Signing::Key(key)) = (state_dir(), user_key::to_sign()?) else {
            return Err(Refusal::new(Class::Policy, "cannot store the confirmation: Glovebox has no state folder")
                .with_help("set GLOVEBOX_STATE_DIR to a folder of your own"));
        };
        let text = serde_json::to_string(self).map_err(|error| Refusal::new(Class::Internal, error.to_string()))?;
        let folder = state.join(FOLDER);
        let file = folder.join(self.file_name());
        let mac = key.mac(PURPOSE, text.as_bytes());
        let kept = DirBuilder::new().recursive(true).mode(0o700).create(&folder);
        kept.and_then(|()| write(&file, format!("{}\n{text}", mac.to_hex())))
            .map_err(|error| Refusal::io(format!("write `{}`", file.display()), &error))
    }

    /// Removes the confirmation.
    pub fn forget(&self) -> Result<(), Refusal> {
        let Some(state) = state_dir() else { return Ok(()) };
        let file = state.join(FOLDER).join(self.file_name());
        match fs::remove_file(&file) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(Refusal::io(format!("remove `{}`", file.display()), &error))
            }
            _ => Ok(()),
        }
    }

    /// Returns a short text: the data and the destination.
    pub fn words(&self) -> String {
        visible::line(&self.plain_words()).into_owned()
    }

    /// Returns the id with which `trust rm` finds the transfer.
    pub fn id(&self) -> String {
        self.file_name().chars().take(ID_DIGITS).collect()
    }

    /// Returns true if the transfer belongs to the project.
    pub fn is_of(&self, project: &Project) -> bool {
        self.folder == Digest::hash(real(project.config_dir.clone()).as_os_str().as_bytes())
    }

    fn plain_words(&self) -> String {
        let authorities = self
            .authorities
            .map(|digest| {
                format!(", whose TLS certificate an authority in `ca_file` (digest {digest}) may have signed")
            })
            .unwrap_or_default();
        format!("`{}` goes to {}{authorities}", self.source, self.sink)
    }

    fn file_name(&self) -> String {
        let authorities = self.authorities.map(|digest| digest.hex()).unwrap_or_default();
        // Each part is written with its length, so that two different transfers never give the same text.
        let parts = [&self.folder.hex(), &self.source, &self.sink, &authorities];
        Digest::hash(parts.map(|part| format!("{} {part}\n", part.len())).concat().as_bytes()).hex()
    }
}

/// Returns every transfer that a run of the plan needs, confirmed or not.
pub fn of_plan(project: &Project, plan: &Plan) -> Vec<Wanted> {
    // The settings came with a run of other people.
    let client = if project.shipped.is_some() { Client::Fleet } else { Client::User };
    plan.egress(client).into_iter().filter_map(|pair| Wanted::from_egress(project, pair)).collect()
}

/// Returns the transfer that is needed to ask one model outside of a run. `None` if none is needed.
pub fn of_model(project: &Project, model: ConfiguredModel<'_>) -> Option<Wanted> {
    Egress::for_key(model, false).and_then(|pair| Wanted::from_egress(project, pair))
}

/// Returns everything that this user has confirmed, for all projects.
pub fn all() -> Result<Vec<Transfer>, Refusal> {
    let Some((state, key)) = state_dir().zip(user_key::to_verify()?) else { return Ok(Vec::new()) };
    let entries = match fs::read_dir(state.join(FOLDER)) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(Refusal::io("read what was confirmed", &error)),
    };
    let files: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    let mut found: Vec<Transfer> = files.iter().filter_map(|file| read(file, |text| key.mac(PURPOSE, text))).collect();
    found.sort();
    Ok(found)
}

/// Refuses a plan with a transfer that is not confirmed. `confirm` is called first, and once for all such transfers, because
/// a run needs all of them.
pub fn require(
    project: &Project,
    plan: &Plan,
    pipeline: &Path,
    confirm: &dyn Fn(&[Wanted]) -> Result<bool, Refusal>,
) -> Result<(), Refusal> {
    let open = unconfirmed(of_plan(project, plan))?;
    if open.is_empty() || confirm(&open)? {
        return Ok(());
    }
    let folder = shell::word(&project.workdir.display().to_string()).into_owned();
    let give = format!("glovebox trust give {} --workdir {folder}", shell::word(&pipeline.display().to_string()));
    Err(refused(&open, &give))
}

/// Returns the target of one model that is asked outside of a run.
///
/// # Errors
///
/// Fails if the transfer of the model's key is not confirmed, or if the model cannot be asked.
pub fn target_alone(project: &Project, model: ConfiguredModel<'_>) -> Result<Target, Refusal> {
    require_model(project, model)?;
    keys::target(project, model)
}

/// Refuses a model if the transfer of its key is not confirmed.
fn require_model(project: &Project, model: ConfiguredModel<'_>) -> Result<(), Refusal> {
    let open = unconfirmed(of_model(project, model).into_iter().collect())?;
    if open.is_empty() {
        return Ok(());
    }
    Err(refused(&open, &format!("glovebox trust give --model {}", shell::word(model.name))))
}

fn unconfirmed(wanted: Vec<Wanted>) -> Result<Vec<Wanted>, Refusal> {
    let mut open = Vec::new();
    for wanted in wanted {
        if !wanted.transfer.is_trusted()? {
            open.push(wanted);
        }
    }
    Ok(open)
}

fn refused(open: &[Wanted], give: &str) -> Refusal {
    let lines: Vec<String> = open.iter().map(Wanted::words).collect();
    let message = format!("you have not confirmed these transfers for this project: {}", lines.join("\n  "));
    Refusal::new(Class::Policy, message).with_help(format!("to confirm all of them, run `{give}`"))
}

/// Returns the path with symbolic links resolved. If that fails, returns the path unchanged.
fn real(path: PathBuf) -> PathBuf {
    fs::canonicalize(&path).unwrap_or(path)
}

/// Returns a path as text. Different paths give different texts.
fn shown(path: &Path) -> String {
    path.to_str().map_or_else(|| format!("{path:?}"), str::to_owned)
}

/// Reads a confirmation: a line with the MAC, then the text. `None` for any other file.
fn read(file: &Path, mac: impl Fn(&[u8]) -> blake3::Hash) -> Option<Transfer> {
    let mut text = String::new();
    regular_file::open(file, Links::Follow).ok()?.take(FILE_BYTES_MAX).read_to_string(&mut text).ok()?;
    let (signed, text) = text.split_once('\n')?;
    // The comparison takes constant time.
    (blake3::Hash::from_hex(signed).ok()? == mac(text.as_bytes())).then(|| serde_json::from_str(text).ok()).flatten()
}

fn write(file: &Path, bytes: impl AsRef<[u8]>) -> io::Result<()> {
    let beside = file.with_extension(format!("{}.new", std::process::id()));
    let mut written = fs::File::options().write(true).create(true).truncate(true).mode(0o600).open(&beside)?;
    let done = written.write_all(bytes.as_ref()).and_then(|()| written.sync_all());
    done.and_then(|()| fs::rename(&beside, file)).inspect_err(|_| drop(fs::remove_file(&beside)))
}
