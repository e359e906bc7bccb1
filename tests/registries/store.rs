//! The store of plugins: flipped bits, a full disk, a killed pull, and stages that look for it.

use super::server::{Answer, Body, Registry};
use super::{Project, component, large_component};
use crate::workbench::{self, not_run};
use std::process::Command;

#[test]
fn flipped_bits_run_nothing() {
    let registry = Registry::start();
    let project = Project::with_plugin(&registry);
    let [file]: [_; 1] = project.components().try_into().unwrap();
    let bytes = std::fs::read(&file).unwrap();
    for at in [0, bytes.len() / 2, bytes.len() - 1] {
        let mut flipped = bytes.clone();
        flipped[at] ^= 1;
        std::fs::write(&file, flipped).unwrap();
        let run = project.bench.glovebox(&["run", "pipeline.dot"]);
        run.ends(7).says("is damaged").says("glovebox plugin pull acme.todo");
        assert!(!project.bench.has(".glovebox/runs"));
    }
    std::fs::write(&file, [&bytes[..], b"x"].concat()).unwrap();
    project.bench.glovebox(&["plugin", "ls"]).ends(7).says("is damaged");
    // Another plugin with the name of this one is no replacement.
    std::fs::write(&file, component("0.1.0", r#""evil/""#)).unwrap();
    project.bench.glovebox(&["run", "pipeline.dot"]).ends(7).says("is damaged");
    project.plugin(&["pull"]).ends(0).says("1 of them new");
    project.bench.glovebox(&["run", "pipeline.dot"]).ends(0);
}

#[test]
fn a_killed_pull_leaves_nothing() {
    let registry = Registry::start();
    let project = Project::with_plugin(&registry);
    std::fs::remove_dir_all(project.store()).unwrap();
    registry.take_requests();
    registry.change(|request, answer| match request.path.contains("/blobs/") {
        true => Answer { body: Body::Stalled(answer.bytes()), ..answer },
        false => answer,
    });
    let before = project.bench.snapshot();
    let mut pull = project.bench.start(&["plugin", "pull"]);
    registry.wait_for(|request| request.path.contains("/blobs/"));
    pull.kill().unwrap();
    pull.wait().unwrap();
    assert_eq!(project.stored().len(), 0);
    assert_eq!(project.bench.snapshot(), before);
    registry.behave();
    project.plugin(&["pull"]).ends(0).says("1 of them new");
    project.bench.glovebox(&["run", "pipeline.dot"]).ends(0);
}

#[test]
fn a_full_disk_leaves_nothing() {
    let registry = Registry::start();
    let project = Project::new();
    project.push(&registry, &large_component("0.1.0", 300_000)).ends(0);
    let data = project.bench.data_dir();
    std::fs::create_dir_all(&data).unwrap();
    // The small disk exists only in the mount namespace of this shell.
    let script = "mount -t tmpfs -o size=128k tmpfs \"$1\" || exit 99\n\
                  \"$2\" plugin add \"$3\" --accept; code=$?\n\
                  find \"$1\" -type f | sed 's/^/left: /'; exit $code";
    let mut shell = project.bench.bare(&[]);
    let program = shell.get_program().to_owned();
    let environment: Vec<_> =
        shell.get_envs().filter_map(|(name, value)| Some((name.to_owned(), value?.to_owned()))).collect();
    shell = Command::new("unshare");
    shell.args(["--user", "--map-root-user", "--mount", "sh", "-c", script, "sh"]).arg(&data).arg(program);
    shell.arg(registry.named("acme/todo:0.1.0")).env_clear().envs(environment).current_dir(project.bench.project());
    let Ok(output) = shell.output() else { return not_run("a full disk", "no `unshare`") };
    let answer = workbench::Answer::from_output("unshare".to_owned(), &output);
    if answer.code == 99 || answer.stderr.contains("unshare") {
        return not_run("a full disk", &answer.stderr);
    }
    answer.ends(2).says("No space left on device").never_says("left: ");
    project.is_untouched();
}

#[test]
fn no_stage_sees_the_store() {
    let registry = Registry::start();
    let project = Project::with_plugin(&registry);
    let [file]: [_; 1] = project.components().try_into().unwrap();
    if project.bench.glovebox(&["doctor", "--json"]).json()["tier"].is_null() {
        return not_run("a stage that looks for the store", "this machine can confine no command");
    }
    // The operator shows the folder around the store: the store stays hidden.
    let around = project.bench.outside().to_str().unwrap().to_owned();
    let config = format!("{}\n[sandbox]\nread = [\"{around}\"]\n", project.bench.read("glovebox.toml"));
    for config in [project.bench.read("glovebox.toml"), config] {
        project.bench.write("glovebox.toml", &config);
        let command = format!("cat {}; echo seen >> {}", file.display(), file.display());
        project.bench.write(
            "look.dot",
            &format!(
                "digraph g {{ start [shape=Mdiamond]; done [shape=Msquare]\n t [shape=parallelogram, tool_command=\"{command}\", \
                 allowed_write_paths=\"\"]; start -> t -> done }}\n"
            ),
        );
        let before = std::fs::read(&file).unwrap();
        let run = project.bench.glovebox(&["run", "look.dot"]);
        assert_ne!(run.code, 0, "{}{}", run.stdout, run.stderr);
        run.never_says("\0asm");
        assert_eq!(std::fs::read(&file).unwrap(), before, "a stage changed the store");
    }
}
