//! What needs a process of its own: checks and plans of submitted pipelines, and runs.
//!
//! A submitted pipeline is text of a client, so another process parses it: whatever it needs ends with that process. A run
//! goes on when the server ends, so it has a session of its own.

use super::problem::status;
use crate::arguments::LabelArguments;
use crate::exit::EXITS;
use crate::exit::{Exit, Stop};
use crate::runs::journal;
use crate::runs::{self, RunFolder, RunId};
use crate::terminal;
use glovebox_journal::event::Record;
use glovebox_record::{Digest, NodeId};
use glovebox_serve::desk::{Actor, Pipeline, Problem, Submitted};
use rustix::fs::{MemfdFlags, memfd_create};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use similar::TextDiff;
use std::collections::VecDeque;
use std::ffi::OsString;
use std::fs::File;
use std::io::{Read, Seek, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How long a check or a plan may take.
const PLANNED_WITHIN: Duration = Duration::from_secs(120);
/// How long a run may take to write its first record.
const STARTED_WITHIN: Duration = Duration::from_secs(120);
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// Maximum size of a message of another process, bytes.
const MESSAGE_BYTES_MAX: u64 = 256 << 10;
/// Number of plans that are kept to show how a later one differs.
const PLANS_MAX: usize = 16;

/// The answer to a start or a resume.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(title = "serve-start.json")]
pub struct StartFile {
    /// Version of this document.
    schema_version: u32,
    /// Id of the run.
    id: String,
    /// Digest of the plan that the run executes.
    plan_digest: Digest,
}

/// This program, in a project.
pub(super) struct Program {
    path: PathBuf,
    project: PathBuf,
    runs_dir: PathBuf,
    labels: LabelArguments,
    /// The newest plans that clients have seen, by digest.
    plans: Mutex<VecDeque<(Digest, String)>>,
}

impl Program {
    pub(super) fn new(project: PathBuf, runs_dir: PathBuf, labels: LabelArguments) -> Result<Self, Stop> {
        let path = std::env::current_exe().map_err(|error| Stop::io("find the path of this program", &error))?;
        Ok(Self { path, project, runs_dir, labels, plans: Mutex::default() })
    }

    /// Returns what `check --format json` prints.
    pub(super) fn check(&self, submitted: &Submitted) -> Result<String, Problem> {
        let mut words = words(&["check", "--format", "json"]);
        words.extend(inputs(submitted));
        let output = self.finish(words, submitted)?;
        // An invalid pipeline is a result of a check, and its diagnostics are the answer.
        match output.status.code() {
            Some(0 | 3 | 7) if !output.stdout.is_empty() => Ok(text(&output.stdout)),
            _ => Err(refused(&output)),
        }
    }

    /// Returns what `plan --json` prints.
    pub(super) fn plan(&self, submitted: &Submitted) -> Result<String, Problem> {
        let mut words = words(&["plan", "--json"]);
        words.extend(self.labels.words().map(OsString::from));
        words.extend(inputs(submitted));
        words.extend(bounds(submitted));
        let output = self.finish(words, submitted)?;
        if output.status.code() != Some(0) {
            return Err(self.with_diagnostics(refused(&output), submitted));
        }
        let plan = text(&output.stdout);
        if let Some(digest) = digest_of(&plan) {
            let mut plans = self.plans.lock().unwrap_or_else(PoisonError::into_inner);
            plans.retain(|(known, _)| *known != digest);
            plans.push_back((digest, plan.clone()));
            if plans.len() > PLANS_MAX {
                plans.pop_front();
            }
        }
        Ok(plan)
    }

    /// Starts a run, and returns when its first record is on the disk.
    pub(super) fn start(&self, submitted: &Submitted, who: &Actor) -> Result<String, Problem> {
        let id = RunId::fresh();
        let mut words = words(&["run", "--json", "--no-input", "--own-session", "--run-id", id.as_str()]);
        words.extend(self.labels.words().map(OsString::from));
        words.extend(inputs(submitted));
        words.extend(bounds(submitted));
        words.extend(["--runs-dir".into(), self.runs_dir.clone().into_os_string()]);
        if let Some(digest) = submitted.plan_digest {
            words.extend(["--plan".into(), digest.to_string().into()]);
        }
        tracing::info!(run = id.as_str(), by = who.name, "a client starts a run");
        let before = |_: &RunFolder| true;
        let name = glovebox_record::RunId::from(id.as_str());
        match self.begin(words, submitted, &name, before) {
            Err(problem) if problem.exit == Some(Exit::Mismatch.code()) => {
                Err(self.with_difference(problem, submitted))
            }
            Err(problem) => Err(self.with_diagnostics(problem, submitted)),
            started => started,
        }
    }

    /// Continues a run, and returns when the record of the resume is on the disk.
    pub(super) fn resume(&self, run: &RunFolder) -> Result<String, Problem> {
        let failed = super::problem::problem;
        if runs::is_live(run) {
            return Err(Problem::new(423, "running", format!("a process drives run `{}` already", run.id)));
        }
        let records = journal::open_verified(run).map_err(failed)?.close().records_count();
        let mut words = words(&["resume", &run.id, "--json", "--no-input", "--own-session"]);
        words.extend(self.labels.words().map(OsString::from));
        words.extend(["--runs-dir".into(), self.runs_dir.clone().into_os_string()]);
        let has_more = |run: &RunFolder| {
            let now = journal::open_verified(run).map(|journal| journal.close().records_count());
            now.is_ok_and(|now| now > records)
        };
        let name = glovebox_record::RunId::from(run.id.as_str());
        self.begin_with(words, &nothing(), &name, has_more, false)
    }

    /// Begins a new run with what a run had before a visit, and returns when its first records are on the disk.
    pub(super) fn fork(&self, run: &RunFolder, node: &NodeId, visit: Option<u32>) -> Result<String, Problem> {
        let id = RunId::fresh();
        let mut words = words(&["fork", "--json", "--no-input", "--own-session", "--run-id", id.as_str()]);
        words.extend(self.labels.words().map(OsString::from));
        words.extend(["--runs-dir".into(), self.runs_dir.clone().into_os_string()]);
        let at = visit.map_or_else(|| node.to_string(), |visit| format!("{node}@{visit}"));
        words.extend(["--".into(), run.id.clone().into(), at.into()]);
        let name = glovebox_record::RunId::from(id.as_str());
        self.begin_with(words, &nothing(), &name, |_| true, false)
    }

    fn begin(
        &self,
        words: Vec<OsString>,
        submitted: &Submitted,
        id: &glovebox_record::RunId,
        is_there: impl Fn(&RunFolder) -> bool,
    ) -> Result<String, Problem> {
        self.begin_with(words, submitted, id, is_there, true)
    }

    fn begin_with(
        &self,
        words: Vec<OsString>,
        submitted: &Submitted,
        id: &glovebox_record::RunId,
        is_there: impl Fn(&RunFolder) -> bool,
        has_file: bool,
    ) -> Result<String, Problem> {
        let internal = |what: &str, error: std::io::Error| Problem::new(500, "internal", format!("{what}: {error}"));
        let messages = memfd_create("glovebox-messages", MemfdFlags::CLOEXEC);
        let mut messages = File::from(messages.map_err(|error| internal("keep messages of a run", error.into()))?);
        let stderr = messages.try_clone().map_err(|error| internal("keep messages of a run", error))?;
        let mut command = self.command(words, submitted, has_file)?;
        command.stdout(Stdio::null()).stderr(stderr);
        let mut child = command.spawn().map_err(|error| internal("start this program", error))?;
        feed(&mut child, submitted);
        let began = Instant::now();
        loop {
            let ended = child.try_wait().map_err(|error| internal("wait for a run", error))?;
            if let Some(run) = runs::with_id(&self.runs_dir, id).filter(|run| is_there(run))
                && let Some(plan_digest) = begun(&run)
            {
                // The run goes on without this process, which only has to read how it ended.
                std::thread::spawn(move || child.wait());
                let started = StartFile { schema_version: 1, id: run.id, plan_digest };
                return terminal::json(&started).map_err(super::problem::problem);
            }
            if let Some(ended) = ended {
                let mut said = String::new();
                let _read = messages.rewind().and_then(|()| messages.take(MESSAGE_BYTES_MAX).read_to_string(&mut said));
                return Err(problem(ended.code(), &said));
            }
            if began.elapsed() > STARTED_WITHIN {
                let _gone = child.kill().and_then(|()| child.wait());
                return Err(Problem::new(503, "transient", "the run did not begin in time, so it was stopped"));
            }
            std::thread::sleep(LOOK_EVERY);
        }
    }

    /// Runs this program to its end.
    fn finish(&self, words: Vec<OsString>, submitted: &Submitted) -> Result<Output, Problem> {
        let internal = |error: std::io::Error| Problem::new(500, "internal", format!("start this program: {error}"));
        let mut command = self.command(words, submitted, true)?;
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().map_err(internal)?;
        feed(&mut child, submitted);
        // The pipes are read on threads, and the process is ended if it takes too long.
        let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
        let stdout = std::thread::spawn(move || read_all(stdout));
        let stderr = std::thread::spawn(move || read_all(stderr));
        let began = Instant::now();
        let status = loop {
            if let Some(status) = child.try_wait().map_err(internal)? {
                break status;
            }
            if began.elapsed() > PLANNED_WITHIN {
                let _gone = child.kill().and_then(|()| child.wait());
                return Err(Problem::new(503, "transient", "the pipeline was not planned in time"));
            }
            std::thread::sleep(LOOK_EVERY);
        };
        let (stdout, stderr) = (stdout.join().unwrap_or_default(), stderr.join().unwrap_or_default());
        Ok(Output { status, stdout, stderr })
    }

    fn command(&self, words: Vec<OsString>, submitted: &Submitted, has_file: bool) -> Result<Command, Problem> {
        let mut command = Command::new(&self.path);
        command.args(words);
        if has_file {
            // The name of a submitted file does not begin like an option: `parse` refuses such a name.
            command.arg(match &submitted.pipeline {
                Pipeline::Text(_) => OsString::from("-"),
                Pipeline::File(file) => self.inside(file)?.into_os_string(),
            });
        }
        command.current_dir(&self.project).stdin(Stdio::piped()).env("NO_COLOR", "1");
        Ok(command)
    }

    /// Returns a file of the project. A link on the way to it is refused, because it can lead outside.
    fn inside(&self, file: &str) -> Result<PathBuf, Problem> {
        let mut path = self.project.clone();
        for name in file.split('/') {
            path.push(name);
            let found = std::fs::symlink_metadata(&path);
            if found.is_ok_and(|found| found.is_symlink()) {
                return Err(Problem::new(400, "usage", "`file` leads through a link"));
            }
        }
        if !path.is_file() {
            return Err(Problem::new(404, "unknown-file", "the project has no such file"));
        }
        Ok(Path::new(file).to_owned())
    }

    /// Adds to a refused plan the plan of now, and how it differs from the plan that the client has seen.
    fn with_difference(&self, problem: Problem, submitted: &Submitted) -> Problem {
        let Ok(now) = self.plan(submitted) else { return problem };
        let seen = submitted.plan_digest.and_then(|digest| {
            let plans = self.plans.lock().unwrap_or_else(PoisonError::into_inner);
            plans.iter().find(|(known, _)| *known == digest).map(|(_, plan)| plan.clone())
        });
        let difference = seen.map(|seen| {
            let diff = TextDiff::from_lines(&seen, &now);
            diff.unified_diff().context_radius(1).to_string()
        });
        let plan: Value = serde_json::from_str(&now).unwrap_or_default();
        let about = serde_json::json!({ "plan_digest": digest_of(&now), "difference": difference, "plan": plan });
        Problem { status: 409, code: "plan-changed", about: Some(about), ..problem }
    }

    /// Adds the diagnostics of a pipeline that was refused as invalid.
    fn with_diagnostics(&self, problem: Problem, submitted: &Submitted) -> Problem {
        if problem.exit != Some(Exit::Invalid.code()) {
            return problem;
        }
        let checked = self.check(submitted).ok();
        let diagnostics = checked.and_then(|text| serde_json::from_str(&text).ok());
        Problem { about: diagnostics, ..problem }
    }
}

/// Returns a submission without a pipeline, for commands that take none.
fn nothing() -> Submitted {
    let (pipeline, inputs) = (Pipeline::Text(String::new()), Vec::new());
    Submitted { pipeline, inputs, budget_usd: None, steps_max: None, plan_digest: None }
}

fn words(words: &[&str]) -> Vec<OsString> {
    words.iter().map(OsString::from).collect()
}

fn inputs(submitted: &Submitted) -> impl Iterator<Item = OsString> + '_ {
    submitted.inputs.iter().map(|(name, value)| format!("--set={name}={value}").into())
}

