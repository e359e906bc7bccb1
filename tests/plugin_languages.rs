//! The templates of `glovebox plugin new`: each is tested with its language's own tools, built with `plugin build`, and run against the
//! same table of behaviours. No test of a language has its own expectations.
//!
//! `cargo xtask plugin-tools` brings the tools. Without them, the test of a language is listed as not run.

use crate::workbench::{Answer, Workbench, is_plugin_tool_here, not_run, path_with_plugin_tools, root, wasm_sysroot};
use std::process::Command;

/// Target folder of the example that `cargo xtask components` builds. It has the packages of the SDK.
const BUILT: &str = "examples/quickstart/review-plugin/target";

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
    /// True if the cases of the template are run. Each is another component, and compiling one of Python takes 20 s.
    has_cases: bool,
}

const RUST: Language = Language {
    name: "rust",
    title: "Rust",
    tool: "cargo",
    own_test: &["cargo", "test", "--locked"],
    is_reproducible: true,
    has_cases: true,
};
const JAVASCRIPT: Language = Language {
    name: "js",
    title: "JavaScript",
    tool: "componentize-qjs",
    own_test: &["node", "--test"],
    is_reproducible: false,
    has_cases: true,
};
const PYTHON: Language = Language {
    name: "python",
    title: "Python",
    tool: "componentize-py",
    own_test: &["python3", "-m", "unittest"],
    is_reproducible: false,
    has_cases: false,
};
const C: Language =
    Language { name: "c", title: "C", tool: "clang", own_test: &[], is_reproducible: true, has_cases: true };

/// One behaviour: the attributes of the node, the files of the project, and what is expected.
struct Behaviour {
    what: &'static str,
    attributes: &'static str,
    files: &'static [(&'static str, &'static str)],
    exit: i32,
    says: &'static str,
    /// A file that the run wrote, with its content.
    written: Option<(&'static str, &'static str)>,
}

const BEHAVIOURS: [Behaviour; 6] = [
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

/// Adds the environment in which an author would work.
fn as_author(mut command: Command) -> Command {
    command.env("PATH", path_with_plugin_tools());
    command.env("CARGO_NET_OFFLINE", "true").env("CARGO_BUILD_BUILD_DIR", root().join(BUILT));
    for name in ["RUSTFLAGS", "CARGO_TARGET_DIR", "CARGO_BUILD_TARGET", "CARGO_ENCODED_RUSTFLAGS"] {
        command.env_remove(name);
    }
    if let Some(sysroot) = wasm_sysroot() {
        command.env("CARGO_TARGET_WASM32_WASIP2_RUSTFLAGS", format!("--sysroot={}", sysroot.display()));
    }
    command
}

fn glovebox(bench: &Workbench, words: &[&str]) -> Answer {
    Answer::of(&mut as_author(bench.bare(words)))
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
        Answer::of(&mut as_author(test)).ends(0);
    }
    if language.has_cases {
        glovebox(&author, &["plugin", "dev", "acme-todo", "--once"]).ends(0).says("2 passed, 0 failed").says("found=1");
    }
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
}

