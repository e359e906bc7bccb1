//! The templates of `glovebox plugin new`: each is tested with its language's own tools, built with `plugin build`, run against the same
//! table of behaviours, and published, used, updated and revoked in the same way. No test of a language has its own expectations.
//!
//! `cargo xtask plugin-tools` brings the tools. Without them, the test of a language is listed as not run.

use crate::registries::server::Registry;
use crate::workbench::{Answer, Workbench, as_author, is_plugin_tool_here, not_run};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

/// A language, and what its projects need.
struct Language {
    name: &'static str,
    title: &'static str,
    /// The program that builds components.
    tool: &'static str,
    /// The test of the template, if the language offers one.
    own_test: &'static [&'static str],
    /// True if a build of the same files gives the same bytes.
    is_reproducible: bool,
}

const RUST: Language = Language {
    name: "rust",
    title: "Rust",
    tool: "cargo",
    own_test: &["cargo", "test", "--locked"],
    is_reproducible: true,
};
const JAVASCRIPT: Language = Language {
    name: "js",
    title: "JavaScript",
    tool: "componentize-qjs",
    own_test: &["node", "--test"],
    is_reproducible: false,
};
const PYTHON: Language = Language {
    name: "python",
    title: "Python",
    tool: "componentize-py",
    own_test: &["python3", "-m", "unittest"],
    is_reproducible: false,
};
const C: Language = Language { name: "c", title: "C", tool: "clang", own_test: &[], is_reproducible: true };

/// One behaviour: the attributes of the node, the files of the project, and what is expected.
pub(crate) struct Behaviour {
    what: &'static str,
    attributes: &'static str,
    files: &'static [(&'static str, &'static str)],
    exit: i32,
    says: &'static str,
    /// A file that the run wrote, with its content.
    written: Option<(&'static str, &'static str)>,
}

pub(crate) const BEHAVIOURS: [Behaviour; 6] = [
    Behaviour {
        what: "succeeds, with the default of an attribute",
        attributes: "",
        files: &[("src/a.txt", "fine\n"), ("lib/b.txt", "TODO\n")],
        exit: 0,
        says: "success",
        written: None,
    },
    Behaviour {
        what: "fails with a reason, after reading a file in a folder of a folder",
        attributes: "",
        files: &[("src/a.txt", "fine\n"), ("src/deep/b.txt", "fine\nTODO: ü\n")],
        exit: 1,
        says: "src/deep/b.txt:2 has a TODO",
        written: None,
    },
    Behaviour {
        what: "reads an attribute",
        attributes: ", folder=\"src/deep/\"",
        files: &[("src/a.txt", "TODO\n"), ("src/deep/b.txt", "fine\n")],
        exit: 0,
        says: "success",
        written: None,
    },
    Behaviour {
        what: "writes a file in its scope",
        attributes: ", output=\"report.txt\", allowed_write_paths=\"report.txt\"",
        files: &[("src/a.txt", "TODO\nTODO\n")],
        exit: 1,
        says: "src/a.txt:1 has a TODO",
        written: Some(("report.txt", "src/a.txt:1 has a TODO\nsrc/a.txt:2 has a TODO\n")),
    },
    Behaviour {
        what: "cannot write outside of its scope",
        attributes: ", output=\"src/report.txt\", allowed_write_paths=\"report.txt\"",
        files: &[("src/a.txt", "fine\n")],
        exit: 1,
        says: "cannot write `src/report.txt`",
        written: None,
    },
    Behaviour {
        what: "cannot read what does not exist",
        attributes: ", folder=\"src/nothing\"",
        files: &[("src/a.txt", "fine\n")],
        exit: 1,
        says: "cannot read `src/nothing`",
        written: None,
    },
];

fn glovebox(bench: &Workbench, words: &[&str]) -> Answer {
    Answer::of(as_author(&mut bench.bare(words)))
}

fn digest(built: &Answer) -> String {
    built.stdout.lines().find_map(|line| line.strip_prefix("digest")).unwrap().trim().to_owned()
}

