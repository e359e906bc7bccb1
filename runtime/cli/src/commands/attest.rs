//! `glovebox attest`: what a run proved, signed with a key of the user, for people who do not have the run.

use crate::arguments::AttestArguments;
use crate::exit::{CommandResult, Exit};
use crate::exports::attest::folder;
use crate::exports::attest::statement::RunEvidence;
use crate::key_files;
use crate::replaced_file;
use crate::runs;
use crate::runs::journal;
use crate::terminal;
use glovebox_signing::envelope::{Envelope, PayloadType};
use std::path::Path;

/// Writes the attestation of a run that this user started and that has ended.
pub fn attest(arguments: &AttestArguments) -> CommandResult {
    let run = runs::select(&arguments.runs.runs_dir, &arguments.run)?;
    let journal = journal::open_verified(&run)?;
    let started = journal::beginning(&run, &journal.verified.records)?;
    journal::refuse_foreign(
        &run,
        journal.verified.provenance,
        "run `glovebox attest` as the user who started the run",
    )?;
    let key = key_files::read_private(&arguments.key, Path::new(&started.workspace.source_dir))?;
    let evidence = RunEvidence::read(&run, &journal)?;
    drop(journal);
    // If the files differ from the journal now, the attestation could never be verified.
    folder::workspace(&run, &evidence)?;
    evidence.terms.workspace.holdouts.iter().try_for_each(|sealed| folder::holdouts(&run, &sealed.root).map(drop))?;
    let text = Envelope::sign(PayloadType::IN_TOTO, &evidence.statement_bytes()?, &[&key]).to_line();
    let Some(file) = &arguments.output else {
        terminal::print_bytes(text.as_bytes());
        return Ok(Exit::Ok);
    };
    replaced_file::put(file, &text)?;
    let key = key.public().id();
    terminal::say(format_args!("attested run `{}` in `{}`, signed with {key}\n", run.id, file.display()));
    Ok(Exit::Ok)
}
