//! Lists of revocations in a registry or at an address: published, fetched by a command, kept, and used without the network.

use super::server::{self, Registry};
use super::{Project, component, with_body};
use crate::workbench::Answer;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::{Duration, Instant};

/// An author with a key and a list, and a registry.
struct Author {
    registry: Registry,
    project: Project,
}

impl Author {
    fn new() -> Self {
        let author = Self { registry: Registry::start(), project: Project::new() };
        author.project.plugin(&["keygen", &author.key()]).ends(0);
        author
    }

    fn key(&self) -> String {
        self.project.bench.outside().join("key").to_str().unwrap().to_owned()
    }

    fn place(&self) -> String {
        self.registry.named("acme/revoked")
    }

    fn list(&self) -> PathBuf {
        self.project.bench.project().join("list.json")
    }

    fn revoke(&self, digest: char, rest: &[&str]) -> Answer {
        let (digest, place, key) = (format!("blake3:{}", digest.to_string().repeat(64)), self.place(), self.key());
        let words =
            ["revoke", &digest, "--reason", "it leaks", "--publish", "list.json", "--key", &key, "--push", &place];
        self.project.plugin(&[&words[..], rest].concat())
    }

    /// Returns a project with a locked plugin that uses the list at a place.
    fn user(&self, place: &str, rest: &str) -> Project {
        let user = Project::with_plugin(&self.registry);
        let trust = format!(
            "[trust]\nrevocations = [\"{place}\"]\n{rest}\n[[trust.key]]\nname = \"acme\"\npath = \"{}.pub\"\nplugins = [\"zeta.*\", \"acme.todo\"]\n",
            self.key()
        );
        user.bench.write("glovebox.toml", &format!("{}{trust}", user.bench.read("glovebox.toml")));
        user
    }
}

