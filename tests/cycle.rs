//! A loop in which a stage fails again and again in the same way is ended. A loop that makes progress is not.

use crate::workbench::Workbench;
use serde_json::{Value, json};

/// Creates a pipeline with a check that succeeds on visit `passes` and fails before. On a failure it runs `printed`, in
/// which `$n` is the number of the visit.
fn bench(graph: &str, passes: u32, printed: &str) -> Workbench {
    let command = format!(
        "mkdir -p out; n=$(cat out/n 2>/dev/null || echo 0); n=$((n+1)); echo $n > out/n; \
                           test $n -ge {passes} && exit 0; {printed}; exit 1"
    );
    let text = format!(
        "digraph g {{\n graph [max_steps=60{graph}]\n start [shape=Mdiamond]\n done [shape=Msquare]\n \
         check [shape=parallelogram, tool_command={}, allowed_write_paths=\"out/\"]\n fix [prompt=fix, allowed_write_paths=\"src/\"]\n \
         start -> check\n check -> done [condition=\"outcome=success\"]\n check -> fix [condition=\"outcome=fail\"]\n fix -> check\n}}\n",
        json!(command)
    );
    Workbench::with_pipeline(&text)
}

fn visits(bench: &Workbench) -> usize {
    let shown = bench.glovebox(&["show", "x", "--json"]);
    let visited = shown.ends(0).json()["visited"].clone();
    visited.as_array().unwrap().iter().filter(|visit| visit["node"] == "check").count()
}

const RUN: [&str; 6] = ["run", "pipeline.dot", "--simulate", "--run-id", "x", "-q"];

#[test]
fn the_third_failure_of_the_same_kind_ends_the_run_and_names_the_bound() {
    // Failures that differ only in numbers, hashes and white space are treated as the same failure.
    let bench = bench("", 50, "echo \"FAILED  in 0.${n}s at commit 1a2b3c${n}d4e\" >&2");
    bench.glovebox(&RUN).ends(1);
    assert_eq!(visits(&bench), 3);
    let failure = bench.glovebox(&["show", "x", "--json"]).ends(0).json()["failure"].clone();
    assert_eq!((&failure["class"], &failure["code"]), (&json!("deterministic"), &json!("loop/signature_limit")));
    let reason = "node `check` failed 3 times in the same way, `loop_restart_signature_limit` is 3: tool_exit_code_1";
    assert_eq!(failure["reason"], reason);
    // A resume repeats the stage and keeps the count of failures.
    bench.glovebox(&["resume", "x", "-q"]).ends(1).says("failed 4 times in the same way");
    assert_eq!(visits(&bench), 4);
}

#[test]
fn a_loop_whose_failures_differ_goes_on() {
    let letters = "echo \"test $(echo abcdefgh | cut -c$n) failed\"";
    let bench = bench("", 7, letters);
    bench.glovebox(&RUN).ends(0);
    assert_eq!(visits(&bench), 7);
}

#[test]
fn the_bound_is_the_graphs_and_at_least_one() {
    let raised = bench(", loop_restart_signature_limit=6", 6, "echo same");
    raised.glovebox(&RUN).ends(0);
    assert_eq!(visits(&raised), 6);
    let lowered = bench(", loop_restart_signature_limit=1", 6, "echo same");
    lowered.glovebox(&RUN).ends(1);
    assert_eq!(visits(&lowered), 1);
    bench(", loop_restart_signature_limit=0", 6, "echo same").glovebox(&["check", "pipeline.dot"]).ends(3);
}

#[test]
fn each_family_of_noise_ends_at_the_limit() {
    let chosen = |texts: &str| format!("echo \"$(echo '{texts}' | cut -d'|' -f$n)\"");
    let families = [
        ("uuid", "echo \"no session 550e8400-e29b-4${n}d4-a716-44665544000${n}\"".to_owned()),
        ("hash", chosen("bad object abcdefab|bad object 1234567|bad object 9F86D081884C7D65")),
        ("temporary name", "echo \"cannot stat $(mktemp -d)/a.o\"".to_owned()),
        ("address", "echo \"sh[$$]: connect 127.0.0.$n port 80$n$n: refused, at 0x7ff${n}ab\"".to_owned()),
        ("duration", chosen("took 500ms|took 0.5 s|took 1m30s")),
        ("date", chosen("at Mon Jan  5 10:00:00 UTC 2026|at 2026-02-03T04:05:06Z|at Tuesday, March 3, 2026")),
        ("size", chosen("read 512 bytes|read 1.5MiB|read 12 kB")),
        ("progress", chosen("[=>   ] 10% 1/50|[===> ] 70% 35/50|[====>] 100% 50/50")),
        ("line", "echo \"src/a.rs:1$n:$n: broken\"".to_owned()),
    ];
    for (family, printed) in families {
        let bench = bench("", 50, &printed);
        bench.glovebox(&RUN).ends(1).says("loop_restart_signature_limit");
        assert_eq!(visits(&bench), 3, "{family}");
    }
}

