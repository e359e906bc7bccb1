//! The provenance of a plugin: what `plugin build` writes, what `plugin inspect` and `sign` say of it, and `plugin rebuild`.

use crate::guests;
use crate::workbench::{Answer, Workbench, as_author, is_on_this_machine, is_plugin_tool_here, not_run};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

const COMPONENT: &str = "todo/dist/acme.todo-1.0.0.wasm";

/// Runs git in a folder, as an author with a name.
fn git(folder: &Path, words: &[&str]) -> String {
    let mut command = Command::new("git");
    command.args(["-c", "user.name=a", "-c", "user.email=a@a.example", "-c", "commit.gpgSign=false"]).args(words);
    let answer = Answer::of(command.current_dir(folder).env("GIT_CONFIG_GLOBAL", "/dev/null"));
    answer.ends(0).stdout.trim().to_owned()
}

/// An author with a project in the folder `todo` of a repository. Its build copies a file.
struct Author {
    bench: Workbench,
}

impl Author {
    fn new() -> Self {
        let author = Self { bench: Workbench::new() };
        author.project_file(r#"["cp", "made.wasm", "build/out.wasm"]"#);
        std::fs::write(author.bench.project().join("todo/made.wasm"), guests::component("(func $execute)")).unwrap();
        author.bench.write(".gitignore", "build/\n");
        author
    }

    /// As [`Self::new`], with a commit of everything.
    fn with_commit() -> Self {
        let author = Self::new();
        git(&author.bench.project(), &["init", "-q"]);
        author.commit();
        author
    }

    fn project_file(&self, command: &str) {
        self.bench.write(
            "todo/plugin.toml",
            &format!(
                "name = \"acme.todo\"\nversion = \"1.0.0\"\nsource = \"https://git.example/acme/todo\"\nlang = \"c\"\n\
                 world = \"handler\"\n\n[build]\ncommand = {command}\noutput = \"build/out.wasm\"\n"
            ),
        );
    }

    fn commit(&self) -> String {
        git(&self.bench.project(), &["add", "."]);
        git(&self.bench.project(), &["commit", "-q", "-m", "x"]);
        git(&self.bench.project(), &["rev-parse", "HEAD"])
    }

    fn build(&self) -> Answer {
        self.bench.glovebox(&["plugin", "build", "todo"])
    }

    fn inspect(&self) -> Answer {
        self.bench.glovebox(&["plugin", "inspect", COMPONENT])
    }

    fn report(&self) -> Value {
        self.bench.glovebox(&["plugin", "inspect", COMPONENT, "--json"]).ends(0).json()["provenance"].clone()
    }

    fn rebuild(&self, words: &[&str]) -> Answer {
        let mut command = self.bench.bare(&[&["plugin", "rebuild", COMPONENT], words].concat());
        let answer = Answer::of(command.env("TMPDIR", self.temporary()));
        assert_eq!(self.temporary().read_dir().unwrap().count(), 0, "a folder was left");
        answer
    }

    fn temporary(&self) -> PathBuf {
        let folder = self.bench.outside().join("tmp");
        std::fs::create_dir_all(&folder).unwrap();
        folder
    }

    fn file(&self) -> PathBuf {
        self.bench.project().join(format!("{COMPONENT}.provenance.json"))
    }

    /// Expects that OpenSSL verifies the signed statement with a key.
    fn is_verified_by_openssl(&self, key: &str, envelope: &str) {
        if !is_on_this_machine("openssl") {
            return not_run("OpenSSL verifies a provenance", "openssl is not installed");
        }
        let envelope: Value = serde_json::from_str(envelope).unwrap();
        let kind = envelope["payloadType"].as_str().unwrap();
        let payload = STANDARD.decode(envelope["payload"].as_str().unwrap()).unwrap();
        let statement: Value = serde_json::from_slice(&payload).unwrap();
        assert_eq!(statement["predicateType"], "https://slsa.dev/provenance/v1");
        let mut message = format!("DSSEv1 {} {kind} {} ", kind.len(), payload.len()).into_bytes();
        message.extend(&payload);
        let signature = STANDARD.decode(envelope["signatures"][0]["sig"].as_str().unwrap()).unwrap();
        let [message_file, signature_file] = ["message", "signature"].map(|name| self.bench.outside().join(name));
        std::fs::write(&message_file, &message).unwrap();
        std::fs::write(&signature_file, signature).unwrap();
        let verify = || {
            let mut openssl = Command::new("openssl");
            openssl.args(["pkeyutl", "-verify", "-rawin", "-pubin", "-inkey"]).arg(format!("{}.pub", self.key(key)));
            openssl.arg("-in").arg(&message_file).arg("-sigfile").arg(&signature_file).output().unwrap()
        };
        assert!(verify().status.success(), "{:?}", verify());
        message.push(b' ');
        std::fs::write(&message_file, &message).unwrap();
        assert!(!verify().status.success());
    }

    fn key(&self, name: &str) -> String {
        let key = self.bench.outside().join(name).to_str().unwrap().to_owned();
        if !Path::new(&key).exists() {
            self.bench.glovebox(&["plugin", "keygen", &key]).ends(0);
        }
        key
    }
}

#[test]
fn a_build_says_from_which_source_it_was_made() {
    let author = Author::new();
    author.build().ends(0).says("source    not known: the project is in no repository");
    author.inspect().ends(0).says("built     from a source that is not known").says("anyone could have written it");
    assert_eq!(author.report()["build"]["source"], Value::Null, "nothing is invented");
    git(&author.bench.project(), &["init", "-q"]);
    author.build().ends(0).says("source    not known");
    let commit = author.commit();
    author.build().ends(0).says(&format!("source    commit {commit}\n"));
    let report = author.report();
    assert_eq!(
        (&report["state"], &report["build"]["builder"]),
        (&"not_signed".into(), &"glovebox:builder/local".into())
    );
    let source = &report["build"]["source"];
    assert_eq!(
        (&source["commit"], &source["clean"], &source["folder"]),
        (&commit.clone().into(), &true.into(), &"todo".into())
    );
    assert_eq!(source["repository"], "git+https://git.example/acme/todo");
    author.inspect().ends(0).says(&format!("from commit {commit} of git+https://git.example/acme/todo, folder `todo`"));
    author.inspect().says("command   cp made.wasm build/out.wasm\n").says("builder   the machine of a person");
    // The output of an earlier build is no change. Everything else is.
    author.build().ends(0).says(&format!("source    commit {commit}\n"));
    author.bench.write("other.txt", "new");
    author.build().ends(0).says("with changes that are not committed");
    assert_eq!(author.report()["build"]["source"]["clean"], false);
    let named = author.bench.glovebox(&["plugin", "build", "todo", "--builder", "https://ci.example/acme"]);
    named.ends(0);
    author.inspect().says("builder   https://ci.example/acme\n").says("changes that this commit does not have");
    for wrong in ["ci", ":x", "x:", "x:\u{202e}", &format!("x:{}", "a".repeat(200))] {
        author.bench.glovebox(&["plugin", "build", "todo", "--builder", wrong]).ends(2).says("a URI");
    }
}

#[test]
fn a_component_of_someone_else_has_no_provenance() {
    let author = Author::new();
    author.bench.glovebox(&["plugin", "inspect", "todo/made.wasm"]).ends(0).says("built     no provenance");
    author
        .bench
        .glovebox(&["plugin", "rebuild", "todo/made.wasm"])
        .ends(4)
        .says("cannot be checked: it has no provenance");
    author.build().ends(0);
    std::fs::copy(author.file(), author.bench.project().join("todo/made.wasm.provenance.json")).unwrap();
    let other = author.bench.glovebox(&["plugin", "inspect", "todo/made.wasm"]);
    other
        .ends(0)
        .says("the provenance does not count: the provenance is about another plugin")
        .never_says("cp made.wasm");
    for damage in ["", "{}", "[", "{\"payloadType\":1}", "\u{202e}"] {
        std::fs::write(author.file(), damage).unwrap();
        author.inspect().ends(0).says("the provenance does not count").never_says("\u{202e}");
        assert_eq!(author.report()["state"], "failed");
    }
    author
        .bench
        .glovebox(&["plugin", "sign", COMPONENT, "--key", &author.key("acme")])
        .ends(7)
        .says("is not that of this");
    assert!(!author.bench.has(&format!("{COMPONENT}.sig.json")), "nothing is written");
    std::fs::remove_file(author.file()).unwrap();
    author.build().ends(0);
    let text = std::fs::read_to_string(author.file()).unwrap();
    std::fs::write(author.file(), text.replace("made.wasm", "\\u202e\\u001b[2J\\n")).unwrap();
    author.inspect().ends(0).says("command   cp ").never_says("\u{202e}").never_says("\u{1b}");
    std::fs::write(author.file(), vec![b' '; 70_000]).unwrap();
    author.inspect().ends(7).says("provenance.json` cannot be read");
}

#[test]
fn a_key_signs_the_provenance_too() {
    let author = Author::with_commit();
    author.build().ends(0);
    let trusts = |name: &str| {
        let key = author.key(name);
        let table = format!("[[trust.key]]\nname = \"{name}\"\npath = \"{key}.pub\"\nplugins = [\"acme.*\"]\n");
        author.bench.write("glovebox.toml", &table);
    };
    author
        .bench
        .glovebox(&["plugin", "sign", COMPONENT, "--key", &author.key("acme")])
        .ends(0)
        .says("signed its provenance");
    author.inspect().ends(0).says("the provenance is signed, but not checked, since no key is trusted here");
    trusts("acme");
    author.inspect().ends(0).says("vouched   the provenance is signed by acme (sha256:");
    assert_eq!(author.report()["state"], "verified");
    trusts("other");
    author.inspect().ends(0).says("the provenance does not count").says("does not list");
    // The same build keeps the signature; one of another revision has none.
    std::fs::remove_file(author.bench.project().join("glovebox.toml")).unwrap();
    author.build().ends(0);
    assert_eq!(author.report()["state"], "not_checked");
    trusts("acme");
    author.commit();
    author.build().ends(0);
    assert_eq!(author.report()["state"], "not_signed");
    // A changed statement is not believed, although its form is right.
    author.bench.glovebox(&["plugin", "sign", COMPONENT, "--key", &author.key("acme")]).ends(0);
    let text = std::fs::read_to_string(author.file()).unwrap();
    author.is_verified_by_openssl("acme", &text);
    let at = text.find("\"sig\":\"").unwrap() + 10;
    let other = if text.as_bytes()[at] == b'A' { "B" } else { "A" };
    std::fs::write(author.file(), format!("{}{other}{}", &text[..at], &text[at + 1..])).unwrap();
    author.inspect().ends(0).says("the provenance does not count").says("was changed");
}

#[test]
fn a_signature_that_is_none_is_named_without_a_key() {
    let author = Author::new();
    author.build().ends(0);
    let file = author.bench.project().join(format!("{COMPONENT}.sig.json"));
    for damage in ["no signature", "{}", "{\"payloadType\":\"x\",\"payload\":\"\",\"signatures\":[]}"] {
        std::fs::write(&file, damage).unwrap();
        author.inspect().ends(0).says("signed    failed: its signature is not valid").never_says("not checked");
    }
}

#[test]
fn a_reproducible_build_gives_the_same_bytes() {
    let author = Author::with_commit();
    author.build().ends(0);
    let here = [&["--source", "."][..], &["--accept", "--source", "."]];
    author.rebuild(here[0]).ends(6).says("cp made.wasm build/out.wasm").says("nothing was run").says("in no sandbox");
    author.rebuild(here[1]).ends(0).says("same: the source gives the same bytes, blake3:");
    // The commit counts, and not the files of the folder.
    author.bench.write("todo/made.wasm", "changed");
    author.rebuild(here[1]).ends(0);
    git(&author.bench.project(), &["checkout", "-q", "."]);
    // Other bytes with a provenance that names them: the source tells.
    let other = guests::component("(func $execute (loop $again (br_if $again (i32.const 0))))");
    let honest = std::fs::read(author.bench.project().join("todo/made.wasm")).unwrap();
    std::fs::write(author.bench.project().join("todo/made.wasm"), other).unwrap();
    author.build().ends(0);
    let text = std::fs::read_to_string(author.file()).unwrap();
    assert!(text.contains("\"dirty\""), "{text}");
    std::fs::write(author.file(), text.replace("\"dirty\"", "\"clean\"")).unwrap();
    let found = author.rebuild(here[1]);
    found.ends(11).says("is not what its source gives: the bytes differ first at offset").says("section `core module`");
    found.says("the source gives").says("compare the row `tools`");
    std::fs::write(author.file(), text.replace("\"dirty\"", "\"clean\"").replace("made.wasm", "other.wasm")).unwrap();
    author.rebuild(here[1]).ends(11).says("has another build command than its source").says("cp made.wasm");
    std::fs::write(author.bench.project().join("todo/made.wasm"), honest).unwrap();
}

#[test]
fn what_cannot_be_built_again_is_said() {
    let author = Author::with_commit();
    author.bench.write("dirty.txt", "");
    author.build().ends(0);
    author.rebuild(&["--source", ".", "--accept"]).ends(4).says("cannot be checked: it was built from changes");
    std::fs::remove_file(author.bench.project().join("dirty.txt")).unwrap();
    author.build().ends(0);
    let empty = Workbench::new();
    let elsewhere = empty.project().to_str().unwrap().to_owned();
    author.rebuild(&["--source", &elsewhere, "--accept"]).ends(4).says("cannot be checked: git: ");
    git(&empty.project(), &["init", "-q"]);
    author.rebuild(&["--source", &elsewhere, "--accept"]).ends(4).says("cannot be checked: git: ");
    // A build that fails is no difference. A hook of the repository does not run.
    author.project_file(r#"["sh", "-c", "exit 3"]"#);
    author.commit();
    author.bench.write(".git/hooks/post-checkout", &format!("#!/bin/sh\ntouch {elsewhere}/hooked\n"));
    Answer::of(Command::new("chmod").arg("+x").arg(author.bench.project().join(".git/hooks/post-checkout"))).ends(0);
    let commit = git(&author.bench.project(), &["rev-parse", "HEAD"]);
    let text = std::fs::read_to_string(author.file()).unwrap();
    let before = author.report()["build"]["source"]["commit"].as_str().unwrap().to_owned();
    let text =
        text.replace(&before, &commit).replace(r#"["cp","made.wasm","build/out.wasm"]"#, r#"["sh","-c","exit 3"]"#);
    std::fs::write(author.file(), &text).unwrap();
    author.rebuild(&["--source", ".", "--accept"]).ends(4).says("cannot be checked: the build failed");
    assert!(!empty.has("hooked"));
    // A repository of a transport that starts programs is not asked.
    let hostile = text.replace("git+https://git.example/acme/todo", &format!("ext::touch% {elsewhere}/ran"));
    std::fs::write(author.file(), hostile).unwrap();
    author.rebuild(&["--accept"]).ends(4).says("names no repository with `https` or `ssh`");
    assert!(!empty.has("ran"));
    std::fs::write(author.file(), text.replace("\"folder\":\"todo\"", "\"folder\":\"../..\"")).unwrap();
    author.rebuild(&["--source", ".", "--accept"]).ends(4).says("its folder is not a path");
}

/// Builds a template with its real compiler again from its commit. The build does not depend on the folder.
fn is_reproducible(lang: &str, source: &str, (text, other): (&str, &str), tool: &str) {
    if !is_plugin_tool_here(tool) {
        return not_run("a template that is built again from its source", &format!("no {tool}"));
    }
    let bench = Workbench::new();
    let glovebox = |words: &[&str]| Answer::of(as_author(&mut bench.bare(words)));
    glovebox(&["plugin", "new", "acme.todo", "--lang", lang]).ends(0);
    let folder = bench.project().join("acme-todo");
    git(&folder, &["init", "-q"]);
    git(&folder, &["add", "."]);
    git(&folder, &["commit", "-q", "-m", "x"]);
    glovebox(&["plugin", "build", "acme-todo"]).ends(0).says("source    commit ");
    let component = folder.join("dist/acme.todo-0.1.0.wasm").to_str().unwrap().to_owned();
    glovebox(&["plugin", "inspect", &component]).ends(0).says("tools ");
    let rebuild = || glovebox(&["plugin", "rebuild", &component, "--source", "acme-todo", "--accept"]);
    rebuild().ends(0).says("same: the source gives the same bytes");
    // The author publishes something else than the commit, and says that it is the commit.
    let source = folder.join(source);
    let honest = std::fs::read_to_string(&source).unwrap();
    assert!(honest.contains(text));
    std::fs::write(&source, honest.replace(text, other)).unwrap();
    glovebox(&["plugin", "build", "acme-todo"]).ends(0).says("changes that are not committed");
    let file = format!("{component}.provenance.json");
    let statement = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, statement.replace("\"dirty\"", "\"clean\"")).unwrap();
    rebuild().ends(11).says("the bytes differ first at offset");
}

#[test]
fn the_template_in_c_is_reproducible() {
    is_reproducible("c", "plugin.c", ("TODO", "TOD0"), "clang");
}

#[test]
fn the_template_in_rust_is_reproducible() {
    is_reproducible("rust", "src/lib.rs", ("TODO", "TOD0"), "cargo");
}
