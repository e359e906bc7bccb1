//! Installed dependencies: commands see them read-only at their place in the project, with the package stores to which
//! they link, and nothing else of the machine becomes visible.

use crate::workbench::{Answer, Workbench};
use std::fs;
use std::os::unix::fs::symlink;
use std::process::Stdio;
use std::time::{Duration, Instant};

const NODE: &str = "{ \"dependencies\": { \"a\": \"1\" } }";

/// Creates a project with one command and a `.gitignore`. With `many`, the project has so many files that stages work
/// on overlays.
fn bench(command: &str, attributes: &str, many: bool) -> Workbench {
    let command = serde_json::Value::from(command);
    let bench = Workbench::with_pipeline(&format!(
        "digraph g {{\n  start [shape=Mdiamond]; done [shape=Msquare]\n\
         \x20 test [shape=parallelogram, tool_command={command}, allowed_write_paths=\"out/\"{attributes}]\n\
         \x20 start -> test -> done\n}}\n"
    ));
    bench.write(".gitignore", "node_modules/\n.venv/\n");
    if many {
        (0..300).for_each(|number| bench.write(&format!("data/{number}.txt"), "x"));
    }
    bench
}

fn run(bench: &Workbench) -> Answer {
    bench.glovebox(&["run", "pipeline.dot", "--run-id", "r"])
}

fn link(bench: &Workbench, to: &std::path::Path, at: &str) {
    let at = bench.project().join(at);
    fs::create_dir_all(at.parent().unwrap()).unwrap();
    symlink(to, at).unwrap();
}

/// A stage that may change the whole project could change `package.json` too. What it installs ends with it.
#[test]
fn a_stage_that_may_write_everything_installs_packages_for_itself_only() {
    let look = "test \"$(cat node_modules/a/index.js)\" = a && test ! -e node_modules/new";
    let bench = Workbench::with_pipeline(&format!(
        "digraph g {{\n  start [shape=Mdiamond]; done [shape=Msquare]\n\
         \x20 install [shape=parallelogram, tool_command=\"mkdir node_modules/new && echo evil > node_modules/a/index.js && \
         rm node_modules/b.js && grep -q evil node_modules/a/index.js && test -z \\\"$(ls -A node_modules/.cache)\\\"\", allowed_write_paths=\"./\"]\n\
         \x20 look [shape=parallelogram, tool_command={}, allowed_write_paths=\"./\"]\n\
         \x20 checked [shape=parallelogram, tool_command=\"! touch node_modules/new\", allowed_write_paths=\"src/\"]\n\
         \x20 usual [shape=parallelogram, tool_command=\"! touch node_modules/new\"]\n\
         \x20 start -> install -> look -> checked -> usual -> done\n}}\n",
        serde_json::Value::from(look)
    ));
    bench.write(".gitignore", "node_modules/\n");
    bench.write("package.json", NODE);
    bench.write("node_modules/a/index.js", "a");
    bench.write("node_modules/b.js", "b");
    bench.write("node_modules/.cache/of-the-user", "holds what a test runner kept");
    let before = bench.snapshot();
    run(&bench).ends(0).never_says("quarantined");
    assert_eq!(bench.snapshot(), before);
}

/// Most tools create their cache with the first run (nyc, babel, vite, vitest).
#[test]
fn tools_create_their_caches_in_packages_with_the_first_run() {
    for many in [false, true] {
        let command = "mkdir -p node_modules/.cache/nyc && echo x > node_modules/.cache/nyc/x && \
                       echo y > node_modules/.vite-temp/y && mkdir packages/web/node_modules/.vitest/z && \
                       ! touch node_modules/new && ! touch node_modules/a/new && ! mkdir node_modules/.other && \
                       ! mv node_modules other && test $(cat node_modules/a/index.js) = a";
        let bench = bench(command, "", many);
        bench.write("package.json", NODE);
        bench.write("packages/web/package.json", NODE);
        bench.write("packages/web/node_modules/c/index.js", "c");
        bench.write("node_modules/a/index.js", "a");
        let before = bench.snapshot();
        run(&bench).ends(0).never_says("quarantined");
        assert_eq!(bench.snapshot(), before);
    }
}

