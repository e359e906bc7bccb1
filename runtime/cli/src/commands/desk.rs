//! The runs of one project, as `glovebox serve` and `glovebox mcp` show and steer them.
//!
//! Every document is made by the function of the command that prints it. What a client may not see is removed from the
//! finished document by [`sight`], so that no command needs to know of clients.

mod builder;
mod follow;
pub mod logs;
pub mod output;
mod problem;
pub mod program;
mod records;
mod sight;
mod tasks;

use crate::arguments::{GraphFormat, LabelArguments};
use crate::commands::{
    answer, apply, control, diff, evidence, gates, graph, holdout, logs as outputs, ls, show, steer,
};
use crate::commands::{plan, transcript, why};
use crate::exit::{Exit, Stop};
use crate::runs::changes;
use crate::runs::hidden::Hidden;
use crate::runs::journal;
use crate::runs::set_aside;
use crate::runs::{self, RunFolder};
use crate::terminal;
use clap::ValueEnum;
use follow::JournalFollow;
use glovebox_journal::event::AnsweredBy;
use glovebox_journal::ports::BlobStore;
use glovebox_record::{Digest, NodeId, RunId};
use glovebox_serve::desk::{Act, Actor, Desk, Document, Drawing, Follow, FollowOutput, Media, Problem, Read, Way};
use glovebox_serve::right::Sight;
use glovebox_workspace::regular_file::{self, Links};
use output::StageOutput;
use problem::{problem, problem_of_answer};
use program::Program;
use schemars::JsonSchema;
use serde::Serialize;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// Maximum size of a blob that is sent, bytes.
const BLOB_BYTES_MAX: u64 = 64 << 20;
/// Maximum size of `checkpoint.json`, bytes.
const CHECKPOINT_BYTES_MAX: u64 = 64 << 20;
/// Maximum size of a page of records, bytes.
const PAGE_BYTES_MAX: usize = 1 << 20;

/// The runs of one project.
pub struct OwnDesk {
    runs_dir: PathBuf,
    project: PathBuf,
    program: Program,
    /// Held while changes are written to the project: two writers of the same files would disturb each other.
    applying: Mutex<()>,
}

/// The answer to `GET /health`.
#[derive(Serialize, JsonSchema)]
#[schemars(title = "serve-health.json")]
pub struct Health<'a> {
    /// Version of this document.
    schema_version: u32,
    /// Version of the program.
    version: &'a str,
    /// Name of the project's folder.
    project: &'a str,
}

impl OwnDesk {
    /// Creates the desk of a project, whose runs are in `runs_dir`. Its runs find these labels on this machine.
    pub fn new(project: PathBuf, runs_dir: PathBuf, labels: LabelArguments) -> Result<Self, Stop> {
        let program = Program::new(project.clone(), runs_dir.clone(), labels)?;
        Ok(Self { runs_dir, project, program, applying: Mutex::default() })
    }

    fn run(&self, id: &RunId) -> Result<RunFolder, Problem> {
        runs::with_id(&self.runs_dir, id).ok_or_else(|| {
            Problem::new(404, "unknown-run", format!("there is no run `{id}`")).with_help("GET /runs lists the runs")
        })
    }

    fn list(&self, what: &Read, seen: Sight) -> Result<String, Problem> {
        let Read::Runs { state, pipeline, before, limit } = what else { return Ok(String::new()) };
        let states =
            state.iter().map(|state| runs::index::RunState::from_str(state, false)).collect::<Result<Vec<_>, _>>();
        let states = states.map_err(|_| Problem::new(400, "usage", "`state` is not the state of a run"))?;
        let (pipeline, before) = (pipeline.as_deref(), before.as_ref().map(RunId::as_str));
        let wanted = ls::WantedRuns { pipeline, states: &states, limit: *limit, before };
        let list = wanted.document(&self.runs_dir).map_err(problem)?;
        let text = terminal::json(&list).map_err(problem)?;
        match seen {
            Sight::Builder => terminal::json(&builder::of_list(&text)?).map_err(problem),
            Sight::Person | Sight::Everything => Ok(text),
        }
    }