/// Returns the digest of the plugin of [`Project::with_plugin`].
fn digest_of_plugin() -> String {
    glovebox_record::Digest::hash(&component("0.1.0", r#""src/""#)).to_string()
}

#[test]
fn a_published_list_stops_a_component_of_strangers() {
    let author = Author::new();
    author.revoke('1', &[]).ends(0).says("published list 1 as `oci://").says("/acme/revoked:latest`");
    let user = author.user(&format!("oci://{}", author.place()), "");
    // The plugin is signed by nobody, and a key covers its name. Only the list matters here.
    user.bench.write("glovebox.toml", &user.bench.read("glovebox.toml").replace(", \"acme.todo\"", ", \"acme.other\""));
    let run = || user.bench.glovebox(&["run", "pipeline.dot"]);
    run()
        .ends(7)
        .says("it was never fetched")
        .says("help: fetch the list with `glovebox plugin revocations --refresh`");
    let refresh = || user.plugin(&["revocations", "--refresh"]);
    refresh().ends(0).says("was fetched: list 1, 1 revocation");
    author.registry.take_requests();
    run().ends(0);
    user.plugin(&["revocations"]).ends(0).says("list 1, 1 revocation");
    assert!(author.registry.take_requests().is_empty(), "the network was used");
    let revoked = digest_of_plugin();
    let (place, key) = (author.place(), author.key());
    let words = ["revoke", &revoked, "--reason", "it leaks", "--publish", "list.json", "--key", &key, "--push", &place];
    author.project.plugin(&words).ends(0).says("published list 2");
    run().ends(0);
    refresh().ends(0).says("list 2, 2 revocations");
    // The key may not revoke this name.
    run().ends(0);
    user.bench.write("glovebox.toml", &user.bench.read("glovebox.toml").replace("acme.other", "acme.todo"));
    run().ends(7).says("it was revoked: it leaks").says("oci://");
    let state = user.plugin(&["revocations", "--json"]).ends(0).json();
    assert_eq!((&state[0]["sequence"], &state[0]["revoked"], &state[0]["fault"]), (&2.into(), &2.into(), &().into()));
    // `pull`, as in CI, fetches lists too.
    std::fs::remove_dir_all(user.bench.data_dir().join("revocation-lists")).unwrap();
    run().ends(7).says("it was never fetched");
    let other = author.user(&format!("oci://{}", author.place()), "");
    other.plugin(&["pull"]).ends(7).says("list 2, 2 revocations").says("it was revoked");
}

#[test]
fn an_earlier_list_is_refused_and_the_later_one_stays() {
    let author = Author::new();
    author.revoke('1', &[]).ends(0);
    let first = std::fs::read(author.list()).unwrap();
    author.revoke('2', &[]).ends(0).says("published list 2");
    let user = author.user(&format!("oci://{}", author.place()), "");
    let refresh = || user.plugin(&["revocations", "--refresh"]);
    refresh().ends(0).says("list 2, 2 revocations");
    refresh().ends(0).says("is the latest list: list 2");
    // The author's own machine cannot replace a later list by an earlier one.
    std::fs::write(author.list(), &first).unwrap();
    author
        .revoke('3', &[])
        .ends(7)
        .says("it is number 2, which is later than that of the file")
        .says("nothing was written");
    assert_eq!(std::fs::read(author.list()).unwrap(), first);
    // A registry brings back the first list, with its own true signature.
    author.registry.clear();
    author.revoke('1', &[]).ends(0).says("is revoked already").says("published list 1");
    refresh().ends(7).says("number 1, and number 2 was fetched before: an earlier list was brought back");
    user.plugin(&["revocations"]).ends(0).says("list 2, 2 revocations");
    // Another list with the same number.
    author.revoke('4', &[]).ends(0).says("published list 2");
    refresh().ends(7).says("another list with this number was fetched before");
    author.revoke('5', &[]).ends(0).says("published list 3");
    refresh().ends(0).says("list 3, 3 revocations");
}

#[test]
fn a_list_that_does_not_count_is_not_taken() {
    let author = Author::new();
    author.revoke('1', &[]).ends(0);
    let user = author.user(&format!("oci://{}", author.place()), "");
    let refresh = || user.plugin(&["revocations", "--refresh"]);
    let fails = |change: fn(server::Answer) -> server::Answer, code: i32, expected: &str| {
        author.registry.change(move |request, answer| match request.path.contains("/blobs/") {
            true => change(answer),
            false => answer,
        });
        refresh().ends(code).says(expected);
        user.plugin(&["revocations"]).ends(7).says("it was never fetched");
    };
    fails(|answer| server::Answer::new(200, vec![b'x'; answer.bytes().len()]), 7, "sent other bytes for a document");
    fails(|_| server::Answer::new(503, ""), 9, "answered 503");
    author.registry.behave();
    let stranger = Author::new();
    let (place, key) = (author.place(), stranger.key());
    let digest = format!("blake3:{}", "6".repeat(64));
    let words = ["revoke", &digest, "--reason", "x", "--publish", "other.json", "--key", &key, "--push", &place];
    stranger.project.plugin(&words).ends(7).says("is not replaced").says("none of the keys");
    author.registry.clear();
    stranger.project.plugin(&words).ends(0);
    refresh().ends(7).says("was not taken: none of the keys in `[trust]` signed it");
    author.project.push(&author.registry, &component("0.3.0", "")).ends(0);
    author.registry.move_tag("acme/todo", "0.3.0", "latest");
    user.bench.write("glovebox.toml", &user.bench.read("glovebox.toml").replace("acme/revoked", "acme/todo"));
    refresh().ends(7).says("has something else there");
    // A damaged copy stops everything until it is fetched again.
    let user = author.user(&format!("oci://{}", author.place()), "");
    author.registry.clear();
    author.revoke('1', &[]).ends(0);
    user.plugin(&["revocations", "--refresh"]).ends(0);
    let folder = user.bench.data_dir().join("revocation-lists");
    let copy = folder.read_dir().unwrap().next().unwrap().unwrap().path();
    std::fs::write(&copy, "damaged").unwrap();
    user.bench.glovebox(&["run", "pipeline.dot"]).ends(7).says("no component may run").says("--refresh");
    user.plugin(&["revocations", "--refresh"]).ends(0).says("was fetched: list 1");
    assert_eq!(folder.read_dir().unwrap().count(), 1, "nothing half is left");
}

#[test]
fn a_list_at_an_address_is_fetched_and_becomes_too_old() {
    let author = Author::new();
    author.revoke('1', &[]).ends(0);
    let bytes = std::fs::read(author.list()).unwrap();
    let served = Registry::start();
    served.change(move |_, _| server::Answer::new(200, bytes.clone()));
    let user = author.user(&format!("http://{}/list.json", served.address), "revocations_age_max = \"1h\"");
    user.bench.write("glovebox.toml", &user.bench.read("glovebox.toml").replace(", \"acme.todo\"", ""));
    user.plugin(&["revocations", "--refresh"]).ends(0).says("list 1, 1 revocation");
    let run = || user.bench.glovebox(&["run", "pipeline.dot"]);
    run().ends(0);
    let folder = user.bench.data_dir().join("revocation-lists");
    let copy = folder.read_dir().unwrap().next().unwrap().unwrap().path();
    let old = std::time::SystemTime::now() - Duration::from_secs(2 * 60 * 60);
    std::fs::File::options().write(true).open(&copy).unwrap().set_modified(old).unwrap();
    run().ends(7).says("`revocations_age_max` allows 3600 s").says("glovebox plugin revocations --refresh");
    user.plugin(&["revocations"]).ends(7).says("no component may run");
    user.plugin(&["revocations", "--refresh"]).ends(0).says("is the latest list");
    run().ends(0);
    let foreign = author.user("http://198.51.100.1/list.json", "");
    foreign.plugin(&["revocations", "--refresh"]).ends(2).says("`http` is allowed only for this machine");
    // A list without a number could be replaced by an earlier one.
    let text = std::fs::read_to_string(author.list()).unwrap();
    assert!(text.contains("payloadType"));
    for words in [
        &["revoke", "--list", "--push", "a.example/x"][..],
        &["revoke", "todo.wasm", "--reason", "x", "--push", "a.example/x"],
    ] {
        author.project.plugin(words).ends(2).says("--publish");
    }
}

/// A run that is under way sees the new copy as it sees a changed file.
#[test]
fn a_list_that_is_fetched_stops_a_run_under_way() {
    let author = Author::new();
    author.revoke('1', &[]).ends(0);
    let endless = with_body("0.9.0", r#""src/""#, "(func $execute (loop $again (br $again)))");
    author.project.push(&author.registry, &endless).ends(0);
    let user = Project::new();
    user.plugin(&["add", &author.registry.named("acme/todo:0.9.0"), "--accept"]).ends(0);
    let trust = format!(
        "[trust]\nrevocations = [\"oci://{}\"]\n\n[[trust.key]]\nname = \"acme\"\npath = \"{}.pub\"\nplugins = [\"acme.todo\"]\n",
        author.place(),
        author.key()
    );
    // The key signs the plugin too.
    let file = author.project.file("pushed.wasm", &endless);
    author.project.plugin(&["sign", &file, "--key", &author.key()]).ends(0);
    author.project.plugin(&["push", &file, &author.registry.named("acme/todo")]).ends(0);
    user.bench.write("glovebox.toml", &format!("{}{trust}", user.bench.read("glovebox.toml")));
    user.plugin(&["revocations", "--refresh"]).ends(0);
    user.plugin(&["pull"]).ends(0);
    user.plugin(&["lock"]).ends(0);
    let mut run = user.bench.command(&["run", "pipeline.dot", "--run-id", "r"]);
    let child = run.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let events = user.bench.run_folder("r").join("progress.ndjson");
    let end = Instant::now() + Duration::from_secs(60);
    while !std::fs::read_to_string(&events).is_ok_and(|text| text.contains("stage.started")) {
        assert!(Instant::now() < end, "no stage began");
        std::thread::sleep(Duration::from_millis(10));
    }
    let revoked = glovebox_record::Digest::hash(&endless).to_string();
    let (place, key) = (author.place(), author.key());
    let words =
        ["revoke", &revoked, "--reason", "it never ends", "--publish", "list.json", "--key", &key, "--push", &place];
    author.project.plugin(&words).ends(0);
    user.plugin(&["revocations", "--refresh"]).ends(0).says("list 2");
    let begin = Instant::now();
    Answer::from_child(child).ends(7).says("it was revoked: it never ends");
    println!("the run ended {} ms after the list was fetched", begin.elapsed().as_millis());
    assert!(begin.elapsed() < Duration::from_secs(10), "{:?}", begin.elapsed());
}
