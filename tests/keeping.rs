//! Keeping runs: listing runs, runs in progress, and removing runs without touching anything else.

use crate::workbench::{self, Answer, LINEAR, Workbench};
use serde_json::Value;
use std::collections::BTreeSet;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::Path;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

/// Creates a workbench whose run `slow` is executing a command.
fn under_way() -> (Workbench, Child) {
    let bench = Workbench::with_pipeline(
        "digraph slow { start [shape=Mdiamond]; done [shape=Msquare]\n\
         t [shape=parallelogram, allowed_write_paths=\"\", tool_command=\"sleep 60\"]\n start -> t -> done }",
    );
    let child = bench.start(&["run", "pipeline.dot", "--run-id", "slow"]);
    let until = Instant::now() + Duration::from_secs(60);
    let has_started = || {
        let text = std::fs::read_to_string(bench.run_folder("slow").join("progress.ndjson")).unwrap_or_default();
        text.contains("stage.started")
    };
    while !has_started() {
        assert!(Instant::now() < until, "it never started");
        std::thread::sleep(Duration::from_millis(50));
    }
    (bench, child)
}

fn listed(bench: &Workbench, words: &[&str]) -> Vec<Value> {
    let list = bench.glovebox(&[&["ls", "--json"], words].concat()).ends(0).json();
    assert_eq!(list["schema_version"], 1);
    list["runs"].as_array().unwrap().clone()
}

fn ids(runs: &[Value]) -> Vec<&str> {
    runs.iter().map(|run| run["id"].as_str().unwrap()).collect()
}

#[test]
fn a_run_that_is_under_way_is_running_and_belongs_to_its_process() {
    let (bench, mut child) = under_way();
    let duration = |bench: &Workbench| listed(bench, &[])[0]["duration_ms"].as_u64().unwrap();
    let before = duration(&bench);
    std::thread::sleep(Duration::from_millis(1200));
    assert!(duration(&bench) > before + 1000, "the clock goes on");
    bench.glovebox(&["ls"]).ends(0).says("running").never_says("unfinished");
    bench.glovebox(&["show", "slow"]).ends(0).says("slow of slow: running").says("wait until it ends");
    assert_eq!(bench.glovebox(&["show", "slow", "--json"]).ends(0).json()["status"], "running");
    bench
        .glovebox(&["resume", "slow"])
        .ends(9)
        .says("is running: another process (`pid-")
        .says("help: wait until it ends");
    bench.glovebox(&["rm", "slow"]).ends(6).says("is running; nothing of it was removed");
    bench.glovebox(&["gc", "--keep", "0", "--older-than", "0s"]).ends(0).says("0 runs");
    assert_eq!(ids(&listed(&bench, &["--state", "running"])), ["slow"]);
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(listed(&bench, &[])[0]["status"], "unfinished");
    bench.glovebox(&["show", "slow"]).ends(0).says("unfinished").says("glovebox resume slow");
    bench.glovebox(&["rm", "slow"]).ends(0).says("removed slow");
    assert!(listed(&bench, &[]).is_empty() && !bench.run_folder("slow").exists());
}

fn with_runs(runs: &[&str]) -> Workbench {
    let bench = Workbench::with_pipeline(LINEAR);
    for id in runs {
        bench.glovebox(&["run", "pipeline.dot", "--run-id", id, "--quiet"]).ends(0);
    }
    bench
}

