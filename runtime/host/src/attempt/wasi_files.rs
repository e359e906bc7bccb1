//! The `posix` tier: a `wasi:filesystem` that enforces a scope on every operation.
//!
//! This module implements the whole interface over a [`View`]. wasmtime's own implementation is not used, and its
//! descriptors never enter the resource table. A guest gets the workspace as a preopened directory under `/` and under
//! its other names. A path is checked each time it is used, because a descriptor of a directory is only a path. Without
//! a view there is no preopened directory, and therefore no descriptor. A C library removes the first `/` of a path
//! before the host sees it, so `/src/a` arrives as `src/a`. A path that is still absolute when it arrives is refused,
//! unless it is below one of the workspace's names.

mod codes;
mod descriptor;
mod streams;

use crate::attempt::files::GuestPath;
use crate::progress::CallObserver;
use codes::{denied, kind_type};
use glovebox_record::path::ScopePath;
use glovebox_workspace::view::{DirectoryEntry, FileHandle, Identity, Operation, View, ViewError};
use std::sync::Arc;
use wasmtime::component::{HasData, Linker, Resource, ResourceTable};
use wasmtime_wasi::p2::bindings::filesystem::{preopens, types};
use wasmtime_wasi::p2::{FsError, FsResult};

/// Guest path of the first preopened directory. Relative paths of `std::fs` are also resolved against it.
const ROOT: &str = "/";

/// The parts of a call's state that the interface uses.
pub(crate) struct FilesView<'a> {
    /// Live resource handles.
    pub(crate) table: &'a mut ResourceTable,
    /// The view, in the tier `posix` only; `None` if there is no file system.
    pub(crate) view: Option<&'a Arc<View>>,
    /// Records the operations.
    pub(crate) observer: &'a CallObserver,
}

struct WasiFiles;

impl HasData for WasiFiles {
    type Data<'a> = FilesView<'a>;
}

/// Adds `wasi:filesystem/types` and `wasi:filesystem/preopens`, and nothing else.
pub(crate) fn add_to_linker<T: Send + 'static>(
    linker: &mut Linker<T>,
    files: fn(&mut T) -> FilesView<'_>,
) -> wasmtime::Result<()> {
    types::add_to_linker::<T, WasiFiles>(linker, files)?;
    preopens::add_to_linker::<T, WasiFiles>(linker, files)
}

/// The object that a descriptor refers to.
enum OpenNode {
    Directory(Folder),
    File(Arc<FileHandle>),
}

/// A directory, known by its path only.
struct Folder {
    path: ScopePath,
    /// Index of its latest listing in the table. The listing may have been dropped.
    listing: Option<u32>,
}

impl Folder {
    fn at(path: ScopePath) -> Self {
        Self { path, listing: None }
    }
}

/// A listing that is being read. Its names are in the host's memory, to which no limit of the guest applies.
struct Listing {
    /// Index of the listed directory's descriptor.
    of: u32,
    entries: Vec<DirectoryEntry>,
    /// Number of entries that were read. Until the listing is dropped, they are part of the sum that `LISTED_MAX`
    /// bounds.
    read: usize,
}

impl Listing {
    fn next(&mut self) -> Option<&DirectoryEntry> {
        let entry = self.entries.get(self.read)?;
        self.read += 1;
        Some(entry)
    }

    /// Returns the entry that was read last.
    fn latest(&mut self) -> Option<&mut DirectoryEntry> {
        self.entries.get_mut(self.read.checked_sub(1)?)
    }
}

/// Maximum sum of the entries in all listings of a call. A single listing may have more.
const LISTED_MAX: usize = 1 << 18;