    /// Returns a document about one run. What the client may not see is removed.
    fn about_run(&self, id: &RunId, what: &Read, seen: Sight) -> Result<String, Problem> {
        let run = self.run(id)?;
        let text = match what {
            Read::Run(_) => show::document(&run),
            Read::Evidence(_, node) => evidence::document(&run, node.as_ref()),
            Read::Why(_, node) => why::document(&run, node.as_ref()).and_then(|why| terminal::json(&why)),
            Read::Gates(_) => gates::document(&self.runs_dir, Some(&run)).and_then(|gates| terminal::json(&gates)),
            Read::Diff(_, question) => {
                let question = question.as_ref().map(|question| question.as_str());
                diff::document(&run, question, &[]).and_then(|diff| terminal::json(&diff))
            }
            Read::Plan(_) => plan::of_run::document(&run).and_then(|plan| terminal::json(&plan)),
            Read::Holdouts(_) => {
                journal::read_to_show(&run).and_then(|records| holdout::status_document(&run, &records))
            }
            Read::Stage(_, node) => show::node_records(&run, node).and_then(|records| terminal::json(&records)),
            _ => self.file_of(&run, what),
        };
        let text = text.map_err(problem)?;
        match (seen, what) {
            (Sight::Everything, _) => Ok(text),
            (Sight::Builder, Read::Run(_) | Read::Why(..) | Read::Evidence(..) | Read::Gates(_) | Read::Diff(..)) => {
                let hidden = Hidden::of(&run).map_err(problem)?;
                terminal::json(&builder::of_run(what, &text, &hidden)?).map_err(problem)
            }
            _ => records::remove(&Hidden::of(&run).map_err(problem)?, &text, seen),
        }
    }

    /// Returns the open questions of all runs. Of each, what the client may not see is removed.
    fn all_gates(&self, seen: Sight) -> Result<String, Problem> {
        let gates = gates::document(&self.runs_dir, None).map_err(problem)?;
        let text = terminal::json(&gates).map_err(problem)?;
        if seen == Sight::Everything {
            return Ok(text);
        }
        let broken = |_| Problem::new(500, "internal", "the document could not be reduced");
        let mut document: serde_json::Value = serde_json::from_str(&text).map_err(broken)?;
        let mut kept = Vec::new();
        for gate in document["gates"].as_array_mut().into_iter().flatten().map(serde_json::Value::take) {
            let run = self.run(&RunId::from(gate["run_id"].as_str().unwrap_or_default()))?;
            kept.extend(records::gate(gate, &Hidden::of(&run).map_err(problem)?, seen));
        }
        document["gates"] = kept.into();
        terminal::json(&document).map_err(problem)
    }

    /// Returns `checkpoint.json` of a run, or the context in it.
    fn file_of(&self, run: &RunFolder, what: &Read) -> Result<String, Stop> {
        let file = run.path.join("checkpoint.json");
        let text = regular_file::read_text(&file, Links::Within(&run.path), CHECKPOINT_BYTES_MAX)
            .map_err(|error| Stop::io(format!("read the checkpoint of run `{}`", run.id), &error))?;
        if !matches!(what, Read::Context(_)) {
            return Ok(text);
        }
        let value: serde_json::Value = serde_json::from_str(&text)
            .map_err(|error| Stop::new(Exit::Mismatch, format!("the checkpoint of run `{}`: {error}", run.id)))?;
        terminal::json(value.get("context").unwrap_or(&serde_json::Value::Null))
    }

    /// Returns lines that stages printed, or their conversations.
    fn output(&self, id: &RunId, node: &NodeId, what: &Read, seen: Sight) -> Result<Document, Problem> {
        let run = self.run(id)?;
        if seen != Sight::Everything && Hidden::of(&run).map_err(problem)?.has(node) {
            let message =
                format!("stage `{node}` had hold-outs in reach, and this token does not have the right `withheld`");
            return Err(Problem::new(403, "no-right", message));
        }
        let lines = match what {
            Read::Transcript(_, _, visit) => transcript::lines(&run, node, *visit),
            Read::Logs(_, _, visit) => {
                let wanted =
                    outputs::WantedOutputs { node: Some(node), visit: *visit, has_stdout: true, has_stderr: true };
                outputs::lines(&run, wanted)
            }
            _ => Ok(Vec::new()),
        };
        Ok(of_lines(lines.map_err(problem)?))
    }

    fn graph(&self, id: &RunId, drawing: Drawing) -> Result<Document, Problem> {
        let (format, media) = match drawing {
            Drawing::Svg => (GraphFormat::Svg, Media::Svg),
            Drawing::Json => (GraphFormat::Json, Media::Json),
            Drawing::Dot => (GraphFormat::Dot, Media::Dot),
        };
        let text = graph::document(&self.run(id)?, format).map_err(problem)?;
        Ok(Document { media, bytes: text.into_bytes() })
    }

