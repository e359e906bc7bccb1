//! Entries that cannot be committed and that no rule forbids: they fail no stage, are named, and reach nothing.

use crate::workbench::{self, Workbench};

fn bench(command: &str, writes: &str) -> Workbench {
    let bench = Workbench::with_pipeline(&format!(
        "digraph g {{ start [shape=Mdiamond]; done [shape=Msquare]\n  work [shape=parallelogram, tool_command=\"sh work.sh\", \
         allowed_write_paths=\"{writes}\"]\n  start -> work -> done }}\n"
    ));
    bench.write("work.sh", &format!("set -e\n{command}\n"));
    bench.write("src/a.txt", "one\n");
    bench
}

fn run(bench: &Workbench) -> workbench::Answer {
    bench.glovebox(&["run", "pipeline.dot", "--run-id", "r"])
}

const SOCKET: &str = "python3 -c \"import socket; socket.socket(socket.AF_UNIX).bind('app.sock')\"";

#[test]
fn what_servers_and_tools_leave_behind_fails_no_stage() {
    let check = |command: &str, why: &str| {
        let bench = bench(&format!("{command} && echo two > src/a.txt"), "./");
        run(&bench).ends(0).says("quarantined").says(why);
        bench.glovebox(&["apply", "r"]).ends(0);
        assert_eq!(bench.read("src/a.txt"), "two\n", "the other changes are kept: {command}");
        let names: Vec<_> =
            std::fs::read_dir(bench.project()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        for left in ["app.sock", "pipe", "tool", "up"] {
            assert!(!names.iter().any(|name| name == left), "{command} {names:?}");
        }
    };
    check(SOCKET, "set aside: it is a socket");
    check("mkfifo pipe", "set aside: it is a fifo");
    check("ln -s /usr/bin/env tool", "set aside: its target is absolute");
    check("ln -s ../other up", "set aside: its target is outside the workspace");
    check("touch \"$(printf 'a\\377b')\"", "set aside: its name is not valid UTF-8");
    check("touch \"$(printf 'a\\nb')\"", "which could deceive a reader");
}

/// Formatters rewrite every file of a project. Settings of editors can name programs, so no change of them is kept.
#[test]
fn edited_settings_of_an_editor_stay_and_new_ones_fail() {
    let settings = "{ \"editor.tabSize\": 4 }\n";
    let begin = |command: &str, writes: &str| {
        let bench = bench(command, writes);
        bench.write(".vscode/settings.json", settings);
        bench.write(".github/workflows/ci.yml", "on: push\n");
        bench
    };
    let bench = begin("sed -i s/4/2/ .vscode/settings.json; echo two > src/a.txt", "./");
    run(&bench).ends(0).says("set aside: `.vscode` is protected: editor settings");
    assert_eq!(bench.run_text("r", "workspace/.vscode/settings.json"), settings);
    bench.glovebox(&["apply", "r"]).ends(0);
    assert_eq!((bench.read(".vscode/settings.json").as_str(), bench.read("src/a.txt").as_str()), (settings, "two\n"));
    for (command, writes) in [
        ("echo x > .vscode/tasks.json", "./"),
        ("rm .vscode/settings.json", "./"),
        ("ln -sf ../src/a.txt .vscode/settings.json", "./"),
        ("sed -i s/4/2/ .vscode/settings.json", "src/"),
        ("echo x >> .github/workflows/ci.yml", "./"),
    ] {
        let bench = begin(command, writes);
        run(&bench).ends(6);
        assert_eq!(bench.run_text("r", "workspace/.vscode/settings.json"), settings, "{command}");
    }
}

/// A stage could otherwise replace a file by a link, and a program that reads the file later would follow it.
#[test]
fn a_file_that_is_replaced_by_a_link_out_of_the_workspace_stays() {
    let bench = bench("ln -sf /etc/passwd src/a.txt", "./");
    run(&bench).ends(0).says("set aside: its target is absolute");
    assert_eq!(bench.run_text("r", "workspace/src/a.txt"), "one\n");
    bench.glovebox(&["apply", "r"]).ends(0);
    assert_eq!(bench.read("src/a.txt"), "one\n");
}

#[test]
fn the_write_scope_and_protected_paths_bind_such_entries_too() {
    for (command, writes) in [
        ("ln -s /usr/bin/env tool", "src/"),
        ("mkdir .vscode && ln -s /x .vscode/tasks.json", "./"),
        ("touch \"$(printf 'a\\377b')\"", "src/"),
        ("mkdir .vscode && touch \".vscode/$(printf 'a\\377b')\"", "./"),
        ("mkdir .vscode && mkfifo .vscode/x", "./"),
    ] {
        run(&bench(command, writes)).ends(6);
    }
}

#[test]
fn links_of_the_project_are_links_in_the_stage() {
    let bench = bench("readlink tool up > out.txt; test ! -e up/secret", "out.txt");
    let at = bench.project();
    std::os::unix::fs::symlink("/usr/bin/env", at.join("tool")).unwrap();
    std::os::unix::fs::symlink("../elsewhere", at.join("up")).unwrap();
    std::fs::create_dir(at.join("../elsewhere")).unwrap();
    std::fs::write(at.join("../elsewhere/secret"), "s").unwrap();
    run(&bench).ends(0).never_says("left out of the run");
    assert_eq!(bench.run_text("r", "workspace/out.txt"), "/usr/bin/env\n../elsewhere\n");
    bench.glovebox(&["apply", "r"]).ends(0);
    assert_eq!(std::fs::read_link(at.join("tool")).unwrap(), std::path::Path::new("/usr/bin/env"));
}

/// The kernel alone cannot rename a folder of a lower layer of an overlay.
#[test]
fn folders_of_the_project_and_of_earlier_stages_are_renamed_in_an_overlay_and_in_a_copy() {
    let stage =
        |id: &str| format!("{id} [shape=parallelogram, tool_command=\"sh {id}.sh\", allowed_write_paths=\"./\"]\n");
    let bench = Workbench::with_pipeline(&format!(
        "digraph g {{ start [shape=Mdiamond]; done [shape=Msquare]\n{}{}start -> one -> two -> done }}\n",
        stage("one"),
        stage("two")
    ));
    bench.write(".gitignore", "build/\n");
    bench.write("docs/deep/a.txt", "a\n");
    bench.write("one.sh", "mkdir -p out-new build/new && echo o > out-new/o.txt && echo b > build/new/b.txt\n");
    bench.write(
        "two.sh",
        "exec python3 -c '
import os
for old, new in [(\"docs\", \"guide\"), (\"out-new\", \"out\"), (\"build/new\", \"build/done\")]:
    os.rename(old, new)
assert open(\"build/done/b.txt\").read() == \"b\\n\"
'\n",
    );
    run(&bench).ends(0).never_says("quarantined");
    assert_eq!(bench.run_text("r", "workspace/guide/deep/a.txt"), "a\n");
    bench.write("glovebox.toml", "[workspace]\nfiles = \"copy\"\n");
    bench.glovebox(&["run", "pipeline.dot", "--run-id", "copy"]).ends(0);
    bench.glovebox(&["apply", "copy"]).ends(0);
    assert_eq!((bench.read("guide/deep/a.txt").as_str(), bench.read("out/o.txt").as_str()), ("a\n", "o\n"));
    assert!(!bench.has("docs") && !bench.has("out-new"));
}

#[test]
fn private_files_and_folders_stay_private_from_stage_to_stage_and_through_apply() {
    use std::os::unix::fs::PermissionsExt;
    let stage =
        |id: &str| format!("{id} [shape=parallelogram, tool_command=\"sh {id}.sh\", allowed_write_paths=\"./\"]\n");
    let (one, two) = (stage("one"), stage("two"));
    let bench = Workbench::with_pipeline(&format!(
        "digraph g {{ start [shape=Mdiamond]; done [shape=Msquare]\n{one}{two}start -> one -> two -> done }}\n"
    ));
    bench.write(".gitignore", "state/\n");
    bench.write("key", "k\n");
    bench.write("private/x", "x\n");
    let (key, private) = (bench.project().join("key"), bench.project().join("private"));
    std::fs::set_permissions(&key, std::fs::Permissions::from_mode(0o600)).unwrap();
    std::fs::set_permissions(&private, std::fs::Permissions::from_mode(0o700)).unwrap();
    bench.write(
        "one.sh",
        "set -e; test $(stat -c %a key private | tr -d '\\n') = 600700; echo y > private/y; echo 1 >> key; mkdir -m 700 state; umask 077; echo s > state/x\n",
    );
    bench.write("two.sh", "set -e; test $(stat -c %a key private state state/x | tr -d '\\n') = 600700700600\n");
    run(&bench).ends(0);
    bench.glovebox(&["apply", "r"]).ends(0);
    assert_eq!(
        (bench.read("key").as_str(), std::fs::metadata(&key).unwrap().permissions().mode() & 0o777),
        ("k\n1\n", 0o600)
    );
    assert_eq!(std::fs::metadata(&private).unwrap().permissions().mode() & 0o777, 0o700);
}

#[test]
fn modes_of_new_files_and_folders_survive_from_stage_to_stage_and_through_apply() {
    use std::os::unix::fs::PermissionsExt;
    let stage =
        |id: &str| format!("{id} [shape=parallelogram, tool_command=\"sh {id}.sh\", allowed_write_paths=\"./\"]\n");
    let (one, two) = (stage("one"), stage("two"));
    let bench = Workbench::with_pipeline(&format!(
        "digraph g {{ start [shape=Mdiamond]; done [shape=Msquare]\n{one}{two}start -> one -> two -> done }}\n"
    ));
    let modes = [
        ("vault", 0o700),
        ("vault/pass", 0o600),
        ("way", 0o711),
        ("shut", 0o555),
        ("shut/read", 0o444),
        ("shut/below", 0o500),
        ("shut/below/run", 0o544),
        ("open", 0o755),
        ("open/all", 0o755),
    ];
    let given: String = modes.iter().rev().map(|(path, mode)| format!("chmod {mode:o} {path}\n")).collect();
    // Nobody but the owner may write what a stage creates.
    let given = given.replace("chmod 755 open", "chmod 777 open");
    let found: String = modes.iter().map(|(path, mode)| format!("test $(stat -c %a {path}) = {mode:o}\n")).collect();
    let made = "set -e\nmkdir -p vault way shut/below open\ntouch vault/pass shut/read shut/below/run open/all\n";
    bench.write("one.sh", &format!("{made}{given}"));
    bench.write("two.sh", &format!("set -e\n{found}"));
    run(&bench).ends(0);
    bench.glovebox(&["apply", "r"]).ends(0);
    for (path, mode) in modes {
        let applied = std::fs::metadata(bench.project().join(path)).unwrap().permissions().mode() & 0o7777;
        assert_eq!(applied, mode, "{path}: {applied:o}");
    }
    for path in ["shut/below", "shut"] {
        std::fs::set_permissions(bench.project().join(path), std::fs::Permissions::from_mode(0o755)).unwrap();
    }
}
