//! The key of an encrypted run.
//!
//! The frames, results, messages and blobs of such a run, its exchanges with models, and the driver's answers with contents, are
//! encrypted with keys that are derived from one. Questions of machines are not: they have no contents. The key is sealed for each machine that may have it, with the
//! run and the fleet for which it is, so that nobody can have another run encrypted with it.
//!
//! Texts are encrypted with XChaCha20-Poly1305, with a random nonce before the bytes. A blob is a sequence of pieces of
//! 64 KiB in the STREAM construction (BE32), so that a piece can be neither left out nor moved. The name of an encrypted blob
//! is a keyed hash of its digest, so nobody without the key can ask whether the run has a given file.

use crate::frame::Sealing;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use chacha20poly1305::aead::generic_array::GenericArray;
use chacha20poly1305::aead::stream::{DecryptorBE32, EncryptorBE32};
use chacha20poly1305::aead::{Aead as _, OsRng, rand_core::RngCore as _};
use chacha20poly1305::{KeyInit as _, XChaCha20Poly1305};
use glovebox_journal::event::{Digest, RunId};
use glovebox_signing::key::{PublicKey, SigningKey};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::fmt;
use std::io::{self, ErrorKind, Read, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use zeroize::Zeroizing;

/// Size of a key in bytes.
const KEY_BYTES: usize = 32;
/// Size of the nonce of a text in bytes.
const NONCE_BYTES: usize = 24;
/// Size of the nonce of a blob in bytes. The rest of each piece's nonce is its number.
const STREAM_NONCE_BYTES: usize = 19;
/// The version of the form of encrypted blobs, their first byte.
const BLOB_VERSION: u8 = 1;
/// Size of what is before the first piece of a blob, in bytes.
const HEAD_BYTES: usize = 1 + STREAM_NONCE_BYTES;
/// Size of a piece of a blob in bytes. Only the last one is shorter.
const PIECE_BYTES: usize = 64 << 10;
/// What encryption adds to a piece, in bytes.
const TAG_BYTES: usize = 16;

/// What a text is. A text of one kind cannot be taken for one of another kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TextKind {
    /// The events of a frame.
    Frame,
    /// The result of an attempt.
    Result,
    /// A message to the run.
    Message,
    /// An exchange of an attempt with its model.
    Exchange,
    /// An answer of the driver to a machine.
    Answer,
}

impl TextKind {
    fn context(self) -> &'static str {
        match self {
            Self::Frame => "glovebox fleet frame v1",
            Self::Result => "glovebox fleet result v1",
            Self::Message => "glovebox fleet message v1",
            Self::Exchange => "glovebox fleet exchange v1",
            Self::Answer => "glovebox fleet answer v1",
        }
    }
}

/// Bytes that are not encrypted with the key, or were changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("it is not encrypted with the key of its run, or was changed")]
pub(crate) struct NotDecrypted;

/// The key of an encrypted run. Clones share it.
#[derive(Clone)]
pub struct RunKey(Arc<Zeroizing<[u8; KEY_BYTES]>>);

impl fmt::Debug for RunKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RunKey").finish_non_exhaustive()
    }
}

/// The key of a run, for one machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SealedKey {
    /// The public key of the machine: `ed25519:` and 32 bytes in base64.
    #[schemars(with = "String")]
    pub(crate) machine: PublicKey,
    /// A sealed box of libsodium in base64, for the X25519 form of that key: the 32 bytes of the run's key, and the BLAKE3 hash
    /// of the id of the fleet, a zero byte and the id of the run.
    key: String,
}

impl RunKey {
    /// Creates a key.
    pub fn generate() -> Self {
        let mut key = Zeroizing::new([0; KEY_BYTES]);
        OsRng.fill_bytes(&mut *key);
        Self(Arc::new(key))
    }

    /// Seals the key for a machine. `None` if its public key is none.
    pub(crate) fn seal(&self, fleet: &str, run: &RunId, machine: &PublicKey) -> Option<SealedKey> {
        let content = Zeroizing::new([&self.0[..], binding(fleet, run).as_bytes()].concat());
        let sealed = machine.seal(&content).ok()?;
        Some(SealedKey { machine: *machine, key: STANDARD.encode(sealed) })
    }

