//! Names and texts of strangers over the binary: node ids that the run directory uses itself, and characters that would drive a terminal.

#![allow(clippy::unwrap_used, reason = "a test that is surprised stops there")]

mod workbench;

use glovebox_engine::project::files::RUN_NAMES;
use std::collections::BTreeSet;
use std::path::Path;
use workbench::Workbench;

fn entries(folder: &Path) -> BTreeSet<String> {
    let entries = std::fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect()
}

/// A pipeline of tool stages in a row with these ids, each with a cache; next to a hold-out a cache is not kept.
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
    // Whoever writes here is the run itself.
    assert!(with_holdout || run.join("cache").is_dir());
    let caches = if run.join("cache").exists() { entries(&run.join("cache")) } else { BTreeSet::new() };
    assert!(caches.iter().all(|name| ["builder", "verifier", "lock"].contains(&name.as_str())), "{caches:?}");
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
