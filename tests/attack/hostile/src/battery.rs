//! Runs all rows of the table, each in its own sandbox or in a shared one, and evaluates them.
//!
//! Rows with the same limits share as many sandboxes as there are workers. A row that would disturb others has its own
//! sandbox. Attacks of components do not run here: see [`components`].

use crate::evaluate::{AttackResult, EvaluatedRow, Finding, evaluate};
use crate::host_fixture::HostFixture;
use crate::observe;
use crate::row::{Limits, Payload, Proof, Row};
use crate::target::{AttackCommand, Change, Confinement, NotRun, Program, Target, Tier};
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// Returns the rows of the hostile component.
pub fn components(rows: &[Row]) -> Vec<Row> {
    rows.iter().filter(|row| matches!(row.payload, Payload::Component(_))).copied().collect()
}

/// Returns the rows of host programs that a tier supports. Only tier `full` has a proxy, and tier `landlock` has no
/// second sandbox for a program under test.
pub fn programs(rows: &[Row], tier: Tier) -> Vec<Row> {
    let is_supported = |row: &Row| match tier {
        Tier::Landlock => !row.limits.proxy && !row.limits.subject,
        Tier::Bwrap => !row.limits.proxy,
        Tier::Full | Tier::Unconfined => true,
    };
    rows.iter().filter(|row| !matches!(row.payload, Payload::Component(_)) && is_supported(row)).copied().collect()
}

/// Runs rows of host programs and evaluates them, in the order of `rows`. `program` is the content of the hostile
/// program. `parent` is an existing folder. Everything that is created in it is removed afterwards.
pub fn run<W: Confinement>(
    confinement: &W,
    program: &[u8],
    parent: &Path,
    rows: &[Row],
    workers: usize,
) -> Vec<EvaluatedRow> {
    let (next, evaluated) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let chunks = split(rows, workers.max(1));
    std::thread::scope(|scope| {
        for _ in 0..workers.max(1) {
            scope.spawn(|| {
                while let Some(chunk) = chunks.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let done = run_chunk(confinement, program, parent, chunk);
                    if let Ok(mut evaluated) = evaluated.lock() {
                        evaluated.extend(done);
                    }
                }
            });
        }
    });
    let mut evaluated = evaluated.into_inner().unwrap_or_default();
    // An attack that could not run, for example because memory was short, is repeated once alone. An attack that
    // succeeded is never repeated.
    for one in evaluated.iter_mut().filter(|one: &&mut EvaluatedRow| one.is_prevented) {
        if let Some(second) = run_chunk(confinement, program, parent, &[one.row]).pop() {
            *one = second;
        }
    }
    evaluated.sort_by_key(|one: &EvaluatedRow| rows.iter().position(|row| row.id == one.row.id));
    evaluated
}

/// Splits rows by the sandbox that they run in. Rows with a sandbox of their own come first, because they take the longest.
fn split(rows: &[Row], workers: usize) -> Vec<Vec<Row>> {
    let is_alone = |row: &&Row| row.limits.alone || !row.limits.before.is_empty();
    let mut chunks: Vec<Vec<Row>> = rows.iter().filter(is_alone).map(|row| vec![*row]).collect();
    let mut kinds: Vec<Limits> = Vec::new();
    for row in rows.iter().filter(|row| !is_alone(row)) {
        if !kinds.contains(&row.limits) {
            kinds.push(row.limits);
        }
    }
    for limits in kinds {
        let shared: Vec<Row> = rows.iter().filter(|row| row.limits == limits).copied().collect();
        chunks.extend(shared.chunks(shared.len().div_ceil(workers).max(16)).map(<[Row]>::to_vec));
    }
    chunks
}

