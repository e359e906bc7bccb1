//! Runs a fuzz target for a short time, for tests: with every input of its corpus, and then with a bounded number of
//! mutations.
//!
//! A fuzzer needs a nightly compiler. This crate does not, so `cargo test` runs every target of `fuzz/` for up to two
//! seconds. The inputs are the same in every run. An input that breaks a target is printed. Save it as a file in
//! `fuzz/corpus/TARGET/`, so that every later run begins with it. `cargo +nightly fuzz run TARGET` begins with the same
//! files and has no time limit.

mod memory;
mod mutation;

pub use memory::Counting;

use mutation::Mutator;
use std::fs;
use std::hint::black_box;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Maximum number of mutations in a run.
const MUTATIONS_MAX: usize = 10_000;
/// Maximum time for mutations. All files of a corpus are always used.
const TIME_MAX: Duration = Duration::from_secs(2);
/// Minimum number of files in a corpus.
const CORPUS_FILES_MIN: usize = 4;
/// Maximum number of printed bytes of an input.
const PRINTED_BYTES_MAX: usize = 4 << 10;

/// Runs a target with its corpus and with mutations of it.
///
/// # Panics
/// Panics if the target does, after printing the input.
pub fn run(target: &str, read: impl Fn(&[u8])) {
    let files = corpus(target);
    each_input(&files, |origin, input| {
        guarded(target, origin, input, || read(input));
    });
}

/// Runs a target as [`run`] does, and checks that the target never holds more than `bytes_max` bytes of memory for an
/// input of the given length. The test's program must have [`Counting`] as its global allocator.
///
/// # Panics
/// Panics if the target does, or if it holds more memory.
pub fn run_within(target: &str, bytes_max: impl Fn(usize) -> usize, read: impl Fn(&[u8])) {
    let (counted, ()) = memory::peak(|| drop(black_box(vec![1_u8; 4096])));
    assert!(counted >= 4096, "expected `#[global_allocator] static COUNTING: Counting = Counting;` in this program");
    let files = corpus(target);
    each_input(&files, |origin, input| {
        guarded(target, origin, input, || {
            let (held, ()) = memory::peak(|| read(input));
            let most = bytes_max(input.len());
            assert!(held <= most, "held {held} bytes for {} of input, expected at most {most}", input.len());
        });
    });
}

/// Returns the text that a target for texts reads: the input up to the first byte that is not UTF-8, as with libFuzzer.
pub fn text(input: &[u8]) -> &str {
    input.utf8_chunks().next().map_or("", |chunk| chunk.valid())
}

/// An input of the corpus, and the name of its file.
struct Kept {
    name: String,
    bytes: Vec<u8>,
}

/// Returns the folder of the corpora, which has one folder for each target.
fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus")
}

fn corpus(target: &str) -> Vec<Kept> {
    let folder = folder().join(target);
    let entries = fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut files: Vec<Kept> = entries
        .map(|entry| {
            let path = entry.unwrap_or_else(|error| panic!("{}: {error}", folder.display())).path();
            let bytes = fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
            Kept { name: path.display().to_string(), bytes }
        })
        .collect();
    let count = files.len();
    assert!(count >= CORPUS_FILES_MIN, "{}: {count} files, expected {CORPUS_FILES_MIN}", folder.display());
    files.sort_by(|one, other| one.name.cmp(&other.name));
    files
}

/// Calls `read` with each file, then with mutations, until the maximum number or the maximum time is reached.
fn each_input(files: &[Kept], mut read: impl FnMut(&str, &[u8])) {
    for file in files {
        read(&file.name, &file.bytes);
    }
    let until = Instant::now() + TIME_MAX;
    let mut mutator = Mutator::default();
    for number in 0..MUTATIONS_MAX {
        if Instant::now() >= until {
            break;
        }
        let (file, other) = (mutator.one_of(files), mutator.one_of(files));
        let input = mutator.mutated(&file.bytes, &other.bytes);
        read(&format!("mutation {number} of {}", file.name), &input);
    }
}

/// Calls `read`, and prints the input if it panics.
fn guarded(target: &str, origin: &str, input: &[u8], read: impl FnOnce()) {
    if let Err(panic) = catch_unwind(AssertUnwindSafe(read)) {
        let shown = &input[..input.len().min(PRINTED_BYTES_MAX)];
        eprintln!("target `{target}` fails for {origin}: {} bytes\n{}", input.len(), shown.escape_ascii());
        eprintln!("help: keep these bytes as a file of `fuzz/corpus/{target}/`");
        resume_unwind(panic);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[global_allocator]
    static COUNTING: Counting = Counting;

    /// Creates an input with a name.
    fn kept(name: &str, bytes: &[u8]) -> Kept {
        Kept { name: name.to_owned(), bytes: bytes.to_vec() }
    }

    /// Returns true if some input of a run makes this reader panic.
    fn breaks(read: impl Fn(&[u8])) -> bool {
        let files = [kept("one", b"\x00\x03abc length: 12\r\n"), kept("two", b"\x00\x01x {\"a\": [1, 2]}")];
        catch_unwind(AssertUnwindSafe(|| each_input(&files, |_, input| read(input)))).is_err()
    }

    #[test]
    fn a_run_finds_the_usual_mistakes_of_readers() {
        let length = |input: &[u8]| usize::from(u16::from_be_bytes([input[0], input[1]]));
        assert!(!breaks(|_| {}));
        assert!(breaks(|input| assert!(input.len() >= 2)), "a short input");
        assert!(breaks(|input| drop(input.get(1).map(|_| input[2..2 + length(input)].to_vec()))), "a length that lies");
        assert!(breaks(|input| assert!(input.get(1).is_none_or(|_| length(input) != 0xffff))), "the longest length");
        assert!(breaks(|input| assert!(str::from_utf8(input).is_ok())), "bytes that are no text");
        assert!(breaks(|input| assert!(input.is_ascii() || str::from_utf8(input).is_err())), "text beyond ASCII");
        assert!(breaks(|input| assert!(input.len() < 65 << 10)), "an input beyond 64 KiB");
        let has = |input: &[u8], part: &str| input.windows(part.len()).any(|window| window == part.as_bytes());
        assert!(breaks(|input| assert!(!has(input, "length: 18446744073709551616"))), "a number that does not fit");
        assert!(breaks(|input| assert!(!has(input, "[[[[[[[["))), "deep lists");
        assert!(breaks(|input| assert!(!(has(input, "length") && has(input, "{\"a\"")))), "two inputs in one");
    }

    #[test]
    fn memory_is_counted_while_it_is_held() {
        let held = |read: fn()| memory::peak(read).0;
        assert!((1000..2000).contains(&held(|| drop(black_box(vec![0_u8; 1000])))));
        assert!(
            (1000..2000).contains(&held(|| (0..9).for_each(|_| drop(black_box(vec![0_u8; 1000]))))),
            "one at a time"
        );
        assert!(held(|| drop(black_box([vec![0_u8; 1000], vec![0_u8; 1000]]))) >= 2000, "both");
        assert!(held(|| drop(black_box(Vec::<u8>::with_capacity(1 << 25)))) >= 1 << 25, "what is reserved counts");
    }

    #[test]
    fn a_text_ends_where_utf_8_does() {
        assert_eq!(
            [text("aé".as_bytes()), text(b"a\xc3"), text(b"a\xff\xffb"), text(b"\xffa"), text(b"")],
            ["aé", "a", "a", "", ""]
        );
    }
}