    /// Opens a sealed key. `None` if it is for another machine, another run or another fleet.
    pub(crate) fn unseal(sealed: &SealedKey, fleet: &str, run: &RunId, key: &SigningKey) -> Option<Self> {
        let opened = key.unseal(&STANDARD.decode(&sealed.key).ok()?).ok()?;
        let (bytes, bound) = opened.split_first_chunk::<KEY_BYTES>()?;
        (bound == binding(fleet, run).as_bytes()).then(|| Self(Arc::new(Zeroizing::new(*bytes))))
    }

    fn derive(&self, context: &str) -> Zeroizing<[u8; KEY_BYTES]> {
        Zeroizing::new(blake3::derive_key(context, &self.0[..]))
    }

    fn cipher(&self, context: &str) -> XChaCha20Poly1305 {
        XChaCha20Poly1305::new(GenericArray::from_slice(&self.derive(context)[..]))
    }

    /// Encrypts a text, and returns it in base64.
    pub(crate) fn encrypt_text(&self, kind: TextKind, text: &[u8]) -> String {
        let mut nonce = [0; NONCE_BYTES];
        OsRng.fill_bytes(&mut nonce);
        let encrypted = self.cipher(kind.context()).encrypt(&nonce.into(), text);
        // It fails only above 256 GiB, and a message has at most some MiB.
        let encrypted = encrypted.expect("a text is shorter than 256 GiB");
        STANDARD.encode([&nonce[..], &encrypted].concat())
    }

    /// Decrypts a text.
    pub(crate) fn decrypt_text(&self, kind: TextKind, text: &str) -> Result<Vec<u8>, NotDecrypted> {
        let bytes = STANDARD.decode(text).map_err(|_| NotDecrypted)?;
        let (nonce, encrypted) = bytes.split_first_chunk::<NONCE_BYTES>().ok_or(NotDecrypted)?;
        self.cipher(kind.context()).decrypt(&(*nonce).into(), encrypted).map_err(|_| NotDecrypted)
    }

    /// Returns what everybody may know of the key, to tell it from others.
    pub(crate) fn id(&self) -> Digest {
        blake3::Hash::from(*self.derive("glovebox fleet key id v1")).into()
    }

    /// Returns what everybody may know of the hash of a record. The hash itself would show whether a guess of the record is right.
    pub(crate) fn record_hash(&self, hash: &Digest) -> Digest {
        blake3::keyed_hash(&self.derive("glovebox fleet record hash v1"), hash.hex().as_bytes()).into()
    }

    /// Returns the name of the blob with a digest.
    pub(crate) fn blob_name(&self, digest: &Digest) -> String {
        blake3::keyed_hash(&self.derive("glovebox fleet blob name v1"), digest.hex().as_bytes()).to_hex().to_string()
    }

    /// Encrypts a blob.
    ///
    /// # Errors
    /// It cannot be read or written.
    pub(crate) fn encrypt_blob(&self, from: &mut dyn Read, to: &mut dyn Write) -> io::Result<()> {
        let mut nonce = [0; STREAM_NONCE_BYTES];
        OsRng.fill_bytes(&mut nonce);
        to.write_all(&[BLOB_VERSION])?;
        to.write_all(&nonce)?;
        let too_long = |_| io::Error::new(ErrorKind::FileTooLarge, "a blob has at most 256 TiB");
        let mut stream = EncryptorBE32::from_aead(self.cipher(BLOB), &nonce.into());
        let mut piece = Vec::new();
        loop {
            let mut next = Vec::new();
            from.take(PIECE_BYTES as u64).read_to_end(&mut next)?;
            // The piece before is the last one if nothing follows.
            if next.is_empty() {
                return to.write_all(&stream.encrypt_last(&piece[..]).map_err(too_long)?);
            }
            if !piece.is_empty() {
                to.write_all(&stream.encrypt_next(&piece[..]).map_err(too_long)?)?;
            }
            piece = next;
        }
    }

    /// Begins to decrypt a blob.
    pub(crate) fn decrypt_blob(&self) -> BlobDecryption {
        BlobDecryption { cipher: self.cipher(BLOB), stream: None, left: Vec::new() }
    }
}

const BLOB: &str = "glovebox fleet blob v1";

/// Returns what binds a sealed key to its run.
fn binding(fleet: &str, run: &RunId) -> blake3::Hash {
    blake3::hash(format!("{fleet}\0{}", run.as_str()).as_bytes())
}

