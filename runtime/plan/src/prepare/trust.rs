//! What of the user's may leave, and where to, as the user has confirmed it.
//!
//! `glovebox.toml` and pipelines come with a project, and a stranger may have written them. The plan says what a run could take of the
//! user's own to which place ([`Plan::egress`]). The user says yes to each pair once, for one project folder. What was confirmed is kept
//! beside the user's key, with its MAC, and never in a project. Nothing is looked up or connected before.

use super::folders::state_dir;
use super::keys;
use super::project::Project;
use super::refusal::{Class, Refusal};
use super::user_key::{self, Signing};
use crate::config::ConfiguredModel;
use crate::plan::{Egress, EgressSink, EgressSource, Plan, PlanEgress};
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

/// The folder beside the user's key.
const FOLDER: &str = "trusted";
const PURPOSE: &str = "glovebox 2026 source and sink v1";
const FILE_BYTES_MAX: u64 = 64 << 10;
/// Digits of an id: enough for what one user confirms.
const ID_DIGITS: usize = 12;

/// Something of the user's and a place that may get it, for one project.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Transfer {
    /// The folder of glovebox.toml.
    pub project: String,
    /// `env NAME`, `file PATH` or `folder PATH`; paths without links.
    pub source: String,
    /// Scheme, host and port, `proxy HOST` or `network full`.
    pub sink: String,
    /// The certificates that are trusted at the host beside the bundled ones.
    pub authorities: Option<Digest>,
    /// Identifies the folder, also where its name is not UTF-8.
    folder: Digest,
}

/// A transfer that a project asks for.
#[derive(Debug)]
pub struct Wanted {
    /// What goes where.
    pub transfer: Transfer,
    /// Where the source is named.
    named_in: String,
    /// The process that reaches the sink.
    reached_by: String,
    /// An explanation of the sink's place.
    note: &'static str,
}

impl Wanted {
    /// A pair as this machine has it: with real paths. None where the source is in the project, or is the system's.
    fn from_egress(project: &Project, pair: Egress) -> Option<Self> {
        let source = match &pair.source {
            EgressSource::Variable(_) => pair.source.to_string(),
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
            EgressSink::Model(_, None) | EgressSink::Proxy(_) | EgressSink::FullNetwork => (None, ""),
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

    /// In a few words: what goes where, and why.
    pub fn words(&self) -> String {
        let Self { transfer, named_in, reached_by, note } = self;
        let words = format!("{}{note} ({named_in}; {reached_by})", transfer.plain_words());
        visible::line(&words).into_owned()
    }

    /// As a plan prints it.
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
    /// True if this user has confirmed it.
    fn is_trusted(&self) -> Result<bool, Refusal> {
        let Some((folder, key)) = state_dir().zip(user_key::to_verify()?) else { return Ok(false) };
        let known = read(&folder.join(FOLDER).join(self.file_name()), |text| key.mac(PURPOSE, text));
        Ok(known.as_ref() == Some(self))
    }

    /// Keeps that this user has confirmed it.
    pub fn trust(&self) -> Result<(), Refusal> {
        let (Some(state), Signing::Key(key)) = (state_dir(), user_key::to_sign()?) else {
            return Err(Refusal::new(Class::Policy, "cannot keep the confirmation: Glovebox has no state folder")
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

    /// Forgets it.
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

    /// In a few words: what goes where.
    pub fn words(&self) -> String {
        visible::line(&self.plain_words()).into_owned()
    }

    /// The name under which `trust rm` finds it.
    pub fn id(&self) -> String {
        self.file_name().chars().take(ID_DIGITS).collect()
    }

    /// True for a transfer of the project.
    pub fn is_of(&self, project: &Project) -> bool {
        self.folder == Digest::hash(real(project.config_dir.clone()).as_os_str().as_bytes())
    }

    fn plain_words(&self) -> String {
        let authorities = self.authorities.map(|digest| format!(", by the certificates {digest}")).unwrap_or_default();
        format!("`{}` goes to {}{authorities}", self.source, self.sink)
    }

    fn file_name(&self) -> String {
        let authorities = self.authorities.map(|digest| digest.hex()).unwrap_or_default();
        // Each with its length: no path makes two transfers one.
        let parts = [&self.folder.hex(), &self.source, &self.sink, &authorities];
        Digest::hash(parts.map(|part| format!("{} {part}\n", part.len())).concat().as_bytes()).hex()
    }
}

/// Every transfer that a run of the plan needs, confirmed or not.
pub fn of_plan(project: &Project, plan: &Plan) -> Vec<Wanted> {
    plan.egress().into_iter().filter_map(|pair| Wanted::from_egress(project, pair)).collect()
}

/// The same of a model that is asked alone.
pub fn of_model(project: &Project, model: ConfiguredModel<'_>) -> Option<Wanted> {
    Egress::for_key(model, false).and_then(|pair| Wanted::from_egress(project, pair))
}

/// Everything that this user has confirmed, for all projects.
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

/// Refuses a plan with a transfer that is not confirmed. `confirm` is asked first, once for all of them: a run needs every one.
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

/// The target of a model that is asked alone.
///
/// # Errors
/// Its key may not go where it would go, or it cannot be asked.
pub fn target_alone(project: &Project, model: ConfiguredModel<'_>) -> Result<Target, Refusal> {
    require_model(project, model)?;
    keys::target(project, model)
}

/// Refuses a model whose key may not go where it would go.
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
    let message = format!("you have not confirmed for this project: {}", lines.join("\n  "));
    Refusal::new(Class::Policy, message).with_help(format!("if all of it may leave: `{give}`"))
}

/// A path without links; as it is if it leads nowhere.
fn real(path: PathBuf) -> PathBuf {
    fs::canonicalize(&path).unwrap_or(path)
}

/// A path as text, another one for each path.
fn shown(path: &Path) -> String {
    path.to_str().map_or_else(|| format!("{path:?}"), str::to_owned)
}

/// Reads a file: a line with its MAC, and the text. Anything else is nothing.
fn read(file: &Path, mac: impl Fn(&[u8]) -> blake3::Hash) -> Option<Transfer> {
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