    fn blob(&self, id: &RunId, digest: &Digest, seen: Sight) -> Result<Document, Problem> {
        let run = self.run(id)?;
        let unknown = || Problem::new(404, "unknown-blob", "no record of the run names this digest");
        let named_by = records::naming(&run, digest).map_err(problem)?;
        if named_by.is_empty() {
            return Err(unknown());
        }
        if seen != Sight::Everything {
            let hidden = Hidden::of(&run).map_err(problem)?;
            // What the start of a run names, such as its model script, can have what a judge was told.
            let is_of_judge = |node: &Option<NodeId>| node.as_ref().is_none_or(|node| hidden.has(node));
            if !hidden.is_empty() && named_by.iter().any(is_of_judge) {
                let message = "a stage with hold-outs in reach made these bytes, and this token does not have the right `withheld`";
                return Err(Problem::new(403, "no-right", message));
            }
        }
        let blobs = changes::open_blobs(&run).map_err(problem)?;
        let bytes = blobs.read_all(digest, BLOB_BYTES_MAX).map_err(|_| unknown())?;
        Ok(Document { media: Media::Bytes, bytes })
    }

    /// Returns the content of a change that the run has set aside.
    fn set_aside(&self, id: &RunId, number: u64, seen: Sight) -> Result<Document, Problem> {
        if seen != Sight::Everything {
            return Err(Problem::new(403, "no-right", "this token does not have the right `withheld`"));
        }
        let run = self.run(id)?;
        let unknown = |why: &str| Problem::new(404, "unknown-change", why);
        let change = set_aside::find(&run, number).map_err(problem)?;
        let change = change.ok_or_else(|| unknown("the run has set aside no change with this number"))?;
        let content = set_aside::content(&run, &change, BLOB_BYTES_MAX).map_err(problem)?;
        let bytes = content.ok_or_else(|| unknown("the content of this change is not there, or longer than 64 MiB"))?;
        Ok(Document { media: Media::Bytes, bytes })
    }

    fn page(&self, id: &RunId, after: u64, limit: usize, seen: Sight) -> Result<Document, Problem> {
        let mut follow = JournalFollow::begin_at(self.run(id)?, seen, after).map_err(problem)?;
        let (mut lines, mut bytes) = (Vec::new(), 0);
        while lines.len() < limit && bytes < PAGE_BYTES_MAX {
            let next = follow.next()?;
            if next.is_empty() {
                break;
            }
            for line in next.iter().map(|line| line.json.clone()).take(limit - lines.len()) {
                if bytes > 0 && bytes + line.len() > PAGE_BYTES_MAX {
                    return Ok(of_lines(lines));
                }
                bytes += line.len();
                lines.push(line);
            }
        }
        Ok(of_lines(lines))
    }

    fn answer(&self, run: &RunFolder, act: &Act, who: &Actor) -> Result<String, Problem> {
        let Act::Answer { question, value, text, .. } = act else { return Ok(String::new()) };
        let how = match who.way {
            Way::Http => AnsweredBy::Http,
            Way::Mcp => AnsweredBy::Mcp,
        };
        let by = who.name.clone();
        let reply = answer::Reply { question: question.as_str(), value, text, by, how };
        let answered = answer::give(run, &self.runs_dir, reply).map_err(problem_of_answer)?;
        terminal::json(&answered.document(run)).map_err(problem)
    }

    /// Writes the changes of a run to the project, if the run has not changed since the client saw it.
    fn apply(&self, run: &RunFolder, paths: &[String], head: &Digest) -> Result<String, Problem> {
        let _one_at_a_time = self.applying.lock().unwrap_or_else(PoisonError::into_inner);
        let now = records::head(run).map_err(problem)?;
        if now != *head {
            let message = format!("run `{}` has another head, {now}; nothing was written", run.id);
            return Err(Problem::new(409, "changed", message).with_help("look at its changes again"));
        }
        if runs::is_live(run) {
            return Err(Problem::new(409, "running", format!("run `{}` has not ended; nothing was written", run.id)));
        }
        apply::to_project(run, &self.runs_dir, &self.project, paths).map_err(problem)
    }
}

