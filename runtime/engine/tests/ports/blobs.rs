//! Blobs: what is put is what is opened.

use super::Blobs;
use glovebox_engine::event::Digest;
use glovebox_engine::ports::PortError;
use std::io::Read;

pub(crate) fn what_is_put_is_what_is_opened<B: Blobs>() {
    let folder = tempfile::tempdir().unwrap();
    let blobs = B::empty(folder.path());
    for bytes in [&b""[..], b"hello", &[7; 100_000]] {
        let digest = blobs.put(&mut &bytes[..]).unwrap();
        assert_eq!((digest, blobs.put_bytes(bytes).unwrap()), (Digest::of(bytes), digest));
        let mut read = Vec::new();
        blobs.open(&digest).unwrap().read_to_end(&mut read).unwrap();
        assert_eq!(read, bytes);
        assert_eq!(blobs.read_all(&digest, bytes.len() as u64).unwrap(), bytes);
    }
    let digest = blobs.put_bytes(b"hello").unwrap();
    assert!(blobs.read_all(&digest, 4).is_err(), "more than the reader allows");
}

pub(crate) fn a_blob_that_is_missing_is_corrupt<B: Blobs>() {
    let folder = tempfile::tempdir().unwrap();
    let found = B::empty(folder.path()).open(&Digest::of(b"never stored")).err();
    assert!(matches!(found, Some(PortError::Corrupt { .. })), "{found:?}");
}
