//! What must hold after a round: the journal has every acknowledged record, the workspace has every committed change
//! once, the run ended as an undisturbed one does, and nothing is left of the killed processes.

use super::WRITERS;
use super::round::{Round, place};
use crate::workbench::journal::{End, end, task_of};
use rusqlite::Connection;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::{Duration, Instant};

/// Maximum time for the kernel to end the processes of an engine that was killed.
const DEATH_MAX: Duration = Duration::from_secs(10);

pub(super) fn check(round: &mut Round, expected: &End) {
    let acknowledged = round.acknowledged();
    round.result.acknowledged = acknowledged.len();
    if round.result.has_begun && round.result.wrong.is_empty() {
        let run = round.bench.run_folder("r");
        let events = journal(&run);
        check_acknowledged(round, &acknowledged);
        check_attempts(round, &events);
        check_changes(round, &events);
        check_end(round, &events, expected);
    }
    check_left(round);
}

/// Returns the events of the journal itself.
fn journal(run: &Path) -> Vec<Value> {
    let journal = Connection::open(run.join("journal.sqlite")).unwrap();
    let mut rows = journal.prepare("SELECT event FROM record ORDER BY seq").unwrap();
    let texts = rows.query_map([], |row| row.get::<_, String>(0)).unwrap();
    texts.map(|text| serde_json::from_str(&text.unwrap()).unwrap()).collect()
}

/// Every record that an engine has printed is in the journal, and `progress.ndjson` has exactly the journal.
fn check_acknowledged(round: &mut Round, acknowledged: &[(u64, String)]) {
    let shown = round.bench.run_text("r", "progress.ndjson");
    let known: BTreeSet<_> = shown.lines().filter_map(place).collect();
    let missing = acknowledged.iter().filter(|record| !known.contains(record));
    round.result.lost.extend(missing.map(|(seq, _)| format!("the acknowledged record {seq} is lost")));
    let events = journal(&round.bench.run_folder("r"));
    let told = shown.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let is_same =
        told.enumerate().all(|(at, record)| record["seq"] == at as u64 + 1 && events.get(at) == Some(&record["event"]));
    if !is_same || shown.lines().count() != events.len() {
        round.result.wrong.push("`progress.ndjson` differs from the journal".to_owned());
    }
}

/// Each attempt ended once, and each visit has one last attempt. Receipts have different ids.
fn check_attempts(round: &mut Round, events: &[Value]) {
    let finished = || events.iter().filter(|event| event["kind"] == "stage.finished");
    let mut ends: BTreeMap<String, usize> = BTreeMap::new();
    for event in finished() {
        *ends.entry(format!("attempt {} of {}", event["ordinal"], task_of(event))).or_default() += 1;
        if event["retrying"] != true {
            *ends.entry(format!("the last attempt of {}", task_of(event))).or_default() += 1;
        }
        for receipt in event["receipts"].as_array().into_iter().flatten() {
            *ends.entry(format!("receipt {}", receipt["id"])).or_default() += 1;
        }
    }
    let twice = ends.iter().filter(|(_, times)| **times > 1);
    round.result.duplicated.extend(twice.map(|(what, times)| format!("{what} is recorded {times} times")));
    round.result.committed = finished().filter(|event| event["ending"]["how"] == "returned").count();
    round.result.lost_sandboxes = finished().filter(|event| event["ending"]["how"] == "sandbox_lost").count();
}

/// The files of the workspace have one line for each attempt that was committed with a receipt.
fn check_changes(round: &mut Round, events: &[Value]) {
    for (node, file, expected) in WRITERS {
        let lines = round.bench.run_text("r", &format!("workspace/{file}")).lines().count();
        let is_committed = |event: &&Value| {
            event["kind"] == "stage.finished" && event["node"] == node && event["ending"]["how"] == "returned"
        };
        let committed: Vec<&Value> = events.iter().filter(is_committed).collect();
        let receipts: usize = committed.iter().map(|event| event["receipts"].as_array().map_or(0, Vec::len)).sum();
        let found = format!(
            "`{file}` has {lines} lines, {} attempts and {receipts} receipts, expected {expected}",
            committed.len()
        );
        let counts = [lines, committed.len(), receipts];
        match (counts.iter().any(|count| *count < expected), counts.iter().any(|count| *count > expected)) {
            (true, _) => round.result.lost.push(found),
            (_, true) => round.result.duplicated.push(found),
            _ => {}
        }
    }
}