impl FilesView<'_> {
    fn view(&self) -> FsResult<&Arc<View>> {
        self.view.ok_or_else(|| types::ErrorCode::BadDescriptor.into())
    }

    /// Adds an open node to the table. The returned resource has the type that WASI requires, and contains only the index of the
    /// table's entry.
    fn push(&mut self, node: OpenNode) -> FsResult<Resource<types::Descriptor>> {
        let pushed = self.table.push(node).map_err(FsError::trap)?;
        Ok(Resource::new_own(pushed.rep()))
    }

    /// Adds a listing to the table, unless the listings that were not dropped yet have too many entries.
    fn push_listing(
        &mut self,
        of: u32,
        entries: Vec<DirectoryEntry>,
        listed_max: usize,
    ) -> FsResult<Resource<types::DirectoryEntryStream>> {
        let listings = self.table.iter_mut().filter_map(|entry| entry.downcast_ref::<Listing>());
        let held: usize = listings.map(|listing| listing.entries.len()).sum();
        if held > 0 && held.saturating_add(entries.len()) > listed_max {
            return Err(types::ErrorCode::InsufficientMemory.into());
        }
        let pushed = self.table.push(Listing { of, entries, read: 0 }).map_err(FsError::trap)?;
        Ok(Resource::new_own(pushed.rep()))
    }

    /// Returns the identity of the entry that the last listing of this descriptor returned, if the entry has this name and its
    /// identity is known. The identity is returned only once: a C library asks for it right after reading each entry, and later the
    /// name may refer to another object.
    fn take_listed_identity(&mut self, fd: &Resource<types::Descriptor>, name: &str) -> Option<Identity> {
        let Ok(OpenNode::Directory(Folder { listing: Some(listing), .. })) = self.node(fd) else { return None };
        let listing = Resource::<Listing>::new_borrow(*listing);
        let listing = self.table.get_mut(&listing).ok().filter(|listing| listing.of == fd.rep())?;
        listing.latest().filter(|entry| entry.name == name)?.identity.take()
    }

    fn node(&self, fd: &Resource<types::Descriptor>) -> FsResult<&OpenNode> {
        self.table.get(&Resource::<OpenNode>::new_borrow(fd.rep())).map_err(FsError::trap)
    }

    fn file(&self, fd: &Resource<types::Descriptor>) -> FsResult<&Arc<FileHandle>> {
        match self.node(fd)? {
            OpenNode::File(file) => Ok(file),
            OpenNode::Directory(_) => Err(types::ErrorCode::BadDescriptor.into()),
        }
    }

    fn directory(&self, fd: &Resource<types::Descriptor>) -> FsResult<&ScopePath> {
        match self.node(fd)? {
            OpenNode::Directory(folder) => Ok(&folder.path),
            OpenNode::File(_) => Err(types::ErrorCode::NotDirectory.into()),
        }
    }

    /// Resolves a guest's path relative to a directory descriptor.
    fn resolve(
        &self,
        operation: Operation,
        fd: &Resource<types::Descriptor>,
        path: GuestPath<'_>,
    ) -> FsResult<ScopePath> {
        let base = self.directory(fd)?;
        self.observer.called("wasi:filesystem", |call| {
            let separator = if base.is_root() || path.0.starts_with('/') { "" } else { "/" };
            call.text(operation.as_str()).path(&format!("{}{separator}{}", base.as_str(), path.0))
        });
        self.view()?.resolve(operation, base, path.0).map_err(denied)
    }
}

impl preopens::Host for FilesView<'_> {
    fn get_directories(&mut self) -> wasmtime::Result<Vec<(Resource<types::Descriptor>, String)>> {
        let Some(view) = self.view else { return Ok(Vec::new()) };
        let names = std::iter::once(ROOT).chain(view.names().iter().map(String::as_str));
        let mut directories = Vec::new();
        for name in names {
            let root = self.table.push(OpenNode::Directory(Folder::at(ScopePath::root())))?;
            directories.push((Resource::new_own(root.rep()), name.to_owned()));
        }
        Ok(directories)
    }
}

impl types::Host for FilesView<'_> {
    fn convert_error_code(&mut self, error: FsError) -> wasmtime::Result<types::ErrorCode> {
        error.downcast()
    }

    fn filesystem_error_code(
        &mut self,
        error: Resource<wasmtime::Error>,
    ) -> wasmtime::Result<Option<types::ErrorCode>> {
        Ok(self.table.get(&error)?.downcast_ref::<ViewError>().copied().map(codes::code))
    }
}

