//! All methods of a descriptor. The view checks each operation, or the method refuses it.
//!
//! Symbolic links are never followed. If a caller asks to follow them, reading the metadata of a link is an error.

use super::codes::{denied, identity_hash, new_time, stat};
use super::streams::{CHUNK_BYTES_MAX, Reader, Target, Writer};
use super::{FilesView, Folder, LISTED_MAX, OpenNode};
use crate::attempt::files::GuestPath;
use glovebox_record::path::ScopePath;
use glovebox_workspace::view::{Create, Kind, Metadata, OpenOptions, Operation, View, ViewError};
use std::sync::Arc;
use wasmtime::component::Resource;
use wasmtime_wasi::p2::bindings::filesystem::types::{
    Advice, Descriptor, DescriptorFlags, DescriptorStat, DescriptorType, DirectoryEntryStream, ErrorCode, Filesize,
    HostDescriptor, MetadataHashValue, NewTimestamp, OpenFlags, PathFlags,
};
use wasmtime_wasi::p2::{DynInputStream, DynOutputStream, FsError, FsResult};

type Fd = Resource<Descriptor>;

impl HostDescriptor for FilesView<'_> {
    fn read_via_stream(&mut self, fd: Fd, offset: Filesize) -> FsResult<Resource<DynInputStream>> {
        let reader: DynInputStream = match self.node(&fd)? {
            OpenNode::File(file) if file.readable() => Box::new(Reader::new(Arc::clone(file), offset)),
            OpenNode::File(_) => return Err(ErrorCode::BadDescriptor.into()),
            OpenNode::Directory(_) => return Err(ErrorCode::IsDirectory.into()),
        };
        self.table.push(reader).map_err(FsError::trap)
    }

    fn write_via_stream(&mut self, fd: Fd, offset: Filesize) -> FsResult<Resource<DynOutputStream>> {
        self.writer(&fd, Target::Position(offset))
    }

    fn append_via_stream(&mut self, fd: Fd) -> FsResult<Resource<DynOutputStream>> {
        self.writer(&fd, Target::End)
    }

    async fn advise(&mut self, fd: Fd, _offset: Filesize, _length: Filesize, _advice: Advice) -> FsResult<()> {
        self.file(&fd)?;
        Ok(())
    }

    async fn sync_data(&mut self, fd: Fd) -> FsResult<()> {
        self.sync_node(&fd, false)
    }

    async fn sync(&mut self, fd: Fd) -> FsResult<()> {
        self.sync_node(&fd, true)
    }

    async fn get_flags(&mut self, fd: Fd) -> FsResult<DescriptorFlags> {
        let when = |on: bool, flag: DescriptorFlags| if on { flag } else { DescriptorFlags::empty() };
        Ok(match self.node(&fd)? {
            OpenNode::File(file) => {
                when(file.readable(), DescriptorFlags::READ) | when(file.writable(), DescriptorFlags::WRITE)
            }
            OpenNode::Directory(_) => {
                let may_write = self.view()?.scope().may_write();
                DescriptorFlags::READ | when(may_write, DescriptorFlags::MUTATE_DIRECTORY)
            }
        })
    }

    async fn get_type(&mut self, fd: Fd) -> FsResult<DescriptorType> {
        Ok(match self.node(&fd)? {
            OpenNode::File(_) => DescriptorType::RegularFile,
            OpenNode::Directory(_) => DescriptorType::Directory,
        })
    }

    async fn set_size(&mut self, fd: Fd, size: Filesize) -> FsResult<()> {
        self.observer.called("wasi:filesystem", |call| call.text("set size").number(size));
        self.file(&fd)?.set_len(size).map_err(denied)
    }

    async fn set_times(&mut self, fd: Fd, accessed: NewTimestamp, modified: NewTimestamp) -> FsResult<()> {
        let (accessed, modified) = (new_time(accessed)?, new_time(modified)?);
        match self.node(&fd)? {
            OpenNode::File(file) => file.set_times(accessed, modified),
            OpenNode::Directory(folder) => self.view()?.set_times(&folder.path, accessed, modified),
        }
        .map_err(denied)
    }

    async fn read(&mut self, fd: Fd, length: Filesize, offset: Filesize) -> FsResult<(Vec<u8>, bool)> {
        let length = usize::try_from(length).unwrap_or(usize::MAX).min(CHUNK_BYTES_MAX);
        let mut buffer = vec![0; length];
        let count = self.file(&fd)?.read_at(&mut buffer, offset).map_err(denied)?;
        buffer.truncate(count);
        Ok((buffer, count == 0))
    }

    async fn write(&mut self, fd: Fd, buffer: Vec<u8>, offset: Filesize) -> FsResult<Filesize> {
        self.observer.called("wasi:filesystem", |call| call.text("write").bytes(&buffer).number(offset));
        self.file(&fd)?.write_at(&buffer, offset).map_err(denied)?;
        Ok(buffer.len() as Filesize)
    }

    async fn read_directory(&mut self, fd: Fd) -> FsResult<Resource<DirectoryEntryStream>> {
        let entries = self.view()?.kinds(self.directory(&fd)?).map_err(denied)?;
        let listing = self.push_listing(fd.rep(), entries, LISTED_MAX)?;
        let node = self.table.get_mut(&Resource::<OpenNode>::new_borrow(fd.rep())).map_err(FsError::trap)?;
        if let OpenNode::Directory(folder) = node {
            folder.listing = Some(listing.rep());
        }
        Ok(listing)
    }

    async fn create_directory_at(&mut self, fd: Fd, path: String) -> FsResult<()> {
        let path = self.resolve(Operation::MakeDirectory, &fd, GuestPath(&path))?;
        self.view()?.make_directory(&path).map_err(denied)
    }

    async fn stat(&mut self, fd: Fd) -> FsResult<DescriptorStat> {
        Ok(stat(&self.metadata(&fd)?))
    }

    async fn stat_at(&mut self, fd: Fd, flags: PathFlags, path: String) -> FsResult<DescriptorStat> {
        Ok(stat(&self.metadata_at(&fd, flags, GuestPath(&path))?))
    }

    async fn set_times_at(
        &mut self,
        fd: Fd,
        _flags: PathFlags,
        path: String,
        accessed: NewTimestamp,
        modified: NewTimestamp,
    ) -> FsResult<()> {
        let (accessed, modified) = (new_time(accessed)?, new_time(modified)?);
        let path = self.resolve(Operation::SetTimes, &fd, GuestPath(&path))?;
        self.view()?.set_times(&path, accessed, modified).map_err(denied)
    }

    async fn link_at(&mut self, fd: Fd, _flags: PathFlags, old: String, new_fd: Fd, new: String) -> FsResult<()> {
        self.resolve(Operation::Link, &new_fd, GuestPath(&new))?;
        self.refuse_linking(Operation::Link, &fd, GuestPath(&old))
    }

    async fn open_at(
        &mut self,
        fd: Fd,
        _path_flags: PathFlags,
        path: String,
        open: OpenFlags,
        flags: DescriptorFlags,
    ) -> FsResult<Fd> {
        let options = options(open, flags)?;
        let operation = if options.changes() { Operation::Write } else { Operation::Read };
        let path = self.resolve(operation, &fd, GuestPath(&path))?;
        let node = open_node(self.view()?, path, options, open.contains(OpenFlags::DIRECTORY)).map_err(denied)?;
        self.push(node)
    }

    async fn readlink_at(&mut self, fd: Fd, path: String) -> FsResult<String> {
        let path = self.resolve(Operation::ReadLink, &fd, GuestPath(&path))?;
        Err(denied(self.view()?.refuse_reading_link(&path)))
    }

    async fn remove_directory_at(&mut self, fd: Fd, path: String) -> FsResult<()> {
        let path = self.resolve(Operation::Remove, &fd, GuestPath(&path))?;
        self.view()?.remove_directory(&path).map_err(denied)
    }

    async fn rename_at(&mut self, fd: Fd, old: String, new_fd: Fd, new: String) -> FsResult<()> {
        let old = self.resolve(Operation::Rename, &fd, GuestPath(&old))?;
        let new = self.resolve(Operation::Rename, &new_fd, GuestPath(&new))?;
        self.view()?.rename(&old, &new).map_err(denied)
    }

    async fn symlink_at(&mut self, fd: Fd, _target: String, path: String) -> FsResult<()> {
        self.refuse_linking(Operation::Symlink, &fd, GuestPath(&path))
    }

    async fn unlink_file_at(&mut self, fd: Fd, path: String) -> FsResult<()> {
        let path = self.resolve(Operation::Remove, &fd, GuestPath(&path))?;
        self.view()?.unlink(&path).map_err(denied)
    }

    async fn is_same_object(&mut self, a: Fd, b: Fd) -> wasmtime::Result<bool> {
        Ok(match (self.metadata(&a), self.metadata(&b)) {
            (Ok(a), Ok(b)) => a.identity == b.identity,
            _ => false,
        })
    }

    async fn metadata_hash(&mut self, fd: Fd) -> FsResult<MetadataHashValue> {
        Ok(identity_hash(self.metadata(&fd)?.identity))
    }

    async fn metadata_hash_at(&mut self, fd: Fd, flags: PathFlags, path: String) -> FsResult<MetadataHashValue> {
        let follows = flags.contains(PathFlags::SYMLINK_FOLLOW);
        let identity = match if follows { None } else { self.take_listed_identity(&fd, &path) } {
            Some(identity) => identity,
            None => self.metadata_at(&fd, flags, GuestPath(&path))?.identity,
        };
        Ok(identity_hash(identity))
    }

    fn drop(&mut self, fd: Fd) -> wasmtime::Result<()> {
        self.table.delete(Resource::<OpenNode>::new_own(fd.rep()))?;
        Ok(())
    }
}

