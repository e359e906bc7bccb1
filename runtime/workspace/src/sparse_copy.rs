//! Copies of files with holes.
//!
//! A hole takes no space on disk. A plain copy fills it with zeros, so that a file without data could fill the disk.

use crate::tree;
use rustix::fs::Stat;
use rustix::io::Errno;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};

/// Returns true if a file takes less space on disk than its length.
pub(crate) fn any(stat: &Stat) -> bool {
    u64::try_from(stat.st_blocks).unwrap_or(0).saturating_mul(512) < tree::length(stat)
}

/// Copies at most `bytes_max` bytes of data, and leaves holes where the source has holes. Returns the number of copied bytes.
pub(crate) fn copy(mut source: &File, mut target: &File, bytes_max: u64) -> io::Result<u64> {
    let length = source.metadata()?.len();
    let (mut at, mut copied) = (0, 0);
    while at < length {
        let begin = match rustix::fs::seek(source, rustix::fs::SeekFrom::Data(at)) {
            Err(Errno::NXIO) => break,
            // The file system does not support holes.
            Err(Errno::INVAL) => at,
            other => other?,
        };
        let end = match rustix::fs::seek(source, rustix::fs::SeekFrom::Hole(begin)) {
            Err(Errno::NXIO | Errno::INVAL) => length,
            other => other?,
        };
        if end.saturating_sub(begin) > bytes_max.saturating_sub(copied) {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        source.seek(SeekFrom::Start(begin))?;
        target.seek(SeekFrom::Start(begin))?;
        copied += io::copy(&mut source.take(end.saturating_sub(begin)), &mut target)?;
        at = end.max(at + 1);
    }
    target.set_len(length)?;
    Ok(copied)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::os::unix::fs::MetadataExt;

    #[test]
    fn a_copy_has_the_content_and_the_holes_of_its_file() {
        let dir = tempfile::tempdir().unwrap();
        let create =
            |name: &str| File::options().read(true).write(true).create_new(true).open(dir.path().join(name)).unwrap();
        let mut source = create("source");
        source.seek(SeekFrom::Start(8 << 20)).unwrap();
        source.write_all(&[7; 5000]).unwrap();
        source.set_len(64 << 20).unwrap();
        assert!(any(&rustix::fs::fstat(&source).unwrap()));
        let target = create("target");
        assert!((5000..1 << 20).contains(&copy(&source, &target, 1 << 20).unwrap()));
        assert!(target.metadata().unwrap().blocks() * 512 < 2 << 20);
        let content = |name: &str| std::fs::read(dir.path().join(name)).unwrap();
        assert!(content("source") == content("target"));
        assert!(copy(&source, &create("bounded"), 4999).is_err());
    }
}
