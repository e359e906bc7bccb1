//! Reads what decides which components may run: the keys of `[trust]`, the signatures beside components, and the lists of
//! revocations.
//!
//! A list is read again only when its file changed, so that a check costs one `stat`. A list of `[trust]` that is missing or
//! damaged is an error, and so is a damaged list of the user.

mod changes;

pub use changes::FileChanges;

use super::findings::Findings;
use super::folders::data_dir;
use super::refusal::Refusal;
use super::source::read_text;
use crate::config::{CONFIG_FILE_NAME, ListSource, TrustKeySetting, TrustKeySource, TrustSetting};
use glovebox_names::visible;
use glovebox_pipeline::diagnostic::Diagnostic;
use glovebox_pipeline::span::Span;
use glovebox_record::Digest;
use glovebox_signing::key::PublicKey;
use glovebox_signing::plugin::{FILE_BYTES_MAX, FILE_SUFFIX};
use glovebox_signing::provenance;
use glovebox_signing::revocation::{self, Refused, RevocationList, RevocationSource, Revocations};
use glovebox_signing::trust::{Trust, TrustedKey};
use glovebox_workspace::regular_file::{self, Links};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use std::fmt;
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// The name of the user's list of revocations.
pub const REVOCATIONS_FILE: &str = "revocations.json";
/// The folder of the lists that were fetched, in the folder for data.
const FETCHED_LISTS: &str = "revocation-lists";
/// Number of hexadecimal digits of the name of a fetched list.
const LIST_NAME_DIGITS: usize = 32;
/// Maximum size of a file with a public key, in bytes.
const KEY_BYTES_MAX: u64 = 64 << 10;

/// Returns the user's list of revocations. `None` if the user has no data folder.
pub fn own_list() -> Option<PathBuf> {
    data_dir().map(|folder| folder.join(REVOCATIONS_FILE))
}

/// Returns the file with the copy of a list that is fetched. `None` if the user has no data folder.
pub fn fetched_list(source: &ListSource) -> Option<PathBuf> {
    let name = Digest::hash(source.to_string().as_bytes()).hex();
    data_dir().map(|folder| folder.join(FETCHED_LISTS).join(format!("{}.json", &name[..LIST_NAME_DIGITS])))
}

/// Returns the path of the file of a component's signatures.
pub fn signatures_file(component: &Path) -> PathBuf {
    let mut name = component.as_os_str().to_owned();
    name.push(FILE_SUFFIX);
    PathBuf::from(name)
}

/// Returns the path of the file of a component's provenance.
pub fn provenance_file(component: &Path) -> PathBuf {
    let mut name = component.as_os_str().to_owned();
    name.push(provenance::FILE_SUFFIX);
    PathBuf::from(name)
}

/// Reads the file of a component's signatures. Empty if it does not exist.
///
/// # Errors
///
/// Fails with a reason for people, also for a file that is too long.
pub fn read_signatures(component: &Path) -> Result<Vec<Vec<u8>>, String> {
    read_beside(&signatures_file(component), FILE_BYTES_MAX)
}

/// Reads the file of a component's provenance. Empty if it does not exist.
///
/// # Errors
///
/// As [`read_signatures`].
pub fn read_provenance(component: &Path) -> Result<Vec<Vec<u8>>, String> {
    read_beside(&provenance_file(component), provenance::FILE_BYTES_MAX)
}

fn read_beside(file: &Path, bytes_max: u64) -> Result<Vec<Vec<u8>>, String> {
    match regular_file::read(file, Links::Follow, bytes_max) {
        Ok(bytes) => Ok(vec![bytes]),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(error.to_string()),
    }
}

/// Returns the keys of `[trust]`, with those that are in files.
///
/// # Errors
///
/// Fails for each file that has no public key, and for a key that is listed twice.
pub fn trust(setting: &TrustSetting, config_dir: &Path) -> Result<Trust, Refusal> {
    let (mut keys, mut problems): (Vec<TrustedKey>, Vec<Diagnostic>) = Default::default();
    for setting in &setting.keys {
        let found = public_key(setting, config_dir).and_then(|key| match keys.iter().find(|known| known.key == key) {
            Some(known) => Err(format!("the keys `{}` and `{}` are the same", known.name, setting.name)),
            None => Ok(key),
        });
        match found {
            Ok(key) => keys.push(TrustedKey {
                name: setting.name.clone(),
                key,
                plugins: setting.plugins.clone(),
                not_after: setting.not_after,
            }),
            Err(message) => {
                let span = Span { start: setting.place.start, end: setting.place.end };
                problems.push(Diagnostic::error("config_value", message, span));
            }
        }
    }
    if !problems.is_empty() {
        let file = config_dir.join(CONFIG_FILE_NAME);
        let findings = Findings { file: file.display().to_string(), source: read_text(&file)?, diagnostics: problems };
        return Err(Refusal::for_findings(findings));
    }
    let today = Timestamp::now().to_zoned(TimeZone::UTC).date();
    Ok(Trust { require: setting.require, keys, today: Some(today) })
}

