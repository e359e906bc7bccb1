//! One round: a run whose processes are killed until an engine reaches the end of the run.

use super::check;
use super::{RESUME, RUN, bench};
use crate::workbench::Workbench;
use crate::workbench::dice::Dice;
use crate::workbench::journal::End;
use crate::workbench::processes::{Part, Process, descendants};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs::File;
use std::path::PathBuf;
use std::process::{Child, ExitStatus};
use std::time::{Duration, Instant};

/// Maximum time of one engine. A run takes two seconds.
const ENGINE_MAX: Duration = Duration::from_secs(120);
/// Time for which a process of a sandbox is searched for.
const SEARCH: Duration = Duration::from_millis(200);
const NAP: Duration = Duration::from_millis(3);

/// What is killed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Victim {
    Engine,
    Thread,
    First,
    Template,
    Helper,
}

/// What happened in a round.
#[derive(Default)]
pub(super) struct RoundResult {
    pub(super) kills: Vec<Victim>,
    pub(super) resumes: usize,
    pub(super) damaged: usize,
    pub(super) has_begun: bool,
    pub(super) acknowledged: usize,
    pub(super) committed: usize,
    pub(super) lost_sandboxes: usize,
    pub(super) lost: Vec<String>,
    pub(super) duplicated: Vec<String>,
    pub(super) left: Vec<String>,
    pub(super) wrong: Vec<String>,
}

pub(super) struct Round {
    pub(super) bench: Workbench,
    number: usize,
    dice: Dice,
    kills_left: usize,
    /// False once a process of a sandbox was killed. A second one in the same visit would end the run.
    may_kill_sandbox: bool,
    /// Files with the output of each engine, in order.
    pub(super) outputs: Vec<PathBuf>,
    /// The descendants of engines at the moments of the kills.
    pub(super) seen: BTreeSet<Process>,
    pub(super) engines: Vec<u32>,
    /// Temporary files that this test has written. A resume replaces them only if it writes the file that they stand for.
    pub(super) planted: Vec<PathBuf>,
    pub(super) result: RoundResult,
}

impl Round {
    pub(super) fn new(seed: u64, number: usize) -> Self {
        let mut dice = Dice((seed ^ (number as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15)) | 1);
        // The first numbers of seeds that differ in few bits are similar.
        for _ in 0..8 {
            dice.below(2);
        }
        let bench = bench();
        std::fs::create_dir(bench.outside().join("tmp")).unwrap();
        let kills_left = if dice.below(3) == 0 { 2 + dice.below(3) } else { 1 };
        let (outputs, seen, engines, planted) = (Vec::new(), BTreeSet::new(), Vec::new(), Vec::new());
        let result = RoundResult::default();
        Self { bench, number, dice, kills_left, may_kill_sandbox: true, outputs, seen, engines, planted, result }
    }

    /// Plays the round and checks how it ended. `whole` is the time of an undisturbed run.
    pub(super) fn play(mut self, expected: &End, whole: Duration) -> RoundResult {
        let mut words = RUN;
        while let Some(next) = self.drive(words, whole) {
            words = next;
        }
        check::check(&mut self, expected);
        let number = self.number;
        let result = &mut self.result;
        for faults in [&mut result.lost, &mut result.duplicated, &mut result.left, &mut result.wrong] {
            faults.iter_mut().for_each(|fault| *fault = format!("round {number}, {:?}: {fault}", result.kills));
        }
        self.result
    }

