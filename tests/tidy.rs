//! Checks the rules of this repository: which crate may depend on which, where ambient authority is allowed, the
//! glossary, citations, sizes, and that every example, guest and command in the documentation is real. A finding names
//! file and line. There is no list of exceptions.

#![allow(clippy::unwrap_used, reason = "a test that is surprised stops there")]

#[path = "tidy/architecture.rs"]
mod architecture;
#[path = "tidy/circles.rs"]
mod circles;
#[path = "tidy/decisions.rs"]
mod decisions;
#[path = "tidy/documents.rs"]
mod documents;
#[path = "tidy/glossary.rs"]
mod glossary;
mod lexer;
#[path = "tidy/suites.rs"]
mod suites;

use lexer::{blank, test_module};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const LINES_PER_FILE_MAX: usize = 600;
const LINES_PER_FUNCTION_MAX: usize = 70;

/// The store of compiled components. It opens a single folder and gives verified machine code to wasmtime. No other
/// file outside of the sandbox and the command line may do either.
const COMPILED_STORE: &str = "runtime/host/src/aot.rs";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// A Rust file: its path from the root, its text, and its code with comments, strings and test modules replaced by
/// spaces.
struct Source {
    path: String,
    text: String,
    code: String,
}

impl Source {
    fn is_under(&self, folders: &[&str]) -> bool {
        folders.iter().any(|folder| self.path.starts_with(folder))
    }

    /// Returns true for test code: suites, guests, benches, and examples (which are separate projects).
    fn is_test(&self) -> bool {
        self.is_under(&["tests/", "examples/"])
            || self.path.contains("/tests/")
            || self.path.contains("/benches/")
            || self.path.ends_with("/tests.rs")
            || self.text.contains("#![cfg(test)]")
            || self.is_declared_test()
    }
}

impl Source {
    /// Returns true if the module that declares this file does so under `#[cfg(test)]`.
    fn is_declared_test(&self) -> bool {
        let path = root().join(&self.path);
        let (Some(folder), Some(stem)) = (path.parent(), path.file_stem()) else { return false };
        let marked = format!("#[cfg(test)]\nmod {};", stem.to_string_lossy());
        [folder.join("lib.rs"), folder.join("main.rs"), folder.join("mod.rs"), folder.with_extension("rs")]
            .iter()
            .any(|parent| fs::read_to_string(parent).is_ok_and(|text| text.contains(&marked)))
    }
}

fn walk(folder: &Path, found: &mut Vec<PathBuf>) {
    let mut entries: Vec<PathBuf> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    entries.sort();
    for path in entries {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if path.is_symlink() || matches!(name.as_str(), "target" | ".git" | ".glovebox") {
            continue;
        }
        if path.is_dir() { walk(&path, found) } else { found.push(path) }
    }
}

fn files(extension: &str) -> Vec<String> {
    let (root, mut found) = (root(), Vec::new());
    walk(&root, &mut found);
    found
        .iter()
        .filter(|path| path.extension().is_some_and(|found| found == extension))
        .map(|path| path.strip_prefix(&root).unwrap().to_string_lossy().into_owned())
        .collect()
}

fn sources() -> Vec<Source> {
    files("rs")
        .into_iter()
        .map(|path| {
            let text = fs::read_to_string(root().join(&path)).unwrap();
            let mut code = blank(&text);
            if let Some(tests) = test_module(&code) {
                code.truncate(tests);
            }
            Source { path, text, code }
        })
        .collect()
}

/// Returns the words of code, each with its line number from 1.
fn words(code: &str) -> Vec<(usize, &str)> {
    let is_word = |character: char| character.is_alphanumeric() || character == '_';
    code.lines()
        .enumerate()
        .flat_map(|(index, line)| line.split(|character| !is_word(character)).map(move |word| (index + 1, word)))
        .filter(|(_, word)| !word.is_empty())
        .collect()
}

fn none(findings: &[String]) {
    assert!(findings.is_empty(), "{} findings:\n{}", findings.len(), findings.join("\n"));
}

/// Returns the names under `[dependencies]` of a manifest.
fn dependencies(manifest: &str) -> BTreeSet<String> {
    let text = fs::read_to_string(root().join(manifest)).unwrap();
    text.lines()
        .skip_while(|line| line.trim() != "[dependencies]")
        .skip(1)
        .take_while(|line| !line.starts_with('['))
        .filter_map(|line| line.split(['.', '=', ' ']).next())
        .filter(|name| !name.is_empty() && !name.starts_with('#'))
        .map(str::to_owned)
        .collect()
}

