//! Files of keys: Ed25519 in PEM, as `glovebox plugin keygen` and `openssl` write them.
//!
//! A private key that other users can read or change is refused. So is a key in a project, or with a hard link that may be
//! there, because a stage of that project could have read it.

use crate::exit::{Exit, Stop};
use crate::terminal::visible;
use glovebox_plan::prepare::folders;
use glovebox_signing::key::{PublicKey, SigningKey};
use glovebox_workspace::regular_file::{self, Links};
use std::fs::{self, DirBuilder, File};
use std::io::{Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// Maximum size of a key file, in bytes.
const FILE_BYTES_MAX: u64 = 64 << 10;
/// Beginning of a public key as a text.
const TEXT_PREFIX: &str = "ed25519:";
/// Permission bits of everyone except the owner.
const OTHERS: u32 = 0o077;
/// The remedy for a private key that others could have read. To move the file would not help.
const NEW_KEY: &str =
    "make a new key outside of every project, such as `glovebox plugin keygen ~/.config/acme.key`, and trust that one";
/// Mode of a new private key.
const OWN: u32 = 0o600;
/// Mode of a new public key, before the user's umask is applied.
const FOR_ALL: u32 = 0o644;

/// Which half of a key a file must have.
#[derive(Clone, Copy)]
enum Half {
    Private,
    Public,
}

impl Half {
    fn expected(self) -> &'static str {
        match self {
            Self::Private => "a private Ed25519 key in PKCS#8 (PEM)",
            Self::Public => "a public Ed25519 key (PEM, or a line `ed25519:…`)",
        }
    }

    fn how_to_make(self) -> &'static str {
        match self {
            Self::Private => {
                "make one: `glovebox plugin keygen KEY`, or `openssl genpkey -algorithm ed25519 -out KEY` and `chmod 600 KEY`"
            }
            Self::Public => "make it from the private key: `openssl pkey -in KEY -pubout -out KEY.pub`",
        }
    }
}

/// Returns a folder of this user for private files, and creates it if it does not exist. `content` names what is in it.
pub fn private_folder(name: &str, content: &str) -> Result<PathBuf, Stop> {
    let state = folders::state_dir().ok_or_else(|| {
        Stop::new(Exit::Usage, format!("this user has no folder for {content}"))
            .with_help("set GLOVEBOX_STATE_DIR to a folder of your own")
    })?;
    let folder = state.join(name);
    let made = DirBuilder::new().recursive(true).mode(0o700).create(&folder);
    made.map_err(|error| Stop::io(format!("create `{}`", folder.display()), &error))?;
    Ok(folder)
}

/// Reads a private key. A key inside the folder `project` is refused, because its stages could have read it.
pub fn read_private(file: &Path, project: &Path) -> Result<SigningKey, Stop> {
    let bytes = read(file, Half::Private)?;
    refuse_exposed(file, project)?;
    SigningKey::from_pem(&bytes).ok_or_else(|| match Other::of(&bytes) {
        Some(other) => other.refused(file, Half::Private),
        None => no_key(file, Half::Private),
    })
}

/// Reads a public key: a file in PEM, a file with a line `ed25519:…` as `keygen` prints it, or such a text in place of a file.
pub fn read_public(file: &Path) -> Result<PublicKey, Stop> {
    let written = file.to_string_lossy();
    if written.starts_with(TEXT_PREFIX) && !file.exists() {
        return parse_text(&written).ok_or_else(|| no_key(file, Half::Public));
    }
    let bytes = read(file, Half::Public)?;
    let as_text = || parse_text(std::str::from_utf8(&bytes).ok()?);
    PublicKey::from_pem(&bytes).or_else(as_text).ok_or_else(|| match Other::of(&bytes) {
        Some(other) => other.refused(file, Half::Public),
        None => no_key(file, Half::Public),
    })
}

fn parse_text(text: &str) -> Option<PublicKey> {
    text.trim().parse().ok()
}

/// What a file has in place of the expected key.
#[derive(Clone, Copy)]
enum Other {
    /// The private half.
    Private,
    /// The public half.
    Public,
    /// A key of OpenSSH.
    OpenSsh,
}

impl Other {
    fn of(bytes: &[u8]) -> Option<Self> {
        let text = String::from_utf8_lossy(bytes);
        let begins = |words: &[&str]| words.iter().any(|word| text.trim_start().starts_with(word));
        match () {
            () if begins(&["-----BEGIN OPENSSH", "ssh-ed25519 ", "ssh-rsa "]) => Some(Self::OpenSsh),
            () if begins(&["-----BEGIN PRIVATE KEY", "-----BEGIN ENCRYPTED PRIVATE KEY"]) => Some(Self::Private),
            () if begins(&["-----BEGIN PUBLIC KEY", TEXT_PREFIX]) => Some(Self::Public),
            () => None,
        }
    }

