//! The user's credentials for registries, from the files and programs of container tools.
//!
//! They are read only when a registry asks for them. The files are those of podman, buildah and skopeo, then that of docker, which
//! `oras`, `helm` and `wkg` use too. The first file that has an entry for the registry decides.

mod file;
mod program;
mod value;

pub use file::CredentialError;
pub use value::{Credential, Secret};

use crate::reference::Repository;
use file::CredentialFile;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// A credential, and the file that led to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CredentialFound {
    /// The credential.
    pub credential: Credential,
    /// The file that has it, or that names the program that returned it.
    pub file: PathBuf,
}

/// The files in which credentials are looked for, in this order.
#[derive(Debug, Clone, Default)]
pub struct CredentialPlaces(Vec<PathBuf>);

impl CredentialPlaces {
    /// Returns the files that the environment names: `$REGISTRY_AUTH_FILE`, `$XDG_RUNTIME_DIR/containers/auth.json`,
    /// `$DOCKER_CONFIG/config.json`, or `~/.docker/config.json` without `$DOCKER_CONFIG`.
    pub fn from_environment(variable: impl Fn(&str) -> Option<OsString>) -> Self {
        let path = |name: &str| variable(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let docker = path("DOCKER_CONFIG").or_else(|| Some(path("HOME")?.join(".docker")));
        let places = [
            path("REGISTRY_AUTH_FILE"),
            path("XDG_RUNTIME_DIR").map(|folder| folder.join("containers/auth.json")),
            docker.map(|folder| folder.join("config.json")),
        ];
        Self(places.into_iter().flatten().collect())
    }

    /// Returns the credential for a repository. `None` if no file has one.
    ///
    /// # Errors
    ///
    /// A file or a program that should have a credential does not return one.
    pub fn find(&self, repository: &Repository) -> Result<Option<CredentialFound>, CredentialError> {
        for place in &self.0 {
            let Some(file) = read(place)? else { continue };
            let found = file.credential(repository).map_err(|error| error.in_file(place))?;
            if let Some(credential) = found {
                return Ok(Some(CredentialFound { credential, file: place.clone() }));
            }
        }
        Ok(None)
    }
}

fn read(place: &Path) -> Result<Option<CredentialFile>, CredentialError> {
    CredentialFile::read(place).map_err(|reason| CredentialError::File { file: place.to_owned(), reason })
}
