//! The output of the command that made a run fail.
//!
//! The output of a stage that could read hold-outs is not read: `glovebox logs` prints it to a person who asks for it.

use crate::runs::RunFolder;
use crate::runs::changes;
use crate::terminal::failed_output::FailedOutput;
use glovebox_journal::ports::BlobStore;
use glovebox_state::evidence::RunSummary;

/// Endings of the names of artifacts in which `tool` and `verify` keep a command's output.
pub const OUTPUTS: [&str; 4] = [STDOUT, STDERR, ".output", ".verify_output"];
/// Ending of the name of an artifact with standard output.
pub const STDOUT: &str = ".stdout.txt";
/// Ending of the name of an artifact with standard error.
pub const STDERR: &str = ".stderr.txt";
/// Maximum number of bytes of an output that are read.
const OUTPUT_BYTES_MAX: u64 = 4 << 20;

/// Reads the output of the stage that made a run fail. Returns `None` if that stage printed nothing.
pub fn read(run: &RunFolder, summary: &RunSummary) -> Option<FailedOutput> {
    Some(FailedOutput::new(&outputs(run, summary)?)).filter(|output| !output.is_empty())
}

/// Reads the outputs of the stage that made a run fail: standard output and standard error, or both as one text.
pub fn outputs(run: &RunFolder, summary: &RunSummary) -> Option<Vec<String>> {
    let stage = summary.proof.failed.get(summary.cause()?.node?).filter(|stage| !stage.is_withheld)?;
    let is_output = |name: &str| OUTPUTS.iter().any(|ending| name.ends_with(ending));
    let mut outputs = stage.artifacts.iter().filter(|artifact| is_output(&artifact.name)).peekable();
    outputs.peek()?;
    let blobs = changes::open_blobs(run).ok()?;
    // The summary is printed even if an output cannot be read.
    let texts = outputs.filter_map(|artifact| blobs.read_all(&artifact.digest, OUTPUT_BYTES_MAX).ok());
    Some(texts.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).collect())
}
