//! A simulated disk: which bytes and names of a folder survive a power failure.
//!
//! The flushed content of a file survives. None or any subset of the later writes survives, and the last of them may be
//! torn at a sector. Names are ordered, as in every journaling file system: a flush of a folder, or of a file that
//! grew, makes all earlier names durable. Later names may survive in their order. A flush of a file that did not grow
//! makes no name durable.

use super::calls::Call;
use crate::workbench::dice::Dice;
use std::collections::{BTreeMap, HashMap};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

const SECTOR: usize = 512;

/// What happens to data that was not flushed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Loss {
    /// All of it is lost.
    Everything,
    /// A part of it survives, chosen by this seed.
    Some(u64),
}

#[derive(Debug, Clone)]
enum Entry {
    Folder(u32),
    File(usize),
    Link(PathBuf),
}

#[derive(Debug, Clone, Default)]
struct File {
    now: Vec<u8>,
    durable: Vec<u8>,
    later: Vec<Change>,
    has_grown: bool,
    mode: u32,
}

#[derive(Debug, Clone)]
enum Change {
    Write(usize, Vec<u8>),
    Length(usize),
}

#[derive(Debug, Clone)]
enum Rename {
    Put(PathBuf, Entry),
    Move(PathBuf, PathBuf),
    Remove(PathBuf),
}

type Names = BTreeMap<PathBuf, Entry>;

/// The folder, as the processes see it and as it is durable on the disk.
#[derive(Debug, Clone)]
pub(crate) struct Disk {
    root: PathBuf,
    /// A file whose flushes have no effect, to show that the test detects this.
    pub(crate) broken: Option<&'static str>,
    names: Names,
    durable: Names,
    later: Vec<Rename>,
    files: Vec<File>,
    descriptors: HashMap<i32, Descriptor>,
}

#[derive(Debug, Clone, Copy)]
struct Descriptor {
    at: usize,
    appends: bool,
}

impl Change {
    fn apply(&self, bytes: &mut Vec<u8>) {
        match self {
            Self::Write(at, written) => {
                let end = at + written.len();
                bytes.resize(bytes.len().max(end), 0);
                bytes[*at..end].copy_from_slice(written);
            }
            Self::Length(length) => bytes.resize(*length, 0),
        }
    }
}

fn rename(names: &mut Names, change: &Rename) {
    match change {
        Rename::Put(path, entry) => drop(names.insert(path.clone(), entry.clone())),
        Rename::Move(from, to) => {
            let moved: Vec<_> = names.keys().filter(|path| path.starts_with(from)).cloned().collect();
            for path in moved {
                let entry = names.remove(&path).unwrap();
                let below = path.strip_prefix(from).unwrap();
                names.insert(if below.as_os_str().is_empty() { to.clone() } else { to.join(below) }, entry);
            }
        }
        Rename::Remove(path) => drop(names.remove(path)),
    }
}

impl Disk {
    pub(crate) fn new(root: &Path) -> Self {
        let (names, durable) = (Names::new(), Names::new());
        let (later, files, descriptors) = (Vec::new(), Vec::new(), HashMap::new());
        Self { root: root.to_owned(), broken: None, names, durable, later, files, descriptors }
    }

    /// Returns true for a call that makes data of this folder durable.
    pub(crate) fn is_flush(&self, call: &Call) -> bool {
        matches!(call.name.as_str(), "fsync" | "fdatasync" | "syncfs")
            && call.behind(0).is_some_and(|path| self.has(&path))
    }