/// The crates of this workspace, each with the crates that it may use.
const MAY_USE: [(&str, &str); 31] = [
    ("runtime/names", ""),
    ("runtime/schema", ""),
    ("runtime/record", "names"),
    ("runtime/pipeline", "names record schema"),
    ("runtime/drawing", "names pipeline record"),
    ("runtime/jail/helper", ""),
    ("runtime/workspace", "jail-helper names record"),
    ("runtime/jail", "jail-helper names record workspace"),
    ("runtime/journal", "pipeline record workspace"),
    ("runtime/fleet", "engine host jail journal plan record signing state"),
    ("runtime/state", "journal names pipeline record"),
    ("runtime/models", "record schema"),
    ("runtime/host", "jail models names record schema workspace"),
    ("runtime/signing", "names record"),
    ("runtime/registry", "record workspace"),
    ("runtime/serve", "record"),
    ("runtime/mcp", "names record serve"),
    ("runtime/plan", "host jail models names pipeline record registry signing workspace"),
    ("runtime/engine", "host jail journal models names pipeline plan record state workspace"),
    (
        "runtime/cli",
        "attack contract drawing engine fake-llm fleet host jail journal mcp models names ordinary pipeline plan record registry serve signing state workspace",
    ),
    ("tests/attack", "host hostile jail record workspace"),
    ("tests/attack/hostile", ""),
    ("tests/contract", "host jail names pipeline record workspace"),
    ("tests/fake-llm", "models"),
    ("tests/ordinary", ""),
    ("plugin-sdk", ""),
    ("plugins/codergen", "plugin-sdk"),
    ("plugins/intruder", "plugin-sdk"),
    ("plugins/tool", "plugin-sdk"),
    ("plugins/verification", "plugin-sdk"),
    ("plugins/verify", "plugin-sdk"),
];

#[test]
fn dependencies_run_one_way() {
    let mut findings = Vec::new();
    for (folder, may_use) in MAY_USE {
        let manifest = format!("{folder}/Cargo.toml");
        for used in dependencies(&manifest).iter().filter_map(|name| name.strip_prefix("glovebox-")) {
            if !may_use.split(' ').any(|name| name == used) {
                findings.push(format!("{manifest}: depends on glovebox-{used}"));
            }
        }
    }
    for manifest in files("toml").iter().filter(|path| path.starts_with("runtime/")) {
        let Some(folder) = manifest.strip_suffix("/Cargo.toml") else { continue };
        assert!(MAY_USE.iter().any(|(known, _)| *known == folder), "{manifest}: say here what the new crate may use");
    }
    none(&findings);
}

#[test]
fn decisions_compile_without_engines_and_files() {
    let mut tree = Command::new(env!("CARGO"));
    tree.args(["tree", "--offline", "--package", "glovebox-state", "--edges", "normal", "--prefix", "none"]);
    let tree = tree.args(["--format", "{p}"]).current_dir(root()).output().unwrap();
    let names = String::from_utf8(tree.stdout).unwrap();
    let names: Vec<&str> = names.lines().filter_map(|line| line.split(' ').next()).collect();
    assert!(names.contains(&"glovebox-journal") && names.contains(&"serde"), "{names:?}");
    let refused = ["wasmtime", "rusqlite", "tokio", "cap-std", "rustix", "glovebox-workspace", "glovebox-host"];
    none(
        &refused.iter().filter(|name| names.contains(*name)).map(|name| format!("it needs {name}")).collect::<Vec<_>>(),
    );
}

#[test]
fn engines_of_others_stay_in_one_crate() {
    let homes = [
        ("wasmtime", "runtime/host/"),
        ("wasmtime_wasi", "runtime/host/"),
        ("petgraph", "runtime/pipeline/"),
        ("async_nats", "runtime/fleet/"),
        ("object_store", "runtime/fleet/"),
    ];
    let mut findings = Vec::new();
    for source in sources() {
        for (line, word) in words(&source.code) {
            if homes.iter().any(|(name, home)| word == *name && !source.path.starts_with(home)) {
                findings.push(format!("{}:{line}: `{word}`", source.path));
            }
        }
    }
    for manifest in files("toml").iter().filter(|path| path.ends_with("/Cargo.toml")) {
        let used = dependencies(manifest);
        for (name, home) in homes {
            if used.iter().any(|used| used.replace('-', "_") == name) && !manifest.starts_with(home) {
                findings.push(format!("{manifest}: depends on {name}"));
            }
        }
    }
    none(&findings);
}