#[test]
fn a_list_has_a_header_filters_and_short_names() {
    let bench = with_runs(&["one", "two"]);
    bench.write("fails.dot", "digraph broken { start [shape=Mdiamond]; done [shape=Msquare]; t [shape=parallelogram, allowed_write_paths=\"\", tool_command=\"false\"]; start -> t -> done }");
    bench.glovebox(&["run", "fails.dot", "--quiet"]).ends(1);
    let text = bench.glovebox(&["ls"]).ends(0).stdout.clone();
    assert!(text.starts_with("ID ") && text.contains("PIPELINE\n") && text.contains(" KiB "), "{text}");
    assert_eq!(ids(&listed(&bench, &["--state", "success"])), ["two", "one"]);
    assert_eq!(listed(&bench, &["--state", "success", "--state", "fail"]).len(), 3);
    assert_eq!(ids(&listed(&bench, &["--limit", "2"]))[1..], ["two"]);
    let broken = &listed(&bench, &["--pipeline", "brok"])[0];
    let (id, short) = (broken["id"].as_str().unwrap(), broken["short"].as_str().unwrap());
    assert!(id.len() == 26 && short.len() == 6 && id.ends_with(short), "{id} {short}");
    assert!(text.contains(short) && !text.contains(id));
    for name in [short, &short.to_lowercase(), &id[20..], &id[..25]] {
        bench.glovebox(&["show", name]).ends(0).says("of broken: fail");
    }
    bench.glovebox(&["ls", "--pipeline", "none"]).ends(0).says("no such runs");
    bench.glovebox(&["ls", "--state", "gone"]).ends(2).says("possible values");
}

#[test]
fn the_cache_of_a_list_is_believed_only_where_this_user_wrote_it_and_the_journal_is_the_same() {
    let bench = with_runs(&["one", "two"]);
    let index = bench.run_folder("one").with_file_name(".index");
    let whole = listed(&bench, &[]);
    assert_eq!(listed(&bench, &[]), whole);
    let cached = std::fs::read_to_string(&index).unwrap();
    // Rows with another name and a valid signature are shown, which proves that the cache is used.
    let forged = cached.replace("\"pipeline\":\"ship\"", "\"pipeline\":\"evil\"");
    assert_ne!(forged, cached);
    for spoilt in [forged.as_str(), "", "x\n{}", "\n", &cached[..cached.len() / 2]] {
        std::fs::write(&index, spoilt).unwrap();
        assert_eq!(listed(&bench, &[]), whole, "{spoilt:?}");
    }
    let key = glovebox_workspace::user_key::UserKey::read(&workbench::state_dir()).unwrap().unwrap();
    // The file as the last `ls` left it. The forgeries above made `ls` read the journals again.
    let forged = std::fs::read_to_string(&index).unwrap().replace("\"pipeline\":\"ship\"", "\"pipeline\":\"evil\"");
    let rows = forged.split_once('\n').unwrap().1;
    let signed = format!("{}\n{rows}", key.mac("glovebox 2026 index of runs v3", rows.as_bytes()).to_hex());
    std::fs::write(&index, signed).unwrap();
    assert_eq!(listed(&bench, &[])[0]["pipeline"], "evil", "it is a cache");
    let journal = bench.run_folder("one").join("journal.sqlite");
    std::fs::write(&journal, std::fs::read(&journal).unwrap()).unwrap();
    let pipelines = listed(&bench, &[]).iter().map(|run| run["pipeline"].clone()).collect::<Vec<_>>();
    assert!(pipelines.contains(&"ship".into()), "a journal that was written is read again");
    std::fs::remove_file(&index).unwrap();
    // If the cache file is a link, it is neither followed nor read.
    symlink(bench.outside().join("elsewhere"), &index).unwrap();
    assert_eq!(listed(&bench, &[])[0]["pipeline"], "ship");
    assert!(!bench.outside().join("elsewhere").exists());
}