/// Returns the size of an encrypted blob.
pub(crate) fn encrypted_size(bytes: u64) -> u64 {
    let pieces = bytes.div_ceil(PIECE_BYTES as u64).max(1);
    bytes.saturating_add(HEAD_BYTES as u64).saturating_add(pieces.saturating_mul(TAG_BYTES as u64))
}

/// Returns the size of the content of an encrypted blob; 0 if it is shorter than every encrypted blob.
pub(crate) fn decrypted_size(encrypted: u64) -> u64 {
    let body = encrypted.saturating_sub(HEAD_BYTES as u64);
    let pieces = body.div_ceil((PIECE_BYTES + TAG_BYTES) as u64);
    body.saturating_sub(pieces.saturating_mul(TAG_BYTES as u64))
}

/// A blob that is decrypted as it arrives.
pub(crate) struct BlobDecryption {
    cipher: XChaCha20Poly1305,
    /// `None` before the head of the blob.
    stream: Option<DecryptorBE32<XChaCha20Poly1305>>,
    /// Bytes that were not decrypted yet.
    left: Vec<u8>,
}

impl BlobDecryption {
    /// Takes the next bytes of the blob, and passes on what is complete.
    pub(crate) fn push<E: From<NotDecrypted>>(
        &mut self,
        part: &[u8],
        take: &mut impl FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        self.left.extend_from_slice(part);
        if self.stream.is_none() {
            let Some((head, _)) = self.left.split_first_chunk::<HEAD_BYTES>() else { return Ok(()) };
            let (&version, nonce) = head.split_first().ok_or(NotDecrypted)?;
            if version != BLOB_VERSION {
                return Err(NotDecrypted.into());
            }
            self.stream = Some(DecryptorBE32::from_aead(self.cipher.clone(), GenericArray::from_slice(nonce)));
            self.left.drain(..HEAD_BYTES);
        }
        let Some(stream) = &mut self.stream else { return Ok(()) };
        let mut done = 0;
        // A piece is the last one if nothing follows, so one piece is kept.
        while self.left.len() - done > PIECE_BYTES + TAG_BYTES {
            let piece = &self.left[done..done + PIECE_BYTES + TAG_BYTES];
            take(&Zeroizing::new(stream.decrypt_next(piece).map_err(|_| NotDecrypted)?))?;
            done += PIECE_BYTES + TAG_BYTES;
        }
        self.left.drain(..done);
        Ok(())
    }

    /// Passes on the last piece.
    pub(crate) fn finish<E: From<NotDecrypted>>(self, take: &mut impl FnMut(&[u8]) -> Result<(), E>) -> Result<(), E> {
        let stream = self.stream.ok_or(NotDecrypted)?;
        take(&Zeroizing::new(stream.decrypt_last(&self.left[..]).map_err(|_| NotDecrypted)?))
    }
}

/// Whether a run is encrypted.
#[derive(Debug, Clone)]
pub(crate) enum Secrecy {
    /// It is not.
    Open,
    /// It is.
    Encrypted {
        /// The key.
        key: RunKey,
        /// The key for each machine that may have it, if this process begins the run.
        keys: Arc<[SealedKey]>,
    },
}

impl Secrecy {
    /// Returns the secrecy of a run that is encrypted with a key.
    pub(crate) fn encrypted(key: RunKey) -> Self {
        Self::Encrypted { key, keys: Arc::default() }
    }

    /// Returns how the events of a frame are written.
    pub(crate) fn sealing(&self) -> Sealing<'_> {
        match self {
            Self::Open => Sealing::default(),
            Self::Encrypted { key, keys } => Sealing { key: Some(key), keys },
        }
    }

    /// Returns the key.
    pub(crate) fn key(&self) -> Option<&RunKey> {
        match self {
            Self::Open => None,
            Self::Encrypted { key, .. } => Some(key),
        }
    }
}

/// What this process knows about a run.
struct Known {
    secrecy: Secrecy,
    /// True if this process may always know it: the run is not encrypted, or its first frame has the key for this machine.
    is_kept: bool,
    /// True if the first frame of the run was read, and the key is the one that it names.
    is_checked: bool,
    /// Number of attempts for which a driver has lent the key.
    lent: usize,
}

