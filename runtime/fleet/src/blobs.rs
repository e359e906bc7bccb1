//! Blobs in an object store that several machines read: a folder, memory, or a service with the protocol of S3.
//!
//! The name of an object is the digest of its bytes. An object is created if it is not there, and is durable when a call
//! to store it returns, so a frame may name it. Bytes that are read are hashed before any of them is handed out: neither
//! the service nor the network between is trusted with the content.
//!
//! The blobs of an encrypted run have other names and are encrypted (`run_key`).
//!
//! The calls of [`BlobStore`] block, and object stores are asynchronous. They run on a thread of their own, so that a
//! call may come from any thread, a thread of a runtime included.

use crate::run_key::{self, NotDecrypted, RunKey};
use crate::s3::{self, S3Error};
use bytes::Bytes;
use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use glovebox_engine::run::NamedBlob;
use glovebox_journal::event::Digest;
use glovebox_journal::ports::{BlobStore, PortError};
use object_store::local::LocalFileSystem;
use object_store::memory::InMemory;
use object_store::path::Path as Key;
use object_store::{Error, GetResult, ObjectStore, ObjectStoreExt as _, PutMode, PutPayload};
use std::collections::BTreeMap;
use std::future::{Future, ready};
use std::io::{self, Cursor, Read, Seek, Write};
use std::path::Path;
use std::sync::{Arc, mpsc};
use tokio::runtime::Runtime;

/// Maximum size in bytes of a blob that is held in memory and stored by one request. It is also the size of the parts of
/// larger ones.
const PART_BYTES: usize = 8 * 1024 * 1024;

/// Number of blobs that are read at the same time to verify them.
const READS_MAX: usize = 16;

/// A store of blobs in an object store. All clones share its thread.
#[derive(Clone)]
pub struct ObjectBlobs {
    inner: Arc<Inner>,
    /// The key of the run whose blobs these are, if it is encrypted.
    key: Option<RunKey>,
}

struct Inner {
    store: Arc<dyn ObjectStore>,
    /// `None` only while it is dropped.
    runtime: Option<Runtime>,
}

impl Drop for Inner {
    fn drop(&mut self) {
        // A runtime that is dropped waits for its threads, which is not allowed on a thread of another runtime.
        self.runtime.take().into_iter().for_each(Runtime::shutdown_background);
    }
}

impl ObjectBlobs {
    /// Creates a store in memory. Its content is lost when the process ends.
    ///
    /// # Errors
    /// No thread can be started.
    pub fn in_memory() -> Result<Self, PortError> {
        Self::new(Arc::new(InMemory::new()))
    }

    /// Opens a store in an existing folder, which every machine must see: a disk of this machine or a network file
    /// system. Files and folders are flushed before a call returns.
    ///
    /// # Errors
    /// The folder does not exist, or no thread can be started.
    pub fn in_folder(folder: &Path) -> Result<Self, PortError> {
        let store = LocalFileSystem::new_with_prefix(folder).map_err(|error| unavailable(&error))?;
        Self::new(Arc::new(store.with_fsync(true)))
    }

    /// Opens a store in a bucket of a service with the protocol of S3. `options` are pairs such as `aws_region` and
    /// `aws_endpoint`, as the tools of S3 read them from the environment. Nothing is sent yet.
    ///
    /// # Errors
    /// An option is unknown or has a value of the wrong form, or TLS cannot be set up.
    pub fn in_s3(bucket: &str, options: &[(String, String)]) -> Result<Self, S3Error> {
        let store = s3::open(bucket, options)?;
        Self::new(Arc::new(store)).map_err(|error| S3Error::Thread(error.to_string()))
    }

    fn new(store: Arc<dyn ObjectStore>) -> Result<Self, PortError> {
        let mut runtime = tokio::runtime::Builder::new_multi_thread();
        runtime.worker_threads(1).thread_name("blobs").enable_all();
        let runtime = Some(runtime.build().map_err(|error| unavailable(&error))?);
        Ok(Self { inner: Arc::new(Inner { store, runtime }), key: None })
    }

    /// Returns the blobs of a run that is encrypted with this key, in the same store.
    pub(crate) fn encrypted(&self, key: RunKey) -> Self {
        Self { inner: Arc::clone(&self.inner), key: Some(key) }
    }

