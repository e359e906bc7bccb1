//! Runs the table: every attack behind confinement, in a world of its own or one it shares, and judges each.
//!
//! Rows that share a limits are dealt into as many targets as there are workers; a row that would disturb others has one for itself.
//! Attacks of components are not run here: see [`components`].

use crate::evaluate::{AttackResult, EvaluatedRow, Finding, evaluate};
use crate::host_fixture::HostFixture;
use crate::observe;
use crate::row::{Limits, Payload, Proof, Row};
use crate::target::{AttackCommand, Change, Confinement, NotRun, Program, Target};
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// The rows that the hostile component tries.
pub fn components(rows: &[Row]) -> Vec<Row> {
    rows.iter().filter(|row| matches!(row.payload, Payload::Component(_))).copied().collect()
}

/// The rows that host programs try in a tier. Below the highest there is no proxy to attack, and in the lowest nothing is kept apart
/// from a verifier.
pub fn programs(rows: &[Row], tier: &str) -> Vec<Row> {
    let has_room = |row: &Row| match tier {
        "landlock" => !row.limits.proxy && !row.limits.subject,
        "bwrap" => !row.limits.proxy,
        _ => true,
    };
    rows.iter().filter(|row| !matches!(row.payload, Payload::Component(_)) && has_room(row)).copied().collect()
}

/// Runs rows of host programs and judges them; the answer is in the order of `rows`. `program` is the hostile program, `parent` an
/// existing folder for everything that is laid out, and gone afterwards.
pub fn run<W: Confinement>(
    confinement: &W,
    program: &[u8],
    parent: &Path,
    rows: &[Row],
    workers: usize,
) -> Vec<EvaluatedRow> {
    let (next, judged) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let chunks = deal(rows, workers.max(1));
    std::thread::scope(|scope| {
        for _ in 0..workers.max(1) {
            scope.spawn(|| {
                while let Some(chunk) = chunks.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let done = run_chunk(confinement, program, parent, chunk);
                    if let Ok(mut judged) = judged.lock() {
                        judged.extend(done);
                    }
                }
            });
        }
    });
    let mut judged = judged.into_inner().unwrap_or_default();
    // What the machine did not let be tried, such as for want of memory, once more by itself. What got through never is.
    for one in judged.iter_mut().filter(|one: &&mut EvaluatedRow| one.is_untried) {
        if let Some(second) = run_chunk(confinement, program, parent, &[one.row]).pop() {
            *one = second;
        }
    }
    judged.sort_by_key(|one: &EvaluatedRow| rows.iter().position(|row| row.id == one.row.id));
    judged
}

/// Rows by the target they run in; the long ones first.
fn deal(rows: &[Row], workers: usize) -> Vec<Vec<Row>> {
    let mut chunks: Vec<Vec<Row>> = rows.iter().filter(|row| row.limits.alone).map(|row| vec![*row]).collect();
    let mut kinds: Vec<Limits> = Vec::new();
    for row in rows.iter().filter(|row| !row.limits.alone) {
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
    let broken = |reason: &str| {
        let finding = Finding { failed: Some(NotRun::from(reason.to_owned())), ..Finding::default() };
        rows.iter().map(|row| evaluate(row, &finding, &Ok(Vec::new()), tier)).collect::<Vec<_>>()
    };
    let Some(limits) = rows.first().map(|row| row.limits) else { return Vec::new() };
    let mut fixture = match HostFixture::create(parent, program) {
        Ok(fixture) => fixture,
        Err(error) => return broken(&format!("could not lay out the canaries: {error}")),
    };
    let mut target = match confinement.open(&fixture, &limits) {
        Ok(target) => target,
        Err(reason) => return broken(&reason),
    };
    let mut findings: Vec<Finding> = rows.iter().map(|row| attack(&mut fixture, &mut target, row)).collect();
    let changes = target.end();
    // What only the end of the stage could have touched belongs to whoever came last.
    let late = fixture.touched();
    if let Some(last) = findings.last_mut() {
        last.touched.extend(late);
        last.survivors = last.survivors.max(observe::marked(fixture.mark()).len());
    }
    let expects_refusal = rows.iter().any(|row| row.proof == Proof::Refused);
    conclude(rows, &findings, &changes, expects_refusal, tier)
}

fn conclude(
    rows: &[Row],
    findings: &[Finding],
    changes: &Result<Vec<Change>, String>,
    expects_refusal: bool,
    tier: &str,
) -> Vec<EvaluatedRow> {
    let judged = rows.iter().zip(findings).map(|(row, finding)| match changes {
        Err(reason) if !expects_refusal => {
            let failed = Some(NotRun { reason: format!("the stage failed as a whole: {reason}"), by_attack: true });
            evaluate(row, &Finding { failed, ..finding.clone() }, changes, tier)
        }
        _ => evaluate(row, finding, changes, tier),
    });
    judged.collect()
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
    let look = matches!(row.proof, Proof::Closed | Proof::Unprivileged | Proof::ProcessesAtMost(_));
    let (ran, watched) = observe::during(look, fixture.mark(), fixture.port(), || target.run(&command));
    let (seen, failed) = match ran {
        Ok(seen) => (seen, None),
        Err(reason) => (Default::default(), Some(reason)),
    };
    Finding {
        result: printed(&seen.stdout),
        survivors: observe::marked(fixture.mark()).len(),
        touched: fixture.touched(),
        leaked: seen.text().contains(fixture.canary()),
        command: seen,
        failed,
        watched,
    }
}

/// The last line that is a word of the hostile program.
fn printed(stdout: &[u8]) -> Option<AttackResult> {
    let text = String::from_utf8_lossy(stdout);
    text.lines().rev().find_map(|line| serde_json::from_str(line.trim()).ok())
}