impl Desk for OwnDesk {
    fn read(&self, what: &Read, sight: Sight) -> Result<Document, Problem> {
        let text = match what {
            Read::Runs { .. } => self.list(what, sight)?,
            Read::Run(id) | Read::Evidence(id, _) | Read::Why(id, _) | Read::Gates(Some(id)) | Read::Diff(id, _) => {
                self.about_run(id, what, sight)?
            }
            Read::Holdouts(id) | Read::Stage(id, _) | Read::Checkpoint(id) | Read::Context(id) | Read::Plan(id) => {
                self.about_run(id, what, sight)?
            }
            Read::Gates(None) => self.all_gates(sight)?,
            Read::Tasks { run, state } => {
                let run = run.as_ref().map(|id| self.run(id)).transpose()?;
                tasks::list(&self.runs_dir, run.as_ref(), state.as_deref(), sight)?
            }
            Read::Task(id) => tasks::one(&self.runs_dir, id, sight)?,
            Read::Transcript(id, node, _) | Read::Logs(id, node, _) => return self.output(id, node, what, sight),
            Read::Graph(id, drawing) => return self.graph(id, *drawing),
            Read::Patch(id, question) => {
                let question = question.as_ref().map(|question| question.as_str());
                let bytes = diff::patch_bytes(&self.run(id)?, question).map_err(problem)?;
                return Ok(Document { media: Media::Bytes, bytes });
            }
            Read::SetAside(id, number) => return self.set_aside(id, *number, sight),
            Read::Blob(id, digest) => return self.blob(id, digest, sight),
            Read::Records { run, after, limit } => return self.page(run, *after, *limit, sight),
            Read::AllLogs { run, node, since, limit } => {
                let run = run.as_ref().map(|id| self.run(id)).transpose()?;
                let wanted = logs::Wanted { run, node: node.as_ref(), since: since.as_deref(), limit: *limit };
                return Ok(of_lines(logs::lines(&self.runs_dir, &wanted, sight)?));
            }
            Read::Check(submitted) => self.program.check(submitted)?,
            Read::PlanOf(submitted) => self.program.plan(submitted)?,
        };
        Ok(of_json(text))
    }

    fn act(&self, act: &Act, who: &Actor) -> Result<Document, Problem> {
        let by = &*who.name;
        let text = match act {
            Act::Start(submitted) => self.program.start(submitted, who)?,
            Act::Fork { run, node, visit } => self.program.fork(&self.run(run)?, node, *visit)?,
            Act::Resume(id) => self.program.resume(&self.run(id)?)?,
            Act::Cancel(id) => {
                let run = self.run(id)?;
                control::cancel_run(&run, &self.runs_dir, by).map_err(problem)?;
                control::document(&run, "canceled").map_err(problem)?
            }
            Act::Pause(id) => {
                let run = self.run(id)?;
                control::pause_run(&run, &self.runs_dir, by).map_err(problem)?;
                control::document(&run, "asked").map_err(problem)?
            }
            Act::Answer { run, .. } => self.answer(&self.run(run)?, act, who)?,
            Act::Steer { run, node, text } => {
                let run = self.run(run)?;
                let given = steer::send(&run, &self.runs_dir, node, text, by.to_owned()).map_err(problem)?;
                terminal::json(&steer::SteerFile::of(&run, &given)).map_err(problem)?
            }
            Act::Apply { run, paths, head } => self.apply(&self.run(run)?, paths, head)?,
        };
        Ok(of_json(text))
    }

    fn follow(&self, run: &RunId, sight: Sight) -> Result<Box<dyn Follow>, Problem> {
        Ok(Box::new(JournalFollow::begin(self.run(run)?, sight).map_err(problem)?))
    }

    fn follow_output(&self, run: &RunId, node: &NodeId) -> Result<Box<dyn FollowOutput>, Problem> {
        Ok(Box::new(StageOutput::begin(self.run(run)?, node.clone())?))
    }

    fn health(&self) -> Document {
        let project = self.project.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let health = Health { schema_version: 1, version: env!("CARGO_PKG_VERSION"), project };
        of_json(terminal::json(&health).unwrap_or_default())
    }
}

fn of_json(text: String) -> Document {
    let text = if text.ends_with('\n') { text } else { text + "\n" };
    Document { media: Media::Json, bytes: text.into_bytes() }
}

fn of_lines(lines: Vec<String>) -> Document {
    let bytes = lines.into_iter().flat_map(|line| line.into_bytes().into_iter().chain([b'\n'])).collect();
    Document { media: Media::JsonLines, bytes }
}

/// Returns the runs of a folder, or only the given one.
fn all_or_one(runs_dir: &Path, run: Option<&RunFolder>) -> Result<Vec<RunFolder>, Problem> {
    run.map_or_else(|| runs::list(runs_dir).map_err(problem), |run| Ok(vec![run.clone()]))
}