/// Makes, tests, builds and runs the template of a language.
fn check(language: &Language) {
    let Language { name, title, tool, .. } = language;
    if !is_plugin_tool_here(tool) {
        return not_run(&format!("the template for plugins in {title}"), &format!("no {tool}"));
    }
    let author = Workbench::new();
    author.glovebox(&["plugin", "new", "acme.todo", "--lang", name]).ends(0).says("wrote `acme-todo`").says(title);
    let folder = author.project().join("acme-todo");
    if let Some((program, words)) = language.own_test.split_first() {
        let mut test = Command::new(program);
        test.args(words).current_dir(&folder);
        Answer::of(as_author(&mut test)).ends(0);
    }
    glovebox(&author, &["plugin", "dev", "acme-todo", "--once"]).ends(0).says("2 passed, 0 failed").says("found=1");
    let built = glovebox(&author, &["plugin", "build", "acme-todo"]);
    built.ends(0).says(&format!("acme.todo 0.1.0 (handler, {title})")).never_says("warning: the component imports");
    if language.is_reproducible {
        std::fs::remove_dir_all(folder.join("build")).ok();
        assert_eq!(digest(&built), digest(&glovebox(&author, &["plugin", "build", "acme-todo"])));
    }
    glovebox(&author, &["plugin", "test", "acme-todo/dist/acme.todo-0.1.0.wasm"]).ends(0);
    let component = std::fs::read(folder.join("dist/acme.todo-0.1.0.wasm")).unwrap();
    for behaviour in &BEHAVIOURS {
        behaviour.check(&component, title);
    }
    is_distributed(&author);
}

/// A call of the plugin after another one, without end.
const ENDLESS: &str = "digraph g {\n  graph [max_steps=10000]\n  start [shape=Mdiamond]; done [shape=Msquare]\n  todo [type=\"acme.todo\"]\n\
    start -> todo; todo -> todo [condition=\"outcome=success\"]; todo -> done [condition=\"outcome=skipped\"]\n}\n";

/// Publishes the built plugin. A second project adds it, is asked about a version that wants more, and stops a run that is under way.
fn is_distributed(author: &Workbench) {
    let registry = Registry::start();
    let named = registry.named("acme/todo");
    let key = author.outside().join("acme.key");
    author.glovebox(&["plugin", "keygen", key.to_str().unwrap()]).ends(0);
    let publish = |version: &str| {
        let file = format!("acme-todo/dist/acme.todo-{version}.wasm");
        author.glovebox(&["plugin", "sign", &file, "--key", key.to_str().unwrap()]).ends(0);
        author.glovebox(&["plugin", "push", &file, &named]).ends(0).says(&format!("{named}:{version}@sha256:"));
    };
    publish("0.1.0");
    let project = Workbench::with_pipeline(ENDLESS);
    project.write("one.dot", &ENDLESS.replace("todo -> todo [", "todo -> done ["));
    project.write("src/a.txt", "fine\n");
    std::fs::copy(key.with_extension("key.pub"), project.project().join("acme.pub")).unwrap();
    project.write("glovebox.toml", "[[trust.key]]\nname = \"acme\"\npath = \"acme.pub\"\nplugins = [\"acme.*\"]\n");
    project.glovebox(&["plugin", "add", &named]).ends(6).says("acme.todo 0.1.0 (handler)").says("src/");
    project.glovebox(&["plugin", "add", &named, "--accept"]).ends(0);
    project.glovebox(&["run", "one.dot", "--locked"]).ends(0);

    let text = author.read("acme-todo/plugin.toml").replace("version = \"0.1.0\"", "version = \"0.2.0\"");
    author.write("acme-todo/plugin.toml", &text.replace("read = [\"src/\"]", "read = [\"src/\", \"docs/\"]"));
    glovebox(author, &["plugin", "build", "acme-todo"]).ends(0);
    publish("0.2.0");
    let before = project.snapshot();
    project.glovebox(&["plugin", "update", "acme.todo"]).ends(6).says("docs/").says("nothing was written");
    assert_eq!(project.snapshot(), before);
    project.glovebox(&["plugin", "update", "acme.todo", "--accept"]).ends(0);
    project.glovebox(&["run", "one.dot", "--locked"]).ends(0);

    let run = project.start(&["run", "pipeline.dot", "--run-id", "endless"]);
    let began = Instant::now();
    let visits = || std::fs::read_to_string(project.run_folder("endless").join("progress.ndjson")).unwrap_or_default();
    while visits().matches("stage.finished").count() < 2 {
        assert!(began.elapsed() < Duration::from_secs(60), "the run does not call the plugin");
        thread::sleep(Duration::from_millis(20));
    }
    let plugins = project.glovebox(&["plugin", "ls", "--json"]).ends(0).json();
    let digest = plugins[0]["digest"].as_str().unwrap_or_else(|| panic!("{plugins}"));
    project.glovebox(&["plugin", "revoke", digest, "--reason", "it leaks"]).ends(0);
    Answer::from_child(run).ends(7).says("it was revoked: it leaks");
    project.glovebox(&["run", "one.dot"]).ends(7).says("it was revoked: it leaks");
}

