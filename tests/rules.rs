//! The output of `glovebox check` for the examples of every rule, for every mistake that the parser detects, and for
//! hold-out scripts, and what `check` and `fmt` do to files.

use crate::workbench::{Answer, Workbench, root};
use glovebox_pipeline::lint::{RULES, Rule};
use std::collections::BTreeSet;
use std::fmt::Write;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;

/// Returns the output of `check` for a file, with a title line.
fn printed(bench: &Workbench, title: &str, source: &str, arguments: &[&str]) -> String {
    bench.write("pipeline.dot", source);
    let answer = bench.glovebox(&[&["check", "--for", "lint", "pipeline.dot"], arguments].concat());
    let said = answer.stderr.lines().map(str::trim_end).collect::<Vec<_>>().join("\n");
    format!("==== {title}\n{said}\n")
}

#[test]
fn findings_of_every_rule_are_rendered() {
    let bench = Workbench::new();
    let mut text = String::new();
    for rule in RULES.iter().filter(|rule| !rule.is_about_scripts()) {
        let input = rule.bad.lines().next().and_then(|line| line.strip_prefix("// --set "));
        let arguments: Vec<&str> = input.map(|input| vec!["--set", input]).unwrap_or_default();
        text.push_str(&printed(&bench, rule.id, rule.bad, &arguments));
        assert!(text.contains(&format!("[{}]", rule.id)), "{}", rule.id);
    }
    insta::assert_snapshot!("rules", text);
}

#[test]
fn findings_in_scripts_are_rendered() {
    let bench = Workbench::with_pipeline("digraph g { scenarios=\"holdouts\" start; exit; start -> exit }");
    for rule in RULES.iter().filter(|rule| rule.is_about_scripts()) {
        bench.write("holdouts/deep/check.sh", &format!("{}ask --model gpt-4o # gpt-4o\n", rule.bad));
    }
    bench.write("holdouts/cases.txt", "/tmp/fixed\n");
    bench.write("holdouts/probe", "#!/usr/bin/env python3\nopen('/tmp/fixed')\n");
    let answer = bench.glovebox(&["check", "pipeline.dot"]);
    answer.ends(0).says("1 checked: 0 errors, 4 warnings");
    insta::assert_snapshot!("scripts", answer.stderr.lines().map(str::trim_end).collect::<Vec<_>>().join("\n"));
    bench.glovebox(&["check", "pipeline.dot", "--strict"]).ends(3);
    bench.glovebox(&["check", "pipeline.dot", "pipeline.dot"]).ends(0).says("2 checked: 0 errors, 4 warnings");
    let found = bench.glovebox(&["check", "pipeline.dot", "--format", "json"]).ends(0).json();
    let place = &found.as_array().unwrap()[0];
    assert_eq!((&place["file"], &place["line"]), (&"holdouts/deep/check.sh".into(), &2.into()));
}

#[test]
fn project_code_beside_hold_outs_is_found_in_the_folder_and_in_its_scripts() {
    let judge = |attributes: &str| {
        let judge = format!("judge [shape=octagon, command=\"make -s judge\", {attributes}]");
        format!("digraph g {{ start; exit; {judge}; start -> judge -> exit }}")
    };
    let bench = Workbench::with_pipeline(&judge(""));
    bench.glovebox(&["check", "pipeline.dot"]).ends(0).never_says("subject_not_isolated").says("write_scope_missing");
    bench.write("scripts/scenarios/check.sh", "test \"$(sh src/prog.sh)\" = x\nsubject sh src/prog.sh\n");
    bench.glovebox(&["check", "pipeline.dot"]).ends(0).says("write_scope_missing").says("holdouts_unread");
    bench.write("pipeline.dot", &judge("holdouts=true"));
    let found = bench.glovebox(&["check", "pipeline.dot", "--strict"]);
    found.ends(3).never_says("write_scope_missing");
    found.says("`judge` runs `make` with the hold-outs in view").says("command=\"subject make -s judge\"");
    found
        .says("scripts/scenarios/check.sh:1:9")
        .says("start it in its own sandbox: `test \"$(subject sh src/prog.sh)\" = x`");
    bench.write("pipeline.dot", &judge("read_paths=\"scripts/scenarios/\""));
    bench.glovebox(&["check", "pipeline.dot"]).ends(0).says("0 errors, 0 warnings");
}

