//! Keys: Ed25519, in PEM files as `openssl` reads and writes them, or as one line of text.
//!
//! The id of a key is derived from the key. An id in a file only says which key to try; it proves nothing.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ring::digest::{Context, SHA256, digest};
use ring::rand::{SecureRandom, SystemRandom};
use ring::signature::{ED25519, Ed25519KeyPair, KeyPair, UnparsedPublicKey};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{PrivatePkcs8KeyDer, SubjectPublicKeyInfoDer};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use std::str::FromStr;
use zeroize::Zeroizing;

/// The prefix of the 32 bytes of an Ed25519 key in a `SubjectPublicKeyInfo` (RFC 8410 §4).
const SPKI_HEAD: [u8; 12] = [0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00];
/// The prefix of the 32 bytes of the seed in a PKCS#8 file, version 1 (RFC 8410 §7), which `openssl` reads too.
const PKCS8_HEAD: [u8; 16] =
    [0x30, 0x2e, 0x02, 0x01, 0x00, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x04, 0x22, 0x04, 0x20];
/// The end of that prefix, in every version of the format: two octet strings, one in the other.
const SEED_TAGS: [u8; 4] = [0x04, 0x22, 0x04, 0x20];
/// Size of the seed of a key, in bytes.
const SEED_BYTES: usize = 32;
/// The prefix of a public key as text.
const TEXT_HEAD: &str = "ed25519:";
/// The prefix of the id of a key.
const ID_HEAD: &str = "sha256:";

/// The random number generator of the system failed.
#[derive(Debug, thiserror::Error)]
#[error("the system returned no random numbers")]
pub struct NoRandom;

/// A text that is not a public key.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`ed25519:` and the 32 bytes of a public key in base64 are expected")]
pub struct NoPublicKey;

/// A key that signs.
pub struct SigningKey {
    pair: Ed25519KeyPair,
    seed: Zeroizing<[u8; SEED_BYTES]>,
}

impl SigningKey {
    /// Creates a key. Returns it with the text of its PEM file.
    pub fn generate() -> Result<(Self, String), NoRandom> {
        let mut seed = Zeroizing::new([0; SEED_BYTES]);
        SystemRandom::new().fill(&mut *seed).map_err(|_| NoRandom)?;
        let key = Self::from_seed(&seed).ok_or(NoRandom)?;
        Ok((key, pem("PRIVATE KEY", &[&PKCS8_HEAD[..], &seed[..]].concat())))
    }

    /// Creates the key that a seed determines. `None` if the cryptography library refuses it.
    pub fn from_seed(seed: &[u8; SEED_BYTES]) -> Option<Self> {
        let pair = Ed25519KeyPair::from_seed_unchecked(seed).ok()?;
        Some(Self { pair, seed: Zeroizing::new(*seed) })
    }

    /// Reads a private key in PKCS#8 from the content of a PEM file.
    pub fn from_pem(bytes: &[u8]) -> Option<Self> {
        let der = PrivatePkcs8KeyDer::from_pem_slice(bytes).ok()?;
        let der = der.secret_pkcs8_der();
        // This compares the public key in the file with the private one, if the file has both.
        let pair = Ed25519KeyPair::from_pkcs8_maybe_unchecked(der).ok()?;
        let (head, rest) = der.split_at_checked(PKCS8_HEAD.len())?;
        let seed: &[u8; SEED_BYTES] = rest.first_chunk().filter(|_| head.ends_with(&SEED_TAGS))?;
        let key = Self::from_seed(seed)?;
        (key.pair.public_key().as_ref() == pair.public_key().as_ref()).then_some(key)
    }

    /// Signs bytes.
    pub fn sign(&self, bytes: &[u8]) -> Vec<u8> {
        self.pair.sign(bytes).as_ref().to_vec()
    }

    /// Returns the public half of the key.
    pub fn public(&self) -> PublicKey {
        let mut bytes = [0; 32];
        bytes.copy_from_slice(self.pair.public_key().as_ref());
        PublicKey(bytes)
    }

    /// Returns the seed of the key, which determines it.
    pub(crate) fn seed(&self) -> &[u8; SEED_BYTES] {
        &self.seed
    }
}

/// A key that checks signatures.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct PublicKey([u8; 32]);

impl PublicKey {
    /// Reads a public key from the content of a PEM file.
    pub fn from_pem(bytes: &[u8]) -> Option<Self> {
        let der = SubjectPublicKeyInfoDer::from_pem_slice(bytes).ok()?;
        der.strip_prefix(&SPKI_HEAD).and_then(|key| key.try_into().ok()).map(Self)
    }

    /// Returns the text of a PEM file with the key.
    pub fn to_pem(&self) -> String {
        pem("PUBLIC KEY", &self.der())
    }

    /// Returns true if this key signed these bytes.
    pub fn has_signed(&self, bytes: &[u8], signature: &[u8]) -> bool {
        UnparsedPublicKey::new(&ED25519, self.0).verify(bytes, signature).is_ok()
    }

    /// Returns the id of the key.
    pub fn id(&self) -> KeyId {
        KeyId(sha256(&self.der()))
    }

