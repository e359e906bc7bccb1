//! The attacks: file operations by names that should not lead anywhere, and everything else a component may ask for.

use glovebox_plugin_sdk::{artifact, exec, files, llm};
use std::fmt::Debug;
use std::fs::{self, FileTimes, OpenOptions};
use std::io::{Read, Write};
use std::time::{Duration, SystemTime};

/// Most bytes that are tried to be written, and most entries.
const BOMB_BYTES: usize = 8 << 20;
const BOMB_ENTRIES: usize = 2_000;

/// What an attack came to, as seen from inside.
pub(crate) struct Tried {
    pub(crate) worked: bool,
    pub(crate) answer: String,
    pub(crate) loot: String,
}

impl Tried {
    fn of<T, E: Debug>(result: Result<T, E>) -> Self {
        match result {
            Ok(_) => Self { worked: true, answer: "ok".to_owned(), loot: String::new() },
            Err(error) => Self { worked: false, answer: format!("{error:?}"), loot: String::new() },
        }
    }

    /// Worked when there is anything, which is what was brought back.
    fn found(things: Vec<String>) -> Self {
        let answer = format!("{} found", things.len());
        Self { worked: !things.is_empty(), answer, loot: things.join("\n") }
    }

    fn read<E: Debug>(result: Result<Vec<u8>, E>) -> Self {
        let loot = result.as_ref().map(|bytes| String::from_utf8_lossy(bytes).into_owned()).unwrap_or_default();
        Self { loot, ..Self::of(result) }
    }
}

/// Tries one attack.
pub(crate) fn attempt(attack: &str, words: &[&str]) -> Tried {
    let path = words.first().copied().unwrap_or_default();
    let other = words.get(1).copied().unwrap_or_default();
    match attack.split_once('-') {
        Some(("files", operation)) => by_files(operation, path),
        _ => on_tree(attack, path, other).unwrap_or_else(|| elsewhere(attack, path)),
    }
}

fn on_tree(attack: &str, path: &str, other: &str) -> Option<Tried> {
    Some(match attack {
        "read" => Tried::read(fs::read(path)),
        "write" => Tried::of(OpenOptions::new().write(true).open(path).and_then(|mut file| file.write_all(b"EVIL"))),
        "create" => Tried::of(fs::write(path, "EVIL")),
        "truncate" => Tried::of(OpenOptions::new().write(true).truncate(true).open(path)),
        "list" => Tried::of(fs::read_dir(path)),
        "find" => Tried::found(names(path).into_iter().filter(|name| name.contains(other)).collect()),
        "stat" => Tried::of(fs::metadata(path)),
        "rename" => Tried::of(fs::rename(path, other)),
        "link" => Tried::of(fs::hard_link(path, other)),
        #[expect(deprecated, reason = "the only way to make a link that is not bound to one system")]
        "symlink" => Tried::of(fs::soft_link(path, other)),
        "readlink" => Tried::of(fs::read_link(path)),
        "unlink" => Tried::of(fs::remove_file(path)),
        "remove-all" => Tried::of(fs::remove_dir_all(path)),
        "rmdir" => Tried::of(fs::remove_dir(path)),
        "mkdir" => Tried::of(fs::create_dir(path)),
        "times" => Tried::of(set_times(path)),
        _ => return None,
    })
}

fn by_files(operation: &str, path: &str) -> Tried {
    match operation {
        "read" => Tried::read(files::read(path)),
        "write" => Tried::of(files::write(path, "EVIL")),
        "remove" => Tried::of(files::remove(path)),
        _ => Tried::of(files::list(path)),
    }
}

fn elsewhere(attack: &str, path: &str) -> Tried {
    match attack {
        "shell" => Tried::of(exec::shell(path).run()),
        "argv" => Tried::of(exec::argv([path]).run()),
        "model" => Tried::of(llm::complete(&llm::Request { messages: vec![], tools: vec![], options: vec![] })),
        "environment" => Tried::found(std::env::vars().map(|(name, value)| format!("{name}={value}")).collect()),
        "arguments" => Tried::found(std::env::args().filter(|word| !word.is_empty()).collect()),
        "stdin" => {
            let mut bytes = Vec::new();
            let read = std::io::stdin().read_to_end(&mut bytes);
            Tried::of(read.ok().filter(|read| *read > 0).ok_or("nothing there"))
        }
        "artifact" => Tried::of(artifact::put_text(path, r#"{"outcome":"success"}"#)),
        "write-bomb" => Tried::of(fs::write(path, vec![b'x'; BOMB_BYTES])),
        "entry-bomb" => Tried::of((0..BOMB_ENTRIES).try_for_each(|index| fs::write(format!("{path}/{index}"), ""))),
        "memory" => hoard(),
        "loop" => endless(),
        other => Tried { worked: true, answer: format!("no such attack: {other}"), loot: String::new() },
    }
}

fn names(path: &str) -> Vec<String> {
    let entries = fs::read_dir(path).into_iter().flatten().flatten();
    entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}

fn set_times(path: &str) -> std::io::Result<()> {
    let then = SystemTime::UNIX_EPOCH + Duration::from_secs(1);
    fs::File::open(path)?.set_times(FileTimes::new().set_accessed(then).set_modified(then))
}

fn hoard() -> Tried {
    let mut blocks: Vec<Vec<u8>> = Vec::new();
    for _ in 0..64 {
        blocks.push(std::hint::black_box(vec![1; 8 << 20]));
    }
    Tried::found(blocks.iter().map(|block| block.len().to_string()).collect())
}

fn endless() -> Tried {
    let mut turns = 0_u64;
    while std::hint::black_box(turns) < u64::MAX {
        turns = turns.wrapping_add(1) & 0xffff;
    }
    Tried::of::<_, ()>(Ok(turns))
}
