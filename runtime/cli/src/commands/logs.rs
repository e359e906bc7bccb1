//! `glovebox logs`: prints the whole output of the commands of one node or of all nodes, as the run kept it.
//!
//! If standard output is not a terminal, it gets the exact bytes; a terminal gets them escaped. The line that names the
//! file of an output goes to standard error. With `--follow`, output is printed while its command runs.

mod following;
mod printed_drafts;

use crate::arguments::LogsArguments;
use crate::exit::{CommandResult, Exit, Stop};
use crate::runs;
use crate::runs::RunFolder;
use crate::runs::changes;
use crate::runs::failure::{OUTPUTS, STDERR, STDOUT};
use crate::runs::journal;
use crate::terminal::paint::Paint;
use crate::terminal::{self, colours, visible};
use following::Following;
use glovebox_engine::project::run_files::history_folder;
use glovebox_journal::blobs::DirBlobs;
use glovebox_journal::event::{Artifact, Attempt, NodeId, Record, StageFinished};
use glovebox_journal::ports::BlobStore;
use glovebox_journal::reading::ReadRecords;
use schemars::JsonSchema;
use serde::Serialize;
use std::ops::RangeInclusive;
use std::time::{Duration, Instant};

/// Minimum interval between two reads of the journal of a running run. A journal that takes long to read is read less
/// often.
const PAUSE: Duration = Duration::from_millis(300);

/// One line of `logs --json`: the output of one stream of one attempt.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(title = "logs.json")]
pub struct OutputLine<'a> {
    /// Version of this document.
    pub schema_version: u32,
    /// Id of the run.
    pub run_id: &'a str,
    /// The attempt.
    #[serde(flatten)]
    pub attempt: &'a Attempt,
    /// True if a resume went back to before the attempt and undid it; absent otherwise.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_undone: bool,
    /// `stdout`, `stderr`, or `output` for both together.
    pub stream: &'a str,
    /// Length of the output in bytes.
    pub bytes: u64,
    /// Path of the file that contains the output.
    pub file: &'a str,
    /// The output as text. Bytes that are not UTF-8 are replaced.
    pub text: &'a str,
}

/// Prints the outputs that the node's attempts kept. With `--follow`, continues until no process drives the run.
pub fn logs(arguments: &LogsArguments) -> CommandResult {
    let run = runs::select(&arguments.runs.runs_dir, &arguments.run)?;
    let is_followed = arguments.follow && !arguments.json;
    let following = is_followed.then(|| Following::new(arguments, &run)).transpose()?;
    let wanted = WantedOutputs {
        node: arguments.node.as_ref(),
        visit: arguments.visit,
        has_stdout: !arguments.stderr,
        has_stderr: !arguments.stdout,
    };
    let mut log = Log { is_json: arguments.json, is_followed: arguments.follow, following, ..Log::new(&run, wanted)? };
    let mut journal = journal::open_to_show(&run)?;
    if !arguments.follow {
        journal::beginning(&run, &journal.verified.records)?;
    }
    let mut seen = 0;
    loop {
        log.counting = journal.in_force();
        for page in journal.reader.pages(&journal.verified, seen).map_err(|error| journal::unreadable(&run, &error))? {
            let page = page.map_err(|error| journal::unreadable(&run, &error))?;
            page.iter().try_for_each(|record| log.record(record))?;
        }
        let verified = journal.close();
        seen = verified.records_count();
        let started = Instant::now();
        let is_live = arguments.follow && runs::is_live(&run);
        // The journal is read after `is_live`: if no process drives the run, no record is added later.
        journal = journal::read_on(&run, verified)?;
        let has_more = journal.verified.records_count() > seen;
        if !is_live && !has_more {
            return log.conclude();
        }
        log.following.iter_mut().try_for_each(Following::print)?;
        if !has_more {
            std::thread::sleep(PAUSE.max(started.elapsed() * 10));
        }
    }
}

