//! A file of credentials: `config.json` of docker or `auth.json` of podman.

use super::program::{self, ProgramError};
use super::value::{Credential, Secret};
use crate::reference::Repository;
use base64::Engine as _;
use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use glovebox_workspace::regular_file::{self, Links};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// Maximum size of a file, in bytes.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// Container tools disagree about the padding.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// The parts of a file that are about credentials.
#[derive(Debug, Default, Deserialize)]
pub(super) struct CredentialFile {
    #[serde(default)]
    auths: BTreeMap<String, Entry>,
    #[serde(default, rename = "credHelpers")]
    programs: BTreeMap<String, String>,
    #[serde(default, rename = "credsStore")]
    store: String,
}

/// The entry of one registry. Docker writes an empty entry for a registry whose credential a program has.
#[derive(Debug, Default, Deserialize)]
struct Entry {
    #[serde(default)]
    auth: String,
    #[serde(default)]
    username: String,
    #[serde(default)]
    password: String,
    #[serde(default)]
    identitytoken: String,
    #[serde(default)]
    registrytoken: String,
}

/// Why the user's credentials cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CredentialError {
    /// The file cannot be read.
    #[error("the credentials in `{}` cannot be read: {reason}", file.display())]
    File {
        /// The file.
        file: PathBuf,
        /// Why.
        reason: String,
    },
    /// The program does not return a credential.
    #[error("`{program}`, which `{}` names, returned no credential: {reason}", file.display())]
    Program {
        /// The name of the program.
        program: String,
        /// The file that names it.
        file: PathBuf,
        /// Why.
        reason: String,
    },
}

impl CredentialError {
    /// Returns what the user can do.
    pub fn help(&self) -> String {
        "log in again with the container tool that wrote the file, or remove its entry for the registry".to_owned()
    }
}

/// Why a file has no credential although it should have one.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum EntryError {
    /// The entry is malformed.
    Malformed(String),
    /// A program failed.
    Program(String, ProgramError),
}

impl EntryError {
    pub(super) fn in_file(self, file: &Path) -> CredentialError {
        let file = file.to_owned();
        match self {
            Self::Malformed(reason) => CredentialError::File { file, reason },
            Self::Program(program, error) => CredentialError::Program { program, file, reason: error.to_string() },
        }
    }
}

impl CredentialFile {
    /// Reads a file. `None` if it does not exist.
    pub(super) fn read(file: &Path) -> Result<Option<Self>, String> {
        match regular_file::read(file, Links::Follow, FILE_BYTES_MAX) {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error.to_string()),
            // The message of the parser has a line and a column. It can also have a value of the file, which may be a secret.
            Ok(bytes) => serde_json::from_slice(&bytes).map(Some).map_err(|error| {
                format!("it is no file of credentials (line {}, column {})", error.line(), error.column())
            }),
        }
    }

    /// Returns the credential for a repository: from the program of its registry, the entry of the repository or of its
    /// registry, or the program for all registries.
    pub(super) fn credential(&self, repository: &Repository) -> Result<Option<Credential>, EntryError> {
        let names = names(repository);
        let ask = |program: &String, name: &String| {
            program::ask(program, name).map_err(|error| EntryError::Program(program::name(program), error))
        };
        if let Some((name, program)) = names.iter().find_map(|name| self.programs.get_key_value(name)) {
            return ask(program, name);
        }
        let entry = names.iter().find_map(|name| self.auths.iter().find(|(key, _)| normalized(key) == *name));
        if let Some(credential) = entry.map(|(_, entry)| entry.credential()).transpose()?.flatten() {
            return Ok(Some(credential));
        }
        if self.store.is_empty() {
            return Ok(None);
        }
        let registry = repository.registry.to_string();
        let asked = if registry == "docker.io" { "https://index.docker.io/v1/".to_owned() } else { registry };
        ask(&self.store, &asked)
    }
}

