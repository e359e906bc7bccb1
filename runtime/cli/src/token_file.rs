//! The files with tokens of `glovebox serve`, in the folder of this user's key.
//!
//! The owner's token is in a file of its own, so that programs of the owner can read it. Of other tokens only hashes are
//! kept. Both files are readable only by this user; a file that others can read is refused.

use crate::exit::{Exit, Stop};
use crate::key_files;
use crate::replaced_file;
use glovebox_serve::right::Rights;
use glovebox_serve::token::{self, StoredToken};
use serde::{Deserialize, Serialize};
use std::fs::{self, File};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

const FOLDER: &str = "serve";
const OWNER_FILE: &str = "owner.token";
const TOKENS_FILE: &str = "tokens.json";
/// Name of the owner's token if the user has no name.
const OWNER: &str = "owner";
const FILE_BYTES_MAX: u64 = 1 << 20;
/// Maximum number of tokens.
const TOKENS_MAX: usize = 1_000;
const NAME_CHARACTERS_MAX: usize = 100;
const TOKEN_CHARACTERS: usize = 64;
const OTHERS: u32 = 0o077;

/// The token of the owner.
pub struct Owner {
    /// The token, as the server compares it.
    pub stored: StoredToken,
    /// The file with the token.
    pub file: PathBuf,
}

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct TokenFile {
    schema_version: u32,
    tokens: Vec<StoredToken>,
}

/// Returns the owner's token. It is created the first time.
pub fn owner() -> Result<Owner, Stop> {
    let file = folder()?.join(OWNER_FILE);
    let text = match read_private(&file)? {
        Some(text) => text,
        None => create_owner(&file)?,
    };
    let token = text.trim();
    if token.len() != TOKEN_CHARACTERS {
        let message = format!("`{}` has no token", file.display());
        return Err(Stop::new(Exit::Usage, message).with_help("remove the file; the next `glovebox serve` creates it"));
    }
    let name = std::env::var("USER").ok().filter(|name| !name.is_empty()).unwrap_or_else(|| OWNER.to_owned());
    let stored = StoredToken { name, rights: Rights::all(), blake3: token::hash(token) };
    Ok(Owner { stored, file })
}

/// Returns the tokens of `glovebox tokens`.
pub fn own() -> Result<Vec<StoredToken>, Stop> {
    let file = folder()?.join(TOKENS_FILE);
    match read_private(&file)? {
        None => Ok(Vec::new()),
        Some(text) => parse(&file, &text),
    }
}

/// Returns the tokens of a file.
pub fn read(file: &Path) -> Result<Vec<StoredToken>, Stop> {
    let text = read_private(file)?;
    let text = text.ok_or_else(|| Stop::new(Exit::Usage, format!("there is no file `{}`", file.display())))?;
    parse(file, &text)
}

/// Adds a token for a client, and returns it. A name that exists is refused.
pub fn add(name: &str, rights: Rights) -> Result<String, Stop> {
    let is_name = !name.is_empty() && name.chars().count() <= NAME_CHARACTERS_MAX;
    if !is_name || name.chars().any(|character| character.is_control()) {
        let message = format!("a name has 1 to {NAME_CHARACTERS_MAX} characters, without control characters");
        return Err(Stop::new(Exit::Usage, message));
    }
    let mut tokens = own()?;
    if tokens.iter().any(|token| token.name == name) {
        let message = format!("there is a token with the name `{name}`");
        return Err(Stop::new(Exit::Usage, message).with_help(format!("remove it: `glovebox tokens remove {name}`")));
    }
    if tokens.len() >= TOKENS_MAX {
        return Err(Stop::new(Exit::Usage, format!("there are {TOKENS_MAX} tokens already")));
    }
    let made = token::fresh().map_err(|error| Stop::io("make a token", &error))?;
    tokens.push(StoredToken { name: name.to_owned(), rights, blake3: token::hash(&made) });
    write(tokens)?;
    Ok(made)
}

/// Removes the token of a client.
pub fn remove(name: &str) -> Result<(), Stop> {
    let mut tokens = own()?;
    let count = tokens.len();
    tokens.retain(|token| token.name != name);
    if tokens.len() == count {
        let message = format!("there is no token with the name `{name}`");
        return Err(Stop::new(Exit::Usage, message).with_help("list them: `glovebox tokens ls`"));
    }
    write(tokens)
}

fn write(tokens: Vec<StoredToken>) -> Result<(), Stop> {
    let text = crate::terminal::json(&TokenFile { schema_version: 1, tokens })? + "\n";
    let file = folder()?.join(TOKENS_FILE);
    replaced_file::put(&file, &text)?;
    let private = fs::Permissions::from_mode(0o600);
    fs::set_permissions(&file, private).map_err(|error| Stop::io(format!("write `{}`", file.display()), &error))
}

fn parse(file: &Path, text: &str) -> Result<Vec<StoredToken>, Stop> {
    let bad = |why: String| Stop::new(Exit::Usage, format!("`{}`: {why}", file.display()));
    let found: TokenFile = serde_json::from_str(text).map_err(|error| bad(error.to_string()))?;
    if found.schema_version != 1 {
        return Err(bad(format!("schema_version is {}, expected 1", found.schema_version)));
    }
    if let Some(empty) = found.tokens.iter().find(|token| token.rights.is_empty() || token.blake3.len() != 64) {
        return Err(bad(format!("the token `{}` has no rights or no hash", empty.name)));
    }
    Ok(found.tokens)
}

fn folder() -> Result<PathBuf, Stop> {
    key_files::private_folder(FOLDER, "the token of the server")
}

/// Reads a file that only this user can read. `None` if there is none.
fn read_private(file: &Path) -> Result<Option<String>, Stop> {
    let failed = |error: std::io::Error| Stop::io(format!("read `{}`", file.display()), &error);
    let flags = rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK;
    let flags = i32::try_from(flags.bits()).unwrap_or_default();
    let opened = match File::options().read(true).custom_flags(flags).open(file) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        opened => opened.map_err(failed)?,
    };
    let found = opened.metadata().map_err(failed)?;
    let is_own = found.is_file() && found.uid() == rustix::process::geteuid().as_raw() && found.mode() & OTHERS == 0;
    if !is_own {
        let message = format!("`{}` must be a file that only you can read", file.display());
        return Err(Stop::new(Exit::Usage, message).with_help(format!("chmod 600 {}", file.display())));
    }
    let mut text = String::new();
    opened.take(FILE_BYTES_MAX).read_to_string(&mut text).map_err(failed)?;
    Ok(Some(text))
}

fn create_owner(file: &Path) -> Result<String, Stop> {
    let failed = |error: std::io::Error| Stop::io(format!("write `{}`", file.display()), &error);
    let token = token::fresh().map_err(|error| Stop::io("make a token", &error))?;
    match File::options().write(true).create_new(true).mode(0o600).open(file) {
        Ok(mut created) => {
            created.write_all(format!("{token}\n").as_bytes()).and_then(|()| created.sync_all()).map_err(failed)?;
            Ok(token)
        }
        // Another process was faster.
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(read_private(file)?.unwrap_or_default()),
        Err(error) => Err(failed(error)),
    }
}