fn run_chunk<W: Confinement>(confinement: &W, program: &[u8], parent: &Path, rows: &[Row]) -> Vec<EvaluatedRow> {
    let tier = confinement.tier();
    let broken = |reason: &dyn std::fmt::Display| {
        let finding = || Finding { failed: Some(NotRun::from(reason.to_string())), ..Finding::default() };
        rows.iter().map(|row| evaluate(row, finding(), &Ok(Vec::new()), tier)).collect::<Vec<_>>()
    };
    let Some(limits) = rows.first().map(|row| row.limits) else { return Vec::new() };
    if !limits.before.is_empty()
        && let Err(reason) = run_before(confinement, program, parent, &limits)
    {
        return broken(&reason);
    }
    let mut fixture = match HostFixture::create(parent, program) {
        Ok(fixture) => fixture,
        Err(error) => return broken(&format_args!("failed to make the canaries: {error}")),
    };
    let mut target = match confinement.open(&fixture, &limits) {
        Ok(target) => target,
        Err(reason) => return broken(&reason),
    };
    let mut findings: Vec<Finding> = rows.iter().map(|row| attack(&mut fixture, &mut target, row)).collect();
    let changes = target.end();
    // A change that is only visible at the end of the stage is attributed to the last attack.
    let late = fixture.touched();
    if let Some(last) = findings.last_mut() {
        last.touched.extend(late);
        last.survivors = last.survivors.max(observe::marked(fixture.mark()).len());
    }
    let expects_refusal = rows.iter().any(|row| row.proof == Proof::Refused);
    conclude(rows, findings, &changes, expects_refusal, tier)
}

/// Runs the preparation of an attack in a separate target and ends this target. The result of the preparation is
/// ignored.
fn run_before<W: Confinement>(confinement: &W, program: &[u8], parent: &Path, limits: &Limits) -> Result<(), String> {
    let fixture =
        HostFixture::create(parent, program).map_err(|error| format!("failed to make the canaries: {error}"))?;
    let mut target = confinement.open(&fixture, &Limits { before: &[], ..*limits })?;
    let hostile = fixture.attacker().join("glovebox-hostile").to_string_lossy().into_owned();
    let words = std::iter::once(hostile).chain(limits.before.iter().map(|word| (*word).to_owned())).collect();
    let command = AttackCommand { program: Program::Argv(words), timeout: Duration::from_millis(limits.timeout_ms) };
    let seen = target.run(&command).map_err(|error| error.reason)?;
    printed(&seen.stdout).ok_or("the hostile program did not run before the attack")?;
    target.end().map(drop)
}

fn conclude(
    rows: &[Row],
    findings: Vec<Finding>,
    changes: &Result<Vec<Change>, String>,
    expects_refusal: bool,
    tier: Tier,
) -> Vec<EvaluatedRow> {
    let evaluated = rows.iter().zip(findings).map(|(row, finding)| match changes {
        Err(reason) if !expects_refusal => {
            let failed = Some(NotRun { reason: format!("the stage failed as a whole: {reason}"), by_attack: true });
            evaluate(row, Finding { failed, ..finding }, changes, tier)
        }
        _ => evaluate(row, finding, changes, tier),
    });
    evaluated.collect()
}

fn attack<G: Target>(fixture: &mut HostFixture, target: &mut G, row: &Row) -> Finding {
    let project = target.project();
    let hostile = fixture.attacker().join("glovebox-hostile").to_string_lossy().into_owned();
    let program = match row.payload {
        Payload::Program(words) | Payload::Component(words) => {
            let words = words.iter().map(|word| fixture.fill(word, &project));
            Program::Argv(std::iter::once(hostile).chain(words).collect())
        }
        Payload::Shell(text) => Program::Shell(fixture.fill(text, &project)),
    };
    let command = AttackCommand { program, timeout: Duration::from_millis(row.limits.timeout_ms) };
    let observes = matches!(row.proof, Proof::Closed | Proof::Unprivileged | Proof::ProcessesAtMost(_));
    let (ran, watched) = observe::during(observes, fixture.mark(), fixture.port(), || target.run(&command));
    let (seen, failed) = match ran {
        Ok(seen) => (seen, None),
        Err(reason) => (Default::default(), Some(reason)),
    };
    Finding {
        result: printed(&seen.stdout),
        survivors: observe::marked(fixture.mark()).len(),
        touched: fixture.touched(),
        leaked: seen.text().contains(fixture.canary().as_str()),
        command: seen,
        failed,
        watched,
    }
}

/// Returns the report of the hostile program in the last line that contains one.
fn printed(stdout: &[u8]) -> Option<AttackResult> {
    let text = String::from_utf8_lossy(stdout);
    text.lines().rev().find_map(|line| serde_json::from_str(line.trim()).ok())
}
