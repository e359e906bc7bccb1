//! `glovebox init` in real projects of each kind: the files that it writes pass the checks, and `glovebox run` succeeds
//! without another edit.
//!
//! A test whose tool is not on this machine prints `not run:`. `cargo xtask test` counts these and lists them in its
//! summary.

mod attempts;
mod kinds;
mod messages;
mod python;

use crate::workbench::{self, Answer, Workbench, copy_tree, is_on_this_machine, root};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A project of one kind, and the expected results of its first run.
struct Project {
    /// Folder of the project in `tests/projects/`.
    kind: &'static str,
    /// Program that must be on this machine.
    program: &'static str,
    /// Installs the dependencies of the project as its user would.
    install: fn(&Path) -> Result<(), String>,
    /// Expected command of the stage `test`.
    command: &'static str,
    /// Line of `init` that says what it found.
    found: &'static str,
}

impl Project {
    /// Creates a project that needs no installation.
    fn new(kind: &'static str, program: &'static str, found: &'static str, command: &'static str) -> Self {
        Self { kind, program, install: nothing_to_install, command, found }
    }
}

/// Copies a project of this kind.
fn place(kind: &str) -> Workbench {
    let bench = Workbench::new();
    copy_tree(&root().join("tests/projects").join(kind), &bench.project());
    bench
}

/// Runs a command without `--simulate`, which other suites add.
fn bare(bench: &Workbench, words: &[&str]) -> Answer {
    Answer::of(&mut bench.bare(words))
}

/// Makes the project a repository with one commit of all files that are not ignored.
fn commit(bench: &Workbench) {
    let identity = ["-c", "user.name=t", "-c", "user.email=t@example.com"];
    for words in [&["init", "-q"][..], &["add", "-A"], &["commit", "-q", "-m", "start"]] {
        let ended = Command::new("git").args(identity).args(words).current_dir(bench.project()).status().unwrap();
        assert!(ended.success(), "git {words:?}");
    }
}

/// Runs a command in a folder outside of the sandbox. The error is the output of the command.
fn user(folder: &Path, words: &[&str]) -> Result<(), String> {
    let ended =
        Command::new(words[0]).args(&words[1..]).current_dir(folder).output().map_err(|error| error.to_string())?;
    match ended.status.success() {
        true => Ok(()),
        false => Err(format!(
            "{words:?}: {}{}",
            String::from_utf8_lossy(&ended.stdout),
            String::from_utf8_lossy(&ended.stderr)
        )),
    }
}

fn not_run(kind: &str, why: &str) {
    workbench::not_run(&format!("`glovebox init` in a project of kind {kind}"), why);
}