impl FilesView<'_> {
    fn writer(&mut self, fd: &Fd, target: Target) -> FsResult<Resource<DynOutputStream>> {
        let file = self.file(fd)?;
        if !file.writable() {
            // The handle records the refusal and returns the error.
            file.append(&[]).map_err(denied)?;
        }
        let writer: DynOutputStream = Box::new(Writer::new(Arc::clone(file), target));
        self.table.push(writer).map_err(FsError::trap)
    }

    fn sync_node(&self, fd: &Fd, all: bool) -> FsResult<()> {
        match self.node(fd)? {
            OpenNode::File(file) => file.sync(all).map_err(denied),
            OpenNode::Directory(_) => Ok(()),
        }
    }

    fn metadata(&self, fd: &Fd) -> FsResult<Metadata> {
        match self.node(fd)? {
            OpenNode::File(file) => file.metadata(),
            OpenNode::Directory(folder) => self.view()?.directory(&folder.path),
        }
        .map_err(denied)
    }

    fn metadata_at(&self, fd: &Fd, flags: PathFlags, path: GuestPath<'_>) -> FsResult<Metadata> {
        let path = self.resolve(Operation::Stat, fd, path)?;
        let metadata = self.view()?.stat(&path).map_err(denied)?;
        if metadata.kind == Kind::Symlink && flags.contains(PathFlags::SYMLINK_FOLLOW) {
            return Err(denied(self.view()?.refuse_following(Operation::Stat, &path)));
        }
        Ok(metadata)
    }

    fn refuse_linking<T>(&self, operation: Operation, fd: &Fd, path: GuestPath<'_>) -> FsResult<T> {
        let path = self.resolve(operation, fd, path)?;
        Err(denied(self.view()?.refuse_linking(operation, &path)))
    }
}