    /// Returns the name of a blob's object. The first two digits are a folder, so that no folder has all files.
    fn name(&self, digest: &Digest) -> Key {
        let (folder, hex) = match &self.key {
            None => ("blobs", digest.hex()),
            Some(key) => ("encrypted", key.blob_name(digest)),
        };
        Key::from_iter([folder, &hex[..2], &hex])
    }

    /// Returns the size of the content of an object.
    fn size(&self, found: &GetResult) -> u64 {
        match &self.key {
            None => found.meta.size,
            Some(_) => run_key::decrypted_size(found.meta.size),
        }
    }

    /// Runs a future on the thread of this store, and blocks until it ends.
    fn wait<T: Send + 'static>(
        &self,
        work: impl Future<Output = Result<T, PortError>> + Send + 'static,
    ) -> Result<T, PortError> {
        let stopped = || PortError::Unavailable("the thread of the object store has stopped".to_owned());
        let runtime = self.inner.runtime.as_ref().ok_or_else(stopped)?;
        let (answer, answered) = mpsc::sync_channel(1);
        runtime.spawn(async move {
            let _ = answer.send(work.await);
        });
        answered.recv().map_err(|_| stopped())?
    }

    /// Asks for the object of a digest. `None` if there is none.
    fn find(&self, digest: Digest) -> Result<Option<GetResult>, PortError> {
        let (store, name) = (Arc::clone(&self.inner.store), self.name(&digest));
        self.wait(async move {
            match store.get(&name).await {
                Ok(found) => Ok(Some(found)),
                Err(Error::NotFound { .. }) => Ok(None),
                Err(error) => Err(unavailable(&error)),
            }
        })
    }

    fn get(&self, digest: Digest) -> Result<GetResult, PortError> {
        self.find(digest)?.ok_or_else(|| corrupt(&digest, "it is missing"))
    }

    /// Reads an object and verifies its digest. An object that is longer than its service says is refused before more of it is kept.
    fn read(&self, digest: Digest, found: GetResult) -> Result<Box<dyn Read + Send>, PortError> {
        let key = self.key.clone();
        if found.meta.size <= PART_BYTES as u64 {
            let bytes = self.wait(async move {
                let mut bytes = Vec::new();
                each_part(digest, found, key, |part| {
                    bytes.extend_from_slice(part);
                    Ok(())
                })
                .await?;
                Ok(bytes)
            })?;
            return match Digest::hash(&bytes) == digest {
                true => Ok(Box::new(Cursor::new(bytes))),
                false => Err(corrupt(&digest, "its bytes have another digest")),
            };
        }
        let mut file = tempfile::tempfile().map_err(|error| unavailable(&error))?;
        let mut copy = file.try_clone().map_err(|error| unavailable(&error))?;
        let hash = self.wait(async move {
            let mut hasher = blake3::Hasher::new();
            each_part(digest, found, key, |part| {
                hasher.update(part);
                copy.write_all(part).map_err(|error| unavailable(&error))
            })
            .await?;
            Ok(Digest::from(hasher.finalize()))
        })?;
        if hash != digest {
            return Err(corrupt(&digest, "its bytes have another digest"));
        }
        file.rewind().map_err(|error| unavailable(&error))?;
        Ok(Box::new(file))
    }

    /// Reads blobs and compares their digests and their lengths. Nothing of them is kept.
    ///
    /// # Errors
    /// [`PortError::Corrupt`] for a blob that is missing, rotten, or of another length; [`PortError::Unavailable`] if the
    /// service does not answer.
    pub(crate) fn verify(&self, named: Vec<NamedBlob>) -> Result<(), PortError> {
        let named: BTreeMap<Digest, u64> = named.into_iter().map(|blob| (blob.digest, blob.bytes)).collect();
        let blobs = self.clone();
        self.wait(async move {
            let checks = named.into_iter().map(|(digest, bytes)| blobs.verify_one(digest, bytes));
            stream::iter(checks).buffer_unordered(READS_MAX).try_for_each(|()| ready(Ok(()))).await
        })
    }

    /// Reads the object of a digest, and compares it.
    async fn verify_one(&self, digest: Digest, bytes: u64) -> Result<(), PortError> {
        let found = self.inner.store.get(&self.name(&digest)).await.map_err(|error| match error {
            Error::NotFound { .. } => corrupt(&digest, "it is missing"),
            error => unavailable(&error),
        })?;
        let size = self.size(&found);
        if size != bytes {
            return Err(corrupt(&digest, &format!("it has {size} bytes, expected {bytes}")));
        }
        let mut hasher = blake3::Hasher::new();
        each_part(digest, found, self.key.clone(), |part| {
            hasher.update(part);
            Ok(())
        })
        .await?;
        match Digest::from(hasher.finalize()) == digest {
            true => Ok(()),
            false => Err(corrupt(&digest, "its bytes have another digest")),
        }
    }

    fn put_small(&self, bytes: Bytes) -> Result<Digest, PortError> {
        let digest = Digest::hash(&bytes);
        let (store, name) = (Arc::clone(&self.inner.store), self.name(&digest));
        let object = match &self.key {
            None => bytes,
            Some(key) => {
                let mut object = Vec::new();
                key.encrypt_blob(&mut &bytes[..], &mut object).map_err(|error| unavailable(&error))?;
                object.into()
            }
        };
        self.wait(async move {
            let size = object.len() as u64;
            let payload = PutPayload::from(object);
            match store.put_opts(&name, payload.clone(), PutMode::Create.into()).await {
                Ok(_) => Ok(digest),
                // An object of another length was cut off or damaged, and is replaced.
                Err(Error::AlreadyExists { .. }) => match has(&*store, &name, size).await? {
                    true => Ok(digest),
                    false => store.put(&name, payload).await.map(|_| digest).map_err(|error| unavailable(&error)),
                },
                Err(error) => Err(unavailable(&error)),
            }
        })
    }

    /// Stores a stream of more than [`PART_BYTES`]. Its name is known only at its end, so it is written to a file first.
    fn put_large(&self, bytes: &mut dyn Read) -> Result<Digest, PortError> {
        let mut file = tempfile::tempfile().map_err(|error| unavailable(&error))?;
        let mut hasher = blake3::Hasher::new();
        let mut tee = Tee { file: &mut file, hasher: &mut hasher };
        let size = io::copy(bytes, &mut tee).map_err(|error| unavailable(&error))?;
        let digest = Digest::from(hasher.finalize());
        file.rewind().map_err(|error| unavailable(&error))?;
        let (store, name, key) = (Arc::clone(&self.inner.store), self.name(&digest), self.key.clone());
        let size = if key.is_some() { run_key::encrypted_size(size) } else { size };
        self.wait(async move {
            if has(&*store, &name, size).await? {
                return Ok(digest);
            }
            if let Some(key) = key {
                let mut object = tempfile::tempfile().map_err(|error| unavailable(&error))?;
                key.encrypt_blob(&mut file, &mut object).map_err(|error| unavailable(&error))?;
                object.rewind().map_err(|error| unavailable(&error))?;
                file = object;
            }
            upload(&*store, &name, file).await?;
            Ok(digest)
        })
    }
}