/// Checks what `init` finds, which needs no tool, and then what a run does, which needs the tool of the kind.
fn check(project: &Project) {
    let Project { kind, program, install, command, found } = project;
    let bench = place(kind);
    let installed = match is_on_this_machine(program) {
        true => install(&bench.project()),
        false => Err(format!("`{program}` is not on this machine")),
    };
    commit(&bench);
    bench
        .glovebox(&["init"])
        .ends(0)
        .says(found)
        .says("wrote    pipeline.dot")
        .says("wrote    glovebox.toml")
        .says(command);
    bench.glovebox(&["check", "--strict", "pipeline.dot"]).ends(0).says("0 errors, 0 warnings");
    bench.glovebox(&["fmt", "--check", "pipeline.dot"]).ends(0);
    if let Err(why) = installed {
        return not_run(kind, &why);
    }
    let before = bench.snapshot();
    let run = bare(&bench, &["run", "--run-id", "first"]);
    run.ends(0).says("success").says(&format!("verified     test: sh -c '{command}")).never_says("simulated  ");
    assert_eq!(bench.snapshot(), before, "{kind}: the project is as it was");
    let completed = bench.run_json("first", "checkpoint.json")["completed_nodes"].to_string();
    let has_build = bench.read("pipeline.dot").contains("build [");
    let expected = if has_build { r#"["start","build","test"]"# } else { r#"["start","test"]"# };
    assert_eq!(completed, expected, "{kind}: no model was needed");
    assert_eq!(bench.glovebox(&["diff", "first"]).ends(0).stdout, "", "{kind}: no by-products");
    run.never_says("changed  ").never_says("quarantined");
    fails_without_a_model(&bench, kind);
}

/// Makes the result of the project's code wrong. The run must reach the stage of the model, say that no model was
/// asked, and fail.
fn fails_without_a_model(bench: &Workbench, kind: &str) {
    let is_test = |path: &str| path.to_lowercase().contains("test") || path.contains(".glovebox");
    let sources: Vec<String> = bench.snapshot().into_iter().map(|(path, _)| path).collect();
    let ignored = ["node_modules/", ".venv/", ".tox/", ".nox/", "target/", "build/", ".git/"];
    let mut is_broken = false;
    for path in sources.iter().filter(|path| !is_test(path) && !ignored.iter().any(|folder| path.starts_with(folder))) {
        let file = bench.project().join(path);
        let Ok(text) = std::fs::read_to_string(&file) else { continue };
        if text.contains("m ") && text.contains("60") {
            std::fs::write(&file, text.replace("60", "59")).unwrap();
            is_broken = true;
        }
    }
    assert!(is_broken, "{kind}: no source with a duration in {sources:?}");
    bare(bench, &["run", "--run-id", "second"]).ends(1).says("no model was asked").says("not verified test");
}

fn nothing_to_install(_: &Path) -> Result<(), String> {
    Ok(())
}

#[test]
fn a_rust_project_with_a_crate_succeeds() {
    check(&Project {
        kind: "rust",
        program: "cargo",
        // A crate that this repository needs too, so it is available without a network.
        install: |folder| user(folder, &["cargo", "generate-lockfile", "--offline"]),
        command: "cargo test --offline",
        found: "found    Rust project: Cargo.toml",
    });
}

#[test]
fn a_node_project_with_a_dependency_succeeds() {
    check(&Project {
        kind: "node",
        program: "npm",
        install: |folder| user(folder, &["npm", "ci", "--offline"]),
        command: "npm test",
        found: "found    Node project: package.json (npm)",
    });
}

#[test]
fn a_node_project_with_a_store_of_pnpm_succeeds() {
    check(&Project {
        kind: "pnpm",
        program: "pnpm",
        install: |folder| user(folder, &["pnpm", "install", "--offline", "--frozen-lockfile"]),
        command: "npm test",
        found: "found    Node project: package.json (pnpm)",
    });
}

#[test]
fn a_workspace_of_pnpm_whose_script_calls_pnpm_succeeds() {
    let is_beside_node = |folder: &PathBuf| folder.join("pnpm").is_file() && folder.join("node").is_file();
    if !std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default()).any(|folder| is_beside_node(&folder)) {
        return not_run("pnpm workspace", "`pnpm` is not in the folder of node");
    }
    let bench = Workbench::new();
    bench.write("pnpm-workspace.yaml", "packages:\n  - \"packages/*\"\n");
    bench
        .write("package.json", "{ \"name\": \"all\", \"private\": true, \"scripts\": { \"test\": \"pnpm -r test\" } }");
    let package = "{ \"name\": \"NAME\", \"version\": \"1.0.0\", DEPENDS\"scripts\": { \"test\": \"node test.js\" } }";
    for (name, depends) in [("five", ""), ("user", "\"dependencies\": { \"five\": \"workspace:*\" }, ")] {
        let text = package.replace("NAME", name).replace("DEPENDS", depends);
        bench.write(&format!("packages/{name}/package.json"), &text);
    }
    bench.write("packages/five/index.js", "module.exports = 5\n");
    bench.write("packages/five/test.js", "if (require('./index') !== 5) process.exit(1)\n");
    bench.write("packages/user/test.js", "if (require('five') !== 5) process.exit(1)\n");
    bench.write(".gitignore", "node_modules/\n");
    if let Err(why) = user(&bench.project(), &["pnpm", "install", "--offline"]) {
        return not_run("pnpm workspace", &why);
    }
    commit(&bench);
    bench.glovebox(&["init"]).ends(0).says("package.json (pnpm)").never_says("which is not in the folder of node");
    let run = bare(&bench, &["run", "--run-id", "first"]);
    run.ends(0).says("verified     test: sh -c 'npm test'").never_says("changed  ").never_says("quarantined");
    bench
        .glovebox(&["logs", "first", "test"])
        .ends(0)
        .says("packages/five test: Done")
        .says("packages/user test: Done");
}

#[test]
fn a_go_project_succeeds() {
    check(&Project {
        kind: "go",
        program: "go",
        install: nothing_to_install,
        command: "go test ./...",
        found: "found    Go project: go.mod",
    });
}

#[test]
fn a_maven_project_with_junit_succeeds() {
    check(&Project {
        kind: "maven",
        program: "mvn",
        // The command downloads Maven's plugins and JUnit to `~/.m2`. It needs a network only the first time.
        install: |folder| user(folder, &["mvn", "--quiet", "--batch-mode", "test"]),
        command: "mvn --offline --batch-mode -DfailIfNoTests=true test",
        found: "found    Maven project: pom.xml",
    });
}