#[test]
fn runs_are_removed_by_name_number_and_age() {
    let bench = with_runs(&["a", "b", "c", "d"]);
    bench.glovebox(&["rm", "a", "nothing"]).ends(2).says("no run `nothing`");
    bench.glovebox(&["rm", "--dry-run", "a"]).ends(0).says("would remove a (");
    assert_eq!(ids(&listed(&bench, &[])), ["d", "c", "b", "a"], "nothing was removed yet");
    bench.glovebox(&["rm", "a", "latest", "d"]).ends(0).says("removed a (").says("removed d (").says("2 runs");
    assert_eq!(ids(&listed(&bench, &[])), ["c", "b"]);
    bench.glovebox(&["gc"]).ends(0).says("0 runs");
    bench.glovebox(&["gc", "--older-than", "1d"]).ends(0).says("0 runs");
    bench.glovebox(&["gc", "--keep", "1", "--older-than", "1d"]).ends(0).says("0 runs");
    bench.glovebox(&["gc", "--keep", "1", "--dry-run"]).ends(0).says("would remove b (").says("would free");
    bench.glovebox(&["gc", "--keep", "1"]).ends(0).says("removed b (").says("1 run\n");
    bench.glovebox(&["gc", "--older-than", "0s"]).ends(0).says("removed c (");
    assert!(listed(&bench, &[]).is_empty());
    bench.glovebox(&["run", "pipeline.dot", "--run-id", "e", "--quiet"]).ends(0);
    let would = bench.glovebox(&["gc", "--keep", "0", "--dry-run", "--json"]).ends(0).json();
    assert_eq!((&would["is_dry_run"], &would["runs"][0]["run_id"]), (&true.into(), &"e".into()));
    let removed = bench.glovebox(&["rm", "e", "--json"]).ends(0).json();
    assert_eq!((&removed["is_dry_run"], &removed["runs"]), (&false.into(), &would["runs"]));
    assert_eq!(removed["bytes"], removed["runs"][0]["bytes"]);
    assert_eq!(bench.glovebox(&["gc", "--keep", "0", "--json"]).ends(0).json()["runs"].as_array().unwrap().len(), 0);
    bench.glovebox(&["gc", "--older-than", "soon"]).ends(2).says("such as `30d`");
}

#[test]
fn removing_a_run_follows_no_link_and_touches_no_other_folder() {
    let bench = with_runs(&["a", "b"]);
    let precious = bench.outside().join("precious");
    std::fs::create_dir(&precious).unwrap();
    std::fs::write(precious.join("file"), "kept").unwrap();
    let runs = bench.run_folder("a").parent().unwrap().to_owned();
    symlink(&precious, bench.run_folder("a").join("workspace/way")).unwrap();
    symlink(&precious, bench.run_folder("a").join("quarantine-way")).unwrap();
    // A folder and a link that only look like runs.
    std::fs::create_dir(runs.join("other")).unwrap();
    std::fs::write(runs.join("other/journal.sqlite"), "not ours").unwrap();
    std::fs::rename(bench.run_folder("b"), bench.outside().join("b")).unwrap();
    symlink(bench.outside().join("b"), runs.join("b")).unwrap();
    for name in ["other", "b"] {
        bench.glovebox(&["rm", name]).ends(6).says("is not a run of glovebox: it was not removed");
    }
    // The remains of a killed removal and of a run that never began are removed. Any other folder stays.
    for (folder, file) in [(".removed-x", "journal.sqlite"), ("killed", "owner.sqlite"), ("notes", "text")] {
        std::fs::create_dir(runs.join(folder)).unwrap();
        std::fs::write(runs.join(folder).join(file), "").unwrap();
    }
    symlink(&precious, runs.join(".removed-x/way")).unwrap();
    symlink(&precious, runs.join(".removed-way")).unwrap();
    bench.glovebox(&["rm", "a"]).ends(0).says("removed a");
    let (left, of_this) = (runs.join(".index-999999999"), runs.join(format!(".index-{}", std::process::id())));
    [&left, &of_this].into_iter().for_each(|file| std::fs::write(file, "").unwrap());
    bench.glovebox(&["gc", "--keep", "0"]).ends(0).says("removed ").says(".removed-x").says("killed");
    assert!(!left.exists() && of_this.exists(), "a process that was killed left one");
    assert_eq!(std::fs::read_to_string(precious.join("file")).unwrap(), "kept");
    assert!(bench.outside().join("b/journal.sqlite").exists() && runs.join("other/journal.sqlite").exists());
    assert!(runs.join("notes/text").exists() && !runs.join("killed").exists() && !runs.join(".removed-x").exists());
    // In a folder without the `.gitignore` by which Glovebox marks it, only runs are removed, and no remains of runs.
    std::fs::remove_file(runs.join(".gitignore")).unwrap();
    std::fs::create_dir(runs.join("killed")).unwrap();
    std::fs::write(runs.join("killed/owner.sqlite"), "").unwrap();
    bench.glovebox(&["gc", "--keep", "0"]).ends(0);
    assert!(runs.join("killed/owner.sqlite").exists());
}

