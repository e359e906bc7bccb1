//! Revocations, with the real binary: of components that run, wait or start a command, and of components that are to run.

use crate::guests;
use crate::workbench::{Answer, Workbench, not_run};
use glovebox_host::inspect::embed;
use serde_json::Value;
use std::fs;
use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

/// Maximum time from the end of `plugin revoke` to the end of the run. It is generous, because tests share the machine: the
/// measured time is printed.
const STOP_MAX: Duration = Duration::from_secs(10);

/// A project with a plugin, and a data folder of its own.
struct Bench {
    bench: Workbench,
}

impl Bench {
    /// Creates a project whose plugin has this body, and locks it. The stages are in the body of a pipeline.
    fn new(body: &str, stages: &str) -> Self {
        let text = format!("digraph g {{ start [shape=Mdiamond]; done [shape=Msquare]\n{stages} }}");
        let bench = Self { bench: Workbench::with_pipeline(&text) };
        let manifest = r#"{"name":"acme.todo","version":"0.1.0","description":"","wants":{}}"#;
        let bytes = embed(&guests::component(body), manifest).expect("a manifest");
        fs::write(bench.bench.project().join("todo.wasm"), bytes).unwrap();
        bench.bench.write("glovebox.toml", "[plugins.\"acme.todo\"]\npath = \"todo.wasm\"\n");
        bench.run(&["plugin", "lock"]).ends(0);
        bench
    }

    fn data(&self) -> PathBuf {
        self.bench.outside().join("data")
    }

    fn list(&self) -> PathBuf {
        self.data().join("revocations.json")
    }

    fn run(&self, words: &[&str]) -> Answer {
        Answer::of(self.bench.command(words).env("GLOVEBOX_DATA_DIR", self.data()))
    }

    fn revoke(&self, component: &str) -> Answer {
        self.run(&["plugin", "revoke", component, "--reason", "it leaks"])
    }

