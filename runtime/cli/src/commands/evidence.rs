//! `glovebox evidence`: lists every command of a run with its receipt and what it proves, and the stages that passed
//! without a receipt.
//!
//! The host made each receipt when it saw the command end, and the journal contains it. A receipt has the digest and
//! the length of each output. The beginning and the end of an output are shown if the stage kept the output.

use crate::arguments::EvidenceArguments;
use crate::exit::{CommandResult, Exit, Stop};
use crate::runs::changes::{self, Changes};
use crate::runs::journal;
use crate::runs::{self, RunFolder};
use crate::terminal::paint::Paint;
use crate::terminal::rows::Rows;
use crate::terminal::summary;
use crate::terminal::{self, counted, duration, missing, pager, visible};
use glovebox_journal::blobs::DirBlobs;
use glovebox_journal::event::{Digest, Receipt};
use glovebox_journal::ports::BlobStore;
use glovebox_names::shell;
use glovebox_record::{MissingFiles, NodeId};
use glovebox_state::evidence::{Claim, Command, Evidence, JournalHead, Proof, RunProof, UnmatchedEntry};
use schemars::JsonSchema;
use serde::Serialize;

/// Maximum number of bytes of the beginning of an output that are shown, and of the end.
const EXCERPT_BYTES_MAX: usize = 512;
/// Maximum size of an output whose beginning and end are read, in bytes.
const OUTPUT_BYTES_MAX: u64 = 64 << 20;

/// The document that `evidence --json` prints.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(title = "evidence.json")]
pub struct EvidenceFile<'a> {
    /// Version of this document.
    schema_version: u32,
    /// Id of the run.
    run_id: &'a str,
    /// Head of the run's journal. Its hash covers every receipt.
    journal: JournalHead,
    /// Digest of the list of files that the run began with.
    base_digest: Digest,
    /// Every command, in the order of the run.
    commands: Vec<CommandWithOutput>,
    /// Stages that passed without a receipt.
    unverified: Vec<Claim>,
    /// Files of the project whose content was missing when the run copied it; absent if there are none.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    missing: &'a [MissingFiles],
    /// Entries of `read_paths` and of `paths` that matched no file in the last attempt of their stage; absent if there are none.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    unmatched: &'a [UnmatchedEntry],
}

/// A command and the parts of its output that the stage kept.
#[derive(Debug, Serialize, JsonSchema)]
struct CommandWithOutput {
    #[serde(flatten)]
    command: Command,
    /// Standard output; absent if it is empty or the stage did not keep it.
    #[serde(skip_serializing_if = "Option::is_none")]
    stdout: Option<Excerpt>,
    /// Standard error; absent if it is empty or the stage did not keep it.
    #[serde(skip_serializing_if = "Option::is_none")]
    stderr: Option<Excerpt>,
}

/// The beginning and the end of an output as text. Bytes that are not UTF-8 are replaced.
#[derive(Debug, Serialize, JsonSchema)]
struct Excerpt {
    /// The first 512 bytes of the output.
    head: String,
    /// The last 512 bytes after `head`; absent if `head` is the whole output.
    #[serde(skip_serializing_if = "Option::is_none")]
    tail: Option<String>,
}

/// Lists the commands of a run.
pub fn evidence(arguments: &EvidenceArguments) -> CommandResult {
    let run = runs::select(&arguments.runs.runs_dir, &arguments.run)?;
    let found = Found::read(&run, arguments.node.as_ref())?;
    if arguments.json {
        terminal::print(found.document(&run)? + "\n");
        return Ok(Exit::Ok);
    }
    pager::show(&render(&found.commands, &found.unverified, &found.proof, found.head));
    Ok(Exit::Ok)
}

/// Returns the document that `evidence --json` prints, as text.
pub fn document(run: &RunFolder, node: Option<&NodeId>) -> Result<String, Stop> {
    Found::read(run, node)?.document(run)
}

/// The evidence of a run, or that of one node.
struct Found {
    commands: Vec<CommandWithOutput>,
    unverified: Vec<Claim>,
    proof: RunProof,
    head: JournalHead,
    base_digest: Digest,
}

impl Found {
    fn read(run: &RunFolder, node: Option<&NodeId>) -> Result<Self, Stop> {
        let journal = journal::open_to_show(run)?;
        let started = journal::beginning(run, &journal.verified.records)?;
        let (base, base_digest) = (Changes::base(run, started)?, started.workspace.base_digest);
        let evidence = Evidence::read(&journal, |changes| base.clone().after(changes).digest());
        let evidence = evidence.map_err(|error| journal::unreadable(run, &error))?;
        drop(journal);
        let is_wanted = |of: &NodeId| node.is_none_or(|wanted| wanted == of);
        let (head, claims) = (evidence.head(), evidence.claims());
        let unverified = claims.into_iter().filter(|claim| is_wanted(&claim.stage.node)).collect();
        let is_known = |node: &NodeId| evidence.summary.visited.iter().any(|visit| visit.node == *node);
        if let Some(node) = node.filter(|node| !is_known(node)) {
            return Err(Stop::new(Exit::Usage, format!("run `{}` has no finished visit of a node `{node}`", run.id))
                .with_help(format!("glovebox show {} lists the visited nodes", run.id)));
        }
        let blobs = changes::open_blobs(run)?;
        let commands = evidence.commands.into_iter().filter(|command| is_wanted(&command.attempt.task.node));
        let commands = commands.map(|command| CommandWithOutput::new(command, &blobs)).collect();
        Ok(Self { commands, unverified, proof: evidence.summary.proof, head, base_digest })
    }