impl Behaviour {
    pub(crate) fn check(&self, component: &[u8], title: &str) {
        println!("{title}: {}", self.what);
        let bench = Workbench::with_pipeline(&format!(
            "digraph g {{\n  start [shape=Mdiamond]; done [shape=Msquare]\n  todo [type=\"acme.todo\"{}]\n  start -> todo -> done\n}}\n",
            self.attributes
        ));
        std::fs::write(bench.project().join("todo.wasm"), component).unwrap();
        bench.write(
            "glovebox.toml",
            "[plugins.\"acme.todo\"]\npath = \"todo.wasm\"\n\
             grants = { filesystem = \"workspace\", read = [\"src/\"], write = [\"report.txt\"] }\n",
        );
        for (path, text) in self.files {
            bench.write(path, text);
        }
        bench.glovebox(&["plugin", "lock"]).ends(0);
        bench.glovebox(&["run", "pipeline.dot", "--run-id", "r"]).ends(self.exit).says(self.says);
        let report = bench.run_folder("r").join("workspace/report.txt");
        assert_eq!(report.exists(), self.written.is_some(), "{title}: {}", self.what);
        if let Some((path, text)) = self.written {
            assert_eq!(bench.run_text("r", &format!("workspace/{path}")), text);
        }
        assert!(!bench.run_folder("r").join("workspace/src/report.txt").exists());
    }
}

#[test]
fn rust() {
    check(&RUST);
}

#[test]
fn javascript() {
    check(&JAVASCRIPT);
}

#[test]
fn python() {
    check(&PYTHON);
}

#[test]
fn c() {
    check(&C);
}

/// Builds the templates of the other stages, and runs their cases.
fn check_other_worlds(language: &Language) {
    let Language { name, title, tool, .. } = language;
    if !is_plugin_tool_here(tool) {
        return not_run(&format!("agents and verifiers in {title}"), &format!("no {tool}"));
    }
    let author = Workbench::new();
    for world in ["agent", "verifier"] {
        let folder = format!("{world}-{name}");
        let new = ["plugin", "new", &format!("acme.{world}"), &folder, "--lang", name, "--world", world];
        author.glovebox(&new).ends(0);
        glovebox(&author, &["plugin", "dev", &folder, "--once"]).ends(0).says("2 passed, 0 failed");
    }
}

#[test]
fn agents_and_verifiers_in_rust() {
    check_other_worlds(&RUST);
}

#[test]
fn agents_and_verifiers_in_javascript() {
    check_other_worlds(&JAVASCRIPT);
}

#[test]
fn agents_and_verifiers_in_python() {
    check_other_worlds(&PYTHON);
}

#[test]
fn agents_and_verifiers_in_c() {
    check_other_worlds(&C);
}

/// Makes and builds the template of a world that is no stage, and returns the component.
fn built(author: &Workbench, language: &Language, world: &str) -> PathBuf {
    let Language { name, title, .. } = language;
    let new = ["plugin", "new", "acme.house", world, "--lang", name, "--world", world];
    author.glovebox(&new).ends(0).says(title);
    let built = glovebox(author, &["plugin", "build", world]);
    built.ends(0).says(&format!("acme.house 0.1.0 ({world}, {title})")).never_says("warning: ");
    glovebox(author, &["plugin", "dev", world, "--once"]).ends(2).says("no cases");
    author.project().join(world).join("dist/acme.house-0.1.0.wasm")
}

/// Builds the templates of tool providers, rules and policies, and uses each in a project.
fn check_worlds_without_stages(language: &Language) {
    let Language { title, tool, .. } = language;
    if !is_plugin_tool_here(tool) {
        return not_run(&format!("tool providers, rules and policies in {title}"), &format!("no {tool}"));
    }
    let author = Workbench::new();
    offers_a_tool(&author, &built(&author, language, "tool-provider"));
    reports_agents(&built(&author, language, "rules"));
    judges_edges(&author, &built(&author, language, "policy"));
}