fn bounds(submitted: &Submitted) -> impl Iterator<Item = OsString> + '_ {
    let budget = submitted.budget_usd.iter().map(|most| format!("--max-budget-usd={most}").into());
    budget.chain(submitted.steps_max.iter().map(|most| format!("--max-steps={most}").into()))
}

/// Writes the submitted text to the process, and closes its standard input.
fn feed(child: &mut Child, submitted: &Submitted) {
    let Some(mut stdin) = child.stdin.take() else { return };
    if let Pipeline::Text(text) = &submitted.pipeline {
        // A process that does not read its input has ended, and says why.
        let _gone = stdin.write_all(text.as_bytes());
    }
}

fn read_all(pipe: Option<impl Read>) -> Vec<u8> {
    let mut bytes = Vec::new();
    if let Some(mut pipe) = pipe {
        let _gone = pipe.read_to_end(&mut bytes);
    }
    bytes
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn refused(output: &Output) -> Problem {
    problem(output.status.code(), &text(&output.stderr))
}

/// Returns the problem that another process of this program has printed.
fn problem(code: Option<i32>, said: &str) -> Problem {
    let exit =
        code.and_then(|code| EXITS.iter().find(|(_, known, _)| i32::from(*known) == code)).map(|(exit, ..)| *exit);
    let exit = exit.unwrap_or(Exit::Internal);
    let last = |prefix: &str| said.lines().rev().find_map(|line| line.strip_prefix(prefix)).map(str::to_owned);
    let message = last("error: ").unwrap_or_else(|| format!("the command ended with exit code {}", exit.code()));
    Problem { help: last("help: "), exit: Some(exit.code()), ..Problem::new(status(exit), exit.name(), message) }
}

/// Returns the digest of the plan in the first record of a run. `None` if the record is not written yet.
fn begun(run: &RunFolder) -> Option<Digest> {
    let journal = journal::open_verified(run).ok()?.close();
    let started = journal.records.iter().find_map(|record: &Record| record.event.run_started());
    started.map(|started| started.plan.digest)
}

fn digest_of(plan: &str) -> Option<Digest> {
    serde_json::from_str::<Value>(plan).ok()?.get("digest")?.as_str()?.parse().ok()
}