/// Which outputs are shown.
#[derive(Debug)]
pub struct WantedOutputs<'a> {
    /// Only those of this node.
    pub node: Option<&'a NodeId>,
    /// Only those of this visit.
    pub visit: Option<u32>,
    /// Standard output.
    pub has_stdout: bool,
    /// Standard error.
    pub has_stderr: bool,
}

/// Returns the lines that `logs --json` prints about the attempts that have ended.
pub fn lines(run: &RunFolder, wanted: WantedOutputs<'_>) -> Result<Vec<String>, Stop> {
    let mut log = Log { is_json: true, lines: Some(Vec::new()), ..Log::new(run, wanted)? };
    let journal = journal::open_to_show(run)?;
    journal::beginning(run, &journal.verified.records)?;
    log.counting = journal.in_force();
    for page in journal.reader.pages(&journal.verified, 0).map_err(|error| journal::unreadable(run, &error))? {
        let page = page.map_err(|error| journal::unreadable(run, &error))?;
        page.iter().try_for_each(|record| log.record(record))?;
    }
    drop(journal);
    log.refuse_unknown()?;
    Ok(log.lines.unwrap_or_default())
}

/// State of the command while it prints outputs.
struct Log<'a> {
    wanted: WantedOutputs<'a>,
    is_json: bool,
    is_followed: bool,
    /// The lines of the JSON form; `None` if they are printed.
    lines: Option<Vec<String>>,
    run: &'a RunFolder,
    blobs: DirBlobs,
    /// The output of running commands; `None` if it is not printed while they run.
    following: Option<Following<'a>>,
    /// Ranges of sequence numbers of the records that no resume has undone.
    counting: Vec<RangeInclusive<u64>>,
    visits: u32,
    printed: usize,
}

impl<'a> Log<'a> {
    fn new(run: &'a RunFolder, wanted: WantedOutputs<'a>) -> Result<Self, Stop> {
        Ok(Self {
            wanted,
            is_json: false,
            is_followed: false,
            lines: None,
            run,
            blobs: changes::open_blobs(run)?,
            following: None,
            counting: Vec::new(),
            visits: 0,
            printed: 0,
        })
    }

    fn record(&mut self, record: &Record) -> Result<(), Stop> {
        if self.wanted.node.is_some_and(|node| record.event.node() != Some(node)) {
            return Ok(());
        }
        let started = record.event.stage_started().filter(|started| self.is_wanted(&started.attempt));
        if let Some(started) = started.filter(|_| self.is_followed) {
            terminal::say(format_args!("==> {} started\n", title(&started.attempt)));
            self.following.iter_mut().try_for_each(|following| following.begin(record))?;
        }
        if let Some(passed) = record.event.stage_passed() {
            self.visits = self.visits.max(passed.visit);
        }
        let Some(stage) = record.event.stage_finished() else { return Ok(()) };
        self.visits = self.visits.max(stage.attempt.task.visit);
        if self.is_wanted(&stage.attempt) {
            let is_undone = !self.counting.iter().any(|range| range.contains(&record.seq));
            let printed = self.following.as_mut().map(|following| following.end(stage)).transpose()?;
            let was_printed = printed.unwrap_or_default();
            self.outputs(stage, is_undone, was_printed)?;
        }
        Ok(())
    }

    fn is_wanted(&self, attempt: &Attempt) -> bool {
        self.wanted.visit.is_none_or(|visit| visit == attempt.task.visit)
    }