/// The keys of runs that this process has. Clones share them.
#[derive(Clone, Default)]
pub(crate) struct RunKeys(Arc<Mutex<HashMap<RunId, Known>>>);

/// The right to use a lent key. When the last value for a run is dropped, the key is forgotten, unless the process may keep it.
pub(crate) struct LentKey {
    keys: RunKeys,
    run: RunId,
}

impl Drop for LentKey {
    fn drop(&mut self) {
        let mut runs = self.keys.lock();
        if let Some(known) = runs.get_mut(&self.run) {
            known.lent -= 1;
            if known.lent == 0 && !known.is_kept {
                runs.remove(&self.run);
            }
        }
    }
}

impl RunKeys {
    fn lock(&self) -> MutexGuard<'_, HashMap<RunId, Known>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the key of a run if one is known. It may be one that a driver lent and that was not compared with the first frame:
    /// see [`RunKeys::checked`].
    pub(crate) fn unchecked(&self, run: &RunId) -> Option<RunKey> {
        self.lock().get(run).and_then(|known| known.secrecy.key().cloned())
    }

    /// Returns what is known about a run whose first frame was read, or which this process begins.
    pub(crate) fn checked(&self, run: &RunId) -> Option<Secrecy> {
        self.lock().get(run).filter(|known| known.is_checked).map(|known| known.secrecy.clone())
    }

    /// Notes that a lent key is the one that the first frame of its run names.
    pub(crate) fn check(&self, run: &RunId) {
        if let Some(known) = self.lock().get_mut(run) {
            known.is_checked = true;
        }
    }

    /// Returns what is known about a run if it is kept.
    pub(crate) fn kept(&self, run: &RunId) -> Option<Secrecy> {
        self.lock().get(run).filter(|known| known.is_kept).map(|known| known.secrecy.clone())
    }

    /// Keeps whether a run is encrypted.
    pub(crate) fn keep(&self, run: &RunId, secrecy: Secrecy) {
        let mut runs = self.lock();
        let lent = runs.get(run).map_or(0, |known| known.lent);
        runs.insert(run.clone(), Known { secrecy, is_kept: true, is_checked: true, lent });
    }