/// This test needs no plugin, so it runs on every machine with Maven. The JDK, its configuration in `/etc`, and Maven
/// itself work in the sandbox.
#[test]
fn maven_starts_in_the_sandbox() {
    if !is_on_this_machine("mvn") {
        return not_run("maven", "`mvn` is not on this machine");
    }
    let bench = Workbench::new();
    bench.write(
        "pom.xml",
        "<project xmlns=\"http://maven.apache.org/POM/4.0.0\">\n  <modelVersion>4.0.0</modelVersion>\n  <groupId>com.example</groupId>\n  \
         <artifactId>clock</artifactId>\n  <version>0.1.0</version>\n  <packaging>pom</packaging>\n</project>\n",
    );
    bench.glovebox(&["init"]).ends(0).says("found    Maven project: pom.xml");
    let command = "mvn --offline --batch-mode test";
    bare(&bench, &["run", "--run-id", "first"]).ends(0).says(&format!("verified     test: sh -c '{command}' exit 0"));
    assert!(bench.run_text("first", "test/tool.stdout.txt").contains("BUILD SUCCESS"));
    assert_eq!(bench.glovebox(&["diff", "first"]).ends(0).stdout, "");
}

#[test]
fn a_gradle_project_succeeds() {
    check(&Project {
        kind: "gradle",
        program: "gradle",
        install: nothing_to_install,
        command: "gradle --offline --no-daemon test",
        found: "found    Gradle project: build.gradle",
    });
}

#[test]
fn a_plain_project_with_a_makefile_succeeds() {
    check(&Project {
        kind: "plain",
        program: "make",
        install: nothing_to_install,
        command: "make test",
        found: "found    plain project: Makefile (target test)",
    });
}

#[test]
fn an_empty_folder_gets_a_pipeline_that_says_what_is_missing() {
    let bench = Workbench::new();
    bench.glovebox(&["init"]).ends(0).says("no tests found, so nothing is verified yet");
    bench.glovebox(&["check", "--strict", "pipeline.dot"]).ends(0);
    bare(&bench, &["run"]).ends(1).says("not verified test: sh -c ").says("glovebox show latest test, then");
    bench.glovebox(&["show", "latest", "test"]).ends(0).says("| nothing tests this project yet");
}

#[test]
fn an_existing_file_is_never_replaced() {
    for (existing, named) in [("pipeline.dot", "`pipeline.dot` exists"), ("glovebox.toml", "`glovebox.toml` exists")] {
        let bench = place("plain");
        bench.write(existing, "mine");
        let before = bench.snapshot();
        bench.glovebox(&["init"]).ends(2).says(named).says("glovebox init --print");
        assert_eq!(bench.snapshot(), before);
    }
    let bench = place("plain");
    std::os::unix::fs::symlink("/nowhere/at/all", bench.project().join("glovebox.toml")).unwrap();
    bench.glovebox(&["init"]).ends(2).says("`glovebox.toml` exists");
    assert!(!bench.has("pipeline.dot"), "a link that leads nowhere is a file of the user too");
}

/// `init` keeps an existing `.gitignore`. Otherwise it writes one with the rules for the kinds that it found, and git
/// accepts the file.
#[test]
fn a_project_without_rules_for_git_gets_them() {
    let bench = Workbench::new();
    bench.write("pyproject.toml", "[project]\nname = \"a\"\nversion = \"1\"\n");
    bench.write("build/kept.txt", "a part of the project");
    bench.write("web/package.json", "{ \"scripts\": { \"test\": \"true\" } }");
    bench.glovebox(&["init"]).ends(0).says("wrote    .gitignore");
    let rules = bench.read(".gitignore");
    for rule in [".glovebox/", "/.venv/", "__pycache__/", "/.pytest_cache/", "/web/node_modules/", "/web/dist/"] {
        assert!(rules.lines().any(|line| line == rule), "{rule} in {rules}");
    }
    for other in ["/build/", "/web/node_modules/.cache/", "/target/", "vendor"] {
        assert!(!rules.lines().any(|line| line == other), "{other} in {rules}");
    }
    bench.write("a/__pycache__/x.pyc", "");
    bench.write("web/node_modules/m/index.js", "");
    user(&bench.project(), &["git", "init", "-q"]).unwrap();
    user(&bench.project(), &["git", "check-ignore", "-q", "a/__pycache__/x.pyc"]).unwrap();
    user(&bench.project(), &["git", "check-ignore", "-q", "web/node_modules/m/index.js"]).unwrap();
    user(&bench.project(), &["git", "check-ignore", "-q", "build/kept.txt"]).unwrap_err();
    let own = Workbench::new();
    own.write(".gitignore", "mine\n");
    own.glovebox(&["init"]).ends(0).never_says(".gitignore");
    assert_eq!(own.read(".gitignore"), "mine\n");
}

