//! Where the bytes of a plugin come from.

use super::read_bytes;
use crate::exit::{Exit, Stop};
use crate::terminal::visible;
use glovebox_record::Digest;
use std::path::PathBuf;

/// A place from which a plugin is added or updated.
#[derive(Debug, Clone)]
pub enum PluginSource {
    /// A file of this machine.
    File(PathBuf),
    /// An address, with its scheme.
    Address(String),
}

impl PluginSource {
    /// Reads what the user wrote: an address if it has a scheme, otherwise a file.
    pub fn parse(text: &str) -> Self {
        match text.contains("://") {
            true => Self::Address(text.to_owned()),
            false => Self::File(PathBuf::from(text)),
        }
    }

    /// Returns the file, and its bytes if they have the expected digest.
    ///
    /// # Errors
    ///
    /// Exit 2 for a file that does not exist and for an address, 7 for bytes that may not be used.
    pub fn read(&self, bytes_max: u64, digest: Option<Digest>) -> Result<(PathBuf, Vec<u8>), Stop> {
        let file = match self {
            Self::File(file) => file,
            Self::Address(address) => {
                let message = format!("`{}` is not a file", visible::line(address));
                let help = "fetch the component with a program that you trust, and name the file and its `--digest`";
                return Err(Stop::new(Exit::Usage, message).with_help(help));
            }
        };
        let bytes = read_bytes(file, bytes_max)?;
        let found = Digest::hash(&bytes);
        match digest.filter(|expected| *expected != found) {
            Some(expected) => {
                let message = format!("`{}` has the digest {found}, expected {expected}", file.display());
                Err(Stop::new(Exit::Plugin, message)
                    .with_help("ask the author which digest is right; nothing was written"))
            }
            None => Ok((file.clone(), bytes)),
        }
    }
}