/// Why a part of an object is not passed on.
enum PartError {
    NotDecrypted,
    Port(PortError),
}

impl From<NotDecrypted> for PartError {
    fn from(_: NotDecrypted) -> Self {
        Self::NotDecrypted
    }
}

/// Passes the bytes of an object on as they arrive, decrypted, at most as many as its service said that there are.
async fn each_part(
    digest: Digest,
    found: GetResult,
    key: Option<RunKey>,
    mut take: impl FnMut(&[u8]) -> Result<(), PortError>,
) -> Result<(), PortError> {
    let failed = |error| match error {
        PartError::NotDecrypted => corrupt(&digest, &NotDecrypted.to_string()),
        PartError::Port(error) => error,
    };
    let mut take = |part: &[u8]| take(part).map_err(PartError::Port);
    let mut decryption = key.map(|key| key.decrypt_blob());
    let (size, mut read, mut stream) = (found.meta.size, 0, found.into_stream());
    while let Some(part) = stream.try_next().await.map_err(|error| unavailable(&error))? {
        read += part.len() as u64;
        if read > size {
            return Err(corrupt(&digest, "it is longer than its service says"));
        }
        match &mut decryption {
            None => take(&part),
            Some(decryption) => decryption.push(&part, &mut take),
        }
        .map_err(failed)?;
    }
    match decryption {
        None => Ok(()),
        Some(decryption) => decryption.finish(&mut take).map_err(failed),
    }
}

