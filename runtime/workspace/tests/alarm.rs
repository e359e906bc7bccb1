//! Tests that the leak check raises no alarm for honest work. There are three suites of hold-outs in common styles. For
//! each one, there is the work that an honest builder writes for the same task without having seen the suite: the
//! program, its tests, notes. The examples of the repository are checked too.

use glovebox_record::scope::Entry;
use glovebox_workspace::holdout::canary::{Canary, Leak, PublicSummary};
use glovebox_workspace::holdout::seal;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

const STYLES: [&str; 3] = ["shell", "pytest", "cargo"];
/// Minimum size in bytes of a suite's file that must have pieces to search for. A shorter file, such as a table of
/// single words, may have none.
const LONG_BYTES: u64 = 300;

/// Returns the files of the honest work that quote a hold-out of the style's suite, with the quoted line.
fn alarms(style: &str, prompt: &str, work: &[PathBuf]) -> Vec<(PathBuf, Leak)> {
    alarms_of(&folder(style), "scenarios/", prompt, work)
}

fn alarms_of(project: &Path, suite: &str, prompt: &str, work: &[PathBuf]) -> Vec<(PathBuf, Leak)> {
    let dir = tempfile::tempdir().unwrap();
    let sealed = seal(project, &[Entry::parse(suite).unwrap()], &dir.path().join("sealed")).unwrap();
    let canary = Canary::for_seal(&sealed, &PublicSummary { texts: vec![prompt], ..PublicSummary::default() }).unwrap();
    let is_long = |path: &PathBuf| LONG_BYTES < fs::metadata(path).unwrap().len() && !path.ends_with("Cargo.lock");
    for path in files(&project.join(suite)).into_iter().filter(is_long) {
        let found = canary.find_in(File::open(&path).unwrap()).unwrap();
        assert!(found.is_some(), "a copy of {} is found", path.display());
    }
    let found = work.iter().filter_map(|path| {
        let by_content = canary.find_in(File::open(path).unwrap()).unwrap();
        Some((path.clone(), by_content.or_else(|| canary.find(path.to_str().unwrap()))?))
    });
    found.collect()
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for path in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
        match path.is_dir() {
            true if path.ends_with("target") || path.ends_with(".glovebox") => {}
            true => files.extend(self::files(&path)),
            false => files.push(path),
        }
    }
    files
}

fn folder(style: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/alarm").join(style)
}

#[test]
fn honest_work_beside_a_suite_in_each_style_raises_no_alarm() {
    for style in STYLES {
        let prompt = fs::read_to_string(folder(style).join("prompt.md")).unwrap();
        assert_eq!(alarms(style, &prompt, &files(&folder(style).join("honest"))), [], "{style}");
    }
}

/// Compares the repository's own suites with the prompts and the work of the builders in their examples.
#[test]
fn the_examples_with_suites_raise_no_alarm() {
    for style in STYLES {
        let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples").join(format!("scenarios-{style}"));
        let suite = example.join("scripts/scenarios");
        let work: Vec<PathBuf> = files(&example).into_iter().filter(|path| !path.starts_with(&suite)).collect();
        let prompt = fs::read_to_string(example.join("pipeline.dot")).unwrap();
        assert_eq!(alarms_of(&example, "scripts/scenarios/", &prompt, &work), [], "{style}");
    }
}

/// Compares every suite with the work for the other tasks, with all examples, and with the sources of this crate.
#[test]
fn work_that_has_nothing_to_do_with_a_suite_raises_no_alarm() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let shared = [
        files(&root.join("examples")),
        files(&root.join("runtime/workspace/src")),
        files(&root.join("runtime/jail/src")),
    ]
    .concat();
    for style in STYLES {
        let others = STYLES.into_iter().filter(|other| *other != style);
        let mut work = shared.clone();
        work.extend(others.flat_map(|other| files(&folder(other).join("honest"))));
        assert_eq!(alarms(style, "", &work), [], "{style}");
    }
}
