//! The folder of a run is trusted only if the user's key signed its records, and a protection that the command line
//! disabled is enabled again on every resume.
//!
//! Each forgery is shown to be complete: only the missing signature prevents it from changing the user's files.

use crate::workbench::{self, Answer, LINEAR, Workbench, state_dir};
use glovebox_journal::event::{Digest, chain};
use glovebox_workspace::user_key::{KEY_FILE, UserKey};
use jiff::Timestamp;
use rusqlite::Connection;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::Command;

/// Creates a workbench with a run `x` that wrote `src/hello.txt`.
fn bench() -> Workbench {
    let bench = Workbench::with_pipeline(LINEAR);
    bench.write(
        "script.toml",
        "[[node.build]]\ntool = [{ name = \"write_file\", arguments = { path = \"src/hello.txt\", content = \"hello\\n\" } }]\n\
         [[node.build]]\ntext = \"done\"\n",
    );
    bench.glovebox(&["run", "pipeline.dot", "--script", "script.toml", "--run-id", "x", "--quiet"]).ends(0);
    bench
}

fn journal(bench: &Workbench, run: &str) -> Connection {
    Connection::open(bench.run_folder(run).join("journal.sqlite")).unwrap()
}

/// Changes the events of a run and recomputes the hash chain, as the author of a forged run folder can.
fn forge(bench: &Workbench, run: &str, change: impl Fn(&str) -> String) {
    let journal = journal(bench, run);
    let mut rows = journal.prepare("SELECT seq, at, event FROM record ORDER BY seq").unwrap();
    let records =
        rows.query_map([], |row| Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?, row.get::<_, String>(2)?)));
    let mut prev = Digest::ZERO;
    for (seq, at, event) in records.unwrap().map(Result::unwrap) {
        let event = change(&event);
        let hash = chain(&prev, seq.cast_unsigned(), Timestamp::from_millisecond(at).unwrap(), &event);
        let sql = "UPDATE record SET event = ?1, prev = ?2, hash = ?3 WHERE seq = ?4";
        journal.execute(sql, (event, prev.as_bytes(), hash.as_bytes(), seq)).unwrap();
        prev = hash;
    }
}

/// Signs every record with the key of these tests, which only the user's own process can do.
fn sign(bench: &Workbench, run: &str) {
    let key = UserKey::read(&state_dir()).unwrap().unwrap();
    let journal = journal(bench, run);
    let mut rows = journal.prepare("SELECT seq, hash FROM record").unwrap();
    let hashes = rows.query_map([], |row| Ok((row.get::<_, i64>(0)?, row.get::<_, Vec<u8>>(1)?))).unwrap();
    for (seq, hash) in hashes.map(Result::unwrap) {
        let mac = key.mac("glovebox 2026 journal record v1", &hash);
        journal.execute("UPDATE record SET mac = ?1 WHERE seq = ?2", (mac.as_bytes(), seq)).unwrap();
    }
}

/// Replaces the project folder in an event by its parent folder, and the changed file by a sensitive one.
fn climb(bench: &Workbench, event: &str) -> String {
    let project = bench.project().canonicalize().unwrap();
    let source = |path: &str| format!("\"source_dir\":\"{path}\"");
    let (own, above) = (source(project.to_str().unwrap()), source(&format!("{}/..", project.display())));
    event.replace(&own, &above).replace("src/hello.txt", ".ssh/authorized_keys")
}

#[test]
fn a_forged_project_folder_lets_apply_write_nowhere() {
    let bench = bench();
    let planted = bench.outside().join(".ssh/authorized_keys");
    let before = bench.snapshot();
    forge(&bench, "x", |event| climb(&bench, event));
    bench.glovebox(&["apply", "x"]).ends(6).says("record 1 is not signed with your key").says("--foreign --workdir D");
    bench.glovebox(&["resume", "x"]).ends(6).says("its record is not trusted");
    // Even if signed, the path leads out of the user's current folder.
    sign(&bench, "x");
    bench.glovebox(&["apply", "x"]).ends(6).says("not the current folder or below it");
    assert!(!planted.exists() && bench.snapshot() == before, "nothing was written");
    // The forgery works if the user accepts it explicitly.
    forge(&bench, "x", str::to_owned);
    bench.glovebox(&["apply", "x", "--foreign", "--workdir", ".."]).ends(0).says("wrote   .ssh/authorized_keys");
    assert!(planted.exists());
}