/// Writes a file to an object, in parts. The object appears when the last part is stored.
async fn upload(store: &dyn ObjectStore, name: &Key, file: std::fs::File) -> Result<(), PortError> {
    let mut upload = store.put_multipart(name).await.map_err(|error| unavailable(&error))?;
    loop {
        let mut part = Vec::with_capacity(PART_BYTES);
        let read = Read::take(&file, PART_BYTES as u64).read_to_end(&mut part).map_err(|error| unavailable(&error));
        let put = match read {
            Ok(0) => break,
            Ok(_) => upload.put_part(part.into()).await.map_err(|error| unavailable(&error)),
            Err(error) => Err(error),
        };
        if let Err(error) = put {
            // The parts are not part of any object. A service may keep them until its own clean-up.
            let _ = upload.abort().await;
            return Err(error);
        }
    }
    upload.complete().await.map(drop).map_err(|error| unavailable(&error))
}

/// Returns true if an object exists and has this length.
async fn has(store: &dyn ObjectStore, name: &Key, bytes: u64) -> Result<bool, PortError> {
    match store.head(name).await {
        Ok(found) => Ok(found.size == bytes),
        Err(Error::NotFound { .. }) => Ok(false),
        Err(error) => Err(unavailable(&error)),
    }
}

impl BlobStore for ObjectBlobs {
    fn put(&self, bytes: &mut dyn Read) -> Result<Digest, PortError> {
        let mut beginning = Vec::new();
        let limit = PART_BYTES as u64 + 1;
        Read::take(&mut *bytes, limit).read_to_end(&mut beginning).map_err(|error| unavailable(&error))?;
        match beginning.len() <= PART_BYTES {
            true => self.put_small(beginning.into()),
            false => self.put_large(&mut beginning.as_slice().chain(bytes)),
        }
    }

    fn open(&self, digest: &Digest) -> Result<Box<dyn Read + Send>, PortError> {
        self.read(*digest, self.get(*digest)?)
    }

    /// The bytes come from another machine, so they are verified here too.
    fn open_unverified(&self, digest: &Digest) -> io::Result<Box<dyn Read + Send>> {
        let found = self.find(*digest).map_err(io::Error::other)?.ok_or(io::ErrorKind::NotFound)?;
        self.read(*digest, found).map_err(io::Error::other)
    }

    fn open_at_most(&self, digest: &Digest, bytes_max: u64) -> Result<Box<dyn Read + Send>, PortError> {
        let found = self.get(*digest)?;
        // The length is compared before anything is transferred.
        if self.size(&found) > bytes_max {
            return Err(corrupt(digest, &format!("it has more than {bytes_max} bytes, the most that is read at once")));
        }
        self.read(*digest, found)
    }

    fn read_all(&self, digest: &Digest, bytes_max: u64) -> Result<Vec<u8>, PortError> {
        let mut bytes = Vec::new();
        self.open_at_most(digest, bytes_max)?.read_to_end(&mut bytes).map_err(|error| unavailable(&error))?;
        Ok(bytes)
    }
}

/// Writes bytes to a file and hashes them.
struct Tee<'a> {
    file: &'a mut std::fs::File,
    hasher: &'a mut blake3::Hasher,
}

impl Write for Tee<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.file.write(bytes)?;
        self.hasher.update(&bytes[..written]);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

fn unavailable(error: &dyn std::error::Error) -> PortError {
    PortError::Unavailable(error.to_string())
}