impl Entry {
    fn credential(&self) -> Result<Option<Credential>, EntryError> {
        let malformed = || EntryError::Malformed("`auth` is not the base64 text of `user:password`".to_owned());
        if !self.registrytoken.is_empty() {
            return Ok(Some(Credential::RegistryToken(Secret(self.registrytoken.clone()))));
        }
        if !self.identitytoken.is_empty() {
            return Ok(Some(Credential::IdentityToken(Secret(self.identitytoken.clone()))));
        }
        if self.auth.is_empty() {
            let is_set = !self.username.is_empty();
            return Ok(is_set.then(|| Credential::Password(self.username.clone(), Secret(self.password.clone()))));
        }
        let text = BASE64.decode(self.auth.trim()).ok().and_then(|bytes| String::from_utf8(bytes).ok());
        let text = text.ok_or_else(malformed)?;
        // Docker pads with NUL characters.
        let (user, password) = text.trim_end_matches('\0').split_once(':').ok_or_else(malformed)?;
        Ok(Some(Credential::Password(user.to_owned(), Secret(password.to_owned()))))
    }
}

/// Returns the names that an entry for a repository can have, the most specific one first: podman has entries for repositories and
/// namespaces too.
fn names(repository: &Repository) -> Vec<String> {
    let mut names = vec![repository.to_string()];
    while let Some((shorter, _)) = names.last().and_then(|name| name.rsplit_once('/')) {
        names.push(shorter.to_owned());
    }
    if repository.registry.host() == "docker.io" {
        names.push("index.docker.io".to_owned());
    }
    names
}

/// Returns the name of an entry without the scheme and the version of the API, which docker writes for some registries.
fn normalized(key: &str) -> &str {
    let bare = key.strip_prefix("https://").or_else(|| key.strip_prefix("http://")).unwrap_or(key);
    let bare = bare.trim_end_matches('/');
    bare.strip_suffix("/v1").or_else(|| bare.strip_suffix("/v2")).unwrap_or(bare)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str, repository: &str) -> Result<Option<Credential>, EntryError> {
        serde_json::from_str::<CredentialFile>(text).unwrap().credential(&repository.parse().unwrap())
    }

    fn password(user: &str, password: &str) -> Option<Credential> {
        Some(Credential::Password(user.to_owned(), Secret(password.to_owned())))
    }

    #[test]
    fn the_entry_of_the_registry_is_used_and_no_other() {
        let text = r#"{"auths": {
            "ghcr.io": {"auth": "YWRhOnB3OjE="},
            "ghcr.io/acme/private": {"auth": "Ym9iOnB3"},
            "https://quay.io/v2/": {"username": "eve", "password": "x"},
            "https://index.docker.io/v1/": {"auth": "aHViOnB3"},
            "token.example": {"identitytoken": "id", "auth": "YWRhOg=="},
            "bearer.example": {"registrytoken": "reg"},
            "empty.example": {}
        }, "HttpHeaders": {"x": "y"}}"#;
        let check = |repository: &str, expected: Option<Credential>| {
            assert_eq!(found(text, repository), Ok(expected), "{repository}");
        };
        check("ghcr.io/acme/review", password("ada", "pw:1"));
        check("ghcr.io/acme/private", password("bob", "pw"));
        check("quay.io/acme/review", password("eve", "x"));
        check("docker.io/acme/review", password("hub", "pw"));
        check("token.example/a", Some(Credential::IdentityToken(Secret("id".to_owned()))));
        check("bearer.example/a", Some(Credential::RegistryToken(Secret("reg".to_owned()))));
        for other in [
            "empty.example/a",
            "ghcr.io.example/acme/review",
            "io/acme:1".split(':').next().unwrap(),
            "ghcr.io:444/acme/review",
        ] {
            if let Ok(repository) = other.parse::<Repository>() {
                check(&repository.to_string(), None);
            }
        }
    }

    #[test]
    fn a_malformed_entry_is_an_error_without_its_text() {
        for auth in ["bm90aGluZw==", "%%%", "/w=="] {
            let text = format!(r#"{{"auths": {{"ghcr.io": {{"auth": "{auth}"}}}}}}"#);
            let error = found(&text, "ghcr.io/a").unwrap_err();
            assert!(matches!(&error, EntryError::Malformed(reason) if !reason.contains(auth)), "{error:?}");
        }
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("config.json");
        assert!(CredentialFile::read(&file).unwrap().is_none());
        std::fs::write(&file, r#"{"auths": {"a.b": {"auth": 5, "password": "s3cret"}}}"#).unwrap();
        let reason = CredentialFile::read(&file).unwrap_err();
        assert!(reason.contains("line 1") && !reason.contains("s3cret"), "{reason}");
    }

    #[test]
    fn secrets_are_not_printed() {
        let shown = format!("{:?}", password("ada", "s3cret"));
        assert!(shown.contains("ada") && !shown.contains("s3cret"), "{shown}");
    }
}