    fn document(self, run: &RunFolder) -> Result<String, Stop> {
        let Self { commands, unverified, proof, head, base_digest } = self;
        let (schema_version, run_id) = (1, &*run.id);
        let RunProof { missing, unmatched, .. } = &proof;
        terminal::json(&EvidenceFile {
            schema_version,
            run_id,
            journal: head,
            base_digest,
            commands,
            unverified,
            missing,
            unmatched,
        })
    }
}

impl CommandWithOutput {
    fn new(command: Command, blobs: &DirBlobs) -> Self {
        let Receipt { stdout_digest, stdout_bytes, stderr_digest, stderr_bytes, .. } = &command.evidence.receipt;
        let stdout = Excerpt::read(blobs, stdout_digest, *stdout_bytes);
        let stderr = Excerpt::read(blobs, stderr_digest, *stderr_bytes);
        Self { command, stdout, stderr }
    }
}

impl Excerpt {
    /// Reads the beginning and the end of an output that the run kept under its digest. Returns `None` for an empty,
    /// missing or too large output.
    fn read(blobs: &DirBlobs, digest: &Digest, length: u64) -> Option<Self> {
        if length == 0 || length > OUTPUT_BYTES_MAX {
            return None;
        }
        let bytes = blobs.read_all(digest, length).ok()?;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let head = text(&bytes[..bytes.len().min(EXCERPT_BYTES_MAX)]);
        let rest = bytes.len().saturating_sub(EXCERPT_BYTES_MAX).min(EXCERPT_BYTES_MAX);
        let tail = (rest > 0).then(|| text(&bytes[bytes.len() - rest..]));
        Some(Self { head, tail })
    }
}

fn render(commands: &[CommandWithOutput], unverified: &[Claim], proof: &RunProof, head: JournalHead) -> String {
    let mut rows = Rows::below_a_title(12).painted(Paint::stdout());
    for shown in commands {
        command(&mut rows, shown);
    }
    for claim in unverified {
        let (node, handler) = (visible::line(claim.stage.node.as_str()), visible::line(&claim.stage.handler));
        let status = claim.status;
        rows.line(format_args!("{node} visit {}", claim.visit));
        rows.row("unverified", format_args!("{handler} said `{status}`: no receipt supports it"));
    }
    rows.line("evidence");
    let proving = |proofs: &[Proof]| commands.iter().filter(|shown| proofs.contains(&shown.command.proof)).count();
    let (all, open) = (counted(commands.len(), "receipt"), counted(unverified.len(), "unverified stage"));
    let reserved = [Proof::VerifiedNotIsolated, Proof::VerifiedWithStartupFiles, Proof::VerifiedWithCaches];
    let qualified = match proving(&reserved) {
        0 => String::new(),
        count => format!(", {count} with a reservation"),
    };
    rows.row("all", format_args!("{all}, {} verified{qualified}; {open}", proving(&[Proof::Verified])));
    missing::rows(proof).into_iter().for_each(|(title, body)| rows.row(title, body));
    rows.row("head", head.hash);
    rows.finish()
}

fn command(rows: &mut Rows, CommandWithOutput { command, stdout, stderr }: &CommandWithOutput) {
    let (task, receipt) = (&command.attempt.task, &command.evidence.receipt);
    let again = terminal::of_generation(task.generation);
    let left = if command.is_undone { terminal::LEFT } else { "" };
    rows.line(format_args!("{} visit {}{again}{left}", visible::line(task.node.as_str()), task.visit));
    let how = summary::ending(receipt);
    let (title, time) = (summary::title(command.proof), duration(receipt.duration_ms));
    rows.block(title, format_args!("{} {how} in {time}", shell::line(&receipt.argv)));
    let weaker = receipt.degradations.iter().map(|weaker| format!(", {}", visible::line(weaker)));
    let layers = if command.layers.is_empty() { "nothing".to_owned() } else { command.layers.join(", ") };
    rows.row("behind", format_args!("{}: {layers}{}", receipt.tier, weaker.collect::<String>()));
    rows.row("in", if receipt.cwd.is_empty() { "the workspace".into() } else { visible::line(&receipt.cwd) });
    if let Some(program) = &receipt.program {
        rows.row("program", format_args!("{} {}", visible::line(&program.path), program.digest));
    }
    rows.row("files", command.tree);
    if !receipt.env_names.is_empty() {
        rows.row("environment", visible::line(&receipt.env_names.join(" ")));
    }
    output(rows, "stdout", stdout.as_ref(), receipt.stdout_bytes, &receipt.stdout_digest);
    output(rows, "stderr", stderr.as_ref(), receipt.stderr_bytes, &receipt.stderr_digest);
    rows.row("record", format_args!("{}, receipt {}", command.record, visible::line(&receipt.id)));
}

fn output(rows: &mut Rows, title: &'static str, excerpt: Option<&Excerpt>, bytes: u64, digest: &Digest) {
    if bytes == 0 {
        return;
    }
    rows.row(title, format_args!("{bytes} bytes, {digest}"));
    if let Some(Excerpt { head, tail }) = excerpt {
        rows.indented(visible::block(head.trim_end()));
        if let Some(tail) = tail {
            rows.indented("…");
            rows.indented(visible::block(tail.trim_end()));
        }
    }
}
