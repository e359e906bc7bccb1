//! A run folder that came with a project, or that another process changed. Whatever the folder contains, every command
//! ends, trusts nothing in it, and writes to no other place.

use crate::workbench::{Answer, LINEAR, Workbench};
use rusqlite::Connection;
use std::fs::{self, File};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Time after which a command is considered to hang. Each of these commands takes far less.
const COMMAND_TIME_MAX: Duration = Duration::from_secs(60);
/// Size in bytes of a file that is large enough to be stored below `blobs/` instead of in the journal.
const LARGE: usize = 100_000;

/// An attack: its name and the function that carries it out.
type Case<'c, T> = (&'c str, &'c dyn Fn(&T));

/// Creates a workbench with a run `x` that wrote a small and a large file.
fn bench() -> Workbench {
    let bench = Workbench::with_pipeline(LINEAR);
    let turn = |path: &str, content: &str| {
        format!(
            "[[node.build]]\ntool = [{{ name = \"write_file\", arguments = {{ path = \"{path}\", content = \"{content}\" }} }}]\n"
        )
    };
    let large = "y".repeat(LARGE);
    let text = "[[node.build]]\ntext = \"done\"\n";
    bench.write("script.toml", &(turn("src/a.txt", "hello") + &turn("src/z.txt", &large) + text));
    bench.glovebox(&["run", "pipeline.dot", "--script", "script.toml", "--run-id", "x", "--quiet"]).ends(0);
    bench
}