#[test]
fn a_time_limit_is_the_same_failure_each_time() {
    let text = "digraph g { graph [max_steps=60]; start [shape=Mdiamond]; done [shape=Msquare]\n\
                check [shape=parallelogram, tool_command=\"head -c 9 /dev/urandom | od -An -tx1 | tr 0-9 g-p; sleep 30\", timeout=\"1s\", allowed_write_paths=\"\"]\n\
                fix [prompt=fix, allowed_write_paths=\"src/\"]\n start -> check\n check -> done [condition=\"outcome=success\"]\n\
                check -> fix [condition=\"outcome=fail\"]\n fix -> check\n}\n";
    let bench = Workbench::with_pipeline(text);
    bench.glovebox(&RUN).ends(1).says("failed 3 times in the same way");
    assert_eq!(visits(&bench), 3);
}

/// Returns the events of a kind from the run's lines.
fn events(bench: &Workbench, kind: &str) -> Vec<Value> {
    let lines = bench.run_text("x", "progress.ndjson");
    let events = lines.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()["event"].clone());
    events.filter(|event| event["kind"] == kind).collect()
}

#[test]
fn a_judge_with_holdouts_is_counted_and_nobody_is_told() {
    let judged = |printed: &str| {
        let bench = Workbench::with_pipeline(
            "digraph h { graph [max_steps=60]; start [shape=Mdiamond]; done [shape=Msquare]\n\
             build [prompt=build, allowed_write_paths=\"src/\"]\n\
             judge [shape=octagon, command=\"sh scripts/scenarios/check.sh\", allowed_write_paths=\"\"]\n\
             start -> build -> judge\n judge -> done [condition=\"outcome=success\"]\n\
             judge -> build [condition=\"outcome=fail\"]\n}\n",
        );
        bench.write(
            "scripts/scenarios/check.sh",
            &format!("# hold-out: apples in a wicker basket\n{printed}\nexit 1\n"),
        );
        bench.glovebox(&RUN).ends(1);
        bench
    };
    let bench = judged("echo \"expected a wicker basket of $$ apples\"");
    let broken = events(&bench, "cycle.broken").remove(0);
    assert_eq!((&broken["count"], &broken["limit"], &broken["node"]), (&json!(3), &json!(3), &json!("judge")));
    let failure = bench.glovebox(&["show", "x", "--json"]).ends(0).json()["failure"].clone();
    let reason = failure["reason"].as_str().unwrap();
    assert!(reason.contains("failed 3 times in the same way") && !reason.contains("wicker"), "{reason}");
    let signature = broken["signature"].as_str().unwrap();
    for file in ["judge/status.json", "build/status.json", "checkpoint.json", "trace.jsonl"] {
        assert!(!bench.run_text("x", file).contains(signature), "{file}");
    }
    // The digest is keyed: the same output has another signature in another run.
    let again = events(&judged("echo \"expected a wicker basket of $$ apples\""), "cycle.broken").remove(0);
    assert_ne!(again["signature"], broken["signature"]);
    // The output decides, although nobody but people sees it.
    let bench = Workbench::with_pipeline(&judged("true").read("pipeline.dot").replace("max_steps=60", "max_steps=12"));
    bench
        .write("scripts/scenarios/check.sh", "# hold-out\nhead -c 9 /dev/urandom | od -An -tx1 | tr 0-9 g-p\nexit 1\n");
    bench.glovebox(&RUN).ends(5);
    assert_eq!(events(&bench, "cycle.broken"), [] as [Value; 0]);
}
