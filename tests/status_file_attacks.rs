//! Attacks on status files, with the real binary: an earlier stage, code under test and other programs cannot turn the failure of
//! a stage into a success, choose its next stage, or disclose a hold-out.
//!
//! The witnesses are the end of the run, the journal, and the files of the record.

use crate::providers::stand_in;
use crate::status_files::{ASKED, DROP, bench, decision, events, run, status, visited};
use crate::workbench::{Answer, Workbench, not_run};
use serde_json::{Value, json};

const FAILS: &str = "{\"outcome\":\"fail\",\"failure_reason\":\"the tests fail\"}";

/// Runs the pipeline in a tier. `None` if the machine does not have the tier.
fn run_in(bench: &Workbench, tier: &str) -> Option<Answer> {
    let answer = match tier {
        "unconfined" => bench.glovebox(&["run", "pipeline.dot", "--run-id", "r", "--dangerously-no-sandbox"]),
        _ => bench.glovebox(&["run", "pipeline.dot", "--run-id", "r", "--tier", tier]),
    };
    if answer.code == 6 && answer.stderr.contains("this machine has no tier") {
        not_run(&format!("tier {tier}"), "this machine does not have it");
        return None;
    }
    Some(answer)
}

const TIERS: [&str; 4] = ["full", "bwrap", "landlock", "unconfined"];

/// A stage that only answers by a file, after a builder that has prepared the place of the file.
fn prepared(tier: &str, before: &str, scope: &str, judge: &str) -> Option<(Workbench, Answer)> {
    let bench = Workbench::with_pipeline(&format!(
        "digraph g {{\n  start [shape=Mdiamond]; done [shape=Msquare]\n\
         \x20 build [shape=parallelogram, tool_command=\"sh b.sh\", allowed_write_paths=\"{scope}\"]\n\
         \x20 t [shape=parallelogram, tool_command=\"sh t.sh\", {ASKED}]\n\
         \x20 start -> build -> t -> done\n}}\n"
    ));
    bench.write("glovebox.toml", "[sandbox]\nrequire = \"landlock\"\n");
    bench.write(".gitignore", "cache.bin\ncache/\n");
    bench.write("b.sh", &format!("set -e\n{before}\n"));
    bench.write("t.sh", &format!("{judge}\ntrue\n"));
    let answer = run_in(&bench, tier)?;
    Some((bench, answer))
}

#[test]
fn an_earlier_stage_cannot_take_away_the_answer_of_a_judge() {
    let top = format!("printf '{FAILS}' > status.json");
    let below = format!("mkdir -p .ai; printf '{FAILS}' > .ai/status.json");
    for (name, before, scope, judge) in [
        ("the same bytes", top.as_str(), "status.json", &top),
        ("the same bytes in .ai", &below, ".ai/", &below),
        ("a link to an ignored file", "ln -s cache.bin status.json", "status.json", &top),
        ("a file that cannot be written", "echo '{}' > status.json; chmod 444 status.json", "status.json", &top),
        ("a folder", "mkdir status.json; echo x > status.json/x", "status.json/", &top),
        (".ai as a link", "mkdir cache; ln -s cache .ai", ".ai", &below),
        (".ai as a file", "echo x > .ai", ".ai", &below),
        (".ai that cannot be written", "mkdir .ai; echo x > .ai/x; chmod 555 .ai", ".ai/", &below),
    ] {
        for tier in TIERS {
            let Some((bench, answer)) = prepared(tier, before, scope, judge) else { continue };
            assert_eq!(answer.code, 1, "{name}, {tier}: {}", answer.stderr);
            answer.says("the tests fail").never_says("guardrail");
            assert_eq!(decision(&bench)["effect"], "accepted", "{name}, {tier}");
            assert_eq!(visited(&bench), ["build", "t"], "{name}, {tier}");
        }
    }
}

#[test]
fn what_a_stage_cannot_see_it_cannot_replace() {
    for tier in TIERS {
        let Some((bench, answer)) = prepared(
            tier,
            "echo '{}' > status.json",
            "status.json",
            "test -e status.json || echo nonsense > status.json",
        ) else {
            continue;
        };
        assert_eq!(answer.code, 6, "{tier}: {}", answer.stderr);
        answer.says("guardrail_violation: wrote disallowed files: status.json");
        assert_eq!(decision(&bench)["searched"][1]["found"], "not_json");
        assert_eq!(bench.run_text("r", "workspace/status.json"), "{}\n");
    }
}