/// Converts the flags of an open. A flag that the view does not support is an error and is never ignored.
fn options(open: OpenFlags, flags: DescriptorFlags) -> FsResult<OpenOptions> {
    let synchronous = DescriptorFlags::FILE_INTEGRITY_SYNC
        | DescriptorFlags::DATA_INTEGRITY_SYNC
        | DescriptorFlags::REQUESTED_WRITE_SYNC;
    if flags.intersects(synchronous) {
        return Err(ErrorCode::Unsupported.into());
    }
    if open.contains(OpenFlags::DIRECTORY)
        && open.intersects(OpenFlags::CREATE | OpenFlags::EXCLUSIVE | OpenFlags::TRUNCATE)
    {
        return Err(ErrorCode::Invalid.into());
    }
    let create = match (open.contains(OpenFlags::CREATE), open.contains(OpenFlags::EXCLUSIVE)) {
        (false, _) => Create::Never,
        (true, false) => Create::IfAbsent,
        (true, true) => Create::MustBeNew,
    };
    let write = flags.contains(DescriptorFlags::WRITE);
    let read = flags.contains(DescriptorFlags::READ) || !write;
    Ok(OpenOptions { read, write, create, truncate: open.contains(OpenFlags::TRUNCATE) })
}

fn open_node(
    view: &Arc<View>,
    path: ScopePath,
    options: OpenOptions,
    only_directory: bool,
) -> Result<OpenNode, ViewError> {
    if only_directory {
        view.directory(&path)?;
        return if options.write { Err(ViewError::IsADirectory) } else { Ok(OpenNode::Directory(Folder::at(path))) };
    }
    match view.open_file(&path, options) {
        Ok(file) => Ok(OpenNode::File(Arc::new(file))),
        Err(ViewError::IsADirectory) if !options.changes() => {
            view.directory(&path)?;
            Ok(OpenNode::Directory(Folder::at(path)))
        }
        Err(denied) => Err(denied),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_become_options_or_an_error() {
        let none = OpenFlags::empty();
        let read = DescriptorFlags::READ;
        let write = DescriptorFlags::WRITE;
        let check = |open: OpenFlags, flags: DescriptorFlags, expected: Option<OpenOptions>| {
            assert_eq!(options(open, flags).ok(), expected, "{open:?} {flags:?}");
        };
        check(none, read, Some(OpenOptions::READ));
        check(none, DescriptorFlags::empty(), Some(OpenOptions::READ));
        check(OpenFlags::CREATE | OpenFlags::TRUNCATE, write, Some(OpenOptions::REPLACE));
        check(OpenFlags::TRUNCATE, read, Some(OpenOptions { truncate: true, ..OpenOptions::READ }));
        check(none, read | DescriptorFlags::FILE_INTEGRITY_SYNC, None);
        check(OpenFlags::DIRECTORY | OpenFlags::CREATE, read, None);
    }
}
