//! Conversion between the types of a view and those of `wasi:filesystem`.

use glovebox_workspace::view::{Identity, Kind, Metadata, NewTime, ViewError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use wasmtime_wasi::p2::FsError;
use wasmtime_wasi::p2::bindings::clocks::wall_clock::Datetime;
use wasmtime_wasi::p2::bindings::filesystem::types;

pub(super) fn denied(denied: ViewError) -> FsError {
    code(denied).into()
}

pub(super) fn code(denied: ViewError) -> types::ErrorCode {
    match denied {
        ViewError::NotFound => types::ErrorCode::NoEntry,
        ViewError::NotPermitted => types::ErrorCode::NotPermitted,
        ViewError::Loop => types::ErrorCode::Loop,
        ViewError::Exists => types::ErrorCode::Exist,
        ViewError::NotADirectory => types::ErrorCode::NotDirectory,
        ViewError::IsADirectory => types::ErrorCode::IsDirectory,
        ViewError::NotEmpty => types::ErrorCode::NotEmpty,
        ViewError::Invalid => types::ErrorCode::Invalid,
        ViewError::TooLarge => types::ErrorCode::Overflow,
        ViewError::Quota => types::ErrorCode::Quota,
        ViewError::Io(errno) => std::io::Error::from(errno).into(),
    }
}

pub(super) fn kind_type(kind: Kind) -> types::DescriptorType {
    match kind {
        Kind::File => types::DescriptorType::RegularFile,
        Kind::Directory => types::DescriptorType::Directory,
        Kind::Symlink => types::DescriptorType::SymbolicLink,
        Kind::Special => types::DescriptorType::Unknown,
    }
}

pub(super) fn stat(metadata: &Metadata) -> types::DescriptorStat {
    types::DescriptorStat {
        type_: kind_type(metadata.kind),
        link_count: metadata.links,
        size: metadata.size,
        data_access_timestamp: metadata.accessed.and_then(datetime),
        data_modification_timestamp: metadata.modified.and_then(datetime),
        status_change_timestamp: metadata.changed.and_then(datetime),
    }
}

fn datetime(time: SystemTime) -> Option<Datetime> {
    let since = time.duration_since(UNIX_EPOCH).ok()?;
    Some(Datetime { seconds: since.as_secs(), nanoseconds: since.subsec_nanos() })
}

/// Converts a time from a guest. 10^9 nanoseconds or more are invalid.
pub(super) fn new_time(time: types::NewTimestamp) -> Result<NewTime, FsError> {
    match time {
        types::NewTimestamp::NoChange => Ok(NewTime::Keep),
        types::NewTimestamp::Now => Ok(NewTime::Now),
        types::NewTimestamp::Timestamp(at) if at.nanoseconds < 1_000_000_000 => {
            Ok(NewTime::At(Duration::new(at.seconds, at.nanoseconds)))
        }
        types::NewTimestamp::Timestamp(_) => Err(types::ErrorCode::Invalid.into()),
    }
}

/// Returns a hash that identifies an object without revealing device and inode.
pub(super) fn identity_hash(identity: Identity) -> types::MetadataHashValue {
    let mut numbers = [0; 16];
    numbers[..8].copy_from_slice(&identity.device.to_le_bytes());
    numbers[8..].copy_from_slice(&identity.inode.to_le_bytes());
    let hash = blake3::hash(&numbers);
    let half = |at: usize| hash.as_bytes()[at..at + 8].iter().fold(0, |value, byte| value << 8 | u64::from(*byte));
    types::MetadataHashValue { lower: half(0), upper: half(8) }
}