    /// Starts run `r`, and waits until a stage has begun.
    fn start(&self) -> Child {
        let mut command = self.bench.command(&["run", "pipeline.dot", "--run-id", "r"]);
        command.env("GLOVEBOX_DATA_DIR", self.data()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let child = command.spawn().unwrap();
        self.until("a stage begins", || !self.events("stage.started").is_empty());
        // The call begins after the record of its start.
        std::thread::sleep(Duration::from_millis(300));
        child
    }

    fn until(&self, what: &str, is_so: impl Fn() -> bool) {
        let end = Instant::now() + Duration::from_secs(60);
        while !is_so() {
            assert!(Instant::now() < end, "waited in vain: {what}");
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Returns the events of a kind of run `r` that were written so far.
    fn events(&self, kind: &str) -> Vec<Value> {
        let text = fs::read_to_string(self.bench.run_folder("r").join("progress.ndjson")).unwrap_or_default();
        let events = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        events.map(|record| record["event"].clone()).filter(|event| event["kind"] == kind).collect()
    }

    /// Waits for the end of a run whose component was revoked just now.
    #[track_caller]
    fn is_stopped(&self, what: &str, child: Child) {
        let begin = Instant::now();
        let answer = Answer::from_child(child);
        println!("{what}: the run ended {} ms after the revocation", begin.elapsed().as_millis());
        assert!(begin.elapsed() < STOP_MAX, "{:?}", begin.elapsed());
        answer.ends(7).says("it was revoked: it leaks").says("use another version of the plugin");
    }

    /// Returns the digest of a built-in component.
    fn builtin(&self, name: &str) -> String {
        let version = self.run(&["version", "--json"]).ends(0).json();
        let found = version["components"].as_array().unwrap().iter().find(|found| found["name"] == name).cloned();
        found.unwrap()["digest"].as_str().unwrap().to_owned()
    }
}

const LOOP: &str = "(func $execute (loop $again (br $again)))";
const STAGE: &str = "stage [type=\"acme.todo\"]\nstart -> stage -> done";

#[test]
fn a_running_component_is_stopped_and_never_starts_again() {
    let stages = "one [type=\"acme.todo\", max_retries=3]; two [type=\"acme.todo\"]\n\
                  start -> one; one -> done [condition=\"outcome=success\"]; one -> two [condition=\"outcome=fail\"]; two -> done";
    let bench = Bench::new(LOOP, stages);
    let child = bench.start();
    bench.revoke("todo.wasm").ends(0).says("calls that are under way are stopped");
    bench.is_stopped("an endless loop", child);
    // Neither a retry of the stage nor the next stage called the component, which never returns.
    let names: Vec<String> =
        bench.events("stage.finished").iter().map(|event| event["attempt"]["node"].to_string()).collect();
    let finished = bench.events("stage.finished");
    assert_eq!(finished.len(), 2, "{names:?} {finished:?}");
    for event in &finished {
        assert_eq!(event["outcome"]["failure"]["code"], "plugin/revoked", "{event}");
        assert_eq!(event["outcome"]["failure"]["class"], "contract", "{event}");
        assert!(event["ending"].to_string().contains("revoked"), "{event}");
        assert!(event["files"]["changes"].as_array().is_none_or(Vec::is_empty), "{event}");
    }
    bench.run(&["resume", "r"]).ends(7).says("it was revoked: it leaks").says("plugin revoke --list");
    assert_eq!(bench.events("stage.finished").len(), 2, "the resume called nothing");
}

#[test]
fn a_component_that_waits_inside_the_host_is_stopped() {
    let sleeps = fs::read_to_string(guests::folder().join("sleeps/guest.wat")).unwrap();
    let bench = Bench::new(&sleeps, STAGE);
    let child = bench.start();
    bench.revoke("todo.wasm").ends(0);
    bench.is_stopped("a wait", child);
    assert_eq!(bench.events("stage.finished").len(), 1);
}

#[test]
fn a_component_that_waits_for_a_command_is_stopped_and_nothing_is_committed() {
    let stage = "stage [shape=parallelogram, allowed_write_paths=\"src/\", max_retries=2, \
                 tool_command=\"mkdir -p src && echo 1 > src/one && sleep 300\"]\nstart -> stage -> done";
    let bench = Bench::new("(func $execute)", stage);
    let mut child = bench.start();
    if child.try_wait().unwrap().is_some() {
        drop(child);
        return not_run("a command of a revoked component is stopped", "no command starts in a sandbox here");
    }
    bench.revoke(&bench.builtin("tool")).ends(0);
    bench.is_stopped("a command", child);
    let finished = bench.events("stage.finished");
    assert_eq!((finished.len(), finished[0]["outcome"]["failure"]["code"].as_str()), (1, Some("plugin/revoked")));
    assert!(!bench.bench.run_folder("r").join("workspace/src/one").exists());
    assert!(bench.run(&["diff", "r"]).ends(0).stdout.is_empty());
}

#[test]
fn a_revoked_component_is_refused_everywhere_until_that_is_taken_back() {
    let bench = Bench::new("(func $execute)", STAGE);
    bench.run(&["run", "pipeline.dot"]).ends(0);
    bench.run(&["plugin", "revoke", "--list"]).ends(0).says("you have revoked nothing");
    let digest =
        bench.run(&["plugin", "inspect", "todo.wasm", "--json"]).ends(0).json()["digest"].as_str().unwrap().to_owned();
    bench.revoke(&digest).ends(0);
    bench.run(&["plugin", "revoke", &digest, "--reason", "another"]).ends(0).says("is revoked already: it leaks");
    let source = bench.bench.outside().join("again.wasm");
    fs::copy(bench.bench.project().join("todo.wasm"), &source).unwrap();
    for words in [
        &["run", "pipeline.dot"][..],
        &["plan", "pipeline.dot"],
        &["check", "pipeline.dot"],
        &["plugin", "lock"],
        &["plugin", "lock", "--locked"],
        &["plugin", "update", "acme.todo"],
        &["plugin", "test", "todo.wasm"],
        &["plugin", "push", "todo.wasm", "127.0.0.1:1/acme/todo"],
    ] {
        bench.run(words).ends(7).says("may not run: it was revoked: it leaks");
    }
    bench.run(&["plugin", "ls"]).ends(0).says("does not run").says("it was revoked: it leaks");
    bench.run(&["plugin", "inspect", "todo.wasm"]).ends(0).says("revoked   it was revoked: it leaks");
    // A configuration with errors hides no revocation.
    let config = bench.bench.read("glovebox.toml");
    bench.bench.write("glovebox.toml", "[plugin]");
    bench.run(&["plugin", "inspect", "todo.wasm"]).ends(0).says("revoked   it was revoked: it leaks");
    bench.bench.write("glovebox.toml", &config);
    let listed = bench.run(&["plugin", "revoke", "--list"]);
    listed.ends(0).says(&digest).says("it leaks");
    let json = bench.run(&["plugin", "revoke", "--list", "--json"]).ends(0).json();
    assert_eq!(
        (json["schema_version"].as_u64(), json["revoked"][0]["digest"].as_str()),
        (Some(1), Some(digest.as_str()))
    );
    bench.run(&["plugin", "revoke", "--undo", &format!("blake3:{}", "0".repeat(64))]).ends(2).says("is not revoked");
    bench.run(&["plugin", "remove", "acme.todo"]).ends(0);
    bench.run(&["plugin", "add", source.to_str().unwrap(), "--accept"]).ends(7).says("it was revoked: it leaks");
    bench.run(&["plugin", "revoke", "--undo", &digest]).ends(0).says("may run again").says("it leaks");
    bench.run(&["plugin", "add", source.to_str().unwrap(), "--accept"]).ends(0);
    bench.run(&["run", "pipeline.dot"]).ends(0);
}

#[test]
fn wrong_command_lines_revoke_nothing() {
    let bench = Bench::new("(func $execute)", STAGE);
    for (words, says) in [
        (&[][..], "required"),
        (&["todo.wasm"], "--reason"),
        (&["none.wasm", "--reason", "x"], "none.wasm"),
        (&["blake3:00", "--reason", "x"], "is not a digest"),
        (&["todo.wasm", "--reason", " "], "is not one line"),
        (&["todo.wasm", "--reason", "a\u{202e}b"], "is not one line"),
        (&["todo.wasm", "--reason", "a\nb"], "is not one line"),
        (&["todo.wasm", "--reason", "x", "--publish", "list.json"], "--key"),
        (&["todo.wasm", "--reason", "x", "--list"], "cannot be used with"),
        (&["--undo", "text"], "is not a digest"),
    ] {
        bench.run(&[&["plugin", "revoke"], words].concat()).ends(2).says(says);
    }
    let long = "x".repeat(501);
    bench.run(&["plugin", "revoke", "todo.wasm", "--reason", &long]).ends(2).says("is not one line of 1 to 500");
    assert!(!bench.list().exists());
    bench.run(&["run", "pipeline.dot"]).ends(0);
}

#[test]
fn a_damaged_list_stops_everything_and_is_not_replaced() {
    let bench = Bench::new(LOOP, STAGE);
    let child = bench.start();
    bench.revoke(&format!("blake3:{}", "1".repeat(64))).ends(0);
    let whole = fs::read(bench.list()).unwrap();
    let replace = |bytes: &[u8]| {
        let beside = bench.data().join("beside");
        fs::write(&beside, bytes).unwrap();
        fs::rename(beside, bench.list()).unwrap();
    };
    replace(b"{\"schema_version\": 1, \"revoked\": [");
    let begin = Instant::now();
    Answer::from_child(child).ends(7).says("cannot be read, so no component may run");
    assert!(begin.elapsed() < STOP_MAX, "{:?}", begin.elapsed());
    let mut hostile =
        vec![Vec::new(), b"\xff".to_vec(), vec![b'['; 100_000], b"{\"schema_version\":9,\"revoked\":[]}".to_vec()];
    hostile.push(vec![b' '; (8 << 20) + 1]);
    hostile.push(String::from_utf8(whole.clone()).unwrap().replace("it leaks", "\\u001b[2J").into_bytes());
    for bytes in &hostile {
        replace(bytes);
        bench
            .run(&["run", "pipeline.dot"])
            .ends(7)
            .says("cannot be read, so no component may run")
            .never_says("\u{1b}");
        bench.run(&["plan", "pipeline.dot"]).ends(7).says("cannot be read");
        bench.revoke("todo.wasm").ends(7).says("nothing was written");
        assert_eq!(fs::read(bench.list()).unwrap(), *bytes);
    }
    fs::remove_file(bench.list()).unwrap();
    fs::create_dir(bench.list()).unwrap();
    bench.run(&["run", "pipeline.dot"]).ends(7).says("cannot be read, so no component may run");
    fs::remove_dir(bench.list()).unwrap();
    replace(&whole);
    bench.run(&["plan", "pipeline.dot"]).ends(0);
}

#[test]
fn many_revocations_at_once_lose_nothing() {
    let bench = Bench::new("(func $execute)", STAGE);
    std::thread::scope(|scope| {
        for digit in 1..=8 {
            let bench = &bench;
            scope.spawn(move || {
                bench.revoke(&format!("blake3:{}", digit.to_string().repeat(64))).ends(0);
            });
        }
    });
    let json = bench.run(&["plugin", "revoke", "--list", "--json"]).ends(0).json();
    assert_eq!(json["revoked"].as_array().unwrap().len(), 8);
    let left: Vec<_> = fs::read_dir(bench.data()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, ["revocations.json"]);
}

#[test]
fn a_signed_list_revokes_what_its_key_covers() {
    let bench = Bench::new("(func $execute)", STAGE);
    let project = &bench.bench;
    let keys: Vec<String> =
        ["acme", "zeta"].iter().map(|name| project.outside().join(name).to_str().unwrap().to_owned()).collect();
    let lines: Vec<String> =
        keys.iter().map(|key| bench.run(&["plugin", "keygen", key]).ends(0).stdout.trim().to_owned()).collect();
    let publish = |key: &str, file: &str| {
        bench.run(&["plugin", "revoke", "todo.wasm", "--reason", "it leaks", "--publish", file, "--key", key])
    };
    let plugins = project.read("glovebox.toml");
    let config = |line: &str, pattern: &str| {
        let key = format!("[[trust.key]]\nname = \"k\"\nkey = \"{line}\"\nplugins = [\"{pattern}\"]\n");
        project.write("glovebox.toml", &format!("{plugins}[trust]\nrevocations = [\"revoked.json\"]\n{key}"));
    };
    let run = || bench.run(&["run", "pipeline.dot"]);
    // The key covers no name of the project, so that no signature is needed here.
    config(&lines[0], "acme.other");
    run().ends(7).says("revoked.json` cannot be read, so no component may run");
    publish(&keys[0], "revoked.json").ends(0).says("publish the file");
    assert!(!bench.list().exists(), "the own list is another one");
    run().ends(0);
    let key = &keys[0];
    bench.run(&["plugin", "sign", "todo.wasm", "--key", key]).ends(0);
    config(&lines[0], "acme.*");
    run().ends(7).says("it was revoked: it leaks").says("revoked.json");
    config(&lines[1], "*");
    run().ends(7).says("none of the keys in `[trust]` signed it");
    publish(&keys[1], "revoked.json").ends(7).says("nothing was written");
    let text = project.read("revoked.json");
    project.write("revoked.json", &text.replace("sig\":\"", "sig\":\"A"));
    config(&lines[0], "acme.*");
    run().ends(7).says("its signature is not valid");
    project.write("revoked.json", &text);
    let digest =
        bench.run(&["plugin", "inspect", "todo.wasm", "--json"]).ends(0).json()["digest"].as_str().unwrap().to_owned();
    bench.run(&["plugin", "revoke", "--undo", &digest, "--publish", "revoked.json", "--key", &keys[0]]).ends(0);
    run().ends(0);
}

/// A folder of the machine that commands may read cannot have the list in it: the sandbox does not open.
#[test]
fn no_stage_sees_the_list() {
    let stage = "stage [shape=parallelogram, allowed_write_paths=\"\", tool_command=\"cat $TOOLS/shown\"]\nstart -> stage -> done";
    let bench = Bench::new("(func $execute)", stage);
    let tools = bench.bench.outside().join("tools");
    fs::create_dir_all(&tools).unwrap();
    fs::write(tools.join("shown"), "shown").unwrap();
    let config = format!("[exec]\npath = [{tools:?}]\nenv = {{ TOOLS = {tools:?} }}\n");
    bench.bench.write("glovebox.toml", &config);
    let shown = bench.run(&["run", "pipeline.dot"]);
    if shown.code == 6 {
        return not_run("no stage sees the list of revocations", "no sandbox is available");
    }
    shown.ends(0);
    let data = tools.join("data");
    let run = |words: &[&str]| Answer::of(bench.bench.command(words).env("GLOVEBOX_DATA_DIR", &data));
    let digest = format!("blake3:{}", "1".repeat(64));
    run(&["plugin", "revoke", &digest, "--reason", "secret"]).ends(0);
    run(&["run", "pipeline.dot"]).ends(9).says("it would show").says("tools/data");
}
