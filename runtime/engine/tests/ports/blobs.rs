//! Tests blob stores: a blob is read back unchanged, and a blob that was put before an append is found by every later
//! process.

use super::{Blobs, note};
use glovebox_journal::event::{Digest, StreamKey};
use glovebox_journal::ports::{BlobStore, PortError};
use std::io::Read;

/// Sizes around the maximum size of blobs that are stored together with the append.
const SIZES: [usize; 6] = [0, 5, 65_535, 65_536, 65_537, 300_000];

fn bytes(size: usize) -> Vec<u8> {
    size.to_le_bytes().into_iter().cycle().take(size).collect()
}

fn put_all(blobs: &impl BlobStore, put: &[Vec<u8>]) {
    for bytes in put {
        assert_eq!(blobs.put_bytes(bytes).unwrap(), Digest::hash(bytes));
    }
}

#[track_caller]
fn check(blobs: &impl BlobStore, expected: &[u8]) {
    let digest = Digest::hash(expected);
    let mut read = Vec::new();
    blobs.open(&digest).unwrap().read_to_end(&mut read).unwrap();
    assert!(read == expected, "{} bytes", expected.len());
    assert!(blobs.read_all(&digest, expected.len() as u64).unwrap() == expected);
}

pub(crate) async fn what_is_put_is_what_is_opened<B: Blobs>() {
    let folder = tempfile::tempdir().unwrap();
    let under = B::open(folder.path());
    for is_stored in [false, true] {
        for bytes in SIZES.map(bytes) {
            let digest = under.store().put(&mut &bytes[..]).unwrap();
            assert_eq!((digest, under.store().put_bytes(&bytes).unwrap()), (Digest::hash(&bytes), digest));
            check(under.store(), &bytes);
        }
        let digest = under.store().put_bytes(b"hello").unwrap();
        assert!(under.store().read_all(&digest, 4).is_err(), "more than the reader allows, {is_stored}");
        under.append(&[], &[note("a")]).await.unwrap();
    }
}

pub(crate) async fn a_blob_that_is_missing_is_corrupt<B: Blobs>() {
    let folder = tempfile::tempdir().unwrap();
    let found = B::open(folder.path()).store().open(&Digest::hash(b"never stored")).err();
    assert!(matches!(found, Some(PortError::Corrupt { .. })), "{found:?}");
}

pub(crate) async fn what_was_put_before_an_append_is_there_after_it<B: Blobs>() {
    let folder = tempfile::tempdir().unwrap();
    let mut under = B::open(folder.path());
    for (round, events) in [vec![note("a")], vec![]].into_iter().enumerate() {
        let put: Vec<_> = SIZES.iter().map(|size| bytes(size + round)).collect();
        put_all(under.store(), &put);
        under.append(&[], &events).await.unwrap();
        put.iter().for_each(|bytes| check(under.store(), bytes));
        under = under.reopen(folder.path());
        put.iter().for_each(|bytes| check(under.store(), bytes));
    }
}

pub(crate) async fn an_append_that_is_refused_loses_no_blob<B: Blobs>() {
    let folder = tempfile::tempdir().unwrap();
    let under = B::open(folder.path());
    let put = SIZES.map(bytes);
    put_all(under.store(), &put);
    let refused = under.append(&[(StreamKey::Run, 7)], &[note("a")]).await;
    assert!(matches!(refused, Err(PortError::Conflict { .. })), "{refused:?}");
    under.append(&[(StreamKey::Run, 0)], &[note("a")]).await.unwrap();
    let under = under.reopen(folder.path());
    put.iter().for_each(|bytes| check(under.store(), bytes));
}

pub(crate) async fn more_than_memory_takes_is_stored_too<B: Blobs>() {
    let folder = tempfile::tempdir().unwrap();
    let under = B::open(folder.path());
    let put: Vec<_> = (0..400).map(|index| bytes(65_000 + index)).collect();
    put_all(under.store(), &put);
    under.append(&[], &[note("a")]).await.unwrap();
    let under = under.reopen(folder.path());
    put.iter().for_each(|bytes| check(under.store(), bytes));
}
