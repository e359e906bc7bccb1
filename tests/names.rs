//! Names and texts of strangers with the real binary: node ids that the run directory itself uses, and characters that
//! control a terminal.

use crate::workbench::Workbench;
use glovebox_engine::project::run_files::RUN_NAMES;
use glovebox_names::visible::is_deceptive;
use std::collections::BTreeSet;
use std::path::Path;

fn entries(folder: &Path) -> BTreeSet<String> {
    let entries = std::fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect()
}

/// Creates a pipeline of tool stages in a row with these ids, each with a cache. With a hold-out, the caches are not
/// kept.
fn stages(ids: &[&str], with_holdout: bool) -> Workbench {
    let nodes = ids.iter().map(|id| {
        format!(
            "  {id} [shape=parallelogram, allowed_write_paths=\"out/\", cache=\"build/\", \
             tool_command=\"mkdir -p build out; touch build/kept out/{id}; git log -1 >/dev/null 2>&1; true\"]\n"
        )
    });
    let bench = Workbench::with_pipeline(&format!(
        "digraph g {{\n  graph [goal=\"g\"]\n  start [shape=Mdiamond]; done [shape=Msquare]\n{}  start -> {} -> done\n}}\n",
        nodes.collect::<String>(),
        ids.join(" -> ")
    ));
    if with_holdout {
        bench.write("scripts/scenarios/one.sh", "# hold-out: the answer is forty-two apples in a basket\n");
    }
    bench.write("src/a.txt", "a\n");
    bench
}

#[test]
fn the_run_directory_holds_what_the_list_says_and_folders_of_nodes() {
    let mut known: BTreeSet<String> = RUN_NAMES.iter().map(|name| (*name).to_owned()).collect();
    known.extend(["start", "ordinary", "done"].map(str::to_owned));
    let run = |with_holdout| {
        let bench = stages(&["ordinary"], with_holdout);
        bench.glovebox(&["run", "pipeline.dot", "--run-id", "r"]).ends(0);
        entries(&bench.run_folder("r"))
    };
    let found: BTreeSet<String> = run(true).union(&run(false)).cloned().collect();
    let strange: Vec<&String> = found.difference(&known).collect();
    assert!(strange.is_empty(), "made by a run, not in the list: {strange:?}");
    let of_a_run = ["blobs", "cache", "holdouts", "journal.sqlite", "workspace"];
    of_a_run.iter().for_each(|name| assert!(found.contains(*name), "{name} of {found:?}"));
}

#[test]
fn a_node_named_like_a_folder_of_the_run_has_another_folder() {
    let ids = ["cache", "Holdouts", "ARTIFACTS", "workspace", "quarantine", "stage", "blobs", "Repository"];
    for with_holdout in [true, false] {
        check_folders(&ids, with_holdout);
    }
}

fn check_folders(ids: &[&str], with_holdout: bool) {
    let bench = stages(ids, with_holdout);
    bench.glovebox(&["run", "pipeline.dot", "--run-id", "r"]).ends(0);
    let run = bench.run_folder("r");
    for id in ids {
        assert!(run.join(format!("node-{id}/status.json")).is_file(), "{id} in {:?}", entries(&run));
        assert!(id.chars().any(char::is_uppercase) <= !run.join(id).exists(), "{id}: no folder in another case");
    }
    // Only the run itself writes to these folders.
    assert!(with_holdout || run.join("cache").is_dir());
    let caches = if run.join("cache").exists() { entries(&run.join("cache")) } else { BTreeSet::new() };
    assert!(
        caches.iter().all(|name| ["builder", "verifier", "checker", "lock", "offer"].contains(&name.as_str())),
        "{caches:?}"
    );
    for folder in
        ["workspace", "holdouts", "blobs", "quarantine"].map(|name| run.join(name)).iter().filter(|f| f.exists())
    {
        assert!(!entries(folder).contains("status.json"), "{}", folder.display());
    }
    bench.glovebox(&["show", "r"]).ends(0);
    if with_holdout {
        bench.glovebox(&["holdout", "verify", "r"]).ends(0);
    }
}

/// One character of each kind that controls a terminal or deceives a reader.
const HOSTILE: &str = "\u{1b}[2J\u{1b}]0;owned\u{7}\u{9b}31m\u{202e}\u{200b}\u{2028}\u{ad}\u{7f}\u{e0041}";

/// Runs every command on a pipeline with hostile texts and on its run, and checks the output for people and for
/// programs.
#[test]
fn no_command_prints_what_a_terminal_obeys() {
    let hostile = format!("a{HOSTILE}b");
    let bench = Workbench::with_pipeline(&format!(
        "digraph g {{\n  graph [goal=\"{hostile}\", label=\"{hostile}\", acme=\"{hostile}\"]\n  start [shape=Mdiamond, label=\"{hostile}\"]; done [shape=Msquare]\n\
         \x20 work [shape=parallelogram, label=\"{hostile}\", class=\"{hostile}\", allowed_write_paths=\"out/\", \
         tool_command=\"printf '%s' '{hostile}'; mkdir -p out; printf x > 'out/{hostile}'; exit 1\"]\n\
         \x20 start -> work [label=\"{hostile}\"]\n  work -> done [label=\"{hostile}\"]\n\
         \x20 subgraph cluster_a {{ label=\"{hostile}\"; work }}\n}}\n"
    ));
    bench.write(
        "wrong.dot",
        &format!("digraph g {{ start [shape=\"{hostile}\"] {hostile} -> \"{hostile}\" [condition=\"{hostile}\"] }}"),
    );
    let file = format!("{hostile}.dot");
    bench.write(&file, LINEAR_WITH_ERROR);
    let given = format!("x={hostile}");
    let commands: [&[&str]; 21] = [
        &["check", "pipeline.dot"],
        &["check", "wrong.dot"],
        &["check", "wrong.dot", "--format", "json"],
        &["check", "wrong.dot", "--format", "sarif"],
        &["check", "wrong.dot", "--format", "github"],
        &["check", &file],
        &["check", &format!("missing{file}")],
        &["graph", "pipeline.dot", "--format", "svg"],
        &["graph", "pipeline.dot", "--format", "dot"],
        &["graph", "pipeline.dot", "--format", "json"],
        &["graph", "pipeline.dot", "--format", "text"],
        &["plan", "pipeline.dot"],
        &["plan", "pipeline.dot", "--json"],
        &["plan", "pipeline.dot", "--set", &given],
        &["explain", &hostile],
        &["run", "pipeline.dot", "--run-id", "r"],
        &["show", "r"],
        &["show", "r", "work"],
        &["show", "r", "--json"],
        &["show", &hostile],
        &["ls", "--json"],
    ];
    for words in commands {
        let answer = bench.glovebox(words);
        let printed = [answer.stdout.as_str(), answer.stderr.as_str()].concat();
        let strange = printed.chars().find(|character| is_deceptive(*character) && !matches!(character, '\n' | '\t'));
        assert_eq!(strange, None, "{words:?}: {printed:?}");
        assert!(!printed.is_empty(), "{words:?}");
    }
    // The output for Graphviz and for programs still contains the complete texts. In DOT, control characters are
    // escaped.
    let dot = bench.glovebox(&["graph", "pipeline.dot", "--format", "dot"]).ends(0).stdout.clone();
    assert!(dot.contains("a\\\\x1b[2J"), "{dot}");
    let json = bench.glovebox(&["graph", "pipeline.dot", "--format", "json"]).json();
    assert!(json["attributes"]["goal"].as_str().unwrap().contains("\u{202e}"));
}

const LINEAR_WITH_ERROR: &str = "digraph g { start -> nowhere }";
