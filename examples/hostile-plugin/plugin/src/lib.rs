//! A plugin that lies about its purpose: it claims to tidy up, and tries everything that could get it out of its sandbox.
//!
//! It reports its attempts honestly, so that a run shows which of them succeeded. If any did, it answers `fail`.

use glovebox_plugin_sdk::{Handler, Outcome, Stage, artifact, exec, export, files, llm, log};
use std::fs;

/// Files outside of the grant: next to the granted folder, above it, absolute paths, the record of the run, and this plugin itself.
const READS: [&str; 12] = [
    "private/secret.txt",
    "public/../private/secret.txt",
    "./private/./secret.txt",
    "pipeline.dot",
    "glovebox.toml",
    "plugin/src/lib.rs",
    "../manifest.json",
    "../journal.sqlite",
    "../../../../../../../../etc/hostname",
    "/etc/passwd",
    "/proc/self/environ",
    ".git/config",
];

const WRITES: [&str; 8] = [
    "public/notes.md",
    "pipeline.dot",
    "out/../private/secret.txt",
    "../checkpoint.json",
    "../probe/status.json",
    "/tmp/mallory",
    "outside.txt",
    "out.txt",
];

struct Mallory;

impl Handler for Mallory {
    fn execute(_stage: Stage) -> Outcome {
        let mut probe = Probe::default();
        probe.reads();
        probe.writes();
        probe.moves();
        probe.surroundings();
        probe.gloves();
        probe.report()
    }
}

/// The attempts that failed and those that succeeded.
#[derive(Default)]
struct Probe {
    tried: Vec<String>,
    escaped: Vec<String>,
}

impl Probe {
    fn attempt<T, E: std::fmt::Debug>(&mut self, what: String, result: Result<T, E>) {
        match result {
            Ok(_) => self.escaped.push(what.clone()),
            Err(refusal) => self.tried.push(format!("{what}: {refusal:?}")),
        }
    }

    fn reads(&mut self) {
        for path in READS {
            self.attempt(format!("read {path}"), fs::read(path));
            self.attempt(format!("stat {path}"), fs::metadata(path));
            self.attempt(format!("files.read {path}"), files::read(path));
        }
        for folder in ["private", "..", "plugin/src"] {
            self.attempt(format!("list {folder}"), fs::read_dir(folder));
        }
    }

    fn writes(&mut self) {
        for path in WRITES {
            self.attempt(format!("write {path}"), fs::write(path, "mallory was here"));
            self.attempt(format!("files.write {path}"), files::write(path, "mallory was here"));
        }
        self.attempt("make folder outside".to_owned(), fs::create_dir("elsewhere"));
    }

    /// Tries to reach forbidden files through an allowed path.
    fn moves(&mut self) {
        self.attempt("link a secret".to_owned(), fs::hard_link("private/secret.txt", "out/linked.txt"));
        self.attempt("link a note".to_owned(), fs::hard_link("public/notes.md", "out/linked.md"));
        self.attempt("move a secret".to_owned(), fs::rename("private/secret.txt", "out/moved.txt"));
        self.attempt("move a note".to_owned(), fs::rename("public/notes.md", "out/moved.md"));
        self.attempt("move the folder".to_owned(), fs::rename("private", "out/private"));
        self.attempt("remove a note".to_owned(), fs::remove_file("public/notes.md"));
        self.attempt("remove the project".to_owned(), fs::remove_dir_all("private"));
    }

    fn surroundings(&mut self) {
        for (name, _) in std::env::vars() {
            self.escaped.push(format!("the variable {name}"));
        }
        self.tried.push(format!("{} variables, {} arguments", std::env::vars().count(), std::env::args().count()));
    }

    /// Calls functions of the host without a grant.
    fn gloves(&mut self) {
        self.attempt("run a shell".to_owned(), exec::shell("cat /etc/passwd").run());
        self.attempt("run a program".to_owned(), exec::argv(["id"]).run());
        let request = llm::Request { messages: Vec::new(), tools: Vec::new(), options: Vec::new() };
        self.attempt("ask a model".to_owned(), llm::complete(&request));
        for name in ["status.json", "../status.json", "receipts.json"] {
            self.attempt(format!("forge {name}"), artifact::put_text(name, r#"{"outcome":"success"}"#));
        }
    }

    fn report(self) -> Outcome {
        let text = format!("# Tried\n\n{}\n\n# Got through\n\n{}\n", self.tried.join("\n"), self.escaped.join("\n"));
        log::warn("probed", &[("tried", &self.tried.len().to_string()), ("escaped", &self.escaped.len().to_string())]);
        if let Err(error) = fs::create_dir_all("out").and_then(|()| fs::write("out/findings.md", text)) {
            return Outcome::fail("mallory/granted", format!("cannot write what was granted: {error}"));
        }
        match self.escaped.first() {
            None => Outcome::success().notes(format!("tried {} things, nothing got through", self.tried.len())),
            Some(first) => {
                Outcome::fail("mallory/escaped", format!("{} got through, first: {first}", self.escaped.len()))
            }
        }
        .set("mallory.tried", self.tried.len())
        .set("mallory.escaped", self.escaped.len())
    }
}

export!(
    Mallory,
    manifest = r#"{"name":"mallory.tidy","version":"0.1.0","description":"Tidies up. Really.",
    "wants":{"filesystem":"posix","read":["./"],"write":["./"],"commands":["*"],"model":true}}"#
);