/// The run succeeded, and its files, the journal and the commands say the same.
fn check_end(round: &mut Round, events: &[Value], expected: &End) {
    let run = round.bench.run_folder("r");
    let found = end(&run);
    let visits = |end: &End| {
        let mut nodes: Vec<String> = end.visited.as_array().unwrap().iter().map(Value::to_string).collect();
        // Branches may end in another order.
        nodes.sort();
        nodes
    };
    // Each attempt costs a step, and so does the repetition of one that lost its sandbox.
    let mut last = expected.last.clone();
    last["steps"] = json!(last["steps"].as_u64().unwrap() + round.result.lost_sandboxes as u64);
    if found.last != last || visits(&found) != visits(expected) {
        let differs = format!("it ended with {} after {:?}, expected {last}", found.last, visits(&found));
        round.result.wrong.push(differs);
    }
    if found.workspace != expected.workspace {
        let is_other = |(path, text): &(&String, &String)| expected.workspace.get(*path) != Some(*text);
        let others: Vec<_> = found.workspace.iter().filter(is_other).collect();
        round.result.wrong.push(format!("the workspace differs: {others:?}"));
    }
    let kinds = |kind: &str| events.iter().filter(|event| event["kind"] == kind).count();
    if (kinds("run.started"), kinds("run.finished")) != (1, 1) {
        round.result.duplicated.push("the run has more than one start or end".to_owned());
    }
    let shown = round.bench.glovebox(&["show", "r", "--json"]);
    let status = (shown.code == 0).then(|| shown.json()["status"].clone());
    let recorded = events.last().map(|event| event["status"].clone());
    if status != recorded || status.as_ref() != Some(&found.last["status"]) {
        round.result.wrong.push(format!("`show` says {status:?}, the journal {recorded:?}: {}", shown.stderr));
    }
}

/// No process, mount, control group or temporary file is left.
fn check_left(round: &mut Round) {
    let until = Instant::now() + DEATH_MAX;
    while round.seen.iter().any(|process| process.is_alive()) && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(10));
    }
    let mut left = Vec::new();
    left.extend(round.seen.iter().filter(|one| one.is_alive()).map(|one| format!("process {}", one.pid)));
    let outside = round.bench.outside().to_str().unwrap();
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap();
    left.extend(mounts.lines().filter(|line| line.contains(outside)).map(|line| format!("mount {line}")));
    left.extend(files(&round.bench.outside().join("tmp")));
    if round.result.has_begun {
        let run = round.bench.run_folder("r");
        left.extend(["stage", "live", "exchanges"].iter().flat_map(|name| files(&run.join(name))));
        let planted = &round.planted;
        let beside = |name: &String| {
            name.contains("/.") && name.ends_with(".new") && !planted.iter().any(|path| path == Path::new(name))
        };
        left.extend(entries(&run).into_iter().filter(beside));
        // Groups of a killed engine are removed by the next one.
        let engines = &round.engines;
        left.extend(
            groups(Path::new("/sys/fs/cgroup"), 0)
                .into_iter()
                .filter(|name| engines.iter().any(|engine| name.split('-').any(|part| part == engine.to_string()))),
        );
    }
    round.result.left = left.into_iter().map(|what| format!("{what} is left")).collect();
}

fn entries(folder: &Path) -> Vec<String> {
    let found = folder.read_dir().into_iter().flatten().flatten();
    found.map(|entry| entry.path().to_string_lossy().into_owned()).collect()
}

/// Returns the files below a folder.
fn files(folder: &Path) -> Vec<String> {
    let (folders, mut files): (Vec<String>, Vec<String>) =
        entries(folder).into_iter().partition(|path| Path::new(path).is_dir() && !Path::new(path).is_symlink());
    folders.iter().for_each(|folder| files.extend(self::files(Path::new(folder))));
    files
}

/// Returns the control groups of sandboxes.
fn groups(folder: &Path, depth: usize) -> Vec<String> {
    if depth > 6 {
        return Vec::new();
    }
    let folders = entries(folder).into_iter().filter(|path| Path::new(path).is_dir() && !Path::new(path).is_symlink());
    let groups =
        folders.flat_map(|path| match path.rsplit('/').next().is_some_and(|name| name.starts_with("glovebox-")) {
            true => vec![path],
            false => groups(Path::new(&path), depth + 1),
        });
    groups.collect()
}