    /// Applies the effect of a call.
    pub(crate) fn follow(&mut self, call: &Call) {
        if call.result < 0 {
            return;
        }
        match call.name.as_str() {
            "open" | "creat" => self.open(call, 0),
            "openat" | "openat2" => self.open(call, 1),
            "close" => drop(call.descriptor(0).map(|closed| self.descriptors.remove(&closed))),
            "write" | "pwrite64" => self.write(call),
            "lseek" => self.seek(call),
            "ftruncate" => {
                let length = usize::try_from(call.number(1).unwrap()).unwrap();
                self.change(call.behind(0), Change::Length(length));
            }
            "fallocate" if call.number(1) == Some(0) => {
                let end = call.number(2).unwrap() + call.number(3).unwrap();
                self.change(call.behind(0), Change::Length(usize::try_from(end).unwrap()));
            }
            "fsync" | "fdatasync" => self.flush(&call.behind(0).unwrap()),
            "syncfs" => {
                self.files.iter_mut().for_each(File::flush);
                self.durable = self.names.clone();
                self.later.clear();
            }
            "mkdir" => self.folder(call, 0),
            "mkdirat" => self.folder(call, 1),
            "rename" => self.moved(call.path(0), call.path(1)),
            "renameat" | "renameat2" => self.moved(call.path(1), call.path(3)),
            "unlink" | "rmdir" => self.removed(call.path(0)),
            "unlinkat" => self.removed(call.path(1)),
            "linkat" => self.linked(call.path(1), call.path(3)),
            "symlinkat" => {
                let target = PathBuf::from(String::from_utf8(call.text(0).unwrap()).unwrap());
                self.put(call.path(2), Entry::Link(target));
            }
            "ioctl" if call.arguments.get(1).is_some_and(|what| what.contains("FICLONE")) => {
                panic!("a reflink is not followed: run the suite on a file system without them")
            }
            "ioctl" => {}
            other => assert!(self.concerns_nothing(call), "`{other}` is not followed: {:?}", call.arguments),
        }
    }

    fn concerns_nothing(&self, call: &Call) -> bool {
        let paths = (0..call.arguments.len()).filter_map(|index| call.behind(index));
        paths.into_iter().all(|path| !self.has(&path))
    }

    fn has(&self, path: &Path) -> bool {
        path.starts_with(&self.root)
    }

    fn open(&mut self, call: &Call, index: usize) {
        let flags = call.arguments[index + 1].as_str();
        let Some(path) = call.made.clone().filter(|path| self.has(path)) else { return };
        let descriptor = i32::try_from(call.result).unwrap();
        self.descriptors.insert(descriptor, Descriptor { at: 0, appends: flags.contains("O_APPEND") });
        if flags.contains("O_CREAT") && !self.names.contains_key(&path) {
            let is_executable = call.arguments.last().is_some_and(|mode| mode.contains("07"));
            let mode = if is_executable { 0o755 } else { 0o644 };
            self.files.push(File { mode, has_grown: true, ..File::default() });
            self.put(Some(path.clone()), Entry::File(self.files.len() - 1));
        }
        if flags.contains("O_TRUNC") {
            self.change(Some(path), Change::Length(0));
        }
    }

    fn write(&mut self, call: &Call) {
        let Some(path) = call.behind(0).filter(|path| self.has(path)) else { return };
        let mut bytes = call.text(1).expect("bytes");
        bytes.truncate(usize::try_from(call.result).unwrap());
        let Some(Entry::File(file)) = self.names.get(&path) else { panic!("{} is unknown", path.display()) };
        let length = self.files[*file].now.len();
        let at = match call.name.as_str() {
            "pwrite64" => usize::try_from(call.number(3).unwrap()).unwrap(),
            _ => {
                let descriptor = self.descriptors.get_mut(&call.descriptor(0).unwrap()).expect("it was opened");
                let at = if descriptor.appends { length } else { descriptor.at };
                descriptor.at = at + bytes.len();
                at
            }
        };
        self.change(Some(path), Change::Write(at, bytes));
    }

    fn seek(&mut self, call: &Call) {
        if let Some(descriptor) = call.descriptor(0).and_then(|descriptor| self.descriptors.get_mut(&descriptor)) {
            descriptor.at = usize::try_from(call.result).unwrap();
        }
    }

    fn change(&mut self, path: Option<PathBuf>, change: Change) {
        let Some(Entry::File(file)) = path.and_then(|path| self.names.get(&path)) else { return };
        let file = &mut self.files[*file];
        let before = file.now.len();
        change.apply(&mut file.now);
        file.has_grown |= file.now.len() != before;
        file.later.push(change);
    }

