//! New files from which programs read settings or code are named in the summary, in `diff` and in `apply`.

use crate::workbench::{self, Answer, Workbench};
use serde_json::{Value, json};
use std::process::Command;

const KNOWN: &str = "new configuration: out/.proverc (prove takes settings or code from it)";
const UNKNOWN: &str = "new configuration: out/.hidden/ (programs look for names that begin with a dot)";
const LINKED: &str = "new configuration: out/ansible.cfg (Ansible takes settings or code from it)";
const BESIDE: &str = "new configuration: .kept/more (programs look for names that begin with a dot)";

/// Creates a project with a dot folder and a makefile, and a run `r` that changes both and adds files.
fn bench() -> Workbench {
    let bench = Workbench::with_pipeline(
        "digraph g { start [shape=Mdiamond]; done [shape=Msquare]; start -> t -> done
         t [shape=parallelogram, tool_command=\"sh change.sh\", allowed_write_paths=\"out/, .kept/, Makefile\"] }",
    );
    bench.write(
        "change.sh",
        "set -e
         mkdir -p out/.hidden/deep
         echo '--exec=touch' > out/.proverc; echo x > out/.hidden/deep/x; echo x > out/.hidden/y; ln -s .proverc out/ansible.cfg
         echo x > out/plain; echo x > out/.gitignore; echo '#' >> .kept/conf; echo x > .kept/more; echo '#' >> Makefile
         echo x > out/gone; mkdir out/.gone; echo x > out/.gone/x; rm -r out/.gone\n",
    );
    bench.write(".kept/conf", "x\n");
    bench.write("Makefile", "all:\n");
    bench
}

/// Checks that the answer names the four new files, and no file that existed before, is harmless or was removed.
#[track_caller]
fn names_all(answer: &Answer) {
    answer.ends(0).says(KNOWN).says(UNKNOWN).says(LINKED).says(BESIDE);
    for other in ["configuration: Makefile", "configuration: .kept/conf", "configuration: out/.gitignore", "out/.gone"]
    {
        answer.never_says(other);
    }
}

fn expected() -> Value {
    json!([
        { "path": ".kept/more", "reader": null },
        { "path": "out/.hidden/", "reader": null },
        { "path": "out/.proverc", "reader": "prove" },
        { "path": "out/ansible.cfg", "reader": "Ansible" },
    ])
}

#[test]
fn the_summary_of_a_run_names_new_configuration() {
    let bench = bench();
    let rows = |answer: &Answer| {
        for row in [KNOWN, UNKNOWN, LINKED, BESIDE] {
            answer.ends(0).says(&row.replace("configuration:", "configuration"));
        }
        answer
            .never_says("configuration Makefile")
            .never_says("configuration out/.gitignore")
            .never_says("configuration out/.gone");
    };
    rows(&bench.glovebox(&["run", "pipeline.dot", "--run-id", "r"]));
    rows(&bench.glovebox(&["show", "r"]));
    assert_eq!(bench.glovebox(&["show", "r", "--json"]).ends(0).json()["new_configuration"], expected());
    let lines = bench.glovebox(&["run", "pipeline.dot", "--run-id", "s", "--json"]).ends(0).json_lines();
    assert_eq!(lines.last().unwrap()["new_configuration"], expected());
    // A run without such files prints nothing about them.
    bench.write("change.sh", "echo x > out/plain");
    bench.write("out/old", "");
    bench.glovebox(&["run", "pipeline.dot", "--run-id", "t"]).ends(0).never_says("new configuration");
    assert_eq!(bench.glovebox(&["show", "t", "--json"]).ends(0).json()["new_configuration"], Value::Null);
}

#[test]
fn the_summary_is_short_where_much_is_new() {
    let bench = bench();
    bench.write("change.sh", "mkdir out; for i in $(seq 10 24); do echo x > out/.rc$i; done");
    let answer = bench.glovebox(&["run", "pipeline.dot", "--run-id", "r"]);
    answer.ends(0).says("new configuration out/.rc19 (").says("new configuration and 5 more; `--json`");
    answer.never_says("new configuration out/.rc20");
    let all = bench.glovebox(&["diff", "r", "--json"]).ends(0).json();
    assert_eq!(all["new_configuration"].as_array().unwrap().len(), 15);
}

#[test]
fn a_diff_names_new_configuration_of_what_it_shows() {
    let bench = bench();
    bench.glovebox(&["run", "pipeline.dot", "--run-id", "r", "--quiet"]).ends(0);
    names_all(&bench.glovebox(&["diff", "r"]));
    names_all(&bench.glovebox(&["diff", "r", "--stat"]));
    assert!(!bench.glovebox(&["diff", "r"]).stdout.contains("new configuration"), "a patch stays a patch");
    let some = bench.glovebox(&["diff", "r", "--", "out/.hidden", "out/plain"]);
    some.ends(0).says(UNKNOWN).never_says(KNOWN).never_says(BESIDE);
    assert_eq!(bench.glovebox(&["diff", "r", "--json"]).ends(0).json()["new_configuration"], expected());
}

#[test]
fn apply_names_new_configuration_that_it_writes() {
    let bench = bench();
    bench.glovebox(&["run", "pipeline.dot", "--run-id", "r", "--quiet"]).ends(0);
    let some = bench.glovebox(&["apply", "r", "--", "out/.proverc"]);
    some.ends(0).says(KNOWN).never_says(UNKNOWN);
    assert_eq!(bench.read("out/.proverc"), "--exec=touch\n");
    // The remaining files. A file that was applied before is not written again.
    bench.glovebox(&["apply", "r"]).ends(0).says(UNKNOWN).says(LINKED).says(BESIDE).never_says(KNOWN);
    bench.glovebox(&["apply", "r"]).ends(0).says("nothing to apply").never_says("new configuration");
    let other = Workbench::new();
    workbench::copy_tree(&bench.project(), &other.project());
    for path in ["out", ".kept/more"] {
        assert!(Command::new("rm").arg("-r").arg(other.project().join(path)).status().unwrap().success());
    }
    other.write(".kept/conf", "x\n");
    other.write("Makefile", "all:\n");
    let words = ["apply", "r", "--workdir", other.project().to_str().unwrap(), "--json"].map(str::to_owned);
    let applied = bench.glovebox(&words.each_ref().map(String::as_str)).ends(0).json();
    assert_eq!(applied["new_configuration"], expected());
}

#[test]
fn a_branch_names_new_configuration_of_its_commits() {
    let bench = bench();
    for words in ["init -q -b main", "add -A", "-c user.name=a -c user.email=a@b commit -q -m base"] {
        let mut git = Command::new("git");
        assert!(git.args(words.split(' ')).current_dir(bench.project()).status().unwrap().success(), "{words}");
    }
    bench.glovebox(&["run", "pipeline.dot", "--run-id", "r", "--quiet"]).ends(0);
    let branch = |name: &str, more: &[&str]| {
        let mut command = bench.command(&[&["apply", "r", "--branch", name], more].concat());
        for who in ["GIT_AUTHOR", "GIT_COMMITTER"] {
            command.env(format!("{who}_NAME"), "a").env(format!("{who}_EMAIL"), "a@b");
        }
        Answer::of(&mut command)
    };
    names_all(&branch("one", &[]));
    assert_eq!(branch("two", &["--json"]).ends(0).json()["new_configuration"], expected());
    branch("three", &["--", "Makefile"]).ends(0).never_says("new configuration");
}