    /// Prints the outputs that an attempt kept, or only where they are if they were printed while the commands ran.
    fn outputs(&mut self, stage: &StageFinished, is_undone: bool, was_printed: bool) -> Result<(), Stop> {
        let WantedOutputs { has_stdout, has_stderr, .. } = self.wanted;
        let is_wanted = |artifact: &&Artifact| {
            let name = &artifact.name;
            let is_output = OUTPUTS.iter().any(|ending| name.ends_with(ending));
            let is_other = !has_stderr && name.ends_with(STDERR) || !has_stdout && name.ends_with(STDOUT);
            is_output && !is_other
        };
        for artifact in stage.files.artifacts.iter().filter(is_wanted) {
            let file = self.run.path.join(history_folder(&stage.attempt)).join(&artifact.name);
            self.printed += 1;
            if was_printed {
                say_place(&stage.attempt, is_undone, artifact, &file.to_string_lossy());
                continue;
            }
            let bytes = self.blobs.read_all(&artifact.digest, artifact.bytes);
            let bytes = bytes.map_err(|error| journal::unreadable(self.run, &error))?;
            self.output(&stage.attempt, is_undone, artifact, &file.to_string_lossy(), &bytes)?;
        }
        Ok(())
    }

    fn output(
        &mut self,
        attempt: &Attempt,
        is_undone: bool,
        artifact: &Artifact,
        file: &str,
        bytes: &[u8],
    ) -> Result<(), Stop> {
        if !self.is_json {
            say_place(attempt, is_undone, artifact, file);
            print(bytes);
            return Ok(());
        }
        let stream = match &artifact.name {
            name if name.ends_with(STDOUT) => "stdout",
            name if name.ends_with(STDERR) => "stderr",
            _ => "output",
        };
        let (run_id, bytes_total, text) = (&*self.run.id, artifact.bytes, String::from_utf8_lossy(bytes));
        let (schema_version, text) = (1, &*text);
        let line = OutputLine { schema_version, run_id, attempt, is_undone, stream, bytes: bytes_total, file, text };
        match &mut self.lines {
            Some(lines) => lines.push(terminal::json_line(&line)?),
            None => terminal::print_json_line(&line)?,
        }
        Ok(())
    }

    fn conclude(&self) -> CommandResult {
        self.refuse_unknown()?;
        if self.printed > 0 {
            return Ok(Exit::Ok);
        }
        let run = &self.run.id;
        match self.wanted.node {
            None => {
                terminal::say(format_args!("run `{run}` kept no output of commands; see `glovebox show {run}`\n"));
            }
            Some(node) => {
                let node = visible::line(node.as_str());
                terminal::say(format_args!("`{node}` kept no output of commands; see `glovebox show {run} {node}`\n"));
            }
        }
        Ok(Exit::Ok)
    }

    /// Returns an error if the run has no finished visit of the wanted node, or not the wanted visit.
    fn refuse_unknown(&self) -> Result<(), Stop> {
        let (run, Some(node)) = (&self.run.id, self.wanted.node) else { return Ok(()) };
        match (self.visits, self.wanted.visit) {
            (0, _) => Err(Stop::new(Exit::Usage, format!("run `{run}` has no finished visit of a node `{node}`"))
                .with_help(format!("glovebox show {run} lists the visited nodes"))),
            (visits, Some(visit)) if visit > visits => Err(Stop::new(
                Exit::Usage,
                format!("`{node}` has only {}", terminal::counted(visits as usize, "visit")),
            )),
            _ => Ok(()),
        }
    }
}

/// Names the file of an output.
fn say_place(attempt: &Attempt, is_undone: bool, artifact: &Artifact, file: &str) {
    let (file, left) = (visible::line(file), if is_undone { terminal::LEFT } else { "" });
    terminal::say(format_args!("==> {}{left}: {} bytes: {file}\n", title(attempt), artifact.bytes));
}

fn title(attempt: &Attempt) -> String {
    let (node, visit) = (visible::line(attempt.task.node.as_str()), attempt.task.visit);
    let again = terminal::of_generation(attempt.task.generation);
    match attempt.ordinal {
        1 => format!("{node} visit {visit}{again}"),
        ordinal => format!("{node} visit {visit} attempt {ordinal}{again}"),
    }
}

fn print(bytes: &[u8]) {
    if !terminal::is_terminal() {
        return terminal::print_bytes(bytes);
    }
    let text = String::from_utf8_lossy(bytes);
    let end = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
    terminal::print(format_args!("{}{end}", colours::block(&text, Paint::stdout())));
}