fn public_key(setting: &TrustKeySetting, config_dir: &Path) -> Result<PublicKey, String> {
    let path = match &setting.source {
        TrustKeySource::Key(key) => return Ok(*key),
        TrustKeySource::File(path) => path,
    };
    let shown = visible::line(path);
    let bytes = regular_file::read(&config_dir.join(path), Links::Follow, KEY_BYTES_MAX)
        .map_err(|error| format!("the key `{shown}` cannot be read: {error}"))?;
    let key = PublicKey::from_pem(&bytes).or_else(|| std::str::from_utf8(&bytes).ok()?.trim().parse().ok());
    key.ok_or_else(|| format!("`{shown}` is not a public Ed25519 key (PEM)"))
}

/// The lists of revocations of a project, and what was last read from them. The default has no list.
#[derive(Default)]
pub struct RevocationWatch {
    lists: Vec<WatchedList>,
    trust: Option<Arc<Trust>>,
}

struct WatchedList {
    file: PathBuf,
    kind: ListKind,
    last: Mutex<LastRead>,
}

#[derive(Clone, PartialEq, Eq)]
enum ListKind {
    /// The list of the user, which need not exist.
    Own,
    /// A list of `[trust]` in a file.
    Signed,
    /// The copy of a list of `[trust]` that was fetched, and how old it may become. It does not exist before it is fetched.
    Fetched { place: String, age_max: Option<Duration> },
}

/// The file as it was when it was last read.
#[derive(Default)]
struct LastRead {
    version: Option<FileVersion>,
    source: Option<Arc<RevocationSource>>,
}

/// What `stat` says about the content of a file. A list is replaced by another file, never changed in place.
#[derive(Clone, Copy, PartialEq, Eq)]
enum FileVersion {
    Absent,
    Present { device: u64, inode: u64, bytes: u64, changed_ns: (i64, i64), modified_ns: (i64, i64) },
}

impl RevocationWatch {
    /// Creates the watch of the user's list and of the lists of `[trust]`. Reads nothing.
    pub fn new(setting: Option<&TrustSetting>, trust: Option<Arc<Trust>>, config_dir: &Path) -> Self {
        let own = own_list().map(|file| (file, ListKind::Own));
        let mut lists: Vec<WatchedList> =
            own.into_iter().map(|(file, kind)| WatchedList { file, kind, last: Mutex::default() }).collect();
        for source in setting.into_iter().flat_map(|setting| &setting.revocations) {
            let (file, kind) = match source {
                ListSource::File(path) => (config_dir.join(path), ListKind::Signed),
                fetched => {
                    let age_max = setting.and_then(|setting| setting.revocations_age_max);
                    let place = visible::line(&fetched.to_string()).into_owned();
                    // Without a folder for data, no list was ever fetched.
                    let file = fetched_list(fetched).unwrap_or_else(|| PathBuf::from("/dev/null"));
                    (file, ListKind::Fetched { place, age_max })
                }
            };
            lists.push(WatchedList { file, kind, last: Mutex::default() });
        }
        Self { lists, trust }
    }

    /// Begins to watch the lists.
    ///
    /// # Errors
    ///
    /// As [`FileChanges::watch`].
    pub fn changes(&self) -> std::io::Result<FileChanges> {
        FileChanges::watch(self.lists.iter().map(|list| list.file.clone()).collect())
    }

    /// Returns the revocations as they are now.
    pub fn current(&self) -> Revocations {
        Revocations::new(self.lists.iter().filter_map(|list| list.current(self.trust.as_deref())))
    }

    /// Returns why a component must not run now. `None` if it may run.
    pub fn find(&self, name: &str, digest: &Digest) -> Option<Refused> {
        self.current().find(name, digest)
    }
}

impl fmt::Debug for RevocationWatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.lists.iter().map(|list| &list.file)).finish()
    }
}

impl WatchedList {
    /// Returns the list, read again if its file changed. `None` if the user has no list.
    fn current(&self, trust: Option<&Trust>) -> Option<Arc<RevocationSource>> {
        let now = self.version();
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        // A file that cannot be looked at is read each time, so that the fault ends when its cause does.
        if last.version.is_none() || last.version != now.as_ref().ok().copied() {
            last.source = self.read(trust).map(Arc::new);
            last.version = now.ok();
        }
        match self.too_old(last.version) {
            Some(stale) => Some(Arc::new(stale)),
            None => last.source.clone(),
        }
    }