#[test]
fn a_successful_run_keeps_no_repository_and_git_sees_no_run() {
    let bench = Workbench::with_pipeline(
        "digraph g { start [shape=Mdiamond]; done [shape=Msquare]\n\
         t [shape=parallelogram, allowed_write_paths=\"\", tool_command=\"git log --oneline\"]\n start -> t -> done }",
    );
    bench.write("glovebox.toml", "[workspace]\ngit = \"commit\"\n");
    let git = |words: &[&str]| Command::new("git").args(words).current_dir(bench.project()).output().unwrap();
    assert!(git(&["init", "-q"]).status.success());
    bench.glovebox(&["run", "pipeline.dot", "--run-id", "r"]).ends(0);
    bench.glovebox(&["show", "r", "t"]).ends(0).says("exit 0");
    assert!(!bench.run_folder("r").join("repository").exists());
    assert!(git(&["add", "-A"]).status.success());
    assert_eq!(String::from_utf8_lossy(&git(&["ls-files"]).stdout), "glovebox.toml\npipeline.dot\n");
}

/// A pipeline with one command that may write the workspace.
fn command(text: &str) -> String {
    format!(
        "digraph one {{ start [shape=Mdiamond]; done [shape=Msquare]\n\
         t [shape=parallelogram, allowed_write_paths=\"./\", tool_command=\"{text}\"]\n start -> t -> done }}"
    )
}

/// The cost of removing old runs must not grow with the number of runs that stay.
#[test]
fn the_cached_list_of_runs_outlives_the_removal_of_a_run() {
    let bench = Workbench::new();
    bench.write("glovebox.toml", "[run]\nkeep_runs = 2\n");
    bench.write("same.dot", &command("true"));
    for id in ["a", "b", "c"] {
        bench.glovebox(&["run", "same.dot", "--run-id", id]).ends(0);
    }
    let cached = std::fs::read_to_string(bench.run_folder(".").join(".index")).unwrap();
    assert!(cached.contains("\"id\":\"b\""), "{cached}");
    assert_eq!(ids(&listed(&bench, &[])), ["c", "b"]);
}

#[test]
fn old_runs_are_removed_by_a_new_run_but_none_with_work_left() {
    let bench = Workbench::new();
    bench.write("glovebox.toml", "[run]\nkeep_runs = 1\n");
    for (file, text) in [("same", "true"), ("writes", "echo x > out.txt; echo y > more.txt"), ("fails", "false")] {
        bench.write(&format!("{file}.dot"), &command(text));
    }
    let run = |file: &str, id: &str, code| {
        bench.glovebox(&["run", &format!("{file}.dot"), "--run-id", id]).ends(code);
    };
    let left = |expected: &[&str]| assert_eq!(ids(&listed(&bench, &[])), expected);
    run("same", "a", 0);
    run("writes", "b", 0);
    left(&["b"]);
    run("fails", "c", 1);
    run("same", "d", 0);
    let removed = run_says(&bench, "same", "e");
    assert!(removed.contains("removed 1 old run (") && removed.contains("`keep_runs` under `[run]`"), "{removed}");
    left(&["e", "c", "b"]);
    bench.glovebox(&["apply", "b", "--", "out.txt"]).ends(0).says("applied 1 of 2");
    bench.glovebox(&["gc", "--dry-run"]).ends(0).says("0 runs");
    bench.glovebox(&["apply", "b"]).ends(0);
    bench.glovebox(&["fork", "b", "t", "--run-id", "fork"]).ends(0);
    bench.glovebox(&["apply", "fork"]).ends(0);
    bench.glovebox(&["gc"]).ends(0).says("removed e (");
    left(&["fork", "c", "b"]);
    bench.glovebox(&["rm", "fork"]).ends(0);
    bench.write("glovebox.toml", "[run]\nkeep_runs = \"all\"\n");
    bench.glovebox(&["gc"]).ends(0).says("0 runs");
    bench.write("glovebox.toml", "[run]\nkeep_runs = 1\n");
    bench.glovebox(&["gc", "--dry-run"]).ends(0).says("would remove b (").says("1 run\n");
    // The folder of runs may belong to several projects.
    let other = bench.outside().join("other");
    std::fs::create_dir(&other).unwrap();
    std::fs::write(other.join("same.dot"), command("true")).unwrap();
    std::fs::write(other.join("glovebox.toml"), "[run]\nkeep_runs = 1\n").unwrap();
    let shared = bench.run_folder(".").to_string_lossy().into_owned();
    for id in ["x", "y"] {
        let mut command = workbench::glovebox_in(&other);
        Answer::of(command.args(["run", "same.dot", "--run-id", id, "--runs-dir", &shared])).ends(0);
    }
    left(&["y", "c", "b"]);
}