#[test]
fn scratch_does_not_take_a_file_beside_it_and_a_second_usable_file_is_no_change() {
    let script = format!(
        "mkdir -p .ai/tmp; echo x > .ai/tmp/x; echo '{FAILS}' > .ai/status.json; echo '{FAILS}' > status.json\n\
         echo '{{\"outcome\":\"fail\",\"failure_reason\":\"from the folder\"}}' > {DROP}"
    );
    let bench = bench(&script, "status_file=true, allowed_write_paths=\"\", scratch=\".ai/tmp/\"");
    run(&bench).ends(1).says("from the folder").never_says("guardrail");
    assert_eq!(decision(&bench)["source"], "drop");
    assert_eq!(events(&bench, "stage.finished")[0]["changes"], json!([]));
    // A second file that is no status is an ordinary change.
    let script = format!("echo nonsense > status.json; echo '{{\"outcome\":\"success\"}}' > {DROP}");
    run(&self::bench(&script, ASKED)).ends(6).says("guardrail_violation: wrote disallowed files: status.json");
}

#[test]
fn without_a_sandbox_a_replaced_drop_folder_is_refused() {
    for (script, is_replaced) in [
        ("rmdir \"$GLOVEBOX_STATUS_DIR\"; ln -s \"$PWD/other\" \"$GLOVEBOX_STATUS_DIR\"", true),
        ("rmdir \"$GLOVEBOX_STATUS_DIR\"", true),
        ("rmdir \"$GLOVEBOX_STATUS_DIR\"; echo x > \"$GLOVEBOX_STATUS_DIR\"", true),
        ("true", false),
    ] {
        let bench = bench(script, ASKED);
        bench.write("other/status.json", "{\"outcome\":\"success\"}");
        let answer = run_in(&bench, "unconfined").unwrap();
        let kept = status(&bench);
        if is_replaced {
            answer.ends(1).says("no drop folder: a program has removed or replaced it");
            assert_eq!(
                (&kept["failure_code"], &decision(&bench)["effect"]),
                (&json!("status/unreadable"), &json!("refused"))
            );
        } else {
            answer.ends(0);
        }
    }
}

#[test]
fn the_longest_file_is_64_kib() {
    for (bytes, effect) in [(64 << 10, "accepted"), ((64 << 10) + 1, "refused")] {
        let head = "{\"outcome\":\"partial_success\"}";
        let script =
            format!("{{ printf '{head}'; head -c {} /dev/zero | tr '\\0' ' '; }} > {DROP}", bytes - head.len());
        let bench = bench(&script, ASKED);
        run(&bench).ends(i32::from(effect == "refused"));
        assert_eq!(decision(&bench)["effect"], effect, "{bytes}");
    }
}

#[test]
fn a_second_visit_answers_with_the_same_content() {
    let bench = Workbench::with_pipeline(
        "digraph g {\n  graph [max_steps=20]; start [shape=Mdiamond]; done [shape=Msquare]\n\
         \x20 t [shape=parallelogram, tool_command=\"sh t.sh\", status_file=true, allowed_write_paths=\"\"]\n\
         \x20 fix [shape=parallelogram, tool_command=\"sh fix.sh\", allowed_write_paths=\"one,two\"]\n\
         \x20 start -> t; t -> done [condition=\"outcome=success\"]; t -> fix [condition=\"outcome=fail\"]; fix -> t\n}\n",
    );
    bench.write("t.sh", &format!("test -e two || echo '{FAILS}' > status.json\n"));
    bench.write("fix.sh", "test ! -e one || touch two; touch one\n");
    run(&bench).ends(0);
    let effects: Vec<Value> = events(&bench, "status.ingested").iter().map(|event| event["effect"].clone()).collect();
    assert_eq!(effects, ["accepted", "accepted", "none"]);
}

#[test]
fn each_branch_answers_for_itself() {
    let bench = Workbench::with_pipeline(
        "digraph g {\n  graph [max_steps=40]; start; done [shape=Msquare]; f [shape=component]; j [shape=tripleoctagon]\n\
         \x20 a [shape=parallelogram, tool_command=\"sh t.sh a\", status_file=true, allowed_write_paths=\"\"]\n\
         \x20 b [shape=parallelogram, tool_command=\"sh t.sh b\", status_file=true, allowed_write_paths=\"\"]\n\
         \x20 start -> f; f -> a -> j; f -> b -> j; j -> done\n}\n",
    );
    bench.write(
        "t.sh",
        &format!(
            "printf '{{\"outcome\":\"partial_success\",\"notes\":\"%s\",\"status_owner_branch_id\":\"%s\"}}' \
                  \"from $1\" \"$GLOVEBOX_STATUS_BRANCH_ID\" > {DROP}\n"
        ),
    );
    run(&bench).ends(0);
    let decided = events(&bench, "status.ingested");
    assert_eq!(decided.len(), 2);
    assert!(
        decided.iter().all(|one| one["effect"] == "accepted" && one["searched"][0]["owner"] == "named"),
        "{decided:?}"
    );
    assert_ne!(decided[0]["branch"], decided[1]["branch"]);
    for event in events(&bench, "stage.finished").iter().filter(|event| event["node"] == "a" || event["node"] == "b") {
        let expected = format!("from {}", event["node"].as_str().unwrap());
        assert!(event["outcome"]["notes"].as_str().unwrap().contains(&expected), "{event}");
    }
}

