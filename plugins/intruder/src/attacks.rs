//! The attacks: file operations on paths that must not lead anywhere, and all other requests that a component can make.

use glovebox_plugin_sdk::{artifact, exec, files, llm};
use std::fmt::Debug;
use std::fs::{self, FileTimes, OpenOptions};
use std::io::{Read, Write};
use std::time::{Duration, SystemTime};

/// Number of bytes and of entries that an attack tries to write.
const BOMB_BYTES: usize = 8 << 20;
const BOMB_ENTRIES: usize = 2_000;

/// The result of an attack, as the component sees it.
pub(crate) struct AttackResult {
    pub(crate) worked: bool,
    pub(crate) answer: String,
    pub(crate) loot: String,
}

impl AttackResult {
    fn from_result<T, E: Debug>(result: Result<T, E>) -> Self {
        match result {
            Ok(_) => Self { worked: true, answer: "ok".to_owned(), loot: String::new() },
            Err(error) => Self { worked: false, answer: format!("{error:?}"), loot: String::new() },
        }
    }

    /// Returns the result of a search, which is successful if it found anything.
    fn found(things: Vec<String>) -> Self {
        let answer = format!("{} found", things.len());
        Self { worked: !things.is_empty(), answer, loot: things.join("\n") }
    }

    fn read<E: Debug>(result: Result<Vec<u8>, E>) -> Self {
        let loot = result.as_ref().map(|bytes| String::from_utf8_lossy(bytes).into_owned()).unwrap_or_default();
        Self { loot, ..Self::from_result(result) }
    }
}

/// One attack: an operation and its one or two paths.
pub(crate) struct Attack<'a> {
    pub(crate) operation: &'a str,
    pub(crate) path: &'a str,
    pub(crate) other: &'a str,
}

impl Attack<'_> {
    /// Executes the attack.
    pub(crate) fn attempt(&self) -> AttackResult {
        match self.operation.strip_prefix("files-") {
            Some("read") => AttackResult::read(files::read(self.path)),
            Some("write") => AttackResult::from_result(files::write(self.path, "EVIL")),
            Some("remove") => AttackResult::from_result(files::remove(self.path)),
            Some(_) => AttackResult::from_result(files::list(self.path)),
            None => self.on_tree().unwrap_or_else(|| self.elsewhere()),
        }
    }

    fn on_tree(&self) -> Option<AttackResult> {
        let (path, other) = (self.path, self.other);
        Some(match self.operation {
            "read" => AttackResult::read(fs::read(path)),
            "write" => AttackResult::from_result(
                OpenOptions::new().write(true).open(path).and_then(|mut file| file.write_all(b"EVIL")),
            ),
            "create" => AttackResult::from_result(fs::write(path, "EVIL")),
            "truncate" => AttackResult::from_result(OpenOptions::new().write(true).truncate(true).open(path)),
            "list" => AttackResult::from_result(fs::read_dir(path)),
            "find" => AttackResult::found(self.names().into_iter().filter(|name| name.contains(other)).collect()),
            "stat" => AttackResult::from_result(fs::metadata(path)),
            "rename" => AttackResult::from_result(fs::rename(path, other)),
            "link" => AttackResult::from_result(fs::hard_link(path, other)),
            #[expect(deprecated, reason = "the only portable function that creates a symbolic link")]
            "symlink" => AttackResult::from_result(fs::soft_link(path, other)),
            "readlink" => AttackResult::from_result(fs::read_link(path)),
            "unlink" => AttackResult::from_result(fs::remove_file(path)),
            "remove-all" => AttackResult::from_result(fs::remove_dir_all(path)),
            "rmdir" => AttackResult::from_result(fs::remove_dir(path)),
            "mkdir" => AttackResult::from_result(fs::create_dir(path)),
            "times" => AttackResult::from_result(self.set_times()),
            _ => return None,
        })
    }

    fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(self.path).into_iter().flatten().flatten();
        entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
    }

    fn set_times(&self) -> std::io::Result<()> {
        let then = SystemTime::UNIX_EPOCH + Duration::from_secs(1);
        fs::File::open(self.path)?.set_times(FileTimes::new().set_accessed(then).set_modified(then))
    }

    fn elsewhere(&self) -> AttackResult {
        let path = self.path;
        match self.operation {
            "shell" => AttackResult::from_result(exec::shell(path).run()),
            "argv" => AttackResult::from_result(exec::argv([path]).run()),
            "model" => AttackResult::from_result(llm::complete(&llm::Request {
                messages: vec![],
                tools: vec![],
                options: vec![],
            })),
            "environment" => {
                AttackResult::found(std::env::vars().map(|(name, value)| format!("{name}={value}")).collect())
            }
            "arguments" => AttackResult::found(std::env::args().filter(|word| !word.is_empty()).collect()),
            "stdin" => {
                let mut bytes = Vec::new();
                let read = std::io::stdin().read_to_end(&mut bytes);
                AttackResult::from_result(read.ok().filter(|read| *read > 0).ok_or("nothing there"))
            }
            "artifact" => AttackResult::from_result(artifact::put_text(path, r#"{"outcome":"success"}"#)),
            "write-bomb" => AttackResult::from_result(fs::write(path, vec![b'x'; BOMB_BYTES])),
            "entry-bomb" => AttackResult::from_result(
                (0..BOMB_ENTRIES).try_for_each(|index| fs::write(format!("{path}/{index}"), "")),
            ),
            "memory" => hoard(),
            "loop" => endless(),
            other => AttackResult { worked: true, answer: format!("no such attack: {other}"), loot: String::new() },
        }
    }
}

fn hoard() -> AttackResult {
    let mut blocks: Vec<Vec<u8>> = Vec::new();
    for _ in 0..64 {
        blocks.push(std::hint::black_box(vec![1; 8 << 20]));
    }
    AttackResult::found(blocks.iter().map(|block| block.len().to_string()).collect())
}

fn endless() -> AttackResult {
    let mut turns = 0_u64;
    while std::hint::black_box(turns) < u64::MAX {
        turns = turns.wrapping_add(1) & 0xffff;
    }
    AttackResult::from_result::<_, ()>(Ok(turns))
}