#[test]
fn a_forged_path_does_not_get_into_a_branch() {
    let bench = bench();
    let git = |words: &[&str]| {
        let done =
            Command::new("git").args(words).current_dir(bench.project()).env("GIT_CONFIG_GLOBAL", "/dev/null").status();
        assert!(done.unwrap().success(), "{words:?}");
    };
    git(&["init", "-q"]);
    git(&["add", "pipeline.dot"]);
    git(&["-c", "user.name=a", "-c", "user.email=a@localhost", "commit", "-q", "-m", "base"]);
    for path in [".git/hooks/post-checkout", ".github/workflows/ci.yml", "src/.git/config"] {
        forge(&bench, "x", |event| event.replace("src/hello.txt", path));
        let words = ["apply", "x", "--foreign", "--workdir", ".", "--branch", "b"];
        bench.glovebox(&words).ends(6).says(&format!("conflict: {path}")).says("nothing was written");
        forge(&bench, "x", |event| event.replace(path, "src/hello.txt"));
    }
}

#[test]
fn a_run_that_is_not_ones_own_is_read_and_said_so() {
    let bench = bench();
    bench.glovebox(&["show", "x"]).ends(0).never_says("may be forged");
    bench.glovebox(&["ls"]).ends(0).never_says("not signed by you");
    for (spoil, said) in [
        ("UPDATE record SET mac = zeroblob(32) WHERE seq = 3", "record 3 is not signed with your key"),
        ("UPDATE record SET mac = NULL WHERE seq = 3", "record 3 is not signed with your key"),
        ("UPDATE record SET mac = NULL", "is not signed"),
    ] {
        journal(&bench, "x").execute(spoil, []).unwrap();
        for words in [&["show", "x"][..], &["diff", "x"], &["graph", "x", "--format", "text"], &["show", "x", "build"]]
        {
            bench.glovebox(words).ends(0).says("may be forged").says(said);
        }
        bench.glovebox(&["ls"]).ends(0).says("(not signed by you)");
        let plan = ["plan", "pipeline.dot", "--against", "x"];
        bench.glovebox(&plan).ends(0).says("may be forged");
        bench.glovebox(&[&plan[..], &["--deny", "widened"]].concat()).ends(6).says(said).says("--against FILE");
        bench.glovebox(&["apply", "x"]).ends(6).says(said);
        bench.glovebox(&["resume", "x"]).ends(6).says(said);
    }
    assert!(!bench.has("src/hello.txt"));
    bench.glovebox(&["apply", "x", "--foreign"]).ends(2).says("--workdir");
    bench.glovebox(&["apply", "x", "--foreign", "--workdir", "."]).ends(0).says("wrote   src/hello.txt");
}

/// Runs a command and returns how often its debug log contains `what`.
fn logged(bench: &Workbench, words: &[&str], what: &str) -> usize {
    let answer = Answer::of(bench.command(words).env("GLOVEBOX_LOG", "debug"));
    answer.ends(0).stderr.matches(what).count()
}

#[test]
fn a_command_verifies_a_journal_once_and_a_list_of_runs_verifies_none() {
    let bench = bench();
    let check = |words: &[&str], times: usize| {
        assert_eq!(logged(&bench, words, "verified the journal"), times, "{words:?}");
    };
    check(&["ls"], 0);
    check(&["run", "pipeline.dot", "--script", "script.toml", "--run-id", "y", "--quiet"], 0);
    check(&["resume", "y"], 1);
    check(&["show", "x"], 1);
    check(&["show", "x", "build"], 1);
    check(&["diff", "x"], 1);
    check(&["graph", "x", "--format", "text"], 1);
    check(&["apply", "x"], 1);
}