#[test]
fn packages_are_shown_read_only_and_not_copied() {
    for many in [false, true] {
        let command = "test $(cat node_modules/a/index.js) = a && test $(cat node_modules/b/index.js) = b && \
                       test -f packages/web/node_modules/c/index.js && \
                       ! touch node_modules/a/new && ! sh -c 'echo evil > node_modules/a/index.js' && ! rm -rf node_modules && \
                       ! mv node_modules other && test -z \"$(ls -A node_modules/.cache)\" && echo warm > node_modules/.cache/x";
        let bench = bench(command, "", many);
        bench.write("package.json", NODE);
        bench.write("packages/web/package.json", NODE);
        bench.write("packages/web/node_modules/c/index.js", "c");
        bench.write("node_modules/a/index.js", "a");
        bench.write("node_modules/.pnpm/b@1/node_modules/b/index.js", "b");
        bench.write("node_modules/.cache/of-the-user", "holds what a test runner kept");
        link(&bench, ".pnpm/b@1/node_modules/b".as_ref(), "node_modules/b");
        let before = bench.snapshot();
        let answer = run(&bench);
        answer.ends(0).never_says("warning").never_says("quarantined");
        assert_eq!(bench.snapshot(), before);
        assert!(!bench.run_folder("r").join("workspace/node_modules").exists());
        let plan = bench.glovebox(&["plan", "pipeline.dot", "--json"]).ends(0).json();
        assert_eq!(plan["dependencies"].to_string(), "[\"node_modules/\",\"packages/web/node_modules/\"]");
        bench.glovebox(&["plan", "pipeline.dot"]).ends(0).says("node_modules/");
    }
}

#[test]
fn a_virtual_environment_is_active() {
    let check = "python -c \"import own, sys, os; assert sys.prefix.endswith('.venv') and os.environ['VIRTUAL_ENV'] == sys.prefix\" \
                 && test \"$(command -v python)\" = \"$PWD/.venv/bin/python\"";
    let bench = bench(check, "", false);
    let made = std::process::Command::new("python3")
        .current_dir(bench.project())
        .args(["-m", "venv", "--without-pip", ".venv"])
        .status();
    if !made.is_ok_and(|status| status.success()) {
        return;
    }
    let lib = fs::read_dir(bench.project().join(".venv/lib")).unwrap().next().unwrap().unwrap().path();
    fs::write(lib.join("site-packages/own.py"), "x = 1\n").unwrap();
    bench.write("pyproject.toml", "[project]\nname = \"x\"\n");
    run(&bench).ends(0).never_says("warning");
}

#[test]
fn a_shared_store_of_packages_comes_along_and_nothing_of_the_user() {
    let bench = bench("sh check.sh", "", false);
    let outside = bench.outside().canonicalize().unwrap();
    for (file, text) in [
        ("pnpm/store/v10/b/index.js", "b"),
        ("keys/id", "SECRET"),
        ("uv/archive-v0/x/m.py", "m"),
        ("uv/credentials", "SECRET"),
        ("work/uv/proj/.env", "SECRET"),
    ] {
        fs::create_dir_all(outside.join(file).parent().unwrap()).unwrap();
        fs::write(outside.join(file), text).unwrap();
    }
    let glovebox = |words: &[&str]| {
        let mut command = bench.command(words);
        command.env("PNPM_HOME", outside.join("pnpm")).env("XDG_DATA_HOME", &outside);
        Answer::of(&mut command)
    };
    bench.write("package.json", NODE);
    bench.write("pyproject.toml", "");
    bench.write(".venv/pyvenv.cfg", "home = /nowhere\n");
    link(&bench, &outside.join("pnpm/store/v10/b"), "node_modules/b");
    link(&bench, &outside.join("keys"), "node_modules/keys");
    link(&bench, &outside.join("uv/credentials"), "node_modules/x/credentials");
    link(&bench, &outside.join("work/uv/proj"), "node_modules/x/proj");
    link(&bench, &outside, "node_modules/all");
    link(&bench, "/etc".as_ref(), "node_modules/etc");
    link(&bench, "/".as_ref(), "node_modules/root");
    link(&bench, &outside.join("uv/archive-v0/x/m.py"), ".venv/m.py");
    link(&bench, &bench.project(), "node_modules/project");
    bench.write("secret.txt", "mine");
    let keys = outside.join("keys/id");
    bench.write(
        "check.sh",
        &format!(
            "set -e\ntest \"$(cat node_modules/b/index.js)\" = b\ntest \"$(cat .venv/m.py)\" = m\n\
             for f in node_modules/keys/id node_modules/all/keys/id node_modules/x/credentials node_modules/x/proj/.env \
             node_modules/etc/shadow {} ; do\n\
             if cat $f 2>/dev/null; then echo leaked $f; exit 1; fi\ndone\n\
             if echo evil > node_modules/b/index.js; then exit 1; fi\n",
            keys.display()
        ),
    );
    let store = outside.join("pnpm/store").display().to_string();
    glovebox(&["plan"]).ends(0).says(&format!("read-only for commands: {store}, "));
    let plan = glovebox(&["plan", "--json"]).ends(0).json();
    assert_eq!(plan["dependency_stores"][0], store.as_str());
    for denied in [&store, &format!("{store}/v10/"), &outside.display().to_string()] {
        glovebox(&["plan", "--deny", &format!("read={denied}")]).ends(6).says(&store);
    }
    glovebox(&["plan", "--deny", &format!("read={}", outside.join("keys").display())]).ends(0);
    let link_to = format!("`node_modules/x/credentials` to `{}`", outside.join("uv/credentials").display());
    for words in [&["plan", "pipeline.dot"] as &[_], &["run", "pipeline.dot", "--run-id", "r"]] {
        let told = glovebox(words);
        told.ends(0).never_says("SECRET").says("warning: symbolic links of dependencies are broken in this run: ");
        told.says("help: outside of the project, commands see only stores of package managers and interpreters");
        told.says(&link_to).never_says("more\n");
    }
    // A link to another folder changes the plan.
    link(&bench, &outside.join("yarn/global/c"), "node_modules/c");
    fs::create_dir_all(outside.join("yarn/global/c")).unwrap();
    let other = glovebox(&["plan", "--json"]).ends(0).json();
    assert_eq!(other["dependency_stores"].as_array().unwrap().len(), 3);
    assert_eq!(fs::read_to_string(outside.join("pnpm/store/v10/b/index.js")).unwrap(), "b");
}