#[test]
fn a_folder_that_cannot_be_written_is_left_as_it_was() {
    let bench = place("plain");
    let mode = |mode: u32| std::fs::set_permissions(bench.project(), std::fs::Permissions::from_mode(mode)).unwrap();
    mode(0o555);
    let is_root = std::fs::write(bench.project().join("probe"), "").is_ok();
    if is_root {
        // Root may write everywhere, so a path that is not a directory is used instead.
        mode(0o755);
        bench.glovebox(&["init", "--workdir", "Makefile"]).ends(2).says("is not a directory");
        return;
    }
    bench.glovebox(&["init"]).ends(2).says("write `./pipeline.dot`");
    bench.glovebox(&["init", "--print"]).ends(0).says("digraph default");
    mode(0o755);
    assert!(!bench.has("pipeline.dot") && !bench.has("glovebox.toml"));
}

#[test]
fn every_template_is_listed_printed_and_clean() {
    let bench = place("rust");
    let listed = bench.glovebox(&["init", "--list"]);
    let names: Vec<&str> = listed.ends(0).stdout.lines().filter_map(|line| line.split_whitespace().next()).collect();
    assert_eq!(names, ["default", "implement", "review", "check"]);
    for name in names {
        let before = bench.snapshot();
        let printed = bench.glovebox(&["init", name, "--print"]);
        printed.ends(0).says("// ---- pipeline.dot").says("# ---- glovebox.toml");
        assert_eq!(bench.snapshot(), before, "`--print` writes nothing");
        let place = place("plain");
        place.glovebox(&["init", name]).ends(0);
        place.glovebox(&["check", "--strict", "pipeline.dot"]).ends(0);
        place.glovebox(&["plan"]).ends(0).says("plan of ");
        let has_model = name == "implement" || name == "review";
        bare(&place, &["run"]).ends(if has_model { 8 } else { 0 });
        bare(&place, &["run", "--simulate"]).ends(0);
    }
    bench.glovebox(&["init", "nothing"]).ends(2).says("possible values: default, implement, review, check");
}

#[test]
fn a_project_of_two_kinds_tests_both() {
    if !is_on_this_machine("npm") {
        return not_run("rust and node", "`npm` is not on this machine");
    }
    let bench = place("rust");
    user(&bench.project(), &["cargo", "generate-lockfile", "--offline"]).unwrap();
    copy_tree(&root().join("tests/projects/node"), &bench.project().join("web"));
    user(&bench.project().join("web"), &["npm", "ci", "--offline"]).unwrap();
    commit(&bench);
    bench.glovebox(&["init"]).ends(0).says("found    Rust project").says("found    Node project: web/package.json");
    let run = bare(&bench, &["run", "--run-id", "first"]);
    run.ends(0).says("verified     test_rust: ").says("verified     test_node_web: sh -c 'cd web && npm test' exit 0");
    assert_eq!(bench.glovebox(&["diff", "first"]).ends(0).stdout, "");
}

#[test]
fn a_folder_of_a_repository_is_a_project_of_its_own() {
    let bench = Workbench::new();
    copy_tree(&root().join("tests/projects/plain"), &bench.project().join("tools/clock"));
    commit(&bench);
    let command = |words: &[&str]| {
        let mut command = workbench::glovebox_in(&bench.project().join("tools/clock"));
        Answer::of(command.args(words))
    };
    command(&["init"]).ends(0).says("Makefile (target test)");
    command(&["run"]).ends(0).says("verified     test: sh -c 'make test' exit 0");
    assert!(!bench.has("pipeline.dot") && bench.has("tools/clock/pipeline.dot"));
}