/// Mistakes that the parser detects, with a title each: everything that conformance refuses, and every message of the
/// parser.
const MISTAKES: &[(&str, &str)] = &[
    ("an empty file", ""),
    ("no graph at all", "start -> exit"),
    ("an undirected graph", "graph g { start exit }"),
    ("a strict graph", "strict digraph g { start exit start -> exit }"),
    ("an undirected edge", "digraph g { start exit start -- exit }"),
    ("a second graph", "digraph g { start exit start -> exit }\ndigraph h { }"),
    ("a graph inside a graph", "digraph g { digraph h { } }"),
    ("something after the graph", "digraph g { start exit start -> exit } }"),
    ("an HTML label", "digraph g { start [label=<b>bold</b>] exit start -> exit }"),
    ("a port", "digraph g { start exit start:ne -> exit }"),
    ("a group of nodes", "digraph g { start exit start -> {exit} }"),
    ("an open string", "digraph g {\n  start [label=\"open]\n  exit\n  start -> exit\n}"),
    ("an open comment", "digraph g { start exit /* never"),
    ("an open block", "digraph g {\n  start [label=x\n  exit\n  start -> exit\n}"),
    ("an open graph", "digraph g { start exit start -> exit"),
    (
        "too deep",
        "digraph g { subgraph { subgraph { subgraph { subgraph { subgraph { subgraph { subgraph { subgraph { subgraph { subgraph { subgraph { subgraph { subgraph { subgraph { subgraph { subgraph { subgraph { subgraph { subgraph { subgraph { subgraph { subgraph { subgraph { subgraph { subgraph { subgraph { subgraph { subgraph { subgraph { subgraph { subgraph { subgraph { subgraph { }}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}} start exit start -> exit }",
    ),
    ("a node id with a hyphen", "digraph g { start exit build-app start -> exit }"),
    ("another arrow", "digraph g { start exit start => exit }"),
    ("an edge without a target", "digraph g { start exit start -> }"),
    ("a keyword as a node", "digraph g { start exit node -> exit }"),
    ("an attribute without a value", "digraph g { start [bold] exit start -> exit }"),
    ("an equals sign without a value", "digraph g { start [label=] exit start -> exit }"),
    ("two separators", "digraph g { start [a=1,,b=2] exit start -> exit }"),
    ("a colon for an equals sign", "digraph g { start [label: \"x\"] exit start -> exit }"),
    ("a path without quotes", "digraph g { start [image=src/main.rs] exit start -> exit }"),
    ("single quotes", "digraph g { start [label='x y'] exit start -> exit }"),
    ("a colour without quotes", "digraph g { start [color=#ff0000] exit start -> exit }"),
    ("joined strings", "digraph g { start [label=\"x\" + \"y\"] exit start -> exit }"),
    ("a NUL character", "digraph g { start [label=\"x\u{0}y\"] exit start -> exit }"),
    ("stray letters", "digraph g { start exit start -> exit ] $ }"),
    ("two operators", "digraph g { start exit start -> exit [condition=\"outcome==success\"] }"),
    ("an or", "digraph g { start exit start -> exit [condition=\"outcome=success || outcome=fail\"] }"),
    ("a comparison of numbers", "digraph g { start exit start -> exit [condition=\"context.count > 3\"] }"),
    ("an open value", "digraph g { start exit start -> exit [condition=\"outcome=\"] }"),
    ("two words", "digraph g { start exit start -> exit [condition=\"preferred_label=Try again\"] }"),
];

#[test]
fn mistakes_of_the_reader_are_rendered() {
    let bench = Workbench::new();
    let mut text = String::new();
    for (title, source) in MISTAKES {
        let said = printed(&bench, title, source, &[]);
        assert!(said.contains("error[dot_syntax]") || said.contains("error[condition_syntax]"), "{title}: {said}");
        write!(text, "{said}").unwrap();
    }
    insta::assert_snapshot!("mistakes", text);
}

#[test]
fn explain_prints_the_page_of_every_rule() {
    let bench = Workbench::new();
    for rule in RULES {
        assert_eq!(bench.glovebox(&["explain", rule.id]).ends(0).stdout, rule.page(), "{}", rule.id);
    }
    bench.glovebox(&["explain", "no_failure_rout"]).ends(2).says("did you mean `glovebox explain no_failure_route`?");
    bench.glovebox(&["explain", "zzz"]).ends(2).says("list all rules: `glovebox explain`");
    bench.glovebox(&["explain", "rnu"]).ends(2).says("did you mean `glovebox help run`?");
    bench.glovebox(&["explain", "run"]).ends(2).says("did you mean `glovebox help run`?");
    bench.glovebox(&["explain", "exit-code"]).ends(2).says("did you mean `glovebox help exit-codes`?");
    let all = bench.glovebox(&["explain"]);
    all.ends(0).says("no_failure_route").says("network_not_granted").says("with-caches");
    let row = bench.glovebox(&["explain", "verified (with caches of builders' code)"]);
    row.ends(0).says("cache=\"target/\", cache_from=\"base\"").says("glovebox explain cache_from");
    assert_eq!(bench.glovebox(&["explain", "with-caches"]).stdout, row.stdout);
    bench.glovebox(&["explain", "with-cache"]).ends(2).says("did you mean `glovebox explain with-caches`?");
    for line in all.stdout.lines() {
        bench.glovebox(&["explain", line.split_whitespace().next().unwrap()]).ends(0);
    }
    let page = Rule::named("no_failure_route").unwrap().page();
    insta::assert_snapshot!("page", page);
}