#[test]
fn hold_outs_are_not_reached_through_a_dependency() {
    let bench = bench("sh check.sh", "", false);
    bench.write("package.json", NODE);
    bench.write("scripts/scenarios/secret.txt", "SECRET");
    bench.write("node_modules/.cache/copy.txt", "SECRET");
    bench.write("node_modules/a/index.js", "a");
    link(&bench, &bench.project().join("scripts/scenarios"), "node_modules/scenarios");
    let builder = "digraph g {\n  start [shape=Mdiamond]; done [shape=Msquare]\n\
                   \x20 build [prompt=\"x\", allowed_commands=\"*\", allowed_write_paths=\"src/\"]\n\
                   \x20 start -> build -> done\n}\n";
    bench.write("pipeline.dot", builder);
    let look =
        "test -f node_modules/a/index.js && ! grep -rqs SECRET node_modules && ! cat node_modules/scenarios/secret.txt";
    let script = format!(
        "[[node.build]]\ntool = [{{ name = \"shell\", arguments = {{ command = {} }} }}]\n[[node.build]]\ntext = \"OUTCOME: SUCCESS\"\n",
        serde_json::Value::from(format!("mkdir -p src; {look} && echo clean > src/seen"))
    );
    fs::write(bench.outside().join("script.toml"), script).unwrap();
    bench.glovebox(&["run", "pipeline.dot", "--script", "../script.toml", "--run-id", "r"]).ends(0);
    bench.glovebox(&["diff", "r"]).says("+clean");
    // A folder with hold-outs is not accepted as a dependency, even if glovebox.toml names it.
    bench.write("glovebox.toml", "[workspace]\ndependencies = [\"scripts/\"]\n");
    bench.glovebox(&["run", "pipeline.dot", "--script", "../script.toml", "--run-id", "s"]).says("overlaps hold-outs");
}

#[test]
fn a_copy_of_a_hold_out_in_a_dependency_is_shown_to_no_stage() {
    let secret = format!("#!/bin/sh\n# {}\nexit 0\n", "SECRET ".repeat(10));
    let bench =
        bench("! grep -rqs SECRET node_modules venv .tox && test -f .tox/py/lib/b && ! test -e .tox/dist", "", false);
    bench.write(".gitignore", "node_modules/\n.tox/\n");
    bench.write("package.json", NODE);
    bench.write("tox.ini", "");
    bench.write("scripts/scenarios/check.sh", &secret);
    bench.write("node_modules/own/deep/er/scen/check.sh", &secret);
    bench.write("venv/pyvenv.cfg", "version = 3\n");
    bench.write(".tox/py/pyvenv.cfg", "version = 3\n");
    bench.write(".tox/py/lib/b", "b");
    for packed in
        [".tox/dist/p.tar.gz", ".tox/.pkg/dist/p.tar.gz", ".tox/log/1.log", ".tox/py/log/1.log", ".tox/py/tmp/x"]
    {
        bench.write(packed, &format!("packed {secret}"));
    }
    let answer = run(&bench);
    answer
        .ends(0)
        .says("`node_modules/` is not shown to commands: `node_modules/own/deep/er/scen/check.sh` is byte for byte");
    let plan = bench.glovebox(&["plan", "pipeline.dot", "--json"]).ends(0).json();
    assert_eq!(plan["dependencies"].to_string(), "[\".tox/py/\",\"venv/\"]");
    // With other content the file is not a copy of a hold-out, so the command sees the folder and finds the text.
    fs::write(bench.project().join("node_modules/own/deep/er/scen/check.sh"), secret.replace("exit 0", "exit 1"))
        .unwrap();
    bench.glovebox(&["run", "pipeline.dot", "--run-id", "s"]).ends(1);
}