    fn flush(&mut self, path: &Path) {
        if !self.has(path) || self.broken.is_some_and(|broken| path.ends_with(broken)) {
            return;
        }
        let orders_names = match self.names.get(path) {
            Some(Entry::File(file)) => {
                let file = &mut self.files[*file];
                file.flush();
                std::mem::take(&mut file.has_grown)
            }
            _ => true,
        };
        if orders_names {
            self.later.clear();
            self.durable = self.names.clone();
        }
    }

    fn folder(&mut self, call: &Call, index: usize) {
        let mode = call.arguments[index + 1].as_str();
        let mode = u32::from_str_radix(mode, 8).unwrap() & 0o755;
        self.put(call.path(index), Entry::Folder(mode));
    }

    fn put(&mut self, path: Option<PathBuf>, entry: Entry) {
        self.name(path.as_deref(), |path| Rename::Put(path.to_owned(), entry));
    }

    fn removed(&mut self, path: Option<PathBuf>) {
        self.name(path.as_deref(), |path| Rename::Remove(path.to_owned()));
    }

    fn moved(&mut self, from: Option<PathBuf>, to: Option<PathBuf>) {
        let from = from.unwrap();
        self.name(to.as_deref(), |to| Rename::Move(from, to.to_owned()));
    }

    fn linked(&mut self, from: Option<PathBuf>, to: Option<PathBuf>) {
        let entry = self.names.get(&from.unwrap()).cloned();
        if let Some(entry) = entry {
            self.put(to, entry);
        }
    }

    fn name(&mut self, path: Option<&Path>, change: impl FnOnce(&Path) -> Rename) {
        let Some(path) = path.filter(|path| self.has(path)) else { return };
        let change = change(path);
        rename(&mut self.names, &change);
        self.later.push(change);
    }

    /// Writes the folder to `to` in the state after a power failure.
    pub(crate) fn lose_power(&self, loss: Loss, to: &Path) {
        let mut dice = Dice(match loss {
            Loss::Everything => 0,
            Loss::Some(seed) => seed * 2 + 1,
        });
        let mut names = self.durable.clone();
        let survivors = if loss == Loss::Everything { 0 } else { dice.below(self.later.len() + 1) };
        self.later[..survivors].iter().for_each(|change| rename(&mut names, change));
        let files: Vec<Vec<u8>> = self.files.iter().map(|file| file.after(loss, &mut dice)).collect();
        for (path, entry) in &names {
            let path = to.join(path.strip_prefix(&self.root).unwrap());
            match entry {
                Entry::Folder(mode) => {
                    std::fs::create_dir_all(&path).unwrap();
                    std::fs::set_permissions(&path, PermissionsExt::from_mode(*mode)).unwrap();
                }
                // Shared memory does not survive the end of its processes.
                Entry::File(_) if path.to_str().unwrap().ends_with("-shm") => {}
                Entry::File(file) => {
                    std::fs::write(&path, &files[*file]).unwrap();
                    std::fs::set_permissions(&path, PermissionsExt::from_mode(self.files[*file].mode)).unwrap();
                }
                Entry::Link(target) => std::os::unix::fs::symlink(target, &path).unwrap(),
            }
        }
    }
}

impl File {
    fn flush(&mut self) {
        self.durable.clone_from(&self.now);
        self.later.clear();
    }

    fn after(&self, loss: Loss, dice: &mut Dice) -> Vec<u8> {
        let mut bytes = self.durable.clone();
        if loss == Loss::Everything {
            return bytes;
        }
        for change in &self.later {
            match (dice.below(3), change) {
                (0, _) => {}
                (1, Change::Write(at, written)) => {
                    let kept = written.len().min(dice.below(written.len() / SECTOR + 1) * SECTOR);
                    Change::Write(*at, written[..kept].to_vec()).apply(&mut bytes);
                }
                _ => change.apply(&mut bytes),
            }
        }
        bytes
    }
}
