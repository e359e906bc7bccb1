//! Messages that say what to do: about words with a typing mistake, and about folders that are full or cannot be written.

use super::bare;
use crate::workbench::{Answer, LINEAR, Workbench, not_run};
use std::process::Command;

#[test]
fn a_missing_file_offers_one_with_a_similar_name() {
    let bench = Workbench::with_pipeline(LINEAR);
    bench.write("p.dot", LINEAR);
    bench.write("sub/ship.dot", LINEAR);
    for command in ["run", "plan", "check", "fmt"] {
        bare(&bench, &[command, "p.dto"]).ends(2).says("read `p.dto`: No such file").says("did you mean `p.dot`?");
    }
    bare(&bench, &["run", "sub/shpi.dot"]).ends(2).says("did you mean `sub/ship.dot`?");
    bare(&bench, &["run", "p"]).ends(2).says("did you mean `p.dot`?");
    bare(&bench, &["run", "quite-another.dot"]).ends(2).never_says("did you mean");
    bare(&bench, &["run", "nowhere/p.dot"]).ends(2).never_says("did you mean");
}

#[test]
fn an_unknown_command_offers_the_one_with_the_smallest_distance() {
    let bench = Workbench::new();
    for (word, meant) in
        [("rn", "run"), ("plna", "plan"), ("chekc", "check"), ("transcrpit", "transcript"), ("iint", "init")]
    {
        bare(&bench, &[word]).ends(2).says(&format!("'{meant}'"));
    }
    bare(&bench, &["rn"]).never_says("transcript");
}

#[test]
fn a_misspelt_command_attribute_is_one_error() {
    let bench = Workbench::new();
    let pipeline = |attribute: &str| {
        format!(
            "digraph d {{ start; done; test [shape=parallelogram, {attribute}=\"true\", allowed_write_paths=\"\"]; \
             start -> test -> done }}"
        )
    };
    bench.write("pipeline.dot", &pipeline("tool_comand"));
    let check = bare(&bench, &["check", "pipeline.dot"]);
    check
        .ends(3)
        .says("1 error, 0 warnings")
        .says("unknown attribute `tool_comand`")
        .says("did you mean `tool_command`?");
    check.never_says("cargo test");
    bare(&bench, &["check", "--fix", "pipeline.dot"]).ends(0);
    assert!(bench.read("pipeline.dot").contains("tool_command="));
}

#[test]
fn an_unknown_setting_offers_the_known_one() {
    let bench = Workbench::with_pipeline(LINEAR);
    for (text, meant) in [
        ("[sandbox]\nnetwrk = \"none\"", "network"),
        ("[sandbx]\nnetwork = \"none\"", "sandbox"),
        ("[exec]\ntoolchain = [\"rust\"]", "toolchains"),
        ("[limits]\nwal_ms = \"5m\"", "wall_ms"),
        ("[workspace]\ninclud = []", "include"),
    ] {
        bench.write("glovebox.toml", text);
        bare(&bench, &["plan"]).ends(3).says(&format!("did you mean `{meant}`?"));
    }
}

/// Runs a command where a folder of the project is a file system of its own, mounted with these options. Returns `None` on a machine
/// that cannot mount in a namespace.
fn with_mounted(bench: &Workbench, folder: &str, options: &str, words: &[&str]) -> Option<Answer> {
    let own = bench.bare(words);
    let inside = |program: &std::ffi::OsStr| {
        let mount = "mount -t tmpfs -o \"$2\" tmpfs \"$1\" && shift 2 && exec \"$@\"";
        let mut command = Command::new("unshare");
        command.args(["-rm", "sh", "-c", mount, "sh", folder, options]).arg(program).current_dir(bench.project());
        command
    };
    let can = inside("true".as_ref()).output().is_ok_and(|output| output.status.success());
    if !can {
        not_run("a file system in a namespace", "unshare -rm mount");
        return None;
    }
    let mut command = inside(own.get_program());
    command.args(own.get_args()).envs(own.get_envs().filter_map(|(name, value)| Some((name, value?))));
    Some(Answer::of(&mut command))
}

#[test]
fn a_full_folder_of_runs_is_named_with_the_way_out() {
    let bench = Workbench::with_pipeline(LINEAR);
    bench.write("runs/.keep", "");
    let words = ["run", "pipeline.dot", "--simulate", "--runs-dir", "runs"];
    for size in ["size=64k", "size=300k"] {
        let Some(answer) = with_mounted(&bench, "runs", &format!("{size},mode=0700"), &words) else { return };
        assert!([2, 9].contains(&answer.code), "{size}: {}", answer.stderr);
        answer.says("o space").says("/runs`").says("`glovebox gc --keep 5`").says("`--runs-dir D`");
    }
}

#[test]
fn a_project_that_cannot_be_written_offers_another_folder_for_runs() {
    let bench = Workbench::with_pipeline(LINEAR);
    bench.write(".glovebox/.keep", "");
    let words = ["run", "pipeline.dot", "--simulate"];
    let Some(answer) = with_mounted(&bench, ".glovebox", "ro", &words) else { return };
    answer.ends(2).says("make a run in `.glovebox/runs`: Read-only file system").says("`--runs-dir D`");
}

#[test]
fn a_home_that_cannot_be_written_is_a_warning_like_others() {
    let bench = Workbench::with_pipeline(LINEAR);
    bench.write("home/.keep", "");
    let mut command = bench.bare(&["run", "pipeline.dot", "--simulate", "--runs-dir", "runs"]);
    command.env("GLOVEBOX_CACHE_DIR", bench.project().join("home/.keep/cache"));
    let answer = Answer::of(&mut command);
    answer.ends(0).says("warning: compiled components are not kept in `").says("GLOVEBOX_CACHE_DIR names a folder");
    answer.never_says("WARN");
}

#[test]
fn a_failed_command_names_what_the_sandbox_lacks() {
    let bench = Workbench::new();
    bench.write("lookup.sh", "echo 'curl: (6) Could not resolve host: api.example.com' >&2; exit 6\n");
    bench.write("fill.sh", "yes | head -c 4M > $TMPDIR/x\n");
    let pipeline = |script: &str, more: &str| {
        format!(
            "digraph d {{ start; done; test [shape=parallelogram, tool_command=\"sh {script}\", allowed_write_paths=\"\"{more}]; \
             start -> test -> done }}"
        )
    };
    bench.write("lookup.dot", &pipeline("lookup.sh", ""));
    bare(&bench, &["run", "lookup.dot"])
        .ends(1)
        .says("the host `api.example.com`")
        .says("proxy = [\"api.example.com\"]");
    bench.write("fill.dot", &pipeline("fill.sh", ", limits.tmp_bytes=\"1MiB\""));
    bare(&bench, &["run", "fill.dot"]).ends(1).says("`test` used all of `tmp_bytes` (1MiB): raise `tmp_bytes`");
}