    /// Runs an engine until it ends or is killed. Returns the command that continues the run, if one does.
    fn drive(&mut self, words: &[&str], whole: Duration) -> Option<&'static [&'static str]> {
        let mut engine = self.start(words);
        // Most moments are after the first record, however long the machine takes to start a program.
        if self.kills_left > 0 && self.dice.below(8) > 0 {
            self.await_record(&mut engine);
        }
        let status = loop {
            let moment = whole.mul_f64(self.dice.below(1000) as f64 / 1000.0);
            let wait = if self.kills_left == 0 { ENGINE_MAX } else { moment };
            if let Some(status) = ends_within(&mut engine, wait) {
                break status;
            }
            if self.kills_left == 0 {
                self.result.wrong.push(format!("{words:?} did not end within {ENGINE_MAX:?}"));
                engine.kill().unwrap();
                break engine.wait().unwrap();
            }
            self.kills_left -= 1;
            self.kill_one(&mut engine);
        };
        match status.code() {
            Some(0) => {
                self.result.has_begun = true;
                None
            }
            None => {
                self.damage_one();
                self.result.resumes += 1;
                Some(RESUME)
            }
            // The first engine was killed before it had begun the run.
            Some(2) if words == RESUME && self.acknowledged().is_empty() => None,
            Some(code) => {
                let said = std::fs::read_to_string(self.errors()).unwrap_or_default();
                self.result.wrong.push(format!("{words:?} ended with {code}: {said}"));
                None
            }
        }
    }

    fn start(&mut self, words: &[&str]) -> Child {
        let output = self.bench.outside().join(format!("output-{}", self.outputs.len()));
        let written = File::create(&output).unwrap();
        self.outputs.push(output);
        let errors = File::create(self.errors()).unwrap();
        let mut command = self.bench.bare(words);
        let engine = command.env("TMPDIR", self.bench.outside().join("tmp")).stdout(written).stderr(errors);
        let engine = engine.spawn().unwrap();
        self.engines.push(engine.id());
        engine
    }

    /// Waits until the engine has printed something or has ended.
    fn await_record(&self, engine: &mut Child) {
        let output = self.outputs.last().unwrap();
        while std::fs::metadata(output).unwrap().len() == 0 && ends_within(engine, NAP).is_none() {}
    }

    fn errors(&self) -> PathBuf {
        self.bench.outside().join("errors")
    }

    /// Returns sequence number and hash of the records that engines have printed.
    pub(super) fn acknowledged(&self) -> Vec<(u64, String)> {
        let texts = self.outputs.iter().map(|output| std::fs::read_to_string(output).unwrap());
        // A line that a kill has cut was not read by anyone as a record.
        let whole = |text: String| {
            let end = text.rfind('\n').map_or(0, |at| at + 1);
            text[..end].lines().map(str::to_owned).collect::<Vec<_>>()
        };
        texts.flat_map(whole).filter_map(|line| place(&line)).collect()
    }

    /// Kills a random process. If the chosen one is not there, kills the engine.
    fn kill_one(&mut self, engine: &mut Child) {
        let pid = i32::try_from(engine.id()).unwrap();
        self.seen.extend(descendants(pid));
        let sandbox = self.dice.below(5);
        if self.may_kill_sandbox
            && sandbox < 3
            && let Some(victim) = self.kill_sandbox(pid, sandbox < 2)
        {
            self.may_kill_sandbox = false;
            self.result.kills.push(victim);
            return;
        }
        let thread = (sandbox == 4).then(|| self.thread(pid)).flatten();
        match thread.and_then(rustix::process::Pid::from_raw) {
            Some(thread) => {
                self.result.kills.push(Victim::Thread);
                // The engine may have ended.
                let _ = rustix::process::kill_process(thread, rustix::process::Signal::KILL);
            }
            None => {
                self.result.kills.push(Victim::Engine);
                engine.kill().unwrap();
            }
        }
    }

    /// Kills the first process of a sandbox, or a process that the engine started to build sandboxes.
    fn kill_sandbox(&mut self, engine: i32, is_first: bool) -> Option<Victim> {
        let until = Instant::now() + SEARCH;
        while Instant::now() < until {
            let parts = descendants(engine).into_iter().filter_map(|one| Some((one, one.part(engine)?)));
            let found: Vec<_> = parts.filter(|(_, part)| (*part == Part::First) == is_first).collect();
            if let Some((process, part)) = found.get(self.dice.below(found.len().max(1)))
                && process.kill()
            {
                return Some(match part {
                    Part::First => Victim::First,
                    Part::Template => Victim::Template,
                    Part::Helper => Victim::Helper,
                });
            }
            std::thread::sleep(NAP);
        }
        None
    }

    /// Returns the id of a thread of the engine other than the first.
    fn thread(&mut self, engine: i32) -> Option<i32> {
        let ids = std::fs::read_dir(format!("/proc/{engine}/task")).ok()?.flatten();
        let ids: Vec<i32> = ids.filter_map(|id| id.file_name().to_str()?.parse().ok()).collect();
        let others: Vec<i32> = ids.into_iter().filter(|id| *id != engine).collect();
        others.get(self.dice.below(others.len().max(1))).copied()
    }

    /// In a third of the rounds, cuts a file that is derived from the journal, or leaves a part of its next content, as a
    /// process or a machine that stops while it writes the file.
    fn damage_one(&mut self) {
        const DERIVED: [&str; 8] = [
            "checkpoint.json",
            "live.json",
            "manifest.json",
            "progress.ndjson",
            "trace.jsonl",
            "liveness.ndjson",
            "again/status.json",
            "start/status.json",
        ];
        let (is_chosen, name) = (self.dice.below(3) == 0, DERIVED[self.dice.below(DERIVED.len())]);
        let file = self.bench.run_folder("r").join(name);
        let Some(text) = std::fs::read(&file).ok().filter(|_| is_chosen) else { return };
        let part = &text[..self.dice.below(text.len().max(1))];
        let is_cut = self.dice.below(2) == 0;
        let beside = file.with_file_name(format!(".{}.new", file.file_name().unwrap().to_str().unwrap()));
        std::fs::write(if is_cut { &file } else { &beside }, part).unwrap();
        self.planted.extend((!is_cut).then_some(beside));
        self.result.damaged += 1;
    }
}

/// Returns sequence number and hash of a record; `None` for another line.
pub(super) fn place(line: &str) -> Option<(u64, String)> {
    let record: Value = serde_json::from_str(line).ok()?;
    Some((record["seq"].as_u64()?, record["hash"].as_str()?.to_owned()))
}

/// Waits for the end of a process, but not longer than `max`.
fn ends_within(process: &mut Child, max: Duration) -> Option<ExitStatus> {
    let until = Instant::now() + max;
    loop {
        if let Some(status) = process.try_wait().unwrap() {
            return Some(status);
        }
        if Instant::now() >= until {
            return None;
        }
        std::thread::sleep(NAP.min(until.saturating_duration_since(Instant::now())));
    }
}
