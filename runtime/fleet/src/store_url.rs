//! The address of a fleet's blobs: `s3://BUCKET?endpoint=URL` or `file:///FOLDER`.
//!
//! It is recorded in the fleet and read by every machine, so it names no key and no password. Each machine has its own.

use crate::blobs::ObjectBlobs;
use crate::s3::S3Error;
use glovebox_journal::ports::PortError;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use url::Url;

/// The options that an address with `s3` may have, and the names of the client for them. None of them is a secret.
const OPTIONS: [(&str, &str); 4] = [
    ("endpoint", "aws_endpoint"),
    ("region", "aws_region"),
    ("allow_http", "allow_http"),
    ("virtual_hosted_style", "aws_virtual_hosted_style_request"),
];
/// Maximum length of an address in bytes.
const BYTES_MAX: usize = 2048;

/// Why a text is not the address of a store.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}; expected `s3://BUCKET?endpoint=URL` or `file:///FOLDER`")]
pub struct NoStore(String);

/// The address of a fleet's blobs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String")]
pub struct StoreUrl {
    text: String,
    place: Place,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Place {
    S3 { bucket: String, options: Vec<(String, String)> },
    Folder(PathBuf),
}

/// Why a store cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The client of the service cannot be created.
    #[error(transparent)]
    S3(#[from] S3Error),
    /// The folder does not exist or cannot be read.
    #[error("the folder `{folder}` of the fleet's blobs: {reason}\nhelp: mount the folder that all machines share")]
    Folder {
        /// The folder.
        folder: String,
        /// The problem.
        reason: PortError,
    },
}

impl StoreUrl {
    /// Opens the store. `credentials` are pairs such as `aws_access_key_id` and its value, for a service only. Nothing is
    /// sent yet.
    ///
    /// # Errors
    /// The client cannot be created, or the folder does not exist.
    pub fn open(&self, credentials: &[(String, String)]) -> Result<ObjectBlobs, StoreError> {
        match &self.place {
            // What the address says is said of the whole fleet, so it has the last word.
            Place::S3 { bucket, options } => Ok(ObjectBlobs::in_s3(bucket, &[credentials, options].concat())?),
            Place::Folder(folder) => ObjectBlobs::in_folder(folder)
                .map_err(|reason| StoreError::Folder { folder: folder.display().to_string(), reason }),
        }
    }

    /// Returns the folder of the store. `None` for a service.
    pub fn folder(&self) -> Option<&Path> {
        match &self.place {
            Place::Folder(folder) => Some(folder),
            Place::S3 { .. } => None,
        }
    }

    /// Returns true for a service, whose clients need credentials.
    pub fn needs_credentials(&self) -> bool {
        matches!(self.place, Place::S3 { .. })
    }
}

impl FromStr for StoreUrl {
    type Err = NoStore;

    fn from_str(text: &str) -> Result<Self, NoStore> {
        let wrong = |why: &str| NoStore(format!("`{}` is no address of a store: {why}", text.escape_debug()));
        // The message must not repeat a text of any size.
        if text.len() > BYTES_MAX {
            return Err(NoStore(format!("the address has {} bytes, the most is {BYTES_MAX}", text.len())));
        }
        let url = Url::parse(text).map_err(|error| wrong(&error.to_string()))?;
        if !url.username().is_empty() || url.password().is_some() {
            return Err(NoStore("the address has a user or a password, which every machine would read".to_owned()));
        }
        if url.fragment().is_some() {
            return Err(wrong("it has a `#`"));
        }
        let place = match url.scheme() {
            "s3" => s3(&url).map_err(|why| wrong(&why))?,
            "file" if url.query().is_some() => return Err(wrong("a folder has no options")),
            "file" => Place::Folder(url.to_file_path().map_err(|()| wrong("it is no folder of this machine"))?),
            other => return Err(wrong(&format!("its scheme is `{other}`"))),
        };
        Ok(Self { text: text.to_owned(), place })
    }
}

fn s3(url: &Url) -> Result<Place, String> {
    let bucket = url.host_str().filter(|host| !host.is_empty()).ok_or("it has no bucket")?;
    if !matches!(url.path(), "" | "/") || url.port().is_some() {
        return Err("a bucket is one name, without a port and without a path".to_owned());
    }
    let mut options: Vec<(String, String)> = Vec::new();
    for (name, value) in url.query_pairs() {
        let known = OPTIONS.iter().find(|(known, _)| *known == name);
        let Some((_, option)) = known else {
            let known = OPTIONS.map(|(name, _)| name).join("`, `");
            return Err(format!("it has the option `{}`, expected one of `{known}`", name.escape_debug()));
        };
        if options.iter().any(|(other, _)| other == option) {
            return Err(format!("it has the option `{name}` twice"));
        }
        options.push(((*option).to_owned(), value.into_owned()));
    }
    Ok(Place::S3 { bucket: bucket.to_owned(), options })
}

impl TryFrom<String> for StoreUrl {
    type Error = NoStore;

    fn try_from(text: String) -> Result<Self, NoStore> {
        text.parse()
    }
}

impl From<StoreUrl> for String {
    fn from(url: StoreUrl) -> Self {
        url.text
    }
}

impl std::fmt::Display for StoreUrl {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parts_of_an_address_are_found() {
        let url: StoreUrl = "s3://blobs?endpoint=http://10.0.0.9:9000&region=eu-1&allow_http=true".parse().unwrap();
        let options = [("aws_endpoint", "http://10.0.0.9:9000"), ("aws_region", "eu-1"), ("allow_http", "true")]
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .to_vec();
        assert_eq!(url.place, Place::S3 { bucket: "blobs".to_owned(), options });
        assert!(url.needs_credentials());
        let url: StoreUrl = "file:///shared/a%20b".parse().unwrap();
        assert_eq!(url.place, Place::Folder(PathBuf::from("/shared/a b")));
        assert_eq!(serde_json::to_string(&url).unwrap(), "\"file:///shared/a%20b\"");
    }

    #[test]
    fn an_address_without_a_place_or_with_a_secret_is_refused() {
        for (text, expected) in [
            ("", "relative URL"),
            ("/shared", "relative URL"),
            ("file://other/shared", "it is no folder of this machine"),
            ("file:///shared?x=1", "a folder has no options"),
            ("https://host/blobs", "its scheme is `https`"),
            ("s3://?region=a", "bucket"),
            ("s3://blobs/below", "without a path"),
            ("s3://blobs?aws_secret_access_key=hunter2", "it has the option `aws_secret_access_key`"),
            ("s3://blobs?region=a&region=b", "it has the option `region` twice"),
            ("s3://key:hunter2@blobs", "it has a user or a password"),
            ("s3://blobs#a", "it has a `#`"),
            (&format!("s3://{}", "a".repeat(3000)), "the most is 2048"),
        ] {
            let error = text.parse::<StoreUrl>().unwrap_err().to_string();
            let said = error.replace("the address has a user", "it has a user");
            assert!(said.contains(expected) && said.contains("expected `s3://"), "{text}: {error}");
            assert!(!text.contains("key:hunter2") || !error.contains("hunter2"), "{error}");
        }
    }

    #[test]
    fn a_folder_that_is_missing_is_named() {
        let error = "file:///missing/folder".parse::<StoreUrl>().unwrap().open(&[]).map(drop).unwrap_err();
        assert!(error.to_string().starts_with("the folder `/missing/folder` of the fleet's blobs: "), "{error}");
    }
}