impl Behaviour {
    fn check(&self, component: &[u8], title: &str) {
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

/// The templates of the other worlds are built, and their cases are run.
#[test]
fn agents_and_verifiers() {
    for language in [&RUST, &JAVASCRIPT, &PYTHON, &C] {
        let Language { name, title, tool, .. } = language;
        if !is_plugin_tool_here(tool) {
            not_run(&format!("agents and verifiers in {title}"), &format!("no {tool}"));
            continue;
        }
        let author = Workbench::new();
        for world in ["agent", "verifier"] {
            let folder = format!("{world}-{name}");
            let new = ["plugin", "new", "acme.other", &folder, "--lang", name, "--world", world];
            author.glovebox(&new).ends(0);
            match language.has_cases {
                true => glovebox(&author, &["plugin", "dev", &folder, "--once"]).ends(0).says("2 passed, 0 failed"),
                false => glovebox(&author, &["plugin", "build", &folder]).ends(0).never_says("warning: "),
            };
        }
    }
}

#[test]
fn rules_are_built_in_rust() {
    let author = Workbench::new();
    author.glovebox(&["plugin", "new", "acme.house", "--world", "rules"]).ends(0);
    glovebox(&author, &["plugin", "build", "acme-house"]).ends(0).says("acme.house 0.1.0 (rules, Rust)");
    glovebox(&author, &["plugin", "dev", "acme-house", "--once"]).ends(2).says("they have no cases");
}

/// The template of a tool provider is built and called by an agent.
#[test]
fn tool_providers_are_built_in_rust() {
    let author = Workbench::new();
    author.glovebox(&["plugin", "new", "acme.finder", "--world", "tool-provider"]).ends(0);
    let built = glovebox(&author, &["plugin", "build", "acme-finder"]);
    built.ends(0).says("acme.finder 0.1.0 (tool-provider, Rust)").never_says("warning: ");
    glovebox(&author, &["plugin", "dev", "acme-finder", "--once"]).ends(2).says("it has no cases");
    let component = author.project().join("acme-finder/dist/acme.finder-0.1.0.wasm");
    let tested = author.glovebox(&["plugin", "test", component.to_str().unwrap()]);
    tested.ends(0).says("tools.list").says("tools.odd").says("6 passed;");
    author
        .glovebox(&["plugin", "inspect", component.to_str().unwrap()])
        .ends(0)
        .says("tool-provider")
        .says("agents call its tools");
    let bench = Workbench::with_pipeline(
        "digraph g {\n  start [shape=Mdiamond]; done [shape=Msquare]\n  work [prompt=\"x\", tools=\"acme.finder\", allowed_write_paths=\"\"]\n\
         start -> work -> done\n}\n",
    );
    std::fs::copy(component, bench.project().join("finder.wasm")).unwrap();
    let grants = "grants = { filesystem = \"workspace\", read = [\"src/\"] }";
    bench.write(
        "glovebox.toml",
        &format!("[plugins.\"acme.finder\"]\npath = \"finder.wasm\"\ntools = \"*\"\n{grants}\n"),
    );
    bench.write("src/deep/a.txt", "one\ntwo needle\n");
    let call = |folder: &str| {
        format!(
            "[[node.work]]\ntool = [{{ name = \"plugin__acme-finder__find_text\", arguments = {{ text = \"needle\", folder = \"{folder}\" }} }}]\n"
        )
    };
    bench.write("model.toml", &(call("src") + &call("secrets") + "[[node.work]]\ntext = \"OUTCOME: SUCCESS\"\n"));
    bench.glovebox(&["plugin", "lock"]).ends(0);
    bench.glovebox(&["run", "pipeline.dot", "--script", "model.toml", "--run-id", "r"]).ends(0);
    let transcript = bench.run_text("r", "work/transcript.ndjson");
    assert!(
        transcript.contains("src/deep/a.txt:2: two needle") && transcript.contains("cannot read `secrets`"),
        "{transcript}"
    );
}

/// The template of a policy is built, and judges a run.
#[test]
fn policies_are_built_in_rust() {
    let author = Workbench::new();
    author.glovebox(&["plugin", "new", "acme.guard", "--world", "policy"]).ends(0);
    glovebox(&author, &["plugin", "build", "acme-guard"]).ends(0).says("acme.guard 0.1.0 (policy, Rust)");
    let component = author.project().join("acme-guard/dist/acme.guard-0.1.0.wasm");
    author.glovebox(&["plugin", "test", component.to_str().unwrap()]).ends(0).says("policy.odd").says("4 passed;");
    let stage = "shape=parallelogram, allowed_write_paths=\"\", tool_command";
    let bench = Workbench::with_pipeline(&format!(
        "digraph g {{\n  start [shape=Mdiamond]; done [shape=Msquare]\n  review [{stage}=\"true\"]; deploy [{stage}=\"true\"]\n\
         start -> review -> deploy -> done\n}}\n"
    ));
    std::fs::copy(component, bench.project().join("guard.wasm")).unwrap();
    bench.write("glovebox.toml", "[policy.\"acme.guard\"]\npath = \"guard.wasm\"\n");
    bench.glovebox(&["plugin", "lock"]).ends(0);
    bench.glovebox(&["run", "pipeline.dot"]).ends(0);
    bench.write(
        "pipeline.dot",
        &bench.read("pipeline.dot").replace("review -> deploy", "deploy").replace("review [", "other ["),
    );
    bench.write("pipeline.dot", &bench.read("pipeline.dot").replace("start -> deploy", "start -> other -> deploy"));
    bench.glovebox(&["run", "pipeline.dot"]).ends(6).says("`deploy` needs a successful `review` before it");
}

#[test]
fn what_cannot_run_is_not_written() {
    let bench = Workbench::new();
    let refused = |words: &[&str], expected: &str| {
        bench.glovebox(&[&["plugin", "new", "acme.x"], words].concat()).ends(2).says(expected);
        assert!(!bench.has("acme-x"));
    };
    for language in ["js", "python", "c"] {
        refused(&["--lang", language, "--world", "tool-provider"], "a template of a tool provider in Rust only");
        refused(&["--lang", language, "--world", "policy"], "a policy can be written in Rust only");
        refused(&["--lang", language, "--world", "rules"], "rules can be written in Rust only");
    }
    refused(&["--lang", "go"], "invalid value 'go'");
    refused(&["--world", "planner"], "invalid value 'planner'");
}