/// No text in the files of a project becomes part of a command, with any kind of quotes.
#[test]
fn a_hostile_project_writes_no_command() {
    let bench = Workbench::new();
    let canary = bench.outside().join("canary");
    let touch = format!("touch {}", canary.display());
    let package = serde_json::json!({
        "name": format!("a\"]; x [tool_command=\"{touch}\"] //"),
        "scripts": { "test": "true", "build": "true", format!("test\"; {touch}; \""): touch },
        "packageManager": format!("npm; {touch}"),
        "workspaces": [format!("$({touch})"), "`id`"],
    });
    bench.write("package.json", &package.to_string());
    bench.write("package-lock.json", "{}");
    bench.write(&format!("a\"; $({}) '/package.json", "touch x"), "{}");
    bench.write("a\nb\"] evil [tool_command=\"id\"].js", "");
    bench.write(".gitignore", "dist\"]\n[exec]\npath = [\"/tmp/evil\"]\n");
    bench.glovebox(&["init"]).ends(0);
    let written = bench.read("pipeline.dot") + &bench.read("glovebox.toml");
    for text in ["touch", "evil", "$(", "`id`", "canary"] {
        assert!(!written.contains(text), "{text} in {written}");
    }
    bench.glovebox(&["check", "--strict", "pipeline.dot"]).ends(0);
    let commands: Vec<&str> =
        written.split("tool_command=\"").skip(1).filter_map(|rest| rest.split('"').next()).collect();
    assert_eq!(commands, ["npm run build", "npm test"], "{written}");
    assert!(!canary.exists());
    for pipe in ["package.json", "Makefile"] {
        let bench = Workbench::new();
        user(&bench.project(), &["mkfifo", pipe]).unwrap();
        bench.glovebox(&["init"]).ends(0);
    }
}

#[test]
fn run_and_plan_take_the_only_pipeline_of_the_project() {
    let bench = Workbench::new();
    bare(&bench, &["run"]).ends(2).says("there is no `pipeline.dot`").says("glovebox init");
    let named = |name: &str| {
        format!(
            "digraph {name} {{ start; done; greet [shape=parallelogram, tool_command=\"true\", allowed_write_paths=\"\"]; \
             start -> greet -> done }}"
        )
    };
    bench.write("ship.dot", &named("ship"));
    bench.glovebox(&["plan"]).ends(0).says("plan of ship");
    bare(&bench, &["run"]).ends(0).says("of ship: success");
    bench.write("other.dot", &named("other"));
    bare(&bench, &["run"]).ends(2).says("several: `other.dot`, `ship.dot`");
    bench.write("pipeline.dot", &named("usual"));
    bench.glovebox(&["plan"]).ends(0).says("plan of usual");
}

/// A program that is on this machine but not in the sandbox: the message names the line to add, and that line fixes the
/// problem.
#[test]
fn a_program_of_a_toolchain_that_is_not_named_is_named() {
    if ["/usr/bin/go", "/usr/local/bin/go", "/bin/go"].iter().any(|file| Path::new(file).exists()) {
        return not_run("go", "every command sees the `go` of this machine");
    }
    let bench = Workbench::new();
    bench.write("go.mod", "module example.com/clock\n");
    let with_go = |words: &[&str]| with_go(&bench, words);
    with_go(&["init"]).ends(0).says("go test ./...").never_says("is not on this machine");
    let written = bench.read("glovebox.toml");
    assert!(written.contains("toolchains = [\"go\"]"), "{written}");
    with_go(&["run"]).ends(0);
    bench.write("glovebox.toml", &written.replace("toolchains = [\"go\"]", ""));
    with_go(&["run"]).ends(1).says("`go` belongs to a toolchain of this machine: add `toolchains = [\"go\"]`");
}

/// Runs a command on a machine with a toolchain of Go whose `go` always succeeds.
fn with_go(bench: &Workbench, words: &[&str]) -> Answer {
    let go = bench.outside().join("go");
    std::fs::create_dir_all(go.join("src/runtime")).unwrap();
    std::fs::create_dir_all(go.join("bin")).unwrap();
    std::fs::write(go.join("bin/go"), "#!/bin/sh\necho tested\n").unwrap();
    std::fs::set_permissions(go.join("bin/go"), std::fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}:{}", go.join("bin").display(), std::env::var("PATH").unwrap());
    Answer::of(bench.bare(words).env("PATH", path))
}

#[test]
fn a_program_that_a_script_calls_and_no_stage_finds_is_named() {
    let bench = Workbench::new();
    bench.write("package.json", r#"{ "scripts": { "test": "bun run x" }, "dependencies": { "count": "1" } }"#);
    bench.write("bun.lock", "");
    let said = bench.glovebox(&["init"]);
    said.ends(0).says("found    Node project: package.json (bun)").says("run `bun install` before the first run");
    let is_seen = ["/usr/bin/bun", "/usr/local/bin/bun", "/bin/bun"].iter().any(|file| Path::new(file).exists());
    let note = "a script calls `bun`, which is not in the folder of node";
    if is_seen {
        said.never_says(note)
    } else {
        said.says(note)
    };
}