#[test]
fn ambient_authority_stays_outside() {
    let mut findings = Vec::new();
    let held = [
        "runtime/pipeline/src/",
        "runtime/drawing/src/",
        "runtime/host/src/",
        "runtime/engine/src/",
        "runtime/journal/src/",
        "runtime/plan/src/",
        "runtime/signing/src/",
        "runtime/state/src/",
        "plugin-sdk/src/",
    ];
    // The testing module of the SDK is not part of a component. Preparing a plan reads the user's project and
    // environment.
    let may_reach =
        |path: &str| path.starts_with("plugin-sdk/src/testing") || path.starts_with("runtime/plan/src/prepare");
    for source in sources().iter().filter(|source| source.is_under(&held) && !source.is_test()) {
        if may_reach(&source.path) {
            continue;
        }
        for (index, line) in source.code.lines().enumerate() {
            let dense: String = line.chars().filter(|character| !character.is_whitespace()).collect();
            // The type of a file handle and a process id for file names give no authority.
            let dense = ["cap_std::", "std::fs::File", "std::process::id"]
                .iter()
                .fold(dense, |text, name| text.replace(name, ""));
            let direct = ["std::fs", "std::env", "std::process", "std::net"].iter().any(|name| dense.contains(name));
            let grouped = dense.split("std::{").nth(1).is_some_and(|group| {
                group
                    .split(['{', '}', ','])
                    .any(|name| matches!(name.split("::").next(), Some("fs" | "env" | "process" | "net")))
            });
            let opens = dense.contains("ambient_authority()") && source.path != COMPILED_STORE;
            if direct || grouped || opens {
                findings.push(format!("{}:{}: {}", source.path, index + 1, line.trim()));
            }
        }
    }
    none(&findings);
}

/// A wall clock that is set would end a deadline, or move it by days.
#[test]
fn a_run_takes_its_times_from_its_own_clock() {
    let mut findings = Vec::new();
    let held =
        ["runtime/engine/src/driver", "runtime/engine/src/inbox.rs", "runtime/state/src/", "runtime/journal/src/"];
    for source in sources().iter().filter(|source| source.is_under(&held) && !source.is_test()) {
        let lines = source.code.lines().enumerate();
        let reading = lines.filter(|(_, line)| line.contains("Timestamp::now") || line.contains("SystemTime::now"));
        findings.extend(reading.map(|(index, line)| format!("{}:{}: {}", source.path, index + 1, line.trim())));
    }
    none(&findings);
}

#[test]
fn unsafe_code_lives_in_the_sandbox_only_and_says_why() {
    let mut findings = Vec::new();
    for source in sources().iter().filter(|source| !source.is_test()) {
        let lines: Vec<&str> = source.text.lines().collect();
        for (index, line) in source.code.lines().enumerate() {
            let dense = line.replace("unsafe(", "");
            if !words(&dense).iter().any(|(_, word)| *word == "unsafe") {
                continue;
            }
            let explained = lines[index.saturating_sub(8)..=index].iter().any(|line| line.contains("SAFETY"));
            let may = source.path.starts_with("runtime/jail/helper/") || source.path == COMPILED_STORE;
            if !may || !explained {
                findings.push(format!("{}:{}: {}", source.path, index + 1, line.trim()));
            }
        }
    }
    for (level, crate_root) in [
        ("forbid", "pipeline/src/lib.rs"),
        ("forbid", "drawing/src/lib.rs"),
        ("deny", "host/src/lib.rs"),
        ("forbid", "engine/src/lib.rs"),
        ("forbid", "fleet/src/lib.rs"),
        ("forbid", "journal/src/lib.rs"),
        ("forbid", "plan/src/lib.rs"),
        ("forbid", "state/src/lib.rs"),
        ("forbid", "models/src/lib.rs"),
        ("forbid", "signing/src/lib.rs"),
        ("forbid", "registry/src/lib.rs"),
        ("forbid", "cli/src/main.rs"),
    ] {
        let text = fs::read_to_string(root().join("runtime").join(crate_root)).unwrap();
        if !text.contains(&format!("#![{level}(unsafe_code)]")) {
            findings.push(format!("runtime/{crate_root}: no #![{level}(unsafe_code)]"));
        }
    }
    none(&findings);
}

#[test]
fn files_of_strangers_are_read_up_to_a_bound() {
    let roots = files("rs").into_iter().filter(|file| file.starts_with("runtime/") && !file.contains("/tests/"));
    let roots = roots.filter(|file| ["/src/lib.rs", "/src/main.rs"].iter().any(|root| file.ends_with(root)));
    // The attack programs may read files without a limit.
    let roots: Vec<String> = roots.filter(|file| !file.contains("/hostile/") && !file.contains("/attack/")).collect();
    assert!(roots.len() > 10, "{roots:?}");
    let lint = "deny(clippy::disallowed_methods)";
    let without = roots.into_iter().filter(|file| !fs::read_to_string(root().join(file)).unwrap().contains(lint));
    none(&without.map(|file| format!("{file}: it may read files without a bound: add `{lint}`")).collect::<Vec<_>>());
}