#[test]
fn a_script_answers_instead_of_an_agent_program() {
    let bench = Workbench::with_pipeline(&stand_in::pipeline(", status_file=true"));
    bench.write("tools/agent.py", "raise SystemExit('the program was started')\n");
    bench.write("src/a.txt", "old\n");
    std::fs::write(bench.outside().join("script.toml"), "[[node.build]]\ntext = \"OUTCOME: SUCCESS\"\n").unwrap();
    bench.glovebox(&["run", "pipeline.dot", "--script", "../script.toml", "--run-id", "r"]).ends(0);
    let decided = decision(&bench);
    assert_eq!((&decided["effect"], &decided["searched"][0]["found"]), (&json!("none"), &json!("missing")));
}

const SECRET: &str = "forty-two apples in a wi\"cker basket, and a dozen more pears";

/// A judge that runs code of builders. `edges` are the edges after it.
fn judged(script: &str, edges: &str) -> Workbench {
    let bench = Workbench::with_pipeline(&format!(
        "digraph g {{\n  start [shape=Mdiamond]; done [shape=Msquare]\n\
         \x20 judge [shape=parallelogram, tool_command=\"sh scripts/scenarios/judge.sh\", status_file=true]\n\
         \x20 review [shape=parallelogram, tool_command=\"true\", allowed_write_paths=\"\"]\n\
         \x20 start -> judge; {edges}; review -> done\n}}\n"
    ));
    bench.write("scripts/scenarios/judge.sh", &format!("# {SECRET}\n. src/code\n"));
    bench.write("src/code", script);
    bench
}

#[test]
fn code_under_test_cannot_choose_the_stage_after_its_judge() {
    let stated = "{\"outcome\":\"OUTCOME\",\"preferred_label\":\"careful\",\"suggested_next_ids\":[\"review\"],\"context_updates\":{\"way\":\"x\"}}";
    let (passes, fails) = (stated.replace("OUTCOME", "success"), stated.replace("OUTCOME", "fail"));
    let by_label = "judge -> done [label=ship]; judge -> review [label=careful]";
    let by_context = "judge -> review [condition=\"context.way=x\"]; judge -> done [condition=\"context.way!=x\"]";
    for (script, edges, outcome) in [
        (format!("echo '{passes}' > {DROP}"), by_label, "success"),
        (format!("echo '{passes}' > {DROP}"), by_context, "success"),
        (format!("echo '{fails}' > {DROP}"), by_context, "fail"),
        (format!("echo '{fails}' > {DROP}; exit 1"), by_context, "fail"),
    ] {
        let bench = judged(&script, edges);
        run(&bench);
        assert_eq!(decision(&bench)["effect"], "accepted", "{edges}");
        assert_eq!(bench.run_json("r", "judge/status.json")["outcome"], outcome);
        assert_eq!(visited(&bench), ["judge"], "{script} {edges}");
        assert!(!bench.run_text("r", "judge/withheld.json").contains("careful"));
    }
}

#[test]
fn escapes_in_a_file_do_not_hide_a_hold_out_from_the_leak_check() {
    let bench = judged("true", "judge -> t -> done");
    let text = bench.read("pipeline.dot").replace(
        "  review",
        "  t [shape=parallelogram, tool_command=\"sh t.sh\", status_file=true, allowed_write_paths=\"\"]\n  review",
    );
    bench.write(
        "pipeline.dot",
        &text
            .replace("; review -> done", "")
            .replace("  review [shape=parallelogram, tool_command=\"true\", allowed_write_paths=\"\"]\n", ""),
    );
    let escaped: String = SECRET.chars().map(|one| format!("\\u{:04x}", u32::from(one))).collect();
    bench.write("t.sh", &format!("cat > {DROP} <<'E'\n{{\"outcome\":\"success\",\"notes\":\"{escaped}\"}}\nE\n"));
    run(&bench).says("holdout_leak");
    assert_eq!(status(&bench)["failure_code"], "holdout/leak");
    let decided = events(&bench, "status.ingested").into_iter().find(|event| event["node"] == "t").unwrap();
    assert!(decided["copy"].is_null(), "{decided}");
    assert!(!bench.run_folder("r").join("t/status.source.json").exists());
}

#[test]
fn caches_of_tools_are_not_in_the_drop_folder() {
    let bench = bench(
        "case \"$XDG_CACHE_HOME\" in \"$GLOVEBOX_STATUS_DIR\"*) exit 9;; esac; test -n \"$XDG_CACHE_HOME\"",
        ASKED,
    );
    bench.write("glovebox.toml", "[exec.env]\nXDG_CACHE_HOME = \"{kept}/x\"\n");
    run(&bench).ends(0);
}