#[test]
fn what_the_project_tracks_or_includes_is_no_dependency() {
    let bench =
        bench("echo x > vendor/new && cat node_modules/a/index.js && echo y > node_modules/a/index.js", "", false);
    let text = bench.read("pipeline.dot").replace("\"out/\"", "\"./\"");
    bench.write("pipeline.dot", &text);
    bench.write("package.json", NODE);
    bench.write("go.mod", "module x\n");
    bench.write("vendor/modules.txt", "tracked");
    bench.write("node_modules/a/index.js", "a\n");
    bench.write("glovebox.toml", "[workspace]\ninclude = [\"node_modules/\"]\n");
    run(&bench).ends(0);
    bench.glovebox(&["diff", "r"]).says("vendor/new").says("node_modules/a/index.js");
}

#[test]
fn what_is_missing_is_told_before_the_first_stage() {
    let bench = bench("true", "", false);
    bench.write("package.json", NODE);
    bench.write("package-lock.json", "{}");
    run(&bench).ends(0).says("`node_modules/` does not exist").says("npm ci");
    bench.write("node_modules/a/index.js", "a");
    bench.write("glovebox.toml", "[workspace]\ndependencies = []\n");
    let off = bench.glovebox(&["run", "pipeline.dot", "--run-id", "s"]);
    off.ends(0).says("not in this run").says("dependencies = [\"node_modules/\"]");
    bench.write("glovebox.toml", "[workspace]\ndependencies = [\"../x/\", \".git/\", \"./\"]\n");
    bench.glovebox(&["run", "pipeline.dot"]).ends(3).says("glovebox.toml:2").says(".git");
}

#[test]
fn a_folder_of_programs_in_the_project_is_refused_at_its_line() {
    let bench = bench("true", "", false);
    let inside = bench.project().canonicalize().unwrap().join("tools");
    bench.write("tools/x", "");
    let outside = bench.outside().canonicalize().unwrap().join("link");
    symlink(&inside, &outside).unwrap();
    for folder in [inside, outside] {
        bench.write("glovebox.toml", &format!("[exec]\npath = [\"{}\"]\n", folder.display()));
        for command in ["check", "plan", "run"] {
            bench.glovebox(&[command, "pipeline.dot"]).ends(3).says("glovebox.toml:2").says("in the project");
        }
    }
}

#[test]
fn the_toolchain_keeps_compiled_modules_out_of_the_project() {
    let check = "python3 -c \"import src.m, os; assert os.path.exists(os.environ['PYTHONPYCACHEPREFIX'])\" && test ! -e src/__pycache__";
    let bench = bench(check, "", false);
    bench.write("src/m.py", "x = 1\n");
    bench.write("glovebox.toml", "[exec]\ntoolchains = [\"python\"]\n");
    let answer = bench.glovebox(&["run", "pipeline.dot", "--run-id", "r"]);
    // Without Python on this machine, the run exits with 3.
    if answer.code != 3 {
        answer.ends(0).never_says("that git ignores");
    }
}

/// Runs a command and panics if it takes longer than a minute.
fn ends_soon(bench: &Workbench, words: &[&str]) -> Answer {
    let mut command = bench.command(words);
    let mut child =
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
    let start = Instant::now();
    while child.try_wait().unwrap().is_none() {
        if start.elapsed() > Duration::from_secs(60) {
            child.kill().unwrap();
            panic!("{words:?} reads without end");
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    Answer::from_child(child)
}

#[test]
fn devices_pipes_and_links_of_a_project_are_not_read() {
    type Put = fn(&std::path::Path);
    let zero: Put = |at| symlink("/dev/zero", at).unwrap();
    let pipe: Put = |at| rustix::fs::mknodat(rustix::fs::CWD, at, rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
    let linked_pipe: Put = |at| {
        let pipe = at.with_file_name("the-pipe");
        rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
        symlink("the-pipe", at).unwrap();
    };
    for file in ["package.json", ".venv/pyvenv.cfg", ".git", ".git/commondir", "node_modules/.modules.yaml"] {
        for put in [zero, pipe, linked_pipe] {
            let bench = bench("true", "", false);
            let at = bench.project().join(file);
            if file != "package.json" {
                bench.write("package.json", NODE);
            }
            bench.write("pyproject.toml", "");
            bench.write("node_modules/a/index.js", "a");
            fs::create_dir_all(at.parent().unwrap()).unwrap();
            // Removes a file that may already be at this path.
            let _ = fs::remove_file(&at);
            put(&at);
            for words in [&["check", "pipeline.dot"][..], &["plan", "pipeline.dot"], &["run", "pipeline.dot"]] {
                ends_soon(&bench, words).ends(0);
            }
            ends_soon(&bench, &["init", "--print"]).ends(0);
        }
    }
}
