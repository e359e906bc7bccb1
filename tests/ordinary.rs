//! `glovebox doctor --ordinary` with the real binary, and the tier that `glovebox run --tier` chooses.

use crate::workbench::{Workbench, not_run};

/// One stage with a command.
const ONE: &str = "digraph g { start [shape=Mdiamond]; done [shape=Msquare]
    t [shape=parallelogram, tool_command=true, allowed_write_paths=\"\"]; start -> t -> done }";

fn best(bench: &Workbench) -> Option<String> {
    bench.glovebox(&["doctor", "--json"]).json()["tier"].as_str().map(str::to_owned)
}

#[test]
fn a_behaviour_is_tried_and_the_project_stays_as_it_is() {
    let bench = Workbench::new();
    let Some(best) = best(&bench) else {
        bench.glovebox(&["doctor", "--ordinary"]).ends(6).says("can confine no command");
        return;
    };
    let before = bench.snapshot();
    let answer = bench.glovebox(&["doctor", "--ordinary", "--filter", "files/make-executable", "--json"]);
    let report = answer.ends(0).json();
    assert_eq!((report["version"].as_u64(), report["tier"].as_str()), (Some(1), Some(best.as_str())));
    let rows = report["rows"].as_array().unwrap();
    assert_eq!((rows.len(), rows[0]["id"].as_str()), (1, Some("files/make-executable")));
    assert_eq!(rows[0]["result"], "pass", "{}", rows[0]["reason"]);
    assert!(rows[0]["source"].as_str().unwrap().starts_with("https://"));
    assert_eq!(bench.snapshot(), before);
    let table = bench.glovebox(&["doctor", "--ordinary", "--filter", "files/make-executable"]);
    table.ends(0).says("1 behaviour: 1 pass, 0 pass with settings, 0 fail, 0 not here");
}

#[test]
fn what_cannot_be_tried_is_refused() {
    let bench = Workbench::new();
    bench.glovebox(&["doctor", "--group", "git"]).ends(2).says("--ordinary");
    bench.glovebox(&["doctor", "--ordinary", "--attack"]).ends(2).says("cannot be used with");
    if best(&bench).is_some() {
        bench.glovebox(&["doctor", "--ordinary", "--group", "gti"]).ends(2).says("the groups are git, files");
        bench.glovebox(&["doctor", "--ordinary", "--filter", "nothing has this"]).ends(2).says("docs/ordinary.md");
    }
}

#[test]
fn a_run_uses_the_chosen_tier() {
    let bench = Workbench::with_pipeline(ONE);
    if best(&bench).as_deref() != Some("full") {
        return not_run("run --tier", "this machine has no tier `full`");
    }
    bench.glovebox(&["run", "--tier", "full", "--run-id", "best"]).ends(0);
    let answer = bench.glovebox(&["run", "--tier", "landlock", "--run-id", "low"]);
    answer.ends(6).says("`--tier landlock` is lower than the tier `full`").says("require = \"landlock\"");
    assert!(!bench.run_folder("low").exists());
    bench.write("glovebox.toml", "[sandbox]\nrequire = \"landlock\"\n");
    let answer = bench.glovebox(&["run", "--tier", "landlock", "--run-id", "low"]);
    if answer.code == 6 {
        answer.says("this machine has no tier `landlock`");
        return not_run("run --tier landlock", "this machine does not have it");
    }
    answer.ends(0);
    let status = bench.run_json("low", "manifest.json").to_string();
    assert!(status.contains("landlock") || bench.glovebox(&["show", "low"]).stdout.contains("landlock"), "{status}");
}

#[test]
fn a_tier_without_a_sandbox_is_no_choice() {
    let bench = Workbench::with_pipeline(ONE);
    bench.glovebox(&["run", "--tier", "unconfined"]).ends(2).says("expected `full`, `bwrap` or `landlock`");
    bench.glovebox(&["run", "--tier", "landlock", "--dangerously-no-sandbox"]).ends(2).says("cannot be used with");
}
