//! Measures how much information a program under test can pass to the builders. A hostile program has the verifier's
//! jail, write scope and cache, and sends many secrets over every channel that it has. The test compares, between
//! visits with different secrets, every byte that builders get on their next visit.
//!
//! The verdict and the set of public hints are allowed, so at most `1 + hints` bits per visit. After two visits with
//! the same verdict and the same hints, builders must observe exactly the same bytes.

mod observed;
mod subject;

use crate::guests;
use crate::workbench::Workbench;
use observed::Observation;
use std::collections::{BTreeMap, BTreeSet};
use subject::{HINTS, SubjectAction};

/// Returns the script of the judge. It runs the builder's program without isolation and prints two hints.
fn scenario() -> String {
    let [fruit, count] = HINTS.map(|hint| hint.replace('"', "\\\""));
    format!(
        "#!/bin/sh\n# hold-out: the riddle's answer is forty-two apples in a wicker basket\nsh src/prog.sh\ncode=$?\n\
         test $code = 9 && echo \"hint: {fruit}\"\ntest $code = 9 && printf \"hint: {count}\\n\" >&2\nexit $code\n"
    )
}

/// Creates a loop in which two builders follow the judge: a plugin that stores all its inputs, and an agent with a
/// shell.
fn bench(feedback: &str, acts: &[SubjectAction]) -> Workbench {
    let bench = Workbench::with_pipeline(&format!(
        "digraph h {{\n  graph [goal=\"solve the riddle\", max_steps=2000, default_max_retries=1, loop_restart_signature_limit=100000]\n  start [shape=Mdiamond]; done [shape=Msquare]\n\
         \x20 build [shape=box, allowed_write_paths=\"src/,seen/\", allowed_commands=\"*\", cache=\"build/\", prompt=\"$goal\"]\n\
         \x20 judge [shape=parallelogram, allowed_write_paths=\"out/\", cache=\"build/\", timeout=\"3s\", {feedback}, \
         tool_command=\"sh scripts/scenarios/check.sh\"]\n  look [type=\"evil.guest\"]\n\
         \x20 start -> build -> judge; look -> build\n  judge -> look [condition=\"outcome=success\"]\n\
         \x20 judge -> look [condition=\"outcome=fail\"]\n  judge -> done [condition=\"context.never=yes\"]\n}}\n"
    ));
    bench.write("scripts/scenarios/check.sh", &scenario());
    bench.write(
        "glovebox.toml",
        "[plugins.\"evil.guest\"]\npath = \"guest.wasm\"\ngrants = { filesystem = \"none\" }\n",
    );
    std::fs::write(bench.project().join("guest.wasm"), guests::build("observes")).unwrap();
    bench.glovebox(&["plugin", "lock"]).ends(0);
    // The script has no answer for the visit after the last one, so the run ends there.
    let visits = acts.iter().map(Some).chain([None]).enumerate();
    let script: String = visits.map(|(index, act)| turns(index + 1, act)).collect();
    std::fs::write(bench.outside().join("script.toml"), script).unwrap();
    bench
}

/// Returns the agent's turns of one visit: it stores what it observes, then writes the program that the judge runs
/// next.
fn turns(visit: usize, act: Option<&SubjectAction>) -> String {
    let look = format!(
        "mkdir -p seen; {{ find . -path ./seen -prune -o -path ./src -prune -o -printf '%y %m %p %l\\n' | sort; \
         find . -path ./seen -prune -o -path ./src -prune -o -type f -exec cksum {{}} + | sort; \
         ls -A /tmp \"$HOME\" /dev/shm; env | grep -v '^GLOVEBOX_' | sort; ls .git; }} > seen/{visit}.txt 2>&1; true"
    );
    let program = act.map_or("exit 1\n", |act| act.script.as_str());
    let [look, program] = [look.as_str(), program].map(|text| serde_json::Value::from(text).to_string());
    format!(
        "[[node.build]]\ntool = [{{ name = \"shell\", arguments = {{ command = {look} }} }}, \
         {{ name = \"write_file\", arguments = {{ path = \"src/prog.sh\", content = {program} }} }}]\n\
         [[node.build]]\ntext = \"OUTCOME: SUCCESS\"\n"
    )
}

/// A verdict and a set of hints.
type Class = (String, BTreeSet<usize>);

/// The observations of all visits.
struct Measured {
    /// Distinct observations, each with the channel that showed it first.
    by_class: BTreeMap<Class, Vec<(&'static str, Observation)>>,
    distinct: usize,
}

fn measure(feedback: &str, acts: &[SubjectAction]) -> Measured {
    let bench = bench(feedback, acts);
    let answer = bench.glovebox(&["run", "pipeline.dot", "--script", "../script.toml", "--run-id", "r"]);
    answer.says("script has");
    let statuses = observed::statuses(&bench, "judge");
    assert_eq!(statuses.len(), acts.len() + 1, "{}", answer.stdout);
    let mut by_class: BTreeMap<Class, Vec<(&'static str, Observation)>> = BTreeMap::new();
    let mut all = BTreeSet::new();
    for (index, (act, status)) in acts.iter().zip(statuses).enumerate() {
        let seen = observed::of_visit(&bench, index + 1);
        all.insert(seen.clone());
        let hints = if status == "fail" { act.hints.iter().copied().collect() } else { BTreeSet::new() };
        let same = by_class.entry((status, hints)).or_default();
        if same.iter().all(|(_, other)| *other != seen) {
            same.push((act.channel, seen));
        }
    }
    Measured { by_class, distinct: all.len() }
}

impl Measured {
    fn bits(&self) -> f64 {
        (self.distinct as f64).log2()
    }
}

/// Returns the number of allowed bits per visit: one for the verdict, one for each public hint.
fn allowed() -> f64 {
    1.0 + HINTS.len() as f64
}

#[test]
fn a_hostile_subject_moves_no_more_than_the_verdict_and_the_public_hints() {
    let acts = subject::acts();
    let measured = measure("label=j", &acts);
    println!("bits per visit: measured {:.2}, allowed {:.2}, over {} visits", measured.bits(), allowed(), acts.len());
    for ((status, hints), seen) in &measured.by_class {
        let first = &seen[0];
        if let Some((channel, other)) = seen.get(1) {
            let (here, there) = first.1.difference(other);
            panic!(
                "{} observations for {status} with hints {hints:?}; `{}` and `{channel}` differ:\n{here}\n{there}",
                seen.len(),
                first.0
            );
        }
    }
    assert!(measured.bits() <= allowed(), "{} observations", measured.distinct);
    let verdicts: BTreeSet<&str> = measured.by_class.keys().map(|(status, _)| status.as_str()).collect();
    assert_eq!(verdicts.into_iter().collect::<Vec<_>>(), ["fail", "success"]);
    assert_eq!(measured.distinct, 1 + (1 << HINTS.len()), "builders get the verdict and each set of hints");
}

/// A check of the measurement itself: with an opt-out of the author, the same program can pass additional information.
#[test]
fn the_measure_sees_what_an_opt_out_lets_through() {
    for (opt_out, channels) in [("scenario_feedback=full", "output"), ("scenario_writes=commit", "in the write scope")]
    {
        let acts: Vec<SubjectAction> =
            subject::acts().into_iter().filter(|act| act.channel.contains(channels)).collect();
        let measured = measure(opt_out, &acts);
        println!("bits per visit with {opt_out}: measured {:.2} over {} visits", measured.bits(), acts.len());
        assert!(measured.distinct > measured.by_class.len(), "{opt_out}: more than verdict and hints");
    }
}