#[test]
fn a_list_says_what_each_run_proved_and_reads_a_journal_once() {
    let bench = Workbench::with_pipeline(
        "digraph g { start [shape=Mdiamond]; done [shape=Msquare]
  write [prompt=\"write\", allowed_write_paths=\"\"]
  test [shape=parallelogram, tool_command=\"true\", allowed_write_paths=\"\"]
  check [shape=parallelogram, tool_command=\"exit 1\", allowed_write_paths=\"\"]
  start -> write -> test -> check; check -> done [condition=\"outcome=success\"] }",
    );
    bench.glovebox(&["run", "pipeline.dot", "--run-id", "r"]).ends(1);
    let list = ["ls", "--json"];
    assert_eq!(logged(&bench, &list, "verified the journal"), 1);
    let listed = bench.glovebox(&list).ends(0).json();
    let proof = serde_json::json!({ "proved": 1, "reserved": 0, "claimed": 1, "not_proved": 1 });
    assert_eq!(listed["runs"][0]["proof"], proof);
    assert_eq!(logged(&bench, &list, "verified the journal"), 0, "the cache has the counts");
    // The run went on, so the counts are made again.
    bench.glovebox(&["resume", "r"]).ends(1);
    assert_eq!(logged(&bench, &list, "verified the journal"), 1);
}

#[test]
fn records_that_are_added_to_a_run_of_ones_own_are_not_acted_on() {
    let bench = bench();
    // An attacker changes records of a run that its owner published, for example in a bug report. Record 1 stays as it
    // is.
    forge(&bench, "x", |event| match event.contains("\"kind\":\"run.started\"") {
        true => event.to_owned(),
        false => event.replace("src/hello.txt", "src/other.txt"),
    });
    bench.glovebox(&["apply", "x"]).ends(6).says("is not signed with your key").never_says("record 1 ");
    assert!(!bench.has("src/other.txt"));
}

/// Creates a run `u` without a sandbox that was killed while its command slept. A completed command leaves a mark
/// outside of the project.
fn killed_unconfined() -> Workbench {
    let bench = Workbench::with_pipeline(
        "digraph g { start [shape=Mdiamond]; done [shape=Msquare]; \
         work [shape=parallelogram, tool_command=\"sh work.sh\", allowed_write_paths=\"out/\"]; start -> work -> done }",
    );
    let (begun, mark) = (bench.outside().join("begun"), bench.outside().join("mark"));
    let (begun, mark) = (begun.display(), mark.display());
    bench.write("work.sh", &format!("test -e {begun} || {{ touch {begun}; exec sleep 60; }}\ntouch {mark}\n"));
    let mut child = bench.start(&["run", "pipeline.dot", "--run-id", "u", "--json", "--dangerously-no-sandbox"]);
    let output = BufReader::new(child.stdout.take().unwrap());
    output.lines().take(4).for_each(|line| drop(line.unwrap()));
    while !bench.outside().join("begun").exists() {
        assert!(child.try_wait().unwrap().is_none(), "the run ended before its stage began");
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    bench
}

/// Runs a command as a user with another key.
fn stranger(bench: &Workbench, words: &[&str]) -> Answer {
    let state = bench.outside().join("another-user");
    UserKey::read_or_make(&state).unwrap();
    Answer::of(bench.command(words).env("GLOVEBOX_STATE_DIR", state))
}

#[test]
fn walls_that_were_taken_down_are_up_again_on_every_resume() {
    let bench = killed_unconfined();
    let mark = bench.outside().join("mark");
    for words in [&["resume", "u"][..], &["resume", "u", "--dangerously-no-sandbox"]] {
        stranger(&bench, words).ends(6).says("not signed with your key");
    }
    bench.glovebox(&["resume", "u"]).ends(6).says("repeat the flag: `glovebox resume u --dangerously-no-sandbox`");
    assert!(!mark.exists(), "no command ran");
    bench.glovebox(&["resume", "u", "--dangerously-no-sandbox"]).ends(0);
    assert!(mark.exists(), "the witness: the same resume with the user's word runs it");
}

#[test]
fn walls_that_a_run_has_stay_up() {
    let bench = Workbench::with_pipeline(
        "digraph g { start [shape=Mdiamond]; done [shape=Msquare]; \
         work [shape=parallelogram, tool_command=\"true\", allowed_write_paths=\"\"]; start -> work -> done }",
    );
    bench.glovebox(&["run", "pipeline.dot", "--run-id", "w", "--quiet"]).ends(0);
    bench.glovebox(&["resume", "w", "--dangerously-no-sandbox"]).ends(6).says("a resume never lowers");
    bench.glovebox(&["resume", "w"]).ends(0);
}

#[test]
fn a_key_that_others_know_signs_nothing_and_is_not_believed() {
    use std::os::unix::fs::PermissionsExt;
    let bench = Workbench::with_pipeline(LINEAR);
    let state = bench.outside().join("state");
    let glovebox = |words: &[&str]| Answer::of(bench.command(words).env("GLOVEBOX_STATE_DIR", &state));
    glovebox(&["run", "pipeline.dot", "--run-id", "a", "--quiet"]).ends(0);
    let key = state.join(KEY_FILE);
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&key), mode(&state)), (0o600, 0o700));
    std::fs::set_permissions(&key, std::fs::Permissions::from_mode(0o644)).unwrap();
    glovebox(&["run", "pipeline.dot", "--run-id", "b"]).ends(6).says("others can read it").says("chmod 600");
    assert!(!bench.run_folder("b").exists(), "a run that is refused does not exist");
    glovebox(&["apply", "a"]).ends(6).says("others can read it");
    glovebox(&["show", "a"]).ends(0).says("others can read it").says("may be forged");
}

#[test]
fn without_a_place_for_a_key_a_run_is_unsigned_and_says_so() {
    let bench = Workbench::with_pipeline(LINEAR);
    std::fs::write(bench.outside().join("file"), "").unwrap();
    let nowhere = bench.outside().join("file/state");
    let glovebox = |words: &[&str]| Answer::of(bench.command(words).env("GLOVEBOX_STATE_DIR", &nowhere));
    glovebox(&["run", "pipeline.dot", "--run-id", "n", "--quiet"]).ends(0).says("warning: this run cannot be signed");
    bench.glovebox(&["apply", "n"]).ends(6).says("is not signed");
    bench.glovebox(&["resume", "n"]).ends(6).says("is not signed");
}

#[test]
fn no_command_is_shown_the_key_or_the_runs() {
    let bench = Workbench::with_pipeline(
        "digraph g { start [shape=Mdiamond]; done [shape=Msquare]; \
         look [shape=parallelogram, tool_command=\"sh look.sh\", allowed_write_paths=\"\"]; start -> look -> done }",
    );
    let elsewhere = bench.outside().join("elsewhere");
    let (state, runs, open) = (elsewhere.join("state"), elsewhere.join("runs"), elsewhere.join("open"));
    UserKey::read_or_make(&state).unwrap();
    std::fs::create_dir_all(runs.join("other/holdouts/files")).unwrap();
    std::fs::create_dir(&open).unwrap();
    std::fs::write(runs.join("other/owner.sqlite"), "").unwrap();
    let (key, holdout) = (state.join(KEY_FILE), runs.join("other/holdouts/files/answer"));
    std::fs::write(&holdout, "the answer is forty-two apples").unwrap();
    std::fs::write(open.join("note"), "anybody may read this").unwrap();
    let look = format!(
        "cat {}/note || exit 3\nfor f in {} {}; do cat $f && exit 0; done\nexit 47\n",
        open.display(),
        key.display(),
        holdout.display()
    );
    bench.write("look.sh", &look);
    let run = |read: &Path| {
        bench.write("glovebox.toml", &format!("[sandbox]\nread = [\"{}\"]\n", read.display()));
        let mut command = bench.command(&["run", "pipeline.dot", "--quiet", "--runs-dir", runs.to_str().unwrap()]);
        Answer::of(command.env("GLOVEBOX_STATE_DIR", &state))
    };
    for read in [&state, &key, &runs, &elsewhere, &runs.join("other")] {
        let answer = run(read);
        assert_ne!(answer.code, 0, "{}", read.display());
        answer.says("commands cannot see");
    }
    // Exit code 47 shows that the command could read the granted folder, and that neither the key nor the hold-out
    // exists for the command.
    run(&open).ends(1).says("47");
}

/// A pipeline whose command lists all files that it sees, except for the hold-outs.
const SEES: &str = "digraph g { start [shape=Mdiamond]; done [shape=Msquare]; \
    look [shape=parallelogram, tool_command=\"find . -type f\", \"codex.block_read_paths\"=\"scripts/scenarios/\", allowed_write_paths=\"\"]; \
    start -> look -> done }";
const ANSWER: &str = "# the riddle's answer is forty-two apples in a wicker basket\nexit 0\n";

#[test]
fn runs_of_any_folder_are_in_no_later_run() {
    let bench = Workbench::with_pipeline(SEES);
    bench.write("scripts/scenarios/answer.sh", ANSWER);
    bench.write("keep/journal.sqlite", "the journal of another program");
    let sees = |words: &[&str], run: &Path| {
        bench.glovebox(&[&["run", "pipeline.dot", "--quiet"], words].concat()).ends(0);
        std::fs::read_to_string(run.join("look/tool.stdout.txt")).unwrap()
    };
    let first = sees(&["--runs-dir", "ci-runs", "--run-id", "one"], &bench.project().join("ci-runs/one"));
    assert!(first.contains("./pipeline.dot") && !first.contains("ci-runs"), "{first}");
    assert_eq!(bench.read("ci-runs/.gitignore").lines().last(), Some("*"));
    // A runs folder without `.gitignore`, as an older version left it, and a copy of a run in another folder.
    std::fs::remove_file(bench.project().join("ci-runs/.gitignore")).unwrap();
    workbench::copy_tree(&bench.project().join("ci-runs/one"), &bench.project().join("kept/elsewhere"));
    let run = bench.glovebox(&["run", "pipeline.dot", "--run-id", "two"]);
    run.ends(0).says("left out of the run: ci-runs/one: it contains a run").says("left out of the run: kept/elsewhere");
    let second = bench.run_text("two", "look/tool.stdout.txt");
    assert!(second.contains("./keep/journal.sqlite"), "what only has the name is copied: {second}");
    assert!(!second.contains("one/") && !second.contains("elsewhere/"), "{second}");
    let inside = "kept/elsewhere/holdouts/files/scripts/scenarios/answer.sh";
    for (id, include) in [("three", "ci-runs/"), ("five", "ci-runs/one/holdouts/"), ("six", inside)] {
        bench.write("glovebox.toml", &format!("[workspace]\ninclude = [\"{include}\"]\n"));
        let answer = bench.glovebox(&["run", "pipeline.dot", "--run-id", id]);
        match include {
            "ci-runs/" => answer.ends(0).says("ci-runs/one: it contains a run"),
            _ => answer.ends(3).says("runs contain hold-outs and are never copied"),
        };
    }
    let third = bench.run_text("three", "look/tool.stdout.txt");
    assert!(!third.contains("one/"), "{third}");
    // A control: without a journal the folder is an ordinary one, so its copy of a hold-out is found.
    std::fs::remove_file(bench.project().join("glovebox.toml")).unwrap();
    std::fs::rename(bench.project().join("kept/elsewhere/holdouts"), bench.project().join("kept/holdouts")).unwrap();
    let copied = bench.glovebox(&["run", "pipeline.dot", "--run-id", "four"]);
    copied.ends(6).says("`kept/holdouts/files/scripts/scenarios/answer.sh` is a copy of `scripts/scenarios/answer.sh`");
}

#[test]
fn other_users_of_the_machine_read_no_run() {
    use std::os::unix::fs::{MetadataExt, PermissionsExt};
    use std::os::unix::process::CommandExt;
    let bench = Workbench::with_pipeline(SEES);
    bench.write("scripts/scenarios/answer.sh", ANSWER);
    let open = |path: &Path| std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
    [bench.outside(), &bench.project()].into_iter().for_each(open);
    let run = ["run", "pipeline.dot", "--quiet", "--run-id"];
    bench.glovebox(&[&run[..], &["x"]].concat()).ends(0);
    let mode = |path: &Path| std::fs::metadata(path).unwrap().mode() & 0o7777;
    let (runs, x) = (bench.project().join(".glovebox/runs"), bench.run_folder("x"));
    assert_eq!((mode(&runs), mode(&x)), (0o700, 0o700));
    // Folders that an older version or the user opened to other users are closed by the next command that writes to
    // them.
    [&bench.project().join(".glovebox"), &runs, &x].into_iter().for_each(|path| open(path));
    bench.glovebox(&[&run[..], &["y"]].concat()).ends(0).says("was open to other users");
    bench.glovebox(&["resume", "x", "--quiet"]).ends(0);
    assert_eq!((mode(&runs), mode(&x)), (0o700, 0o700));
    if !is_root() {
        return;
    }
    // As root, the test can also read the files as a second user, who may read the project but no file of the run.
    let reads = |path: &Path| {
        let mut command = Command::new("cat");
        command.arg(path).uid(65534).gid(65534).output().unwrap().status.success()
    };
    assert!(reads(&bench.project().join("pipeline.dot")), "the witness: the second user gets as far as the project");
    for file in
        ["manifest.json", "journal.sqlite", "look/tool.stdout.txt", "holdouts/files/scripts/scenarios/answer.sh"]
    {
        assert!(x.join(file).exists(), "{file}");
        assert!(!reads(&x.join(file)), "{file}");
    }
}

fn is_root() -> bool {
    use std::os::unix::fs::MetadataExt;
    std::fs::metadata("/proc/self").unwrap().uid() == 0
}

#[test]
fn a_folder_with_other_things_takes_no_runs() {
    let bench = Workbench::with_pipeline(LINEAR);
    bench
        .glovebox(&["run", "pipeline.dot", "--runs-dir", "."])
        .ends(2)
        .says("contains `pipeline.dot`, which is not a run");
    assert!(!bench.has(".gitignore"), "nothing was changed");
}

/// Creates a pipeline with six stages that each write a file of two million random bytes, which is stored as a blob.
fn growing() -> Workbench {
    let names = ["a", "b", "c", "d", "e", "f"];
    let nodes = names.map(|name| {
        format!("{name} [shape=parallelogram, tool_command=\"sh grow.sh {name}\", allowed_write_paths=\"out/\"]; ")
    });
    let graph = format!(
        "digraph g {{ start [shape=Mdiamond]; done [shape=Msquare]; {} start -> {} -> done }}",
        nodes.concat(),
        names.join(" -> ")
    );
    let bench = Workbench::with_pipeline(&graph);
    bench.write("grow.sh", "mkdir -p out; head -c 2000000 /dev/urandom > out/$1\n");
    bench
}

fn disk_bound(bench: &Workbench, bound: &str) {
    bench.write("glovebox.toml", &format!("[run]\ndisk_bytes_max = \"{bound}\"\n"));
}

#[test]
fn a_run_ends_before_the_stage_that_its_disk_bound_leaves_no_room_for() {
    let bench = growing();
    bench.glovebox(&["plan", "pipeline.dot"]).ends(0).says("unlimited wall time, 10GiB of disk");
    disk_bound(&bench, "6MB");
    bench.glovebox(&["plan", "pipeline.dot"]).ends(0).says("unlimited wall time, 6000000B of disk");
    assert_eq!(bench.glovebox(&["plan", "pipeline.dot", "--json"]).json()["disk_bytes_max"], 6_000_000);
    let run = bench.glovebox(&["run", "pipeline.dot", "--run-id", "x", "--quiet"]);
    run.ends(5).says("but `disk_bytes_max` under `[run]`").says("raise `disk_bytes_max`");
    let last = bench.run_json("x", "final.json");
    assert_eq!((&last["status"], &last["failure_class"]), (&"fail".into(), &"budget".into()));
    let done = bench.run_json("x", "checkpoint.json")["completed_nodes"].clone();
    assert_eq!(
        done,
        serde_json::json!(["start", "a", "b", "c"]),
        "three times two million and the journal are more than six"
    );
    for name in ["a", "b", "c"] {
        let kept = std::fs::metadata(bench.run_folder("x").join("workspace/out").join(name)).unwrap();
        assert_eq!(kept.len(), 2_000_000, "nothing is lost");
    }
    let shown = bench.glovebox(&["show", "x"]);
    shown.ends(0).says("limit/run_disk_bytes").says("glovebox resume x");
    bench.glovebox(&["resume", "x", "--quiet"]).ends(5).says("but `disk_bytes_max`");
    disk_bound(&bench, "1GiB");
    bench.glovebox(&["resume", "x", "--quiet"]).ends(0);
    let done = bench.run_json("x", "checkpoint.json")["completed_nodes"].clone();
    assert_eq!(done, serde_json::json!(["start", "a", "b", "c", "d", "e", "f"]), "each stage once");
    assert_eq!(bench.run_json("x", "final.json")["status"], "success");
    bench.glovebox(&["apply", "x"]).ends(0).says("wrote   out/f");
}

#[test]
fn what_a_run_keeps_beside_blobs_counts_too() {
    for (what, script) in [
        ("quarantine", "head -c 3000000 /dev/urandom > forbidden; exit 0\n"),
        ("cache", "head -c 3000000 /dev/urandom > cache/$1\n"),
        ("artifacts", "head -c 900000 /dev/zero | tr '\\000' x\n"),
    ] {
        let bench = growing();
        bench.write("grow.sh", script);
        let text = bench
            .read("pipeline.dot")
            .replace(" -> b", "; a -> b [condition=\"outcome=fail\"]; a -> b [condition=\"outcome=success\"]; b");
        bench.write("pipeline.dot", &text);
        bench.write("glovebox.toml", "[run]\ndisk_bytes_max = \"1500KiB\"\n[sandbox]\ncache = [\"cache/\"]\n");
        let run = bench.glovebox(&["run", "pipeline.dot", "--run-id", "x", "--quiet"]);
        run.ends(5).says("but `disk_bytes_max`");
        let done = bench.run_json("x", "checkpoint.json")["completed_nodes"].clone();
        assert_eq!(done, serde_json::json!(["start", "a"]), "{what}");
    }
}

#[test]
fn an_id_that_is_taken_is_refused_with_the_command_that_goes_on() {
    let bench = bench();
    let before = std::fs::read(bench.run_folder("x").join("final.json")).unwrap();
    let again = ["run", "pipeline.dot", "--script", "script.toml", "--run-id", "x"];
    bench.glovebox(&again).ends(2).says("run `x` exists already").says("glovebox resume x");
    assert_eq!(std::fs::read(bench.run_folder("x").join("final.json")).unwrap(), before);
    for bad in ["../r", "a/b", "latest", ".r", ""] {
        bench.glovebox(&["run", "pipeline.dot", "--run-id", bad]).ends(2).says("not a valid run id");
    }
}

#[test]
fn a_journal_without_its_last_records_is_found_by_a_hash_from_outside() {
    let bench = Workbench::with_pipeline(LINEAR);
    bench.glovebox(&["run", "pipeline.dot", "--run-id", "r"]).ends(0);
    let head = |bench: &Workbench| {
        let shown = bench.glovebox(&["show", "r", "--json"]).ends(0).json();
        shown["journal"]["hash"].as_str().unwrap().to_owned()
    };
    let whole = head(&bench);
    bench.glovebox(&["verify", "r"]).ends(0).says(&whole).says("with your key").says("unknown: only `--head HASH`");
    bench.glovebox(&["verify", "r", "--head", &whole]).ends(0).says("yes: it ends with the record of `--head`");
    bench.glovebox(&["verify", "r", "--head", "blake3:12"]).ends(2).says("is not a digest");
    let journal = Connection::open(bench.run_folder("r").join("journal.sqlite")).unwrap();
    journal.execute("DELETE FROM record WHERE seq > (SELECT max(seq) - 2 FROM record)", []).unwrap();
    let short = head(&bench);
    assert_ne!(short, whole);
    bench.glovebox(&["verify", "r"]).ends(0).says("unfinished");
    bench.glovebox(&["verify", "r", "--head", &whole]).ends(11).says("no record of the journal has the hash");
    // Records that are added later do not invalidate the check.
    bench.glovebox(&["resume", "r"]).ends(0);
    bench.glovebox(&["verify", "r", "--head", &short]).ends(0).says("yes up to `--head`, record ").says(" since");
    journal.execute("UPDATE record SET event = replace(event, 'success', 'skipped') WHERE seq > 3", []).unwrap();
    bench.glovebox(&["verify", "r", "--head", &short]).ends(11).says("is corrupt");
}
