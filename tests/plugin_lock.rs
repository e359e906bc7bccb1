//! The verbs that change which plugins a project agrees to, with the real binary: add, update, remove, ls and `--locked`.

use crate::guests;
use crate::workbench::{Answer, Workbench};
use glovebox_host::inspect::embed;
use std::path::{Path, PathBuf};
use std::thread;

const PIPELINE: &str = "digraph g {\n  start [shape=Mdiamond]; done [shape=Msquare]\n  stage [type=\"acme.todo\"]\n  start -> stage -> done\n}\n";

/// Returns a component whose manifest has this version and these wants.
fn component(name: &str, version: &str, wants: &str, body: &str) -> Vec<u8> {
    let manifest =
        format!(r#"{{"name":"{name}","version":"{version}","description":"Looks for TODO.","wants":{{{wants}}}}}"#);
    embed(&guests::component(body), &manifest).expect("a manifest")
}

fn reads(version: &str, paths: &str) -> Vec<u8> {
    component("acme.todo", version, &format!(r#""filesystem":"workspace","read":[{paths}]"#), "(func $execute)")
}

/// Creates a project without plugins, and a component outside of it.
fn bench(bytes: &[u8]) -> (Workbench, PathBuf) {
    let bench = Workbench::with_pipeline(PIPELINE);
    let file = bench.outside().join("todo.wasm");
    std::fs::write(&file, bytes).unwrap();
    (bench, file)
}

fn add(bench: &Workbench, file: &Path, rest: &[&str]) -> Answer {
    bench.glovebox(&[&["plugin", "add", file.to_str().unwrap()], rest].concat())
}

#[test]
fn a_plugin_is_added_after_its_reader_agreed() {
    let (bench, file) = bench(&reads("0.1.0", r#""src/""#));
    let shown = add(&bench, &file, &[]);
    shown.ends(6).says("acme.todo 0.1.0 (handler)").says("read every file below `src/`: what it reads can be in");
    shown.says("nothing was written").says("--accept");
    for path in ["glovebox.toml", "glovebox.lock", "plugins"] {
        assert!(!bench.has(path), "{path}");
    }
    add(&bench, &file, &["--accept"]).ends(0).says("type=\"acme.todo\"");
    assert!(bench.read("glovebox.toml").contains("path = \"plugins/acme.todo.wasm\""));
    let lock = bench.read("glovebox.lock");
    for line in ["version = \"0.1.0\"", "source = \"file plugins/acme.todo.wasm\"", "\"read src/\""] {
        assert!(lock.contains(line), "{line}: {lock}");
    }
    bench.glovebox(&["run", "pipeline.dot"]).ends(0);
    bench.glovebox(&["plugin", "ls"]).ends(0).says("acme.todo 0.1.0  file plugins/acme.todo.wasm  locked");
    assert_eq!(bench.glovebox(&["plugin", "ls", "--json"]).ends(0).json()[0]["version"], "0.1.0");
    add(&bench, &file, &["--accept"]).ends(7).says("is a plugin of this project already").says("plugin update");
    bench.glovebox(&["plugin", "remove", "acme.todo"]).ends(0).says("was kept");
    assert!(!bench.read("glovebox.toml").contains("acme.todo") && !bench.read("glovebox.lock").contains("acme.todo"));
    bench.glovebox(&["plugin", "remove", "acme.todo"]).ends(2).says("is not a plugin of this project");
}

#[test]
fn what_is_not_as_expected_is_not_added() {
    let (bench, file) = bench(&reads("0.1.0", r#""src/""#));
    let other = format!("blake3:{}", "0".repeat(64));
    add(&bench, &file, &["--digest", &other, "--accept"]).ends(7).says("has the digest").says(&other);
    add(&bench, &file, &["--name", "acme.other", "--accept"]).ends(2).says("names the plugin `acme.todo`");
    bench.glovebox(&["plugin", "add", "https://example.org/todo.wasm"]).ends(2).says("has no digest").says("--digest");
    bench.glovebox(&["plugin", "add", "none.wasm"]).ends(2).says("none.wasm");
    std::fs::write(&file, "text").unwrap();
    add(&bench, &file, &["--accept"]).ends(7).says("not WebAssembly");
    std::fs::write(&file, component("todo", "0.1.0", "", "(func $execute)")).unwrap();
    add(&bench, &file, &["--accept"]).ends(7).says("`todo` is not a name for a plugin");
    std::fs::write(&file, guests::component("(func $execute)")).unwrap();
    add(&bench, &file, &["--accept"]).ends(2).says("has no manifest").says("--name");
    for path in ["glovebox.toml", "glovebox.lock", "plugins"] {
        assert!(!bench.has(path), "{path}");
    }
}

/// The path in `glovebox.toml` may be that of any file of the user.
#[test]
fn an_update_replaces_no_file_outside_of_the_project() {
    let (bench, file) = bench(&reads("0.1.0", r#""src/""#));
    add(&bench, &file, &["--accept"]).ends(0);
    let victim = bench.outside().join("victim");
    std::fs::write(&victim, "mine").unwrap();
    std::fs::write(&file, reads("0.2.0", r#""src/""#)).unwrap();
    let config = bench.read("glovebox.toml");
    for path in [victim.to_str().unwrap(), "src/../../outside/victim"] {
        bench.write("glovebox.toml", &config.replace("plugins/acme.todo.wasm", path));
        let update = ["plugin", "update", "acme.todo", "--from", file.to_str().unwrap(), "--accept"];
        bench.glovebox(&update).ends(6).says("is outside of the project").says("without `--from`");
        assert_eq!(std::fs::read(&victim).unwrap(), b"mine", "{path}");
    }
}

#[test]
fn a_file_of_the_project_stays_where_it_is_and_other_bytes_are_not_replaced() {
    let (bench, file) = bench(&reads("0.1.0", r#""src/""#));
    bench.write("plugins/acme.todo.wasm", "mine");
    add(&bench, &file, &["--accept"]).ends(7).says("exists with other bytes");
    assert_eq!(bench.read("plugins/acme.todo.wasm"), "mine");
    std::fs::copy(&file, bench.project().join("here.wasm")).unwrap();
    bench.write("glovebox.toml", "# mine\n[limits]\nturns = 3\n");
    bench.glovebox(&["plugin", "add", "here.wasm", "--accept"]).ends(0);
    let config = bench.read("glovebox.toml");
    assert!(
        config.starts_with("# mine\n[limits]\nturns = 3\n\n[plugins.\"acme.todo\"]\npath = \"here.wasm\""),
        "{config}"
    );
}

#[test]
fn an_update_shows_only_what_grew_and_waits() {
    let (bench, file) = bench(&reads("0.1.0", r#""src/""#));
    add(&bench, &file, &["--accept"]).ends(0);
    let from = file.to_str().unwrap();
    let update = |rest: &[&str]| bench.glovebox(&[&["plugin", "update", "acme.todo", "--from", from], rest].concat());
    let installed = || std::fs::read(bench.project().join("plugins/acme.todo.wasm")).unwrap();
    std::fs::write(&file, reads("0.2.0", r#""src/","docs/""#)).unwrap();
    let (before, lock) = (installed(), bench.read("glovebox.lock"));
    let shown = update(&[]);
    shown.ends(6).says("read every file below `docs/`").never_says("below `src/`").says("nothing was written");
    assert!(installed() == before && bench.read("glovebox.lock") == lock);
    update(&["--accept"]).ends(0).says("0.1.0, now 0.2.0");
    assert_eq!(installed(), reads("0.2.0", r#""src/","docs/""#));
    bench.glovebox(&["run", "pipeline.dot"]).ends(0);
    // Less needs no agreement.
    std::fs::write(&file, reads("0.3.0", r#""src/lib/""#)).unwrap();
    update(&[]).ends(0).says("nothing grew");
    bench.glovebox(&["run", "pipeline.dot"]).ends(0);
    update(&[]).ends(0).says("nothing changed");
    bench.glovebox(&["plugin", "update", "acme.none"]).ends(2).says("is not a plugin of this project");
}

#[test]
fn republished_bytes_are_refused() {
    let (bench, file) = bench(&reads("0.1.0", r#""src/""#));
    add(&bench, &file, &["--accept"]).ends(0);
    let wants = r#""filesystem":"workspace","read":["src/"]"#;
    std::fs::write(&file, component("acme.todo", "0.1.0", wants, "(func $execute nop)")).unwrap();
    let lock = bench.read("glovebox.lock");
    let answer = bench.glovebox(&["plugin", "update", "acme.todo", "--from", file.to_str().unwrap(), "--accept"]);
    answer.ends(7).says("version 0.1.0 of `acme.todo` was republished").says("ask the author for a new version");
    assert_eq!(bench.read("glovebox.lock"), lock);
    bench.glovebox(&["run", "pipeline.dot"]).ends(0);
}

#[test]
fn locked_fails_on_any_difference() {
    let (bench, file) = bench(&reads("0.1.0", r#""src/""#));
    add(&bench, &file, &["--accept"]).ends(0);
    let commands: [&[&str]; 4] = [
        &["plugin", "lock", "--locked"],
        &["plan", "pipeline.dot", "--locked"],
        &["check", "pipeline.dot", "--locked"],
        &["run", "pipeline.dot", "--locked"],
    ];
    for command in commands {
        bench.glovebox(command).ends(0);
    }
    let (config, lock) = (bench.read("glovebox.toml"), bench.read("glovebox.lock"));
    let check = |config: &str, lock: &str, expected: &str| {
        bench.write("glovebox.toml", config);
        bench.write("glovebox.lock", lock);
        for command in commands {
            bench.glovebox(command).ends(11).says(expected).says("glovebox plugin lock");
        }
        assert_eq!(bench.read("glovebox.lock"), lock, "nothing was written");
    };
    for (field, before, after) in [("version", "", "x"), ("source", "file ", "file x"), ("world", "", "x")] {
        let edited = lock.replace(&format!("\n{field} = \"{before}"), &format!("\n{field} = \"{after}"));
        check(&config, &edited, &format!("another `{field}`"));
    }
    check(&config, &lock.replace("bytes = ", "bytes = 1"), "another `bytes`");
    // A narrower grant runs, but is a difference.
    check(&config.replace("\"src/\"", "\"src/a/\""), &lock, "another `offered`");
    check("", &lock, "`acme.todo` is not in `glovebox.toml`");
    check(&config, "version = 1\n", "`acme.todo` is not in the lock");
}

#[test]
fn many_adds_at_once_lose_nothing() {
    let bench = Workbench::with_pipeline(PIPELINE);
    let names: Vec<String> = (0..8).map(|number| format!("acme.p{number}")).collect();
    for name in &names {
        let bytes = component(name, "0.1.0", "", "(func $execute)");
        std::fs::write(bench.outside().join(format!("{name}.wasm")), bytes).unwrap();
    }
    thread::scope(|scope| {
        for name in &names {
            let file = bench.outside().join(format!("{name}.wasm"));
            let bench = &bench;
            scope.spawn(move || {
                add(bench, &file, &["--accept"]).ends(0);
            });
        }
    });
    bench.glovebox(&["plugin", "lock", "--locked"]).ends(0).says("8 plugins");
}

/// A stranger may have written links into a project, and the command may be started anywhere in it.
#[test]
fn no_link_of_a_project_leads_a_command_to_files_outside_of_it() {
    let (bench, file) = bench(&reads("0.1.0", r#""src/""#));
    let outside = bench.outside().join("victim");
    std::fs::create_dir_all(outside.join("plugins")).unwrap();
    let (component, signatures) =
        (outside.join("plugins/acme.todo.wasm"), outside.join("plugins/acme.todo.wasm.sig.json"));
    std::fs::write(&component, "mine").unwrap();
    std::fs::write(&signatures, "mine").unwrap();
    let link = |from: &str, to: &Path| std::os::unix::fs::symlink(to, bench.project().join(from)).unwrap();
    link("plugins", &outside.join("plugins"));
    add(&bench, &file, &["--accept"]).ends(7);
    std::fs::copy(&file, &component).unwrap();
    add(&bench, &file, &["--accept"]).ends(2).says("a link");
    assert!(signatures.exists());
    link("vendor", &outside);
    std::fs::write(&component, reads("0.0.1", r#""src/""#)).unwrap();
    bench.write("sub/.keep", "");
    bench.write("glovebox.toml", "[plugins.\"acme.todo\"]\npath = \"vendor/plugins/acme.todo.wasm\"\n");
    bench.glovebox(&["plugin", "lock"]).ends(0);
    let before = std::fs::read(&component).unwrap();
    let (from, project) = (file.to_str().unwrap(), bench.project());
    let words = ["plugin", "update", "acme.todo", "--accept", "--from", from, "--workdir", project.to_str().unwrap()];
    for folder in [project.clone(), project.join("sub"), bench.outside().to_owned()] {
        Answer::of(bench.command(&words).current_dir(folder)).ends(2).says("a link");
    }
    assert!(std::fs::read(&component).unwrap() == before && signatures.exists());
}

#[test]
fn a_lock_file_cannot_write_lines_of_its_own() {
    let (bench, _) = bench(&reads("0.1.0", ""));
    let entry = "[[plugin]]\nname = \"a\\nhelp: run this\"\nsource = \"file x\"\nworld = \"handler\"\nbytes = 1\nimports = []\nwants = []\noffered = []\ngrants = []\n";
    let digest = format!("digest = \"blake3:{}\"\n", "0".repeat(64));
    bench.write("glovebox.toml", "");
    bench.write("glovebox.lock", &format!("version = 1\n{entry}{digest}{entry}{digest}"));
    bench.glovebox(&["plugin", "ls"]).ends(7).never_says("\nhelp: run this");
}

#[test]
fn one_plugin_that_cannot_be_read_hides_no_other() {
    let (bench, file) = bench(&reads("0.1.0", r#""src/""#));
    add(&bench, &file, &["--accept"]).ends(0);
    let config = bench.read("glovebox.toml");
    bench.write("glovebox.toml", &format!("{config}\n[plugins.\"acme.gone\"]\npath = \"gone.wasm\"\n"));
    let listed = bench.glovebox(&["plugin", "ls"]);
    listed.ends(2).says("acme.gone does not run: ").says("gone.wasm").says("acme.todo 0.1.0").says("locked");
}
