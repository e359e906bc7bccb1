//! Plugins with the real binary: inspecting and locking them, running only what was locked, and refusals with a remedy.

use crate::guests;
use crate::workbench::{Answer, Workbench};

/// Creates a project whose only stage is a third-party plugin with these bytes as its component.
fn plugin_bench(bytes: &[u8], config: &str) -> Workbench {
    let bench = Workbench::with_pipeline(
        "digraph g {\n  start [shape=Mdiamond]; done [shape=Msquare]\n\
         \x20 stage [type=\"evil.guest\", allowed_write_paths=\"out/\"]\n  start -> stage -> done\n}\n",
    );
    std::fs::write(bench.project().join("guest.wasm"), bytes).unwrap();
    bench.write("glovebox.toml", &format!("[plugins.\"evil.guest\"]\npath = \"guest.wasm\"\n{config}\n"));
    bench
}

fn harmless() -> Vec<u8> {
    guests::component("(func $execute)")
}

#[test]
fn a_plugin_runs_only_as_it_was_locked() {
    let bench = plugin_bench(&harmless(), "wants = { filesystem = \"workspace\", read = [\"src/\"] }");
    bench.glovebox(&["run", "pipeline.dot"]).ends(7).says("not in `glovebox.lock`").says("glovebox plugin lock");
    assert!(!bench.has(".glovebox"), "what is refused leaves no run behind");
    bench.glovebox(&["plugin", "lock"]).ends(0).says("new").says("digest   blake3:");
    bench.glovebox(&["run", "pipeline.dot"]).ends(0);
    bench.glovebox(&["plan", "pipeline.dot"]).ends(0).says("evil.guest, plugin");
    std::fs::write(bench.project().join("guest.wasm"), guests::component("(func $execute nop)")).unwrap();
    for command in ["run", "plan"] {
        bench.glovebox(&[command, "pipeline.dot"]).ends(7).says("has the digest").says("glovebox plugin lock");
    }
    bench.glovebox(&["plugin", "lock"]).ends(0).says("changed bytes");
    bench.glovebox(&["run", "pipeline.dot"]).ends(0);
    bench.glovebox(&["plugin", "lock"]).ends(0).says("unchanged");
}

#[test]
fn what_a_node_lacks_is_reported_beside_a_plugin_that_is_not_locked() {
    let table = "wants = { filesystem = \"workspace\", read = [\"src/\"], commands = [\"*\"] }\n\
                 grants = { filesystem = \"workspace\", commands = [\"*\"] }";
    let bench = plugin_bench(&guests::component("(func $execute)"), table);
    let text = bench.read("pipeline.dot").replace("\"out/\"]", "\"out/\", network=\"full\"]");
    bench.write("pipeline.dot", &text);
    for command in ["plan", "check", "run"] {
        let answer = bench.glovebox(&[command, "pipeline.dot"]);
        answer.ends(3).says("network_not_granted").says("glovebox plugin lock");
    }
}

#[test]
fn grants_that_grow_after_the_lock_are_refused() {
    let wants = "wants = { filesystem = \"workspace\", read = [\"src/\", \"docs/\"] }\n";
    let granted = |paths: &str| format!("{wants}grants = {{ filesystem = \"workspace\", read = [{paths}] }}");
    let bench = plugin_bench(&harmless(), &granted("\"src/\""));
    bench.glovebox(&["plugin", "lock"]).ends(0).says("granted  read src/");
    let config = bench.read("glovebox.toml");
    bench.write("glovebox.toml", &config.replace("read = [\"src/\"] }", "read = [\"src/\", \"docs/\"] }"));
    bench.glovebox(&["run", "pipeline.dot"]).ends(7).says("docs/").says("glovebox plugin lock");
    bench.write("glovebox.toml", &config);
    bench.glovebox(&["run", "pipeline.dot"]).ends(0);
}

#[test]
fn a_grant_that_grows_is_refused_even_if_it_is_not_wanted() {
    let wants = "wants = { filesystem = \"workspace\", read = [\"src/\"] }\n";
    let granted = |rest: &str| format!("{wants}grants = {{ filesystem = \"workspace\", read = [\"src/\"]{rest} }}");
    let bench = plugin_bench(&harmless(), &granted(""));
    bench.glovebox(&["plugin", "lock"]).ends(0);
    let config = bench.read("glovebox.toml");
    for (grant, line) in [
        (", write = [\"out/\"]", "write out/"),
        (", commands = [\"cargo\"]", "run cargo"),
        (", model = true", "model"),
        (", limits = { turns = 99 }", "limit turns 99"),
    ] {
        bench.write("glovebox.toml", &config.replace(&granted(""), &granted(grant)));
        for command in ["run", "plan"] {
            let answer = bench.glovebox(&[command, "pipeline.dot"]);
            answer.ends(7).says(&format!("`{line}`")).says("but the lock does not have").says("glovebox plugin lock");
        }
        assert!(!bench.has(".glovebox"), "what is refused leaves no run behind");
    }
    // A narrower offer needs no new agreement.
    bench.write(
        "glovebox.toml",
        &config.replace(
            "grants = { filesystem = \"workspace\", read = [\"src/\"",
            "grants = { filesystem = \"workspace\", read = [\"src/a/\"",
        ),
    );
    bench.glovebox(&["run", "pipeline.dot"]).ends(0);
}

