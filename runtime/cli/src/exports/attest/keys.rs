//! Keys of attestations: Ed25519, in PEM files as `openssl` writes them.
//!
//! A private key that other users can read or change is refused. So is a key in the project of the run, or with a hard
//! link that may be there, because a stage of that project could have read it.

use crate::exit::{Exit, Stop};
use crate::terminal::visible;
use glovebox_workspace::regular_file::{self, Links};
use ring::digest::{SHA256, digest};
use ring::signature::{ED25519, Ed25519KeyPair, KeyPair, UnparsedPublicKey};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{PrivatePkcs8KeyDer, SubjectPublicKeyInfoDer};
use std::fmt::Write as _;
use std::fs;
use std::io::Read;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;

/// Maximum size of a key file, in bytes.
const FILE_BYTES_MAX: u64 = 64 << 10;
/// The prefix of the 32 bytes of an Ed25519 key in a `SubjectPublicKeyInfo` (RFC 8410 §4).
const SPKI_HEAD: [u8; 12] = [0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00];
/// Permission bits of everyone except the owner.
const OTHERS: u32 = 0o077;

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
            Self::Public => "a public Ed25519 key (PEM)",
        }
    }

    fn how_to_make(self) -> &'static str {
        match self {
            Self::Private => "make one: `openssl genpkey -algorithm ed25519 -out KEY`, and `chmod 600 KEY`",
            Self::Public => "make it from the private key: `openssl pkey -in KEY -pubout -out KEY.pub`",
        }
    }
}

/// A key that signs.
pub struct SigningKey(Ed25519KeyPair);

impl SigningKey {
    /// Reads a private key. A key inside the folder `project` is refused, because its stages could have read it.
    pub fn read(file: &Path, project: &Path) -> Result<Self, Stop> {
        let bytes = read(file, Half::Private)?;
        refuse_exposed(file, project)?;
        let der = PrivatePkcs8KeyDer::from_pem_slice(&bytes).ok();
        let pair = der.and_then(|der| Ed25519KeyPair::from_pkcs8_maybe_unchecked(der.secret_pkcs8_der()).ok());
        pair.map(Self).ok_or_else(|| no_key(file, Half::Private))
    }

    /// Creates the key from a seed.
    #[cfg(test)]
    pub fn of_seed(seed: &[u8; 32]) -> Option<Self> {
        Ed25519KeyPair::from_seed_unchecked(seed).ok().map(Self)
    }

    /// Signs bytes.
    pub fn sign(&self, bytes: &[u8]) -> Vec<u8> {
        self.0.sign(bytes).as_ref().to_vec()
    }

    /// Returns the public half of the key.
    pub fn public(&self) -> PublicKey {
        let mut bytes = [0; 32];
        bytes.copy_from_slice(self.0.public_key().as_ref());
        PublicKey(bytes)
    }
}

/// A key that checks signatures.
#[derive(Clone, Copy)]
pub struct PublicKey([u8; 32]);

impl PublicKey {
    /// Reads a public key.
    pub fn read(file: &Path) -> Result<Self, Stop> {
        let bytes = read(file, Half::Public)?;
        let der = SubjectPublicKeyInfoDer::from_pem_slice(&bytes).ok();
        let key = der.and_then(|der| der.strip_prefix(&SPKI_HEAD).and_then(|key| key.try_into().ok()));
        key.map(Self).ok_or_else(|| no_key(file, Half::Public))
    }

    /// Returns true if this key signed these bytes.
    pub fn has_signed(&self, bytes: &[u8], signature: &[u8]) -> bool {
        UnparsedPublicKey::new(&ED25519, self.0).verify(bytes, signature).is_ok()
    }

    /// Returns the id of the key: `sha256:` and the digest of its DER form.
    pub fn id(&self) -> String {
        format!("sha256:{}", hex(digest(&SHA256, &[&SPKI_HEAD[..], &self.0].concat()).as_ref()))
    }
}

/// Returns bytes as hexadecimal digits.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(2 * bytes.len()), |mut digits, byte| {
        let _ = write!(digits, "{byte:02x}");
        digits
    })
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
        return Err(Stop::new(Exit::Policy, message).with_help("make a new key, and use that"));
    }
    let place = fs::canonicalize(file).map_err(failed)?;
    if fs::canonicalize(project).is_ok_and(|project| place.starts_with(project)) {
        let message =
            format!("the key `{}` lies in the project of the run, so its stages could have read it", shown(file));
        return Err(Stop::new(Exit::Policy, message).with_help("make a new key outside of the project, and use that"));
    }
    Ok(())
}

fn no_key(file: &Path, half: Half) -> Stop {
    Stop::new(Exit::Usage, format!("`{}` is not {}", shown(file), half.expected())).with_help(half.how_to_make())
}

fn shown(file: &Path) -> String {
    visible::line(&file.to_string_lossy()).into_owned()
}