    /// Returns the source that refuses everything, if a fetched list is older than the operator allows. Whoever serves the list could
    /// otherwise keep later lists away.
    fn too_old(&self, version: Option<FileVersion>) -> Option<RevocationSource> {
        let ListKind::Fetched { place, age_max: Some(age_max) } = &self.kind else { return None };
        let Some(FileVersion::Present { modified_ns: (fetched, _), .. }) = version else { return None };
        let age = Timestamp::now().as_second().saturating_sub(fetched);
        let is_fresh = u64::try_from(age).is_ok_and(|age| age <= age_max.as_secs());
        (!is_fresh).then(|| RevocationSource {
            place: place.clone(),
            list: Err(format!("it was fetched {age} s ago, and `revocations_age_max` allows {} s", age_max.as_secs())),
            is_fetched: true,
        })
    }

    fn version(&self) -> std::io::Result<FileVersion> {
        match std::fs::metadata(&self.file) {
            Ok(found) => Ok(FileVersion::Present {
                device: found.dev(),
                inode: found.ino(),
                bytes: found.len(),
                changed_ns: (found.ctime(), found.ctime_nsec()),
                modified_ns: (found.mtime(), found.mtime_nsec()),
            }),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(FileVersion::Absent),
            Err(error) => Err(error),
        }
    }

    fn read(&self, trust: Option<&Trust>) -> Option<RevocationSource> {
        let place = match &self.kind {
            ListKind::Fetched { place, .. } => place.clone(),
            _ => visible::line(&self.file.to_string_lossy()).into_owned(),
        };
        let is_fetched = matches!(self.kind, ListKind::Fetched { .. });
        let bytes = match regular_file::read(&self.file, Links::Follow, revocation::FILE_BYTES_MAX) {
            Err(error) if error.kind() == ErrorKind::NotFound && self.kind == ListKind::Own => return None,
            Err(error) if error.kind() == ErrorKind::NotFound && is_fetched => Err("it was never fetched".to_owned()),
            read => read.map_err(|error| error.to_string()),
        };
        let shown = |fault: revocation::ListFault| visible::line(&fault.to_string()).into_owned();
        Some(match &self.kind {
            ListKind::Own => {
                RevocationSource::own(place, bytes.and_then(|bytes| RevocationList::parse(&bytes).map_err(shown)))
            }
            ListKind::Signed | ListKind::Fetched { .. } => {
                let nobody = Trust::default();
                let trust = trust.unwrap_or(&nobody);
                let list = bytes.and_then(|bytes| RevocationList::parse_signed(&bytes, trust).map_err(shown));
                RevocationSource { place, list, is_fetched }
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use glovebox_signing::revocation::Revocation;

    fn watch(file: PathBuf) -> RevocationWatch {
        RevocationWatch { lists: vec![WatchedList { file, kind: ListKind::Own, last: Mutex::default() }], trust: None }
    }

    fn write(file: &Path, text: &str) {
        let beside = file.with_extension("new");
        std::fs::write(&beside, text).unwrap();
        std::fs::rename(beside, file).unwrap();
    }

    #[test]
    fn a_list_is_read_when_it_changes() {
        let folder = tempfile::tempdir().unwrap();
        let (file, digest) = (folder.path().join(REVOCATIONS_FILE), Digest::hash(b"component"));
        let watch = watch(file.clone());
        assert_eq!(watch.find("a.b", &digest), None);
        let mut list = RevocationList::default();
        write(&file, &list.to_json());
        assert_eq!(watch.find("a.b", &digest), None);
        let at = Timestamp::UNIX_EPOCH;
        list.add(Revocation { digest, reason: "it leaks".to_owned(), at }).unwrap();
        write(&file, &list.to_json());
        assert!(matches!(watch.find("a.b", &digest), Some(Refused::Revoked { .. })));
        write(&file, "damaged");
        let refused = watch.find("a.b", &Digest::ZERO);
        assert!(matches!(refused, Some(Refused::Unreadable { .. })), "{refused:?}");
        std::fs::remove_file(&file).unwrap();
        assert_eq!(watch.find("a.b", &digest), None);
        std::fs::create_dir(&file).unwrap();
        assert!(matches!(watch.find("a.b", &digest), Some(Refused::Unreadable { .. })), "a folder is no list");
    }

    #[test]
    fn an_unchanged_list_is_not_read_again() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join(REVOCATIONS_FILE);
        write(&file, &RevocationList::default().to_json());
        let watch = watch(file);
        let read = || watch.lists[0].current(None).map(|source| Arc::as_ptr(&source));
        let first = read();
        assert!(first.is_some() && read() == first);
    }

    #[test]
    fn a_signed_list_must_exist() {
        let folder = tempfile::tempdir().unwrap();
        let setting =
            TrustSetting { revocations: vec![ListSource::File("none.json".to_owned())], ..TrustSetting::default() };
        let mut watch = RevocationWatch::new(Some(&setting), None, folder.path());
        watch.lists.retain(|list| list.kind == ListKind::Signed);
        assert!(matches!(watch.find("a.b", &Digest::ZERO), Some(Refused::Unreadable { .. })));
    }
}
