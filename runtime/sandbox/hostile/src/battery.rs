//! Runs the table: every attack behind walls, in a world of its own or one it shares, and judges each.
//!
//! Rows that share a room are dealt into as many grounds as there are workers; a row that would disturb others has one for itself.
//! Attacks of components are not run here: see [`components`].

use crate::ground::{Change, Failed, Ground, Order, Program, Walls};
use crate::judge::{Finding, Judged, Tried, judge};
use crate::outside::Outside;
use crate::row::{Act, Proof, Room, Row};
use crate::watch;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// The rows that the hostile component tries.
pub fn components(rows: &[Row]) -> Vec<Row> {
    rows.iter().filter(|row| matches!(row.act, Act::Component(_))).copied().collect()
}

/// The rows that host programs try in a tier. Below the highest there is no proxy to attack, and in the lowest nothing is kept apart
/// from a verifier.
pub fn programs(rows: &[Row], tier: &str) -> Vec<Row> {
    let has_room = |row: &Row| match tier {
        "landlock" => !row.room.proxy && !row.room.subject,
        "bwrap" => !row.room.proxy,
        _ => true,
    };
    rows.iter().filter(|row| !matches!(row.act, Act::Component(_)) && has_room(row)).copied().collect()
}

/// Runs rows of host programs and judges them; the answer is in the order of `rows`. `program` is the hostile program, `parent` an
/// existing folder for everything that is laid out, and gone afterwards.
pub fn run<W: Walls>(walls: &W, program: &[u8], parent: &Path, rows: &[Row], workers: usize) -> Vec<Judged> {
    let (next, judged) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let chunks = deal(rows, workers.max(1));
    std::thread::scope(|scope| {
        for _ in 0..workers.max(1) {
            scope.spawn(|| {
                while let Some(chunk) = chunks.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let done = run_chunk(walls, program, parent, chunk);
                    if let Ok(mut judged) = judged.lock() {
                        judged.extend(done);
                    }
                }
            });
        }
    });
    let mut judged = judged.into_inner().unwrap_or_default();
    // What the machine did not let be tried, such as for want of memory, once more by itself. What got through never is.
    for one in judged.iter_mut().filter(|one: &&mut Judged| one.is_untried) {
        if let Some(second) = run_chunk(walls, program, parent, &[one.row]).pop() {
            *one = second;
        }
    }
    judged.sort_by_key(|one: &Judged| rows.iter().position(|row| row.id == one.row.id));
    judged
}

/// Rows by the ground they run in; the long ones first.
fn deal(rows: &[Row], workers: usize) -> Vec<Vec<Row>> {
    let mut chunks: Vec<Vec<Row>> = rows.iter().filter(|row| row.room.alone).map(|row| vec![*row]).collect();
    let mut rooms: Vec<Room> = Vec::new();
    for row in rows.iter().filter(|row| !row.room.alone) {
        if !rooms.contains(&row.room) {
            rooms.push(row.room);
        }
    }
    for room in rooms {
        let shared: Vec<Row> = rows.iter().filter(|row| row.room == room).copied().collect();
        chunks.extend(shared.chunks(shared.len().div_ceil(workers).max(16)).map(<[Row]>::to_vec));
    }
    chunks
}

fn run_chunk<W: Walls>(walls: &W, program: &[u8], parent: &Path, rows: &[Row]) -> Vec<Judged> {
    let tier = walls.tier();
    let broken = |reason: &str| {
        let finding = Finding { failed: Some(Failed::from(reason.to_owned())), ..Finding::default() };
        rows.iter().map(|row| judge(row, &finding, &Ok(Vec::new()), tier)).collect::<Vec<_>>()
    };
    let Some(room) = rows.first().map(|row| row.room) else { return Vec::new() };
    let mut outside = match Outside::lay_out(parent, program) {
        Ok(outside) => outside,
        Err(error) => return broken(&format!("could not lay out the canaries: {error}")),
    };
    let mut ground = match walls.open(&outside, &room) {
        Ok(ground) => ground,
        Err(reason) => return broken(&reason),
    };
    let mut findings: Vec<Finding> = rows.iter().map(|row| attack(&mut outside, &mut ground, row)).collect();
    let changes = ground.end();
    // What only the end of the stage could have touched belongs to whoever came last.
    let late = outside.touched();
    if let Some(last) = findings.last_mut() {
        last.touched.extend(late);
        last.survivors = last.survivors.max(watch::marked(outside.mark()).len());
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
) -> Vec<Judged> {
    let judged = rows.iter().zip(findings).map(|(row, finding)| match changes {
        Err(reason) if !expects_refusal => {
            let failed = Some(Failed { reason: format!("the stage failed as a whole: {reason}"), by_attack: true });
            judge(row, &Finding { failed, ..finding.clone() }, changes, tier)
        }
        _ => judge(row, finding, changes, tier),
    });
    judged.collect()
}

fn attack<G: Ground>(outside: &mut Outside, ground: &mut G, row: &Row) -> Finding {
    let project = ground.project();
    let hostile = outside.attacker().join("glovebox-hostile").to_string_lossy().into_owned();
    let program = match row.act {
        Act::Program(words) | Act::Component(words) => {
            let words = words.iter().map(|word| outside.fill(word, &project));
            Program::Argv(std::iter::once(hostile).chain(words).collect())
        }
        Act::Shell(text) => Program::Shell(outside.fill(text, &project)),
    };
    let order = Order { program, timeout: Duration::from_millis(row.room.timeout_ms) };
    let look = matches!(row.proof, Proof::Closed | Proof::Standing | Proof::Few(_));
    let (ran, watched) = watch::during(look, outside.mark(), outside.port(), || ground.run(&order));
    let (seen, failed) = match ran {
        Ok(seen) => (seen, None),
        Err(reason) => (Default::default(), Some(reason)),
    };
    Finding {
        tried: said(&seen.stdout),
        survivors: watch::marked(outside.mark()).len(),
        touched: outside.touched(),
        leaked: seen.text().contains(outside.canary()),
        seen,
        failed,
        watched,
    }
}

/// The last line that is a word of the hostile program.
fn said(stdout: &[u8]) -> Option<Tried> {
    let text = String::from_utf8_lossy(stdout);
    text.lines().rev().find_map(|line| serde_json::from_str(line.trim()).ok())
}