fn corrupt(digest: &Digest, found: &str) -> PortError {
    PortError::Corrupt { what: format!("blob {digest}"), found: found.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stores() -> (tempfile::TempDir, [ObjectBlobs; 2]) {
        let folder = tempfile::tempdir().unwrap();
        let stores = [ObjectBlobs::in_memory().unwrap(), ObjectBlobs::in_folder(folder.path()).unwrap()];
        (folder, stores)
    }

    #[test]
    fn blobs_in_memory_and_in_parts_are_read_back() {
        let open = stores();
        let encrypted = open.1.clone().map(|blobs| blobs.encrypted(RunKey::generate()));
        for blobs in open.1.into_iter().chain(encrypted) {
            for size in [0, 5, PART_BYTES, PART_BYTES + 1, 2 * PART_BYTES + 3] {
                let bytes: Vec<u8> = (0..251).cycle().take(size).collect();
                for _ in 0..2 {
                    assert_eq!(blobs.put_bytes(&bytes).unwrap(), Digest::hash(&bytes));
                }
                assert!(blobs.read_all(&Digest::hash(&bytes), size as u64).unwrap() == bytes, "{size}");
                let refused = blobs.read_all(&Digest::hash(&bytes), (size as u64).saturating_sub(1));
                assert_eq!(refused.is_err(), size > 0, "{size}");
            }
        }
    }

    #[test]
    fn an_object_that_is_damaged_is_refused_and_one_that_is_cut_off_is_replaced() {
        let (folder, [_, blobs]) = stores();
        for size in [5, PART_BYTES + 1] {
            let bytes = vec![7; size];
            let digest = blobs.put_bytes(&bytes).unwrap();
            let path = folder.path().join(blobs.name(&digest).to_string());
            let mut rotten = bytes.clone();
            rotten[size - 1] = 8;
            std::fs::write(&path, rotten).unwrap();
            let error = blobs.open(&digest).err().unwrap().to_string();
            assert_eq!(error, format!("blob {digest} is corrupt: its bytes have another digest"));
            std::fs::write(&path, &bytes[..size - 1]).unwrap();
            assert_eq!(blobs.put_bytes(&bytes).unwrap(), digest);
            assert!(blobs.read_all(&digest, size as u64).unwrap() == bytes);
        }
    }

    #[test]
    fn blobs_are_verified_without_being_kept() {
        let (folder, [_, blobs]) = stores();
        let put = |size: usize| NamedBlob { digest: blobs.put_bytes(&vec![7; size]).unwrap(), bytes: size as u64 };
        let named: Vec<NamedBlob> = [0, 5, PART_BYTES + 1].map(put).into();
        blobs.verify(named.clone()).unwrap();
        let refused = |named: NamedBlob, expected: &str| {
            let error = blobs.verify(vec![named]).unwrap_err();
            assert!(matches!(&error, PortError::Corrupt { found, .. } if found == expected), "{error}");
        };
        refused(NamedBlob { bytes: 6, ..named[1] }, "it has 5 bytes, expected 6");
        refused(NamedBlob { digest: Digest::hash(b"never stored"), bytes: 1 }, "it is missing");
        for NamedBlob { digest, bytes } in &named[1..] {
            let rotten = vec![8; usize::try_from(*bytes).unwrap()];
            std::fs::write(folder.path().join(blobs.name(digest).to_string()), rotten).unwrap();
            refused(NamedBlob { digest: *digest, bytes: *bytes }, "its bytes have another digest");
        }
    }

    #[test]
    fn an_encrypted_blob_is_read_with_its_key_only_and_verified() {
        let (folder, [_, open]) = stores();
        let (key, bytes) = (RunKey::generate(), b"this text is secret.".repeat(20));
        let blobs = open.encrypted(key.clone());
        let digest = blobs.put_bytes(&bytes).unwrap();
        let named = |bytes| vec![NamedBlob { digest, bytes }];
        blobs.verify(named(bytes.len() as u64)).unwrap();
        let error = blobs.verify(named(7)).unwrap_err().to_string();
        assert!(error.contains("it has 400 bytes, expected 7"), "{error}");
        for other in [open.clone(), open.encrypted(RunKey::generate())] {
            assert!(other.open(&digest).err().unwrap().to_string().contains("it is missing"));
        }
        let path = folder.path().join(blobs.name(&digest).to_string());
        let stored = std::fs::read(&path).unwrap();
        assert!(
            !stored.windows(6).any(|window| window == b"secret") && !path.display().to_string().contains(&digest.hex())
        );
        let mut damaged = stored;
        damaged[50] ^= 1;
        std::fs::write(&path, damaged).unwrap();
        for error in [blobs.open(&digest).err().unwrap(), blobs.verify(named(bytes.len() as u64)).unwrap_err()] {
            assert!(
                error.to_string().contains("it is not encrypted with the key of its run, or was changed"),
                "{error}"
            );
        }
    }

    #[test]
    fn a_blob_that_is_missing_is_named() {
        for blobs in stores().1 {
            let digest = Digest::hash(b"never stored");
            let error = blobs.open(&digest).err().unwrap().to_string();
            assert_eq!(error, format!("blob {digest} is corrupt: it is missing"));
        }
    }

    #[tokio::test]
    async fn a_store_may_be_used_and_dropped_on_a_thread_of_a_runtime() {
        let blobs = ObjectBlobs::in_memory().unwrap();
        let digest = blobs.put_bytes(b"hello").unwrap();
        assert_eq!(blobs.read_all(&digest, 5).unwrap(), b"hello");
        drop(blobs);
    }
}