    /// Returns the bytes of the key.
    pub(crate) fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    fn der(&self) -> Vec<u8> {
        [&SPKI_HEAD[..], &self.0].concat()
    }
}

impl FromStr for PublicKey {
    type Err = NoPublicKey;

    /// Reads `ed25519:` and the key in base64.
    fn from_str(text: &str) -> Result<Self, NoPublicKey> {
        let bytes = text.strip_prefix(TEXT_HEAD).and_then(|text| STANDARD.decode(text).ok()).ok_or(NoPublicKey)?;
        bytes.try_into().map(Self).map_err(|_| NoPublicKey)
    }
}

impl fmt::Display for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{TEXT_HEAD}{}", STANDARD.encode(self.0))
    }
}

impl fmt::Debug for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Serialize for PublicKey {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for PublicKey {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

/// Id of a key: SHA-256 of its DER form. The text form is `sha256:` and 64 lower-case hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KeyId([u8; 32]);

impl KeyId {
    /// Returns the 64 digits without the prefix, for names in which a colon is not allowed.
    pub fn hex(&self) -> String {
        hex(&self.0)
    }
}

impl FromStr for KeyId {
    type Err = NoPublicKey;

    fn from_str(text: &str) -> Result<Self, NoPublicKey> {
        let digits = text.strip_prefix(ID_HEAD).filter(|digits| !digits.bytes().any(|byte| byte.is_ascii_uppercase()));
        let hash = digits.and_then(|digits| blake3::Hash::from_hex(digits).ok());
        hash.map(|hash| Self(*hash.as_bytes())).ok_or(NoPublicKey)
    }
}

impl fmt::Display for KeyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{ID_HEAD}{}", hex(&self.0))
    }
}

impl fmt::Debug for KeyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Computes the SHA-256 digest of bytes that come in pieces.
#[derive(Clone)]
pub struct Sha256(Context);

impl Default for Sha256 {
    fn default() -> Self {
        Self(Context::new(&SHA256))
    }
}

impl Sha256 {
    /// Adds bytes.
    pub fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// Returns the digest as hexadecimal digits.
    pub fn finish(self) -> String {
        hex(self.0.finish().as_ref())
    }
}

/// Returns the SHA-256 digest of some bytes as hexadecimal digits.
pub(crate) fn sha256_hex(bytes: &[u8]) -> String {
    hex(&sha256(bytes))
}

fn sha256(bytes: &[u8]) -> [u8; 32] {
    let mut array = [0; 32];
    array.copy_from_slice(digest(&SHA256, bytes).as_ref());
    array
}

fn hex(bytes: &[u8]) -> String {
    use fmt::Write;
    bytes.iter().fold(String::with_capacity(2 * bytes.len()), |mut digits, byte| {
        let _ = write!(digits, "{byte:02x}");
        digits
    })
}

/// Returns the PEM form of bytes whose base64 fits one line, as that of every Ed25519 key does.
fn pem(label: &str, der: &[u8]) -> String {
    format!("-----BEGIN {label}-----\n{}\n-----END {label}-----\n", STANDARD.encode(der))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_generated_key_survives_its_files() {
        let (key, private) = SigningKey::generate().unwrap();
        let public = key.public();
        let again = SigningKey::from_pem(private.as_bytes()).unwrap();
        assert_eq!(again.public(), public);
        assert_eq!(PublicKey::from_pem(public.to_pem().as_bytes()), Some(public));
        assert_eq!(public.to_string().parse(), Ok(public));
        assert_eq!(public.id().to_string().parse(), Ok(public.id()));
        assert!(public.has_signed(b"x", &again.sign(b"x")) && !public.has_signed(b"y", &again.sign(b"x")));
        assert_ne!(SigningKey::generate().unwrap().0.public(), public);
        assert!(private.lines().all(|line| line.len() <= 64), "{private}");
    }

    #[test]
    fn other_texts_are_no_keys() {
        let (key, private) = SigningKey::generate().unwrap();
        let text = key.public().to_string();
        let without_prefix = text.strip_prefix("ed25519:").unwrap();
        for wrong in ["", "ed25519:", "ed25519:????", without_prefix, &format!("{text}AAAA"), &text[..text.len() - 1]] {
            assert_eq!(wrong.parse::<PublicKey>(), Err(NoPublicKey), "{wrong}");
        }
        assert!(SigningKey::from_pem(key.public().to_pem().as_bytes()).is_none());
        assert!(PublicKey::from_pem(private.as_bytes()).is_none());
        let id = key.public().id().to_string();
        for wrong in ["sha256:", &id.to_uppercase().replace("SHA256", "sha256"), &id[1..], &format!("{id}0")] {
            assert!(wrong.parse::<KeyId>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn the_digest_of_pieces_is_that_of_the_whole() {
        let mut pieces = Sha256::default();
        [&b"a"[..], b"", b"bc"].iter().for_each(|piece| pieces.update(piece));
        assert_eq!(pieces.finish(), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
        assert_eq!(sha256_hex(b"abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    }
}