#[test]
fn a_lock_edited_by_hand_is_named() {
    let bench = plugin_bench(&harmless(), "");
    bench.glovebox(&["plugin", "lock"]).ends(0);
    let lock = bench.read("glovebox.lock");
    for (field, written, edited) in [("bytes", "bytes = ", "bytes = 1"), ("world", "world = \"", "world = \"x")] {
        bench.write("glovebox.lock", &lock.replace(written, edited));
        let answer = bench.glovebox(&["run", "pipeline.dot"]);
        answer.ends(7).says(&format!("another `{field}`")).says("the lock was edited").says("glovebox plugin lock");
    }
}

#[test]
fn a_plugin_that_is_not_there_or_not_known_is_named() {
    let bench = plugin_bench(&harmless(), "");
    std::fs::remove_file(bench.project().join("guest.wasm")).unwrap();
    bench.glovebox(&["run", "pipeline.dot"]).ends(7).says("guest.wasm");
    bench.glovebox(&["plugin", "lock"]).ends(2).says("guest.wasm");
    std::fs::remove_file(bench.project().join("glovebox.toml")).unwrap();
    bench.glovebox(&["run", "pipeline.dot"]).ends(3).says("evil.guest").says("[plugins.\"evil.guest\"]");
}

#[test]
fn a_component_with_ungranted_imports_is_refused_before_it_is_locked_or_runs() {
    let bench = plugin_bench(&guests::build("opens-sockets"), "");
    let lock = bench.glovebox(&["plugin", "lock"]);
    lock.ends(7).says("wasi:sockets").says("components have no network").says("componentize-py").says("std::net");
    assert!(!bench.has("glovebox.lock"));
    // A lock file with the component's digest, from an earlier version or written by hand, does not allow the component
    // to run.
    std::fs::write(bench.project().join("guest.wasm"), harmless()).unwrap();
    bench.glovebox(&["plugin", "lock"]).ends(0);
    let digest = |bytes: &[u8]| format!("blake3:{}", blake3::hash(bytes).to_hex());
    let sockets = guests::build("opens-sockets");
    let forged = bench.read("glovebox.lock").replace(&digest(&harmless()), &digest(&sockets));
    bench.write("glovebox.lock", &forged);
    std::fs::write(bench.project().join("guest.wasm"), sockets).unwrap();
    bench.glovebox(&["run", "pipeline.dot"]).ends(7).says("wasi:sockets").says("componentize-py");
    bench.glovebox(&["plugin", "inspect", "guest.wasm"]).ends(0).says("never granted: components have no network");
}

#[test]
fn a_component_without_a_stage_is_not_locked() {
    let bench = plugin_bench(&wat::parse_str("(component)").unwrap(), "");
    bench.glovebox(&["plugin", "lock"]).ends(7).says("exports no `glovebox:plugin/stage@0.1.0`").says("`handler`");
    let rules = plugin_bench(&guests::rules("(func $lint (param i32 i32)) (func $transform)"), "");
    rules
        .glovebox(&["plugin", "lock"])
        .ends(7)
        .says("exports no `glovebox:plugin/stage@0.1.0`")
        .says("under `[rules]`");
    assert!(!bench.has("glovebox.lock") && !rules.has("glovebox.lock"));
}

#[test]
fn locking_writes_through_no_link() {
    let bench = plugin_bench(&harmless(), "");
    let canary = bench.outside().join("canary");
    std::fs::write(&canary, "alive").unwrap();
    for name in ["glovebox.lock.new", "glovebox.lock"] {
        std::os::unix::fs::symlink(&canary, bench.project().join(name)).unwrap();
    }
    bench.glovebox(&["plugin", "lock"]).ends(7).says("glovebox.lock");
    std::fs::remove_file(bench.project().join("glovebox.lock")).unwrap();
    bench.glovebox(&["plugin", "lock"]).ends(0);
    assert_eq!(std::fs::read_to_string(&canary).unwrap(), "alive");
    assert!(bench.read("glovebox.lock").contains("evil.guest"));
}

#[test]
fn a_project_cannot_have_a_component_of_any_size_read_into_memory() {
    for table in [
        "[limits]\ncomponent_bytes = \"2GiB\"",
        "[plugins.\"acme.x\"]\npath = \"x\"\ngrants.limits.component_bytes = \"2GiB\"",
    ] {
        let bench = plugin_bench(&harmless(), table);
        bench.glovebox(&["plugin", "ls"]).ends(3).says("is more than 1073741824 bytes (1GiB)");
    }
}