#[test]
fn every_file_says_what_it_is_and_fits() {
    let mut findings = Vec::new();
    for source in sources() {
        if !source.text.starts_with("//!") {
            findings.push(format!("{}:1: no `//!` at the top", source.path));
        }
        let lines = source.text.lines().count();
        if lines > LINES_PER_FILE_MAX {
            findings.push(format!("{}: {lines} lines, at most {LINES_PER_FILE_MAX}", source.path));
        }
    }
    none(&findings);
}

/// Returns every function with a body: its name, its first line and its number of lines.
fn functions(code: &str) -> Vec<(String, usize, usize)> {
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(next) = code[at..].find("fn ").map(|offset| at + offset) {
        at = next + 3;
        let bounded =
            next == 0 || !code.as_bytes()[next - 1].is_ascii_alphanumeric() && code.as_bytes()[next - 1] != b'_';
        let name: String =
            code[at..].chars().take_while(|character| character.is_alphanumeric() || *character == '_').collect();
        let Some(open) = code[at..].find(['{', ';']).map(|offset| at + offset) else { break };
        if !bounded || name.is_empty() || code.as_bytes()[open] == b';' {
            continue;
        }
        let first = code[..next].matches('\n').count() + 1;
        found.push((name, first, code[open..body_end(code, open)].matches('\n').count() + 1));
    }
    found
}

fn body_end(code: &str, open: usize) -> usize {
    let mut depth = 0_usize;
    for (offset, byte) in code[open..].bytes().enumerate() {
        match byte {
            b'{' => depth += 1,
            b'}' if depth == 1 => return open + offset,
            b'}' => depth -= 1,
            _ => {}
        }
    }
    code.len()
}

#[test]
fn functions_fit_a_page() {
    let mut findings = Vec::new();
    for source in sources() {
        for (name, line, lines) in functions(&blank(&source.text)) {
            if lines > LINES_PER_FUNCTION_MAX {
                findings.push(format!(
                    "{}:{line}: `{name}` has {lines} lines, at most {LINES_PER_FUNCTION_MAX}",
                    source.path
                ));
            }
        }
    }
    none(&findings);
}

#[test]
fn the_function_counter_counts() {
    let long = format!("fn a() {{\n{}}}\nfn b();\nimpl X {{ fn c() {{ \"}}\"; '{{' }} }}", "x;\n".repeat(70));
    let found = functions(&blank(&long));
    assert_eq!(found, [("a".to_owned(), 1, 72), ("c".to_owned(), 74, 1)]);
    assert_eq!(blank("let a = r#\"x\"y\"#; // z\n'a 'b' b"), "let a =         ;     \n'a     b");
}

#[test]
fn nothing_is_left_undone() {
    let mut findings = Vec::new();
    for source in sources() {
        let code = blank(&source.text);
        for mark in ["todo!", "unimplemented!", "#[ignore", "dbg!"] {
            if let Some(offset) = code.find(mark) {
                findings.push(format!("{}:{}: {mark}", source.path, code[..offset].matches('\n').count() + 1));
            }
        }
        for (index, line) in source.code.lines().enumerate() {
            if line.contains(".unwrap()") && !source.is_test() {
                findings.push(format!("{}:{}: unwrap outside tests", source.path, index + 1));
            }
        }
    }
    none(&findings);
}

fn folders(parent: &str) -> Vec<String> {
    let Ok(entries) = fs::read_dir(root().join(parent)) else { return Vec::new() };
    let mut names: Vec<String> = entries
        .map(|entry| entry.unwrap())
        .filter(|entry| entry.path().is_dir() && entry.file_name() != "target")
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

#[test]
fn every_guest_is_used_by_a_test() {
    let users: Vec<Source> = sources().into_iter().filter(|source| !source.path.starts_with("tests/guests/")).collect();
    let mut findings = Vec::new();
    for guest in folders("tests/guests") {
        let quoted = [format!("\"{guest}\""), format!("guests/{guest}"), format!("\"{guest}.wat\"")];
        if !users.iter().any(|source| quoted.iter().any(|name| source.text.contains(name))) {
            findings.push(format!("tests/guests/{guest}: no test uses it"));
        }
    }
    none(&findings);
}

#[test]
fn every_example_is_explained_and_tested() {
    let suites = ["tests/examples.rs", "tests/scenarios.rs"];
    let suite: String = suites.map(|suite| fs::read_to_string(root().join(suite)).unwrap()).concat();
    let mut findings = Vec::new();
    let attacks = folders("examples/attacks").into_iter().map(|name| format!("attacks/{name}"));
    for example in folders("examples").into_iter().filter(|name| name != "attacks").chain(attacks) {
        for file in ["pipeline.dot", "README.md"] {
            if !root().join("examples").join(&example).join(file).is_file() {
                findings.push(format!("examples/{example}: no {file}"));
            }
        }
        if !suite.contains(&format!("\"{example}\"")) {
            findings.push(format!("examples/{example}: none of {suites:?} runs it"));
        }
    }
    none(&findings);
}