impl types::HostDirectoryEntryStream for FilesView<'_> {
    async fn read_directory_entry(
        &mut self,
        stream: Resource<types::DirectoryEntryStream>,
    ) -> FsResult<Option<types::DirectoryEntry>> {
        let listing = Resource::<Listing>::new_borrow(stream.rep());
        let entry = self.table.get_mut(&listing).map_err(FsError::trap)?.next();
        Ok(entry.map(|entry| types::DirectoryEntry { type_: kind_type(entry.kind), name: entry.name.clone() }))
    }

    fn drop(&mut self, stream: Resource<types::DirectoryEntryStream>) -> wasmtime::Result<()> {
        self.table.delete(Resource::<Listing>::new_own(stream.rep()))?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use glovebox_record::Limits;
    use glovebox_record::scope::Scope;
    use glovebox_workspace::view::Kind;

    /// A C library asks for the identity of each entry that it reads, and programs compare it with that of an open file.
    #[tokio::test]
    async fn an_entry_of_a_listing_is_the_object_that_opening_it_finds() {
        use types::{DescriptorFlags, HostDescriptor, HostDirectoryEntryStream, OpenFlags, PathFlags};
        let folder = tempfile::tempdir().unwrap();
        for name in ["a", "b"] {
            std::fs::write(folder.path().join(name), name).unwrap();
        }
        let view = View::open(folder.path(), Scope::everything(), Limits::default(), Arc::default()).unwrap();
        let (mut table, view) = (ResourceTable::new(), Arc::new(view));
        let observer = CallObserver::unobserved();
        let mut files = FilesView { table: &mut table, view: Some(&view), observer: &observer };
        let root = |files: &mut FilesView<'_>| preopens::Host::get_directories(files).unwrap().swap_remove(0).0;
        let (listed, other) = (root(&mut files), root(&mut files));
        let again = |fd: &Resource<types::Descriptor>| Resource::new_borrow(fd.rep());
        let listing = files.read_directory(again(&listed)).await.ok().unwrap();
        while let Some(entry) = files.read_directory_entry(Resource::new_borrow(listing.rep())).await.ok().unwrap() {
            assert!(files.take_listed_identity(&other, &entry.name).is_none(), "another descriptor has no listing");
            assert!(files.take_listed_identity(&listed, "c").is_none());
            let identity = files.take_listed_identity(&listed, &entry.name).expect("it is not read again");
            assert!(files.take_listed_identity(&listed, &entry.name).is_none(), "returned once");
            let (none, read) = (OpenFlags::empty(), DescriptorFlags::READ);
            let open = files.open_at(again(&listed), PathFlags::empty(), entry.name.clone(), none, read);
            let opened = open.await.ok().unwrap();
            let of_file = files.metadata_hash(again(&opened)).await.ok().unwrap();
            let of_entry = codes::identity_hash(identity);
            assert_eq!((of_entry.lower, of_entry.upper), (of_file.lower, of_file.upper));
            let of_entry = files.metadata_hash_at(again(&listed), PathFlags::empty(), entry.name).await.ok().unwrap();
            assert_eq!((of_entry.lower, of_entry.upper), (of_file.lower, of_file.upper), "it is looked at");
        }
        HostDirectoryEntryStream::drop(&mut files, listing).unwrap();
        assert!(files.take_listed_identity(&listed, "b").is_none(), "the listing is gone");
        assert!(files.metadata_hash_at(again(&listed), PathFlags::empty(), "c".to_owned()).await.is_err());
    }

    #[test]
    fn listings_that_are_kept_do_not_fill_the_hosts_memory() {
        let mut table = ResourceTable::new();
        let observer = CallObserver::unobserved();
        let mut files = FilesView { table: &mut table, view: None, observer: &observer };
        let entry = DirectoryEntry { name: "n".to_owned(), kind: Kind::File, size: 0, identity: None };
        let entries = |count: usize| vec![entry.clone(); count];
        let first = files.push_listing(0, entries(100), 150).ok().unwrap();
        assert!(files.push_listing(0, entries(51), 150).is_err());
        let second = files.push_listing(0, entries(50), 150).ok().unwrap();
        for listing in [first, second] {
            types::HostDirectoryEntryStream::drop(&mut files, listing).unwrap();
        }
        assert!(files.push_listing(0, entries(1000), 150).is_ok(), "a single long one is read");
    }
}