/// Runs a command and panics if it does not end within [`COMMAND_TIME_MAX`].
#[track_caller]
fn soon(bench: &Workbench, words: &[&str]) -> Answer {
    let mut child = bench.command(words).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let begun = Instant::now();
    while child.try_wait().unwrap().is_none() {
        if begun.elapsed() > COMMAND_TIME_MAX {
            child.kill().unwrap();
            panic!("{words:?} did not end: {:?}", child.wait_with_output().unwrap());
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    Answer::from_child(child)
}

fn journal(bench: &Workbench) -> PathBuf {
    bench.run_folder("x").join("journal.sqlite")
}

fn change(bench: &Workbench, sql: &str) {
    let journal = Connection::open(journal(bench)).unwrap();
    journal.pragma_update(None, "journal_mode", "delete").unwrap();
    journal.execute_batch(sql).unwrap();
}

fn pipe(at: &Path) {
    let _nothing_there = fs::remove_file(at);
    assert!(Command::new("mkfifo").arg(at).status().unwrap().success());
}

/// Returns the path of a file with this name next to the journal.
fn beside(bench: &Workbench, name: &str) -> PathBuf {
    bench.run_folder("x").join(name)
}

#[test]
fn a_hostile_journal_ends_every_command() {
    const ENDLESS: &str = "ALTER TABLE record RENAME TO r; CREATE VIEW record AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1
        FROM n) SELECT i AS seq, 0 AS at, 'run' AS subject, zeroblob(32) AS prev, zeroblob(32) AS hash, '{}' AS event FROM n";
    let cases: [Case<'_, Workbench>; 9] = [
        ("a view without end", &|bench| change(bench, ENDLESS)),
        ("a trigger", &|bench| {
            change(bench, "CREATE TRIGGER t AFTER INSERT ON record BEGIN DELETE FROM record; END");
        }),
        ("a table of its own", &|bench| change(bench, "CREATE TABLE other (a)")),
        ("a record of 200 MB", &|bench| {
            change(bench, "UPDATE record SET event = event || printf('%.*c', 200000000, ' ') WHERE seq = 1");
        }),
        ("a pipe", &|bench| pipe(&journal(bench))),
        ("a pipe as log", &|bench| pipe(&beside(bench, "journal.sqlite-wal"))),
        ("a pipe as index of the log", &|bench| pipe(&beside(bench, "journal.sqlite-shm"))),
        ("a pipe as rollback journal", &|bench| pipe(&beside(bench, "journal.sqlite-journal"))),
        ("a link", &|bench| {
            fs::rename(journal(bench), bench.outside().join("j")).unwrap();
            symlink(bench.outside().join("j"), journal(bench)).unwrap();
        }),
    ];
    for (what, attack) in cases {
        let bench = bench();
        let before = bench.snapshot();
        attack(&bench);
        for words in [
            &["verify", "x"][..],
            &["show", "x"],
            &["diff", "x"],
            &["logs", "x", "build"],
            &["apply", "x"],
            &["resume", "x"],
        ] {
            soon(&bench, words).ends(11).says("the journal was changed or damaged");
        }
        soon(&bench, &["ls"]).ends(0).says("unreadable");
        soon(&bench, &["gc"]).ends(0);
        assert_eq!(bench.snapshot(), before, "{what}");
    }
}

#[test]
fn a_pipe_as_lock_is_not_waited_for() {
    let bench = bench();
    pipe(&beside(&bench, "owner.sqlite"));
    soon(&bench, &["ls"]).ends(0).says("success");
    soon(&bench, &["show", "x"]).ends(0);
    soon(&bench, &["gc"]).ends(0);
}

#[test]
fn a_link_in_the_folder_of_runs_is_no_run() {
    let bench = bench();
    let elsewhere = bench.outside().join("elsewhere");
    fs::rename(bench.run_folder("x"), &elsewhere).unwrap();
    symlink(&elsewhere, bench.run_folder("x")).unwrap();
    soon(&bench, &["show", "x"]).ends(11).says("the folder of run `x` is a link");
    soon(&bench, &["resume", "x"]).ends(11);
    soon(&bench, &["ls"]).ends(0).says("unreadable").never_says("success");
    soon(&bench, &["gc"]).ends(0);
    soon(&bench, &["rm", "x"]).ends(6);
    assert!(elsewhere.join("journal.sqlite").is_file());
}

#[test]
fn the_journal_of_another_run_proves_nothing() {
    let bench = bench();
    bench.glovebox(&["run", "pipeline.dot", "--run-id", "other", "--quiet"]).ends(0);
    fs::copy(bench.run_folder("other").join("journal.sqlite"), journal(&bench)).unwrap();
    for words in [&["verify", "x"][..], &["show", "x"], &["diff", "x"], &["apply", "x"], &["resume", "x"]] {
        soon(&bench, words).ends(11).says("the journal in the folder of run `x` is that of run `other`");
    }
    soon(&bench, &["ls"]).ends(0).says("unreadable");
    soon(&bench, &["verify", "other"]).ends(0).says("with your key");
}

#[test]
fn a_resume_believes_no_workspace_that_was_changed() {
    const CHECKED: &str = "digraph g { graph [default_max_retry=0] start [shape=Mdiamond]; done [shape=Msquare]
        test [shape=parallelogram, tool_command=\"! test -e src/off && sh src/check.sh\"]
        start -> test -> done }";
    let bench = Workbench::with_pipeline(CHECKED);
    bench.write("src/check.sh", "exit 1\n");
    bench.glovebox(&["run", "pipeline.dot", "--run-id", "x", "--quiet"]).ends(1);
    let file = bench.run_folder("x").join("workspace/src/check.sh");
    let before = fs::metadata(&file).unwrap().modified().unwrap();
    fs::write(&file, "exit 0\n").unwrap();
    File::options().write(true).open(&file).unwrap().set_modified(before).unwrap();
    fs::write(file.with_file_name("off"), "").unwrap();
    bench.glovebox(&["resume", "x", "--quiet"]).ends(1);
    assert_eq!(fs::read_to_string(&file).unwrap(), "exit 1\n");
    assert!(!file.with_file_name("off").exists());
    // The project has changed since the start of the run, so the original content exists nowhere.
    fs::write(&file, "exit 0\n").unwrap();
    bench.write("src/check.sh", "exit 0 # repaired\n");
    bench.glovebox(&["resume", "x", "--quiet"]).ends(11).says("src/check.sh").says("cannot be restored");
}

/// Returns the one file of this length below `blobs/`.
fn large_blob(bench: &Workbench) -> PathBuf {
    let folders = fs::read_dir(bench.run_folder("x").join("blobs")).unwrap().map(|entry| entry.unwrap().path());
    let files = folders.flat_map(|folder| fs::read_dir(folder).unwrap()).map(|entry| entry.unwrap().path());
    let mut large = files.filter(|file| fs::metadata(file).unwrap().len() == LARGE as u64);
    large.next().unwrap()
}

#[test]
fn a_damaged_blob_leaves_the_project_as_it_is() {
    let cases: [Case<'_, Path>; 4] = [
        ("changed", &|blob| fs::write(blob, "x".repeat(LARGE)).unwrap()),
        ("missing", &|blob| fs::remove_file(blob).unwrap()),
        ("a pipe", &pipe),
        ("without end", &|blob| File::options().write(true).open(blob).unwrap().set_len(1 << 42).unwrap()),
    ];
    for (what, damage) in cases {
        let bench = bench();
        let before = bench.snapshot();
        damage(&large_blob(&bench));
        soon(&bench, &["diff", "x"]).ends(11);
        soon(&bench, &["apply", "x"]).ends(11).says("src/z.txt").says("nothing was written");
        assert_eq!(bench.snapshot(), before, "{what}");
    }
}