/// Adds the name of every diagnostic in the source files of a folder.
fn names_in(folder: &Path, names: &mut BTreeSet<String>) {
    for path in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
        if path.is_dir() {
            names_in(&path, names);
            continue;
        }
        if path.ends_with("tests.rs") {
            continue;
        }
        let source = fs::read_to_string(&path).unwrap();
        let source = source.split("#[cfg(test)]").next().unwrap();
        // The names of configuration problems are in a table.
        let table = source.split('"').skip(1).step_by(2).filter(|quoted| quoted.starts_with("config_"));
        names.extend(table.map(str::to_owned));
        for begin in ["Diagnostic::error(", "Diagnostic::warning("] {
            let quoted = source.split(begin).skip(1).filter_map(|rest| rest.trim_start().strip_prefix('"'));
            names.extend(quoted.map(|rest| rest[..rest.find('"').unwrap()].to_owned()));
        }
    }
}

#[test]
fn explain_knows_what_is_told_where_a_pipeline_meets_its_configuration() {
    let mut names = BTreeSet::new();
    for folder in ["bind", "config"] {
        names_in(&root().join("runtime/plan/src").join(folder), &mut names);
    }
    assert!(names.contains("network_not_granted") && names.contains("config_value"), "{names:?}");
    let bench = Workbench::new();
    for name in names {
        bench.glovebox(&["explain", &name]).ends(0).says(&name);
    }
}

/// Returns a pipeline with this many mistakes. `check --fix` fixes each in a round of its own.
fn slips(count: usize) -> String {
    let nodes: String =
        (0..count).map(|at| format!("n{at} [promt=p, timeout={}]; start -> n{at} -> exit\n", at + 1)).collect();
    format!("digraph g {{ start; exit\n{nodes}}}")
}

#[test]
fn a_file_is_mended_to_the_end_and_keeps_all_but_its_text() {
    let bench = Workbench::with_pipeline(&slips(40));
    let file = bench.project().join("pipeline.dot");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).unwrap();
    symlink("pipeline.dot", bench.project().join("link.dot")).unwrap();
    let before = fs::metadata(&file).unwrap();
    bench.glovebox(&["check", "--fix", "link.dot"]).ends(0).says("fixed: link.dot");
    let mended = bench.read("pipeline.dot");
    assert_eq!((mended.matches("[prompt=p").count(), mended.matches("s\"]").count()), (40, 40), "{mended}");
    let after = fs::metadata(&file).unwrap();
    assert_eq!((after.mode(), after.uid(), after.gid()), (before.mode(), before.uid(), before.gid()));
    assert!(fs::symlink_metadata(bench.project().join("link.dot")).unwrap().is_symlink());
    assert_eq!(fs::read_dir(bench.project()).unwrap().count(), 2, "nothing is left behind");
    bench.glovebox(&["check", "--fix", "pipeline.dot"]).ends(0).never_says("fixed");
    assert_eq!(bench.read("pipeline.dot"), mended);
}

#[test]
fn a_file_that_may_not_be_written_is_left_alone() {
    let bench = Workbench::with_pipeline(&slips(1));
    let file = bench.project().join("pipeline.dot");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o444)).unwrap();
    if fs::OpenOptions::new().write(true).open(&file).is_ok() {
        return; // Root may write every file.
    }
    for words in [&["check", "--fix", "pipeline.dot"], &["fmt", "pipeline.dot", "pipeline.dot"]] {
        bench.glovebox(words).ends(2).says("write `pipeline.dot`");
        assert_eq!(bench.read("pipeline.dot"), slips(1));
    }
}

#[test]
fn standard_input_is_a_file() {
    let bench = Workbench::new();
    let fed = |words: &[&str], text: &str| {
        bench.write("fed.dot", text);
        let mut command = bench.command(words);
        Answer::of(command.stdin(fs::File::open(bench.project().join("fed.dot")).unwrap()))
    };
    let (good, bad) = ("digraph g {start;exit;start->exit}", "digraph g { start; exit; start -> exti }");
    fed(&["check", "-"], good).ends(0).says("1 checked");
    fed(&["check", "-"], bad).ends(3).says("--> -:1:35");
    fed(&["check", "--fix", "-"], bad).ends(2).says("`--fix` cannot change standard input");
    let formatted = fed(&["fmt", "-"], good);
    assert_eq!(formatted.ends(0).stdout, "digraph g {\n  start;\n  exit;\n  start -> exit;\n}\n");
    assert_eq!(fed(&["fmt", "-"], &formatted.stdout).ends(0).stdout, formatted.stdout);
    assert_eq!(fed(&["fmt", "--check", "-"], good).ends(3).stdout, "");
    assert_eq!(fed(&["fmt", "-"], "digraph g {").ends(3).stdout, "");
    assert!(fed(&["graph", "-", "--format", "dot"], good).ends(0).stdout.starts_with("digraph \"g\" {"));
    bench.glovebox(&["check", "."]).ends(2).says("is a folder");
}

#[test]
fn a_list_that_is_cut_says_so() {
    let bench = Workbench::with_pipeline(&slips(1).replace("promt=p", &"a- ".repeat(60)));
    for format in ["text", "json", "sarif", "github"] {
        bench
            .glovebox(&["check", "pipeline.dot", "--format", format])
            .ends(3)
            .says("`pipeline.dot` has more findings than");
    }
    bench.write("few.dot", "digraph g { a- b- }");
    bench.glovebox(&["check", "few.dot"]).ends(3).never_says("more findings");
}