#[test]
fn a_plugin_file_is_read_to_a_bound_and_never_waited_for() {
    let bench = plugin_bench(&harmless(), "[limits]\ncomponent_bytes = 100");
    for command in [&["plugin", "lock"][..], &["run", "pipeline.dot"]] {
        bench.glovebox(command).ends(7).says("`component_bytes`").says("100");
    }
    let guest = bench.project().join("guest.wasm");
    std::fs::remove_file(&guest).unwrap();
    std::os::unix::fs::symlink("/dev/zero", &guest).unwrap();
    for command in [&["plugin", "lock"][..], &["plugin", "inspect", "guest.wasm"], &["run", "pipeline.dot"]] {
        bench.glovebox(command).ends(7).says("expected a file, found a device");
    }
}

#[test]
fn a_plan_shows_an_unlocked_plugin_and_compiles_nothing_of_it() {
    let config = "wants = { filesystem = \"workspace\", read = [\"src/\"], write = [\"out/\"] }\n\
                  grants = { filesystem = \"workspace\", read = [\"src/\"], write = [\"out/\"] }";
    let bench = plugin_bench(&harmless(), config);
    let plan = |words: &[&str]| {
        let cache = bench.outside().join("cache");
        Answer::of(bench.command(&[&["plan", "pipeline.dot"], words].concat()).env("GLOVEBOX_CACHE_DIR", cache))
    };
    let shown = plan(&[]);
    shown.ends(7).says("not locked: plugin `evil.guest` is not in `glovebox.lock`; `glovebox run` refuses it");
    shown
        .says("(evil.guest, plugin, not locked, files: workspace)")
        .says("  write    out/\n")
        .says("glovebox plugin lock");
    assert!(!bench.has("glovebox.lock") && !bench.has(".glovebox"));
    let kept = std::fs::read_dir(bench.outside().join("cache/aot")).unwrap();
    let kept: Vec<_> = kept.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    let guest = blake3::hash(&std::fs::read(bench.project().join("guest.wasm")).unwrap()).to_hex();
    assert!(kept.iter().all(|name| !name.starts_with(guest.as_str())), "nothing of it was compiled: {kept:?}");
    assert!(kept.contains(&"mac.key".to_owned()));
    let json = plan(&["--json"]).ends(7).json();
    assert_eq!(json["unlocked"][0]["plugin"], "evil.guest");
    assert_eq!(json["nodes"][1]["could"]["write"], serde_json::json!(["out/"]));
    bench.glovebox(&["run", "pipeline.dot"]).ends(7).says("is not in `glovebox.lock`");
    assert!(!bench.has(".glovebox"), "what is refused leaves no run behind");
    bench.glovebox(&["plugin", "lock"]).ends(0);
    assert!(plan(&["--json"]).ends(0).json().get("unlocked").is_none());
    // A plan shows a grant that exceeds the lock file, and still refuses it.
    bench.write("glovebox.toml", &bench.read("glovebox.toml").replace("\"src/\"", "\"./\""));
    plan(&[]).ends(7).says("is granted `read ./`").says("  read     ./, out/\n");
    plan(&["--deny", "write=out/"]).ends(6).says("is granted `read ./`").says("denied by `write=out/`");
}

#[test]
fn a_plan_shows_no_plugin_that_could_not_run_even_if_it_were_locked() {
    let bench = plugin_bench(&guests::build("opens-sockets"), "");
    bench.glovebox(&["plan", "pipeline.dot"]).ends(7).says("wasi:sockets").never_says("not locked");
}

#[test]
fn locking_says_what_is_asked_for_and_what_is_given() {
    let config = "wants = { filesystem = \"posix\", read = [\"src/\", \"docs/\"], commands = [\"cargo test\"], model = true }\n\
                  grants = { filesystem = \"workspace\", read = [\"src/\"], write = [\"out/\"], commands = [\"cargo test\"] }";
    let lock = plugin_bench(&harmless(), config).glovebox(&["plugin", "lock"]);
    for line in [
        "  wants    open files as any program does (`posix`)\n",
        "  wants    read docs/\n",
        "  wants    ask the model of its node\n",
        "  granted  open files through the interface `files` (`workspace`)\n",
        "  granted  read src/\n",
        "  granted  run `cargo test …`\n",
        "  refused  read docs/: wanted, but the operator grants less or none of it",
        "  refused  ask the model of its node: wanted",
        "  unused   write out/: granted, but the plugin wants less or none of it",
        "  reach    nothing by itself; its commands: network `none`",
    ] {
        lock.ends(0).says(line);
    }
    let idle = plugin_bench(&harmless(), "");
    idle.glovebox(&["plugin", "lock"])
        .ends(0)
        .says("  wants    nothing\n")
        .says("  granted  nothing\n")
        .says("no network");
}

#[test]
fn a_narrowed_grant_names_itself() {
    let wants = "wants = { commands = [\"true\"] }\n";
    let bench = plugin_bench(&guests::build("runs-command"), &format!("{wants}grants = {{ commands = [\"true\"] }}"));
    bench.glovebox(&["plugin", "lock"]).ends(0);
    bench.write("glovebox.toml", &bench.read("glovebox.toml").replace("grants = { commands = [\"true\"] }", ""));
    let run = bench.glovebox(&["run", "pipeline.dot"]);
    run.ends(1).says("`glovebox.toml:1` grants less than `glovebox.lock`: it lacks `run true`");
}