fn run_says(bench: &Workbench, file: &str, id: &str) -> String {
    let run = bench.glovebox(&["run", &format!("{file}.dot"), "--run-id", id]);
    run.ends(0).stderr.clone()
}

#[test]
fn a_run_that_is_under_way_is_no_old_run() {
    let (bench, mut child) = under_way();
    bench.write("glovebox.toml", "[run]\nkeep_runs = 1\n");
    bench.write("same.dot", &command("true"));
    for id in ["a", "b"] {
        bench.glovebox(&["run", "same.dot", "--run-id", id]).ends(0);
    }
    assert_eq!(ids(&listed(&bench, &[])), ["b", "slow"]);
    child.kill().unwrap();
    child.wait().unwrap();
    bench.glovebox(&["run", "same.dot", "--run-id", "c"]).ends(0);
    assert_eq!(ids(&listed(&bench, &[])), ["c", "slow"], "it can be resumed");
}

#[test]
fn a_run_without_builds_takes_less_than_a_megabyte() {
    let bench = Workbench::new();
    let stages: String = (0..10)
        .map(|n| {
            format!(
                "t{n} [shape=parallelogram, allowed_write_paths=\"out/\", \
                 tool_command=\"mkdir -p out; seq 1000 > out/{n}.txt; seq 2000; git log --oneline\"]\n"
            )
        })
        .collect();
    let edges: String = (0..10).map(|n| format!("t{n} -> ")).collect();
    bench.write(
        "pipeline.dot",
        &format!("digraph ten {{ start [shape=Mdiamond]; done [shape=Msquare]\n{stages} start -> {edges} done }}"),
    );
    std::fs::create_dir(bench.project().join("src")).unwrap();
    for n in 0..100 {
        bench.write(&format!("src/{n}.txt"), &"text of the project\n".repeat(500));
    }
    let git = |words: &[&str]| {
        let identity = ["-c", "user.name=t", "-c", "user.email=t@example.com"];
        assert!(
            Command::new("git").args(identity).args(words).current_dir(bench.project()).status().unwrap().success()
        );
    };
    [&["init", "-q"][..], &["add", "-A"], &["commit", "-qm", "a"]].into_iter().for_each(git);
    bench.glovebox(&["run", "--run-id", "r"]).ends(0);
    let entries = std::fs::read_dir(bench.run_folder("r")).unwrap().map(|entry| entry.unwrap().path());
    let mut known = BTreeSet::new();
    let others = entries.filter(|path| !path.ends_with("workspace"));
    let bytes: u64 = others.map(|path| disk_bytes(&path, &mut known)).sum();
    assert!(bytes < 1_000_000, "{bytes} bytes");
}

/// Returns the size on disk of a folder. A file with several hard links is counted once.
fn disk_bytes(path: &Path, known: &mut BTreeSet<u64>) -> u64 {
    let found = std::fs::symlink_metadata(path).unwrap();
    let own = if known.insert(found.ino()) { found.blocks() * 512 } else { 0 };
    let below = if found.is_dir() { std::fs::read_dir(path).unwrap().collect() } else { Vec::new() };
    own + below.into_iter().map(|entry| disk_bytes(&entry.unwrap().path(), known)).sum::<u64>()
}