    fn refused(self, file: &Path, wanted: Half) -> Stop {
        let found = match self {
            Self::Private => "a private key",
            Self::Public => "a public key",
            Self::OpenSsh => "a key of OpenSSH",
        };
        let how = wanted.how_to_make();
        let help = match (self, wanted) {
            (Self::Private, Half::Public) => format!("name the public half, such as `{}.pub`; or {how}", shown(file)),
            (Self::Public, Half::Private) => match shown(file).strip_suffix(".pub") {
                Some(private) => format!("name the private half, such as `{private}`; or {how}"),
                None => format!("name the file that `glovebox plugin keygen` wrote; or {how}"),
            },
            _ => how.to_owned(),
        };
        let message = format!("`{}` is not {}: it is {found}", shown(file), wanted.expected());
        Stop::new(Exit::Usage, message).with_help(help)
    }
}

/// Creates a key and writes its halves to the file and to the file with `.pub` added. Returns the file of the public half.
///
/// # Errors
///
/// Fails if one of the files exists. No file is replaced, and a half that was written before an error is removed.
pub fn create(file: &Path) -> Result<(PathBuf, PublicKey), Stop> {
    let mut public_name = file.as_os_str().to_owned();
    public_name.push(".pub");
    let public_file = PathBuf::from(public_name);
    let (key, private) =
        SigningKey::generate().map_err(|error| Stop::new(Exit::Internal, format!("create a key: {error}")))?;
    let public = key.public();
    write_new(&public_file, &public.to_pem(), FOR_ALL)?;
    write_new(file, &private, OWN).inspect_err(|_| drop(fs::remove_file(&public_file)))?;
    Ok((public_file, public))
}

/// Creates a key and writes only its private half.
///
/// # Errors
///
/// Fails if the file exists.
#[cfg(feature = "fleet")]
pub fn create_private(file: &Path) -> Result<(), Stop> {
    let (_, private) =
        SigningKey::generate().map_err(|error| Stop::new(Exit::Internal, format!("create a key: {error}")))?;
    write_new(file, &private, OWN)
}

fn write_new(file: &Path, text: &str, mode: u32) -> Result<(), Stop> {
    let failed = |error: std::io::Error| {
        let stop = Stop::io(format!("write the key `{}`", shown(file)), &error);
        match error.kind() {
            std::io::ErrorKind::AlreadyExists => stop.with_help("name a new file: a key is never replaced"),
            _ => stop,
        }
    };
    // A link at the path is not followed: `create_new` fails for it.
    let mut new = File::options().write(true).create_new(true).mode(mode).open(file).map_err(failed)?;
    let written = new.write_all(text.as_bytes()).and_then(|()| new.sync_all());
    written.map_err(failed).inspect_err(|_| drop(fs::remove_file(file)))
}

fn read(file: &Path, half: Half) -> Result<Vec<u8>, Stop> {
    let mut bytes = Vec::new();
    let read =
        regular_file::open(file, Links::Follow).and_then(|file| file.take(FILE_BYTES_MAX).read_to_end(&mut bytes));
    match read {
        Ok(_) => Ok(bytes),
        Err(error) => Err(Stop::io(format!("read the key `{}`", shown(file)), &error).with_help(half.how_to_make())),
    }
}

fn refuse_exposed(file: &Path, project: &Path) -> Result<(), Stop> {
    let failed = |error: std::io::Error| Stop::io(format!("read the key `{}`", shown(file)), &error);
    let found = fs::metadata(file).map_err(failed)?;
    let mode = found.permissions().mode();
    if mode & OTHERS != 0 {
        let message = format!("others can read or change the key `{}` (mode {:o})", shown(file), mode & 0o777);
        return Err(Stop::new(Exit::Policy, message).with_help(format!("chmod 600 '{}'", shown(file))));
    }
    if found.nlink() > 1 {
        let message = format!("the key `{}` has a second name (a hard link), which may lie in a project", shown(file));
        return Err(Stop::new(Exit::Policy, message).with_help(NEW_KEY));
    }
    let place = fs::canonicalize(file).map_err(failed)?;
    if fs::canonicalize(project).is_ok_and(|project| place.starts_with(project)) {
        let message = format!("the key `{}` lies in the project, so its stages could have read it", shown(file));
        return Err(Stop::new(Exit::Policy, message).with_help(NEW_KEY));
    }
    Ok(())
}

fn no_key(file: &Path, half: Half) -> Stop {
    Stop::new(Exit::Usage, format!("`{}` is not {}", shown(file), half.expected())).with_help(half.how_to_make())
}

fn shown(file: &Path) -> String {
    visible::line(&file.to_string_lossy()).into_owned()
}
