//! Plugins from outside: what is inspected, what is locked, what runs only as it was locked, and what is refused with a remedy.

#![allow(clippy::unwrap_used, reason = "a test that is surprised stops there")]

mod guests;
mod workbench;

use workbench::Workbench;

/// A project whose only stage is a third-party plugin made of the given bytes.
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
    // A lock of an earlier version, or one that was written by hand, does not help it.
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
