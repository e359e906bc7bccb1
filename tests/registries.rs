//! Plugins of registries: publish, add, pull, update, search; offline from the store; and registries that lie.

mod credentials;
mod debian;
mod hostile;
mod lists;
mod origins;
mod program;
mod releases;
pub(crate) mod server;
mod store;
mod wkg;

use crate::guests;
use crate::workbench::{Answer, Workbench};
use glovebox_host::inspect::embed;
use server::Registry;
use std::path::PathBuf;
use std::thread;

const PIPELINE: &str = "digraph g {\n  start [shape=Mdiamond]; done [shape=Msquare]\n  stage [type=\"acme.todo\"]\n  start -> stage -> done\n}\n";

/// Returns a component that wants to read these paths.
fn component(version: &str, paths: &str) -> Vec<u8> {
    with_body(version, paths, "(func $execute)")
}

fn with_body(version: &str, paths: &str, body: &str) -> Vec<u8> {
    let wants = format!(r#""filesystem":"workspace","read":[{paths}]"#);
    let manifest =
        format!(r#"{{"name":"acme.todo","version":"{version}","description":"Looks for TODO.","wants":{{{wants}}}}}"#);
    embed(&guests::component(body), &manifest).expect("a manifest")
}

/// Returns a component with this many bytes of data, which nothing reads.
fn large_component(version: &str, bytes: usize) -> Vec<u8> {
    with_body(version, r#""src/""#, &format!("(func $execute)\n(data \"{}\")", "a".repeat(bytes)))
}

/// A project, and the author's folder beside it.
struct Project {
    bench: Workbench,
}

impl Project {
    fn new() -> Self {
        Self { bench: Workbench::with_pipeline(PIPELINE) }
    }

    /// Writes a component beside the project.
    fn file(&self, name: &str, bytes: &[u8]) -> String {
        let file = self.bench.outside().join(name);
        std::fs::write(&file, bytes).unwrap();
        file.to_str().unwrap().to_owned()
    }

    fn plugin(&self, words: &[&str]) -> Answer {
        self.bench.glovebox(&[&["plugin"], words].concat())
    }

    /// Publishes a component.
    fn push(&self, registry: &Registry, bytes: &[u8]) -> Answer {
        let file = self.file("pushed.wasm", bytes);
        self.plugin(&["push", &file, &registry.named("acme/todo")])
    }

    /// Publishes version 0.1.0, and adds it to the project.
    fn with_plugin(registry: &Registry) -> Self {
        let project = Self::new();
        project.push(registry, &component("0.1.0", r#""src/""#)).ends(0);
        project.plugin(&["add", &registry.named("acme/todo:0.1.0"), "--accept"]).ends(0);
        project
    }

    /// Returns the folder of the store of plugins.
    fn store(&self) -> PathBuf {
        self.bench.data_dir().join("plugins")
    }

    /// Returns the files of the store.
    fn stored(&self) -> Vec<PathBuf> {
        let entries = self.store().read_dir().into_iter().flatten().flatten();
        entries.map(|entry| entry.path()).collect()
    }

    /// Returns the components of the store.
    fn components(&self) -> Vec<PathBuf> {
        self.stored().into_iter().filter(|file| file.extension().is_some_and(|ending| ending == "wasm")).collect()
    }

    /// Checks that nothing was installed: the store is empty, and the project as it was.
    fn is_untouched(&self) {
        assert_eq!(self.stored(), Vec::<PathBuf>::new());
        assert!(!self.bench.has("glovebox.toml") && !self.bench.has("glovebox.lock") && !self.bench.has("plugins"));
    }
}

#[test]
fn a_plugin_is_published_added_and_runs_without_the_network() {
    let registry = Registry::start();
    let project = Project::new();
    let pushed = project.push(&registry, &component("0.1.0", r#""src/""#));
    pushed.ends(0).says(&format!("{}:0.1.0@sha256:", registry.named("acme/todo"))).says("the component is blake3:");
    project.push(&registry, &component("0.1.0", r#""src/""#)).ends(0).says("was published already");
    project.push(&registry, &component("0.1.0", "")).ends(7).says("is published already, with other bytes");
    project
        .plugin(&["add", &registry.named("acme/todo")])
        .ends(6)
        .says("acme.todo 0.1.0 (handler)")
        .says("read every file");
    project.is_untouched();
    project.plugin(&["add", &registry.named("acme/todo"), "--accept"]).ends(0);
    let toml = project.bench.read("glovebox.toml");
    assert!(toml.contains(&format!("registry = \"{}\"\nversion = \"0.1.0\"\n", registry.named("acme/todo"))), "{toml}");
    let lock = project.bench.read("glovebox.lock");
    assert!(lock.contains(&format!("source = \"oci {}:0.1.0@sha256:", registry.named("acme/todo"))), "{lock}");
    assert!(!project.bench.has("plugins"));
    registry.take_requests();
    for words in [
        &["run", "pipeline.dot"][..],
        &["plan", "pipeline.dot"],
        &["check", "pipeline.dot"],
        &["plugin", "ls"],
        &["plugin", "lock"],
        &["plugin", "lock", "--locked"],
        &["plugin", "pull"],
    ] {
        project.bench.glovebox(words).ends(0);
    }
    assert_eq!(project.bench.read("glovebox.lock"), lock);
    assert_eq!(registry.take_requests().len(), 0, "the network was used");
    project.plugin(&["remove", "acme.todo"]).ends(0).says(&registry.named("acme/todo"));
}

#[test]
fn another_machine_pulls_what_the_lock_names() {
    let registry = Registry::start();
    let project = Project::with_plugin(&registry);
    let other = Project::new();
    for file in ["glovebox.toml", "glovebox.lock"] {
        other.bench.write(file, &project.bench.read(file));
    }
    for words in [&["run", "pipeline.dot"][..], &["plugin", "ls"], &["plugin", "lock"], &["check", "pipeline.dot"]] {
        other
            .bench
            .glovebox(words)
            .ends(7)
            .says("is not in the store of plugins")
            .says("glovebox plugin pull acme.todo");
    }
    assert!(!other.bench.has(".glovebox/runs"));
    other.plugin(&["pull"]).ends(0).says("pulled `acme.todo`").says("1 of them new");
    other.plugin(&["pull", "acme.todo"]).ends(0).says("0 of them new");
    other.bench.glovebox(&["run", "--locked", "pipeline.dot"]).ends(0);
    other.plugin(&["pull", "acme.other"]).ends(2).says("is not a plugin of this project");
    // The lock was edited: the manifest is that of another version.
    project.push(&registry, &component("0.2.0", r#""src/""#)).ends(0);
    let manifest = |version: &str| {
        let lines = project.plugin(&[
            "push",
            &project.file("x.wasm", &component(version, r#""src/""#)),
            &registry.named("acme/todo"),
        ]);
        lines.stdout.trim().rsplit_once('@').unwrap().1.to_owned()
    };
    let edited = project.bench.read("glovebox.lock").replace(&manifest("0.1.0"), &manifest("0.2.0"));
    other.bench.write("glovebox.lock", &edited);
    std::fs::remove_dir_all(other.store()).unwrap();
    other.plugin(&["pull"]).ends(7).says("its digests do not belong together");
    assert_eq!(other.stored().len(), 0);
}

#[test]
fn an_update_shows_what_grew_and_republished_bytes_are_refused() {
    let registry = Registry::start();
    let project = Project::with_plugin(&registry);
    project.plugin(&["outdated"]).ends(0).says("up to date");
    project.plugin(&["update", "acme.todo"]).ends(0).says("nothing changed");
    project.push(&registry, &component("0.2.0", r#""src/","tests/""#)).ends(0);
    project.push(&registry, &component("0.3.0-rc.1", r#""src/""#)).ends(0);
    project.plugin(&["outdated"]).ends(0).says("0.1.0  newest 0.2.0");
    let before = project.bench.snapshot();
    project.plugin(&["update", "acme.todo"]).ends(6).says("tests/").says("nothing was written");
    assert_eq!(project.bench.snapshot(), before);
    project.plugin(&["update", "acme.todo", "--accept"]).ends(0);
    assert!(project.bench.read("glovebox.toml").contains("version = \"0.2.0\"\n"));
    assert!(project.bench.read("glovebox.lock").contains("acme/todo:0.2.0@sha256:"));
    project.bench.glovebox(&["run", "pipeline.dot"]).ends(0);
    project.plugin(&["update", "acme.todo", "--version", "0.1.0"]).ends(0).says("0.2.0, now 0.1.0");
    project.plugin(&["update", "acme.todo", "--version", "0.9.0"]).ends(2).says("is not there, or not for you");
    project.plugin(&["update", "acme.todo", "--from", "x.wasm"]).ends(2).says("comes from the registry");
    // Somebody edits the version by hand: it does not run before somebody agrees to it.
    project.bench.write("glovebox.toml", &project.bench.read("glovebox.toml").replace("0.1.0", "0.3.0-rc.1"));
    project
        .bench
        .glovebox(&["run", "pipeline.dot"])
        .ends(7)
        .says("has it from")
        .says("glovebox plugin update acme.todo");
    project.plugin(&["pull"]).ends(7).says("glovebox plugin update acme.todo");
    project.plugin(&["update", "acme.todo"]).ends(0).says("0.3.0-rc.1");
    project.bench.glovebox(&["run", "pipeline.dot"]).ends(0);
    // The registry now has other bytes for the version.
    registry.clear();
    project.push(&registry, &component("0.3.0-rc.1", "")).ends(0);
    let before = project.bench.snapshot();
    project.plugin(&["update", "acme.todo", "--accept"]).ends(7).says("was republished");
    assert_eq!(project.bench.snapshot(), before);
    let age = project.plugin(&["outdated", "--json"]).ends(0).json();
    assert_eq!((&age[0]["republished"], &age[0]["outdated"]), (&true.into(), &false.into()), "{age}");
    project.bench.glovebox(&["run", "--locked", "pipeline.dot"]).ends(0);
}

#[test]
fn a_tag_is_the_version_in_the_manifest() {
    let registry = Registry::start();
    let project = Project::new();
    project.push(&registry, &component("0.1.0", r#""src/""#)).ends(0);
    for tag in ["9.0.0", "latest"] {
        registry.move_tag("acme/todo", "0.1.0", tag);
    }
    let add = |reference: &str| project.plugin(&["add", &registry.named(reference), "--accept"]);
    add("acme/todo:9.0.0").ends(7).says("is version 0.1.0 by its manifest, and not 9.0.0");
    add("acme/todo:latest").ends(2).says("names no version");
    add("acme/todo:0.5.0").ends(2).says("is not there, or not for you");
    add("acme/none").ends(2).says("is not there, or not for you").says("docker login");
    add("acme/TODO").ends(2).says("its path must be words");
    project.plugin(&["add", "oci://acme/todo", "--accept"]).ends(2).says("it names no registry");
    let file = project.file("x.wasm", &component("0.1.0", r#""src/""#));
    project.plugin(&["push", &file, &registry.named("acme/todo:0.2.0")]).ends(2).says("has the version 0.1.0");
    project.plugin(&["push", &file, "acme/todo"]).ends(2).says("it names no registry");
    let without = project.file("y.wasm", &guests::component("(func $execute)"));
    project.plugin(&["push", &without, &registry.named("acme/plain")]).ends(2).says("its version is not known");
    project.plugin(&["push", &without, &registry.named("acme/plain:1.0.0")]).ends(0);
    let named = r#"{"name":"todo","version":"0.1.0","description":"","wants":{}}"#;
    let named = project.file("z.wasm", &embed(&guests::component("(func $execute)"), named).expect("a manifest"));
    project.plugin(&["push", &named, &registry.named("acme/todo")]).ends(7).says("which no project can use");
    project.is_untouched();
    let digest =
        project.push(&registry, &component("0.1.0", r#""src/""#)).stdout.trim().rsplit_once('@').unwrap().1.to_owned();
    add(&format!("acme/todo@{digest}")).ends(0);
    assert!(project.bench.read("glovebox.toml").contains("version = \"0.1.0\""));
}

/// Mistakes that readers of the documentation made.
#[test]
fn what_was_meant_is_said() {
    let registry = Registry::start();
    let project = Project::new();
    let file = project.file("x.wasm", &component("0.1.0", r#""src/""#));
    let named = registry.named("acme/todo");
    let swapped = project.plugin(&["push", &named, &file]);
    swapped
        .ends(2)
        .says("the file of the component comes first")
        .says(&format!("glovebox plugin push '{file}' '{named}'"));
    let meant = format!("a registry is named without a scheme: `{named}`");
    project.plugin(&["push", &file, &format!("http://{named}")]).ends(2).says(&meant);
    project.plugin(&["push", &file, "acme/todo"]).ends(2).says("such as `ghcr.io/acme/todo`");
    let add = |source: &str| project.plugin(&["add", source, "--accept"]);
    add(&format!("http://{named}")).ends(2).says(&format!("is named without a scheme: `{named}`"));
    add("https://acme.example/todo.wasm").ends(2).says("--digest blake3:");
    add("acme/todo:0.1.0").ends(2).says("such as `ghcr.io/acme/todo:0.1.0`");
    add("acme.todo").ends(2).says("glovebox plugin search");
    add("./acme/todo").ends(2).never_says("ghcr.io");
    let digest = "1d".repeat(32);
    let revoke = |what: &str| project.plugin(&["revoke", what, "--reason", "leaks"]);
    revoke(&digest).ends(2).says(&format!("write `blake3:{digest}`"));
    revoke(&format!("sha256:{digest}")).ends(2).says("name its BLAKE3 digest");
    project.plugin(&["revoke", "--list"]).ends(0).says("you have revoked nothing");
    project.is_untouched();
}

#[test]
fn a_component_at_an_address_needs_a_digest() {
    let registry = Registry::start();
    let bytes = component("0.1.0", r#""src/""#);
    let served = bytes.clone();
    registry.change(move |_, _| server::Answer::new(200, served.clone()));
    let project = Project::new();
    let address = format!("http://{}/todo.wasm", registry.address);
    let right = glovebox_record::Digest::hash(&bytes).to_string();
    project.plugin(&["add", &address, "--accept"]).ends(2).says("has no digest to compare with");
    let wrong = format!("blake3:{}", "0".repeat(64));
    project.plugin(&["add", &address, "--accept", "--digest", &wrong]).ends(7).says("expected blake3:000");
    for address in
        ["http://198.51.100.1/x.wasm", "ftp://a.example/x", "https://ada:pw@a.example/x", "file:///etc/passwd"]
    {
        project.plugin(&["add", address, "--accept", "--digest", &right]).ends(2).says("cannot be used");
    }
    project.is_untouched();
    project.plugin(&["add", &address, "--accept", "--digest", &right]).ends(0);
    assert!(project.bench.read("glovebox.lock").contains("source = \"file plugins/acme.todo.wasm\""));
    project.bench.glovebox(&["run", "pipeline.dot"]).ends(0);
}

#[test]
fn repositories_are_found_by_a_part_of_their_name() {
    let registry = Registry::start();
    let project = Project::with_plugin(&registry);
    let host = registry.address.to_string();
    project.plugin(&["search", "todo"]).ends(0).says(&registry.named("acme/todo")).says("0.1.0");
    project.plugin(&["search", "tod", "--registry", &host]).ends(0).says("acme/todo");
    project.plugin(&["search", "nothing", "--registry", &host]).ends(0).never_says("acme/todo");
    project.plugin(&["search", "x", "--registry", "nowhere"]).ends(2).says("names no registry");
    registry
        .change(|request, answer| if request.path == "/v2/_catalog" { server::Answer::new(404, "") } else { answer });
    project.plugin(&["search", "todo"]).ends(2).says("offers no list of its repositories");
    Project::new().plugin(&["search", "todo"]).ends(2).says("--registry HOST");
}

#[test]
fn two_commands_at_once_lose_nothing() {
    let registry = Registry::start();
    let project = Project::with_plugin(&registry);
    std::fs::remove_dir_all(project.store()).unwrap();
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| project.plugin(&["pull"]).ends(0).code);
        }
    });
    assert_eq!((project.components().len(), project.stored().len()), (1, 2), "the component and its origin");
    let other = Project::new();
    let codes: Vec<i32> = thread::scope(|scope| {
        let add = || other.plugin(&["add", &registry.named("acme/todo"), "--accept"]).code;
        let threads: Vec<_> = (0..2).map(|_| scope.spawn(add)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert!(codes.contains(&0) && codes.iter().all(|code| [0, 7].contains(code)), "{codes:?}");
    other.bench.glovebox(&["run", "--locked", "pipeline.dot"]).ends(0);
}