    /// Notes a key that a driver lends, until the returned value is dropped. If a key of the run is known already, that one stays.
    pub(crate) fn lend(&self, run: &RunId, key: RunKey) -> LentKey {
        let mut runs = self.lock();
        let new = || Known { secrecy: Secrecy::encrypted(key), is_kept: false, is_checked: false, lent: 0 };
        runs.entry(run.clone()).or_insert_with(new).lent += 1;
        LentKey { keys: self.clone(), run: run.clone() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine(seed: u8) -> SigningKey {
        SigningKey::from_seed(&[seed; 32]).unwrap()
    }

    fn decrypt(key: &RunKey, encrypted: &[u8], part: usize) -> Result<Vec<u8>, NotDecrypted> {
        let (mut opened, mut decryption) = (Vec::new(), key.decrypt_blob());
        let mut take = |bytes: &[u8]| {
            opened.extend_from_slice(bytes);
            Ok::<_, NotDecrypted>(())
        };
        encrypted.chunks(part).try_for_each(|part| decryption.push(part, &mut take))?;
        decryption.finish(&mut take)?;
        Ok(opened)
    }

    fn encrypted(key: &RunKey, bytes: &[u8]) -> Vec<u8> {
        let mut encrypted = Vec::new();
        key.encrypt_blob(&mut &*bytes, &mut encrypted).unwrap();
        encrypted
    }

    #[test]
    fn a_key_is_opened_by_its_machine_for_its_run_only() {
        let (key, run) = (RunKey::generate(), RunId::from("run"));
        let sealed = key.seal("F", &run, &machine(1).public()).unwrap();
        let opened = RunKey::unseal(&sealed, "F", &run, &machine(1)).unwrap();
        let text = key.encrypt_text(TextKind::Frame, b"text");
        assert_eq!(opened.decrypt_text(TextKind::Frame, &text).unwrap(), b"text");
        assert!(RunKey::unseal(&sealed, "F", &run, &machine(2)).is_none());
        assert!(RunKey::unseal(&sealed, "F", &"other".into(), &machine(1)).is_none());
        assert!(RunKey::unseal(&sealed, "G", &run, &machine(1)).is_none());
    }

    #[test]
    fn a_text_is_opened_as_what_it_is_and_with_its_key_only() {
        let (key, other) = (RunKey::generate(), RunKey::generate());
        let text = key.encrypt_text(TextKind::Result, b"text");
        assert_eq!(key.decrypt_text(TextKind::Result, &text).unwrap(), b"text");
        assert_ne!(key.encrypt_text(TextKind::Result, b"text"), text);
        for kind in [TextKind::Frame, TextKind::Message, TextKind::Exchange, TextKind::Answer] {
            assert_eq!(key.decrypt_text(kind, &text).unwrap_err(), NotDecrypted);
        }
        assert_eq!(other.decrypt_text(TextKind::Result, &text).unwrap_err(), NotDecrypted);
        for bad in ["", "!", "AAAA", &text[4..]] {
            assert_eq!(key.decrypt_text(TextKind::Result, bad).unwrap_err(), NotDecrypted, "{bad}");
        }
    }

    #[test]
    fn a_blob_of_each_size_is_decrypted_from_parts_of_each_size() {
        let key = RunKey::generate();
        for size in [0, 1, PIECE_BYTES - 1, PIECE_BYTES, PIECE_BYTES + 1, 2 * PIECE_BYTES, 3 * PIECE_BYTES + 5] {
            let bytes: Vec<u8> = (0..251).cycle().take(size).collect();
            let encrypted = encrypted(&key, &bytes);
            assert_eq!(encrypted.len() as u64, encrypted_size(size as u64), "{size}");
            assert_eq!(decrypted_size(encrypted.len() as u64), size as u64, "{size}");
            for part in [7, PIECE_BYTES, encrypted.len()] {
                assert!(decrypt(&key, &encrypted, part).unwrap() == bytes, "{size} in parts of {part}");
            }
        }
        assert_eq!(decrypted_size(0), 0);
        assert_eq!(encrypted_size(u64::MAX), u64::MAX);
    }

    #[test]
    fn a_blob_that_was_cut_off_changed_or_put_together_is_refused() {
        let key = RunKey::generate();
        let bytes = vec![7; 2 * PIECE_BYTES + 5];
        let whole = encrypted(&key, &bytes);
        let piece = PIECE_BYTES + TAG_BYTES;
        let first_two = &whole[..HEAD_BYTES + 2 * piece];
        let swapped =
            [&whole[..HEAD_BYTES], &whole[HEAD_BYTES + piece..][..piece], &whole[HEAD_BYTES..][..piece]].concat();
        let mut changed = whole.clone();
        changed[HEAD_BYTES + 3] ^= 1;
        let mut version = whole.clone();
        version[0] = 2;
        for refused in
            [&[][..], &whole[..HEAD_BYTES], &whole[..whole.len() - 1], first_two, &swapped, &changed, &version]
        {
            assert_eq!(decrypt(&key, refused, 4096).unwrap_err(), NotDecrypted, "{} bytes", refused.len());
        }
        assert_eq!(decrypt(&RunKey::generate(), &whole, 4096).unwrap_err(), NotDecrypted);
    }

    #[test]
    fn a_lent_key_is_forgotten_with_the_last_attempt() {
        let (keys, run) = (RunKeys::default(), RunId::from("run"));
        let (first, second) = (keys.lend(&run, RunKey::generate()), keys.lend(&run, RunKey::generate()));
        drop(first);
        assert!(keys.unchecked(&run).is_some() && keys.checked(&run).is_none());
        keys.check(&run);
        assert!(keys.checked(&run).is_some() && keys.kept(&run).is_none());
        drop(second);
        assert!(keys.unchecked(&run).is_none());
        let third = keys.lend(&run, RunKey::generate());
        keys.keep(&run, Secrecy::encrypted(RunKey::generate()));
        drop(third);
        assert!(keys.kept(&run).is_some());
    }

    #[test]
    fn the_name_of_a_blob_needs_the_key() {
        let (key, digest) = (RunKey::generate(), Digest::hash(b"guessed"));
        assert_eq!(key.blob_name(&digest), key.blob_name(&digest));
        assert_ne!(key.blob_name(&digest), RunKey::generate().blob_name(&digest));
        assert_ne!(key.blob_name(&digest), digest.hex());
    }
}