/// Expects that an agent finds a text with the tool, and reads no file outside of the grant.
fn offers_a_tool(author: &Workbench, component: &Path) {
    let path = component.to_str().unwrap();
    let tested = author.glovebox(&["plugin", "test", path]);
    tested.ends(0).says("tools.list").says("tools.odd").says("6 passed;");
    author.glovebox(&["plugin", "inspect", path]).ends(0).says("tool-provider").says("agents call its tools");
    let bench = Workbench::with_pipeline(
        "digraph g {\n  start [shape=Mdiamond]; done [shape=Msquare]\n  work [prompt=\"x\", tools=\"acme.house\", allowed_write_paths=\"\"]\n\
         start -> work -> done\n}\n",
    );
    std::fs::copy(component, bench.project().join("house.wasm")).unwrap();
    let grants = "grants = { filesystem = \"workspace\", read = [\"src/\"] }";
    bench
        .write("glovebox.toml", &format!("[plugins.\"acme.house\"]\npath = \"house.wasm\"\ntools = \"*\"\n{grants}\n"));
    bench.write("src/deep/a.txt", "one\n  two \"needle\" ü\n");
    std::fs::write(bench.project().join("src/odd.bin"), b"\xff\"needle\"\n").unwrap();
    let call = |folder: &str| {
        format!(
            "[[node.work]]\ntool = [{{ name = \"plugin__acme-house__find_text\", arguments = {{ text = '\"needle\"', folder = \"{folder}\" }} }}]\n"
        )
    };
    bench.write("model.toml", &(call("src/") + &call("secrets") + "[[node.work]]\ntext = \"OUTCOME: SUCCESS\"\n"));
    bench.glovebox(&["plugin", "lock"]).ends(0);
    bench.glovebox(&["run", "pipeline.dot", "--script", "model.toml", "--run-id", "r"]).ends(0);
    let transcript = bench.run_text("r", "work/transcript.ndjson");
    for expected in ["src/deep/a.txt:2: two \\\"needle\\\"", "cannot read `secrets"] {
        assert!(transcript.contains(expected), "no {expected} in {transcript}");
    }
}

/// Expects that a check reports the one agent that has no timeout.
fn reports_agents(component: &Path) {
    let bench = Workbench::with_pipeline(
        "digraph g {\n  start [shape=Mdiamond]; done [shape=Msquare]\n  a [prompt=\"x \\\" ü\", allowed_write_paths=\"\"]\n\
         b [prompt=\"x\", timeout=\"15m\", allowed_write_paths=\"\"]\n  start -> a -> b -> done\n}\n",
    );
    std::fs::copy(component, bench.project().join("house.wasm")).unwrap();
    bench.write("glovebox.toml", "[rules.\"acme.house\"]\npath = \"house.wasm\"\n");
    bench.glovebox(&["plugin", "lock"]).ends(0);
    let checked = bench.glovebox(&["check", "pipeline.dot"]);
    checked.ends(3).says("`a` has no timeout").says("add `timeout=").never_says("`b` has no timeout");
}

/// Expects that a deployment without a review is refused, and one after a review is not.
fn judges_edges(author: &Workbench, component: &Path) {
    author.glovebox(&["plugin", "test", component.to_str().unwrap()]).ends(0).says("policy.odd").says("4 passed;");
    let stage = "shape=parallelogram, allowed_write_paths=\"\", tool_command";
    let bench = Workbench::with_pipeline(&format!(
        "digraph g {{\n  start [shape=Mdiamond]; done [shape=Msquare]\n  review [{stage}=\"true\"]; deploy [{stage}=\"true\"]\n\
         start -> review -> deploy -> done\n}}\n"
    ));
    std::fs::copy(component, bench.project().join("house.wasm")).unwrap();
    bench.write("glovebox.toml", "[policy.\"acme.house\"]\npath = \"house.wasm\"\n");
    bench.glovebox(&["plugin", "lock"]).ends(0);
    bench.glovebox(&["run", "pipeline.dot"]).ends(0);
    bench.write("pipeline.dot", &bench.read("pipeline.dot").replace("review", "other"));
    bench.glovebox(&["run", "pipeline.dot"]).ends(6).says("`deploy` needs a successful `review` before it");
}

#[test]
fn worlds_without_stages_in_rust() {
    check_worlds_without_stages(&RUST);
}

#[test]
fn worlds_without_stages_in_javascript() {
    check_worlds_without_stages(&JAVASCRIPT);
}

#[test]
fn worlds_without_stages_in_python() {
    check_worlds_without_stages(&PYTHON);
}

#[test]
fn worlds_without_stages_in_c() {
    check_worlds_without_stages(&C);
}

#[test]
fn what_cannot_run_is_not_written() {
    let bench = Workbench::new();
    let refused = |words: &[&str], expected: &str| {
        bench.glovebox(&[&["plugin", "new", "acme.x"], words].concat()).ends(2).says(expected);
        assert!(!bench.has("acme-x"));
    };
    refused(&["--lang", "go"], "invalid value 'go'");
    refused(&["--world", "planner"], "invalid value 'planner'");
}
