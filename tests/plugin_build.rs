//! `glovebox plugin build` and `plugin dev` without the tools of a language: the build command copies a component that the test made.

use crate::guests;
use crate::session::Session;
use crate::workbench::{Answer, Workbench};

/// Logs one line and succeeds.
const LOGS: &str = r#"(import "glovebox:plugin/control@0.1.0" "log" (func $log (param i32 i32 i32 i32 i32 i32)))
    (data (i32.const 1024) "infomuch ado")
    (func $execute (call $log (i32.const 1024) (i32.const 4) (i32.const 1028) (i32.const 8) (i32.const 0) (i32.const 0)))"#;

/// Cases that expect nothing but a status.
const SUCCEEDS: &str = r#"{"expect": {"status": "success"}}"#;
const FAILS: &str = r#"{"expect": {"status": "fail"}}"#;

/// Creates a project in `todo` whose build copies a file.
fn project(component: &[u8], wants: &str) -> Workbench {
    let bench = Workbench::new();
    bench.write("todo/plugin.toml", &project_file(r#"["cp", "made.wasm", "build/out.wasm"]"#, wants));
    std::fs::write(bench.project().join("todo/made.wasm"), component).unwrap();
    bench
}

fn project_file(command: &str, wants: &str) -> String {
    format!(
        "name = \"acme.todo\"\nversion = \"1.2.0\"\nlicenses = \"MIT\"\nlang = \"c\"\nworld = \"handler\"\n\n\
         [build]\ncommand = {command}\noutput = \"build/out.wasm\"\n\n[wants]\n{wants}\n"
    )
}

fn harmless() -> Vec<u8> {
    guests::component("(func $execute)")
}

#[test]
fn component_manifest_and_digest_are_in_one_place() {
    let bench = project(&harmless(), "");
    let built = bench.glovebox(&["plugin", "build", "todo"]);
    built.ends(0).says("plugin    acme.todo 1.2.0 (handler, C)\n").says("component todo/dist/acme.todo-1.2.0.wasm\n");
    let inspected = bench.glovebox(&["plugin", "inspect", "--json", "todo/dist/acme.todo-1.2.0.wasm"]).json();
    let written: serde_json::Value = serde_json::from_str(&bench.read("todo/dist/acme.todo-1.2.0.json")).unwrap();
    for (field, value) in written.as_object().unwrap() {
        assert_eq!(&inspected[field], value, "{field}");
    }
    built.says(&format!("digest    {}\n", written["digest"].as_str().unwrap()));
    assert_eq!(written["manifest"]["licenses"], "MIT");
    let again = bench.glovebox(&["plugin", "build", "todo"]);
    assert_eq!(again.stdout, built.stdout);
}

#[test]
fn a_version_that_no_registry_can_have_is_refused() {
    let bench = project(&harmless(), "");
    bench.write("todo/plugin.toml", &bench.read("todo/plugin.toml").replace("1.2.0", "1.0"));
    let refused = bench.glovebox(&["plugin", "build", "todo"]);
    refused.ends(3).says("`version` is `1.0`").says("help: write three numbers, such as `1.0.0`");
    assert!(!bench.has("todo/dist") && !bench.has("todo/build"));
    bench.write("manifest.json", r#"{"name":"acme.todo","version":"1.0"}"#);
    let embed = bench.glovebox(&["plugin", "embed-manifest", "todo/made.wasm", "manifest.json", "-o", "new.wasm"]);
    embed.ends(7).says("`manifest.json`: `version` is `1.0`").says("such as `1.0.0`");
    assert!(!bench.has("new.wasm"));
}

#[test]
fn test_without_a_file_takes_the_built_one() {
    let bench = project(&harmless(), "");
    let test = |folder: &str| {
        let mut command = bench.bare(&["plugin", "test", "--only", "manifest"]);
        Answer::of(command.current_dir(bench.project().join(folder)))
    };
    test("").ends(2).says("there is no `plugin.toml` here").says("help: name one");
    test("todo").ends(2).says("there is no `./dist/acme.todo-1.2.0.wasm`").says("help: build it first");
    bench.glovebox(&["plugin", "build", "todo"]).ends(0);
    test("todo").ends(0).says("acme.todo 1.2.0 (handler)");
}

#[test]
fn a_core_module_becomes_a_component() {
    let bench = project(&guests::core("(func $execute)"), "");
    bench.glovebox(&["plugin", "build", "todo"]).ends(0).says("digest    blake3:");
    let bench = project(&wat::parse_str("(module)").unwrap(), "");
    bench.glovebox(&["plugin", "build", "todo"]).ends(7).says("does not export `glovebox:plugin/stage`");
}

#[test]
fn manifest_and_imports_agree() {
    let refused = |component: &[u8], wants: &str, expected: &str| {
        let bench = project(component, wants);
        bench.glovebox(&["plugin", "build", "todo"]).ends(7).says(expected).says("help: ");
        assert!(!bench.has("todo/dist"), "{expected}");
    };
    refused(&harmless(), "model = true", "wants `model`, but the component does not import `llm`");
    refused(&harmless(), "commands = [\"make\"]", "wants `commands`, but the component does not import `exec`");
    refused(&harmless(), "filesystem = \"workspace\"", "wants `filesystem`, but the component does not import `files`");
    refused(&harmless(), "filesystem = \"posix\"", "does not import `wasi:filesystem/types`");
    refused(&guests::build("asks-model"), "", "imports `llm`, which the world `handler` does not have");
    let bench = project(&guests::build("asks-model"), "");
    let text = bench.read("todo/plugin.toml").replace("\"handler\"", "\"agent\"");
    bench.write("todo/plugin.toml", &text);
    bench.glovebox(&["plugin", "build", "todo"]).ends(0).says("the host will refuse every call of it");
}

#[test]
fn what_is_missing_is_named() {
    let bench = project(&harmless(), "");
    let with = |command: &str| {
        bench.write("todo/plugin.toml", &project_file(command, ""));
        bench.glovebox(&["plugin", "build", "todo"])
    };
    with(r#"["clang-of-nobody", "x"]"#)
        .ends(2)
        .says("`clang-of-nobody` is not installed")
        .says("apt install clang lld wasi-libc");
    with(r#"["./compile.sh"]"#).ends(2).says("`./compile.sh` is not installed");
    with("[]").ends(3).says("`build.command` is empty");
    with(r#"["cp", "nothing.wasm", "build/out.wasm"]"#).ends(7).says("the build failed").says("cp nothing.wasm");
    with(r#"["true"]"#).ends(7).says("the build wrote no usable `todo/build/out.wasm`").says("`build.output`");
    std::fs::write(bench.project().join("todo/made.wasm"), "text").unwrap();
    with(r#"["cp", "made.wasm", "build/out.wasm"]"#).ends(7).says("not WebAssembly");
    bench.glovebox(&["plugin", "build", "nowhere"]).ends(2).says("there is no `nowhere/plugin.toml`");
    bench.write("todo/plugin.toml", "name = \"acme.todo\"\nlicence = \"MIT\"\n");
    bench.glovebox(&["plugin", "build", "todo"]).ends(3).says("unknown field `licence`");
}

#[test]
fn a_manifest_in_the_code_is_refused() {
    let manifest = r#"(@custom "glovebox:manifest" "{\"name\":\"acme.todo\",\"version\":\"1\"}")"#;
    let bench = project(&guests::component(&format!("{manifest}(func $execute)")), "");
    bench
        .glovebox(&["plugin", "build", "todo"])
        .ends(7)
        .says("has a manifest already")
        .says("plugin.toml has the manifest");
}

#[test]
fn a_link_in_dist_is_not_followed() {
    let bench = project(&harmless(), "");
    bench.write("victim", "mine");
    std::fs::create_dir(bench.project().join("todo/dist")).unwrap();
    let link = bench.project().join("todo/dist/acme.todo-1.2.0.wasm");
    std::os::unix::fs::symlink(bench.project().join("victim"), link).unwrap();
    bench.glovebox(&["plugin", "build", "todo"]).ends(2).says("is a link: nothing was written");
    assert_eq!(bench.read("victim"), "mine");
}

#[test]
fn a_link_in_the_path_of_the_output_is_not_followed() {
    let bench = project(&harmless(), "");
    let elsewhere = bench.outside().join("elsewhere");
    std::fs::create_dir(&elsewhere).unwrap();
    std::os::unix::fs::symlink(&elsewhere, bench.project().join("todo/build")).unwrap();
    bench.write("todo/plugin.toml", &bench.read("todo/plugin.toml").replace("build/out.wasm", "build/new/out.wasm"));
    bench.glovebox(&["plugin", "build", "todo"]).ends(2).says("is behind a link or a file: nothing was written");
    assert_eq!(elsewhere.read_dir().unwrap().count(), 0);
    std::fs::remove_file(bench.project().join("todo/build")).unwrap();
    std::os::unix::fs::symlink(&elsewhere, bench.project().join("todo/dist")).unwrap();
    bench.glovebox(&["plugin", "build", "todo"]).ends(2).says("is behind a link or a file");
    assert_eq!(elsewhere.read_dir().unwrap().count(), 0);
}

#[test]
fn a_case_that_is_a_link_to_another_folder_is_not_read() {
    let bench = project(&guests::component(LOGS), "");
    let secret = bench.outside().join("secret.json");
    std::fs::write(&secret, SUCCEEDS).unwrap();
    std::fs::create_dir_all(bench.project().join("todo/cases")).unwrap();
    std::os::unix::fs::symlink(&secret, bench.project().join("todo/cases/a.json")).unwrap();
    let dev = bench.glovebox(&["plugin", "dev", "todo", "--once"]);
    assert!(dev.code == 2 || dev.code == 3, "{}{}", dev.stdout, dev.stderr);
    dev.never_says("case a ... ok");
}

#[test]
fn cases_are_compared_with_what_they_expect() {
    let bench = project(&guests::component(LOGS), "");
    let dev = || bench.glovebox(&["plugin", "dev", "todo", "--once"]);
    dev().ends(2).says("read the cases in `todo/cases`").says("help: a case is a file `NAME.json`");
    std::fs::create_dir(bench.project().join("todo/cases")).unwrap();
    dev().ends(2).says("has no case").says("help: a case is a file `NAME.json`");
    bench.write("todo/cases/a.json", SUCCEEDS);
    bench.write("todo/cases/b.json", FAILS);
    let ended = dev();
    ended.ends(1).says("case a ... ok (success)\n").says("  log info much ado\n").says("case b ... FAILED (success)\n");
    ended.says("  status is `success`, expected `fail`\n").says("1 passed, 1 failed\n");
    bench.glovebox(&["plugin", "dev", "todo", "--once", "--cases", "todo/cases/a.json"]).ends(2);
    std::fs::write(bench.project().join("todo/made.wasm"), guests::build("traps")).unwrap();
    dev().ends(1).says("case a ... FAILED (fail: ").says("case b ... ok (fail: ").says("trap");
    // `plugin test` reads the same folder.
    let component = "todo/dist/acme.todo-1.2.0.wasm";
    bench.glovebox(&["plugin", "build", "todo"]).ends(0);
    let test = ["plugin", "test", component, "--cases", "todo/cases", "--only", "cases"];
    bench.glovebox(&test).ends(7).says("FAILED         cases.a").says("passed         cases.b");
}

#[test]
fn a_mistake_in_a_case_is_named_with_its_place() {
    let bench = project(&harmless(), "");
    bench.write("todo/cases/good.json", SUCCEEDS);
    bench.write("todo/cases/key.json", "{\n  \"expect\": {\"statsu\": \"fail\"}\n}\n");
    bench.write("todo/cases/value.json", "{\"expect\": {\"status\": \"failed\"}}\n");
    bench.write("todo/cases/none.json", "{}");
    for words in [&["dev", "todo", "--once"][..], &["test", "todo/made.wasm", "--cases", "todo/cases"]] {
        let answer = bench.glovebox(&[&["plugin"], words].concat());
        answer.ends(3).says("`todo/cases/key.json`: unknown field `statsu`").says("at line 2 column 21");
        answer.says("`todo/cases/value.json`: unknown variant `failed`, expected one of `success`, `partial_success`");
        answer.says("`todo/cases/none.json`: a case needs `expect`").says("help: the fields of a stage file");
        answer.never_says("good.json");
    }
    assert!(!bench.has("todo/build"), "nothing is built for cases that cannot be run");
}

#[test]
fn a_change_builds_again_until_ctrl_c() {
    let bench = project(&harmless(), "");
    bench.write("todo/.gitignore", "/build/\n");
    bench.write("todo/cases/a.json", SUCCEEDS);
    let session = Session::start(bench.bare(&["plugin", "dev", "todo"]));
    session.waits_for("1 passed, 0 failed", 1).waits_for("watching the project", 1);
    bench.write("todo/cases/a.json", FAILS);
    session.waits_for("0 passed, 1 failed", 1).waits_for("watching the project", 2);
    bench.write("todo/plugin.toml", "broken");
    session.waits_for("plugin.toml`", 1).waits_for("watching the project", 3);
    session.interrupts();
    session.ends(130);
}

#[test]
fn a_signal_ends_cases_that_are_under_way() {
    let bench = project(&guests::build("endless-loop"), "");
    bench.write("todo/cases/a.json", SUCCEEDS);
    let temporary = bench.outside().join("temporary");
    std::fs::create_dir(&temporary).unwrap();
    let mut command = bench.bare(&["plugin", "dev", "todo"]);
    command.env("TMPDIR", &temporary);
    let session = Session::start(command);
    // A case has its folder from the beginning, and this one would take 10 s.
    let began = std::time::Instant::now();
    while temporary.read_dir().unwrap().count() == 0 {
        assert!(began.elapsed().as_secs() < 60, "no case begins: {}", session.shown());
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    session.interrupts();
    session.ends(130);
}
