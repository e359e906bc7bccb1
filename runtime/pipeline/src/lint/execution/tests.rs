//! Tests which commands execute code of a project.

use super::super::words::{Language, words};
use super::*;
use crate::source::Source;

fn sealed() -> [String; 1] {
    ["scripts/scenarios/".to_owned()]
}

/// Returns the commands in a text that execute code of the project, and marks those that run over hold-outs.
fn found(text: &str) -> Vec<String> {
    let words = words(Source::new(text), Language::Shell);
    let shown = |found: Execution| {
        assert!(text.get(found.at.clone()).is_some());
        if found.is_over_holdouts { format!("{} over hold-outs", found.what) } else { found.what }
    };
    executions(&words, CommandSite { sealed: &sealed(), workdir: "" }).into_iter().map(shown).collect()
}

fn check(text: &str, expected: &[&str]) {
    assert_eq!(found(text), expected, "{text}");
}

#[test]
fn runners_execute_the_project_by_name() {
    for (text, what) in [
        ("cargo test --offline", "cargo test"),
        ("cargo +nightly nextest run", "cargo nextest"),
        ("cargo -q --color never run -- x", "cargo run"),
        ("CI=1 pytest -q", "pytest"),
        ("python3 -m pytest", "python3 -m pytest"),
        ("python3.12 -I -m unittest discover", "python3.12 -m unittest"),
        ("python -Im app", "python -m app"),
        ("npm --prefix app test", "npm test"),
        ("yarn run check", "yarn run"),
        ("go test ./...", "go test"),
        ("timeout 60 make -s check", "make"),
        ("just", "just"),
        ("bundle exec rspec", "bundle exec"),
        ("dotnet test", "dotnet test"),
        ("node --test", "node --test"),
        ("deno test -A", "deno test"),
        ("/usr/bin/make", "make"),
        ("mvn -q verify", "mvn"),
        ("sh -c 'cd app && make'", "make"),
    ] {
        check(text, &[what]);
    }
}

#[test]
fn interpreters_execute_the_file_they_are_given() {
    check("sh src/x.sh a", &["sh src/x.sh"]);
    check("bash -eu -o pipefail ./x.sh", &["bash ./x.sh"]);
    check("python3 app.py", &["python3 app.py"]);
    check("node -r ./hook.js \"x.js\"", &["node x.js"]);
    check(". lib/env.sh; source lib/more.sh", &[". lib/env.sh", "source lib/more.sh"]);
    check("perl -I lib prog.pl; ruby app.rb; awk -f src/x.awk in", &["perl prog.pl", "ruby app.rb", "awk src/x.awk"]);
    check("./bin/x; bin/y z; \"$PWD/bin/z\"", &["./bin/x", "bin/y", "$PWD/bin/z"]);
    check("test \"$(sh src/prog.sh)\" = 'x'", &["sh src/prog.sh"]);
}

#[test]
fn what_is_sealed_or_unknown_or_not_started_does_not_count() {
    for text in [
        "sh scripts/scenarios/check.sh",
        "scripts/scenarios/run x",
        "cd scripts/scenarios && sh ./check.sh && ./run",
        "make -f scripts/scenarios/Makefile",
        "make -C scripts/scenarios",
        "sh \"$HERE/x.sh\"; \"$TMPDIR/prog\"; sh ~/x.sh; /opt/tool/run",
        "sh -c 'echo x' src/prog.sh",
        "python3 -c 'import json' src/x.py; perl -ne 'print' src/x; node -e 1 x.js; php -r 'echo 1 + 2;'",
        "python3 -m json.tool out.json",
        "awk '{print $1}' src/x; grep make src/x; cat Makefile; echo cargo test",
        "cargo fmt --check; cargo --version; make --version; npm ls; go vet ./...",
        "sh; python3; node; command -v cargo",
        "cd \"$WORK\" && sh x.sh",
    ] {
        check(text, &[]);
    }
}

#[test]
fn subject_and_its_arguments_do_not_count() {
    check("subject cargo test", &[]);
    check("printf x | timeout 5 subject sh src/prog.sh > out", &[]);
    check("subject sh -c 'cd app && make'", &[]);
    check("echo subject; sh src/x.sh", &["sh src/x.sh"]);
    check("subject true && sh src/x.sh", &["sh src/x.sh"]);
    check("subject cat \"$(sh src/x.sh)\" sh src/y.sh", &["sh src/x.sh"]);
}

#[test]
fn a_runner_over_hold_outs_still_reads_the_project() {
    check("pytest -q scripts/scenarios", &["pytest over hold-outs"]);
    check("python3 -m pytest --rootdir=scripts/scenarios", &["python3 -m pytest over hold-outs"]);
    check("cargo test --manifest-path scripts/scenarios/suite/Cargo.toml", &["cargo test over hold-outs"]);
}

#[test]
fn a_folder_holds_for_its_subshell() {
    check("(cd scripts/scenarios && sh a.sh); sh a.sh", &["sh a.sh"]);
    check("cd scripts/scenarios; sh ../../src/a.sh", &["sh ../../src/a.sh"]);
    let words = words(Source::new("sh a.sh; sh ../b.sh"), Language::Shell);
    let from = |workdir| executions(&words, CommandSite { sealed: &sealed(), workdir }).len();
    assert_eq!((from("scripts/scenarios"), from("scripts"), from("src/")), (1, 2, 2));
}
