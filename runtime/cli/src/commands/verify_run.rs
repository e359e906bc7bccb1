//! `glovebox verify-run`: checks an attestation, and that the run in this folder is still the run that was attested.
//!
//! It needs the attestation and a public key, but no network, no service and no key of the user who ran the pipeline.
//! It reports the first difference, and ends with exit 11.

use crate::arguments::VerifyRunArguments;
use crate::exit::{CommandResult, Exit, Stop};
use crate::exports::attest::signed::Signed;
use crate::exports::attest::statement::{PREDICATE_TYPE, RunEvidence, SCHEMA_VERSION, STATEMENT_TYPE};
use crate::exports::attest::{compare, folder};
use crate::key_files;
use crate::runs::journal;
use crate::runs::{self, RunFolder};
use crate::terminal::rows::Rows;
use crate::terminal::{self, counted, paint::Paint, visible};
use glovebox_record::ChangeOp;
use glovebox_record::path::ScopePath;
use glovebox_signing::envelope::{Envelope, PayloadType};
use glovebox_signing::key::PublicKey;
use glovebox_workspace::apply::{is_as_left, link_above};
use glovebox_workspace::exposure::Exposure;
use glovebox_workspace::record_files;
use glovebox_workspace::regular_file::{self, Links};
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeSet;
use std::fmt;
use std::io::{self, Read};
use std::path::Path;

/// Maximum size of an attestation file, in bytes.
const FILE_BYTES_MAX: u64 = 256 << 20;
/// Maximum number of bytes by which the files of a run may exceed the attested files and still be read, so that the
/// difference can be named.
const MORE_BYTES_MAX: u64 = 64 << 20;

/// Checks the signature, then the run's journal, files, workspace and hold-outs.
pub fn verify_run(arguments: &VerifyRunArguments) -> CommandResult {
    let key = key_files::read_public(&arguments.key)?;
    let statement = Attestation::read(&arguments.file, &key)?;
    let mut rows = Rows::new(12).painted(Paint::stdout());
    let run = &statement.signed.predicate.run;
    rows.row("run", format_args!("{}: {}, exit {}", run.run_id, run.status, run.exit.code));
    rows.row("signed", format_args!("with {}", key.id()));
    if let Some(folder) = &arguments.tree {
        let mut exposure = Exposure::default();
        rows.row("tree", statement.require_in(folder, &mut exposure)?);
        note(&mut rows, &exposure);
    }
    if arguments.signature_only {
        rows.row("record", "not compared: `--signature-only`");
    } else {
        record(&mut rows, &statement, &folder_of(arguments, &statement)?)?;
    }
    terminal::print(rows.finish());
    Ok(Exit::Ok)
}

/// A statement with a valid signature.
struct Attestation {
    signed: Signed,
    /// The statement as JSON, including fields that this version does not know.
    whole: Value,
}

impl Attestation {
    fn read(file: &Path, key: &PublicKey) -> Result<Self, Stop> {
        let mut bytes = Vec::new();
        let read =
            regular_file::open(file, Links::Follow).and_then(|file| file.take(FILE_BYTES_MAX).read_to_end(&mut bytes));
        read.map_err(|error| Stop::io(format!("read the attestation `{}`", file.display()), &error))?;
        let broken = |problem: &dyn fmt::Display| {
            let problem = problem.to_string();
            let message = format!("the attestation `{}` is not valid: {}", file.display(), visible::line(&problem));
            Stop::new(Exit::Mismatch, message)
                .with_help("get the attestation again from its author, and the author's public key")
        };
        let payload = Envelope::open(PayloadType::IN_TOTO, &bytes, key).map_err(|error| broken(&error))?;
        let statement: Value = serde_json::from_slice(&payload).map_err(|error| broken(&error))?;
        let of = |name: &str| statement[name].as_str().unwrap_or_default();
        let (kind, predicate) = (of("_type"), of("predicateType"));
        let version = statement["predicate"]["schema_version"].as_u64();
        if (kind, predicate) != (STATEMENT_TYPE, PREDICATE_TYPE) || version != Some(SCHEMA_VERSION.into()) {
            return Err(broken(
                &"it is signed, but it is not a statement about a run, or its version is not one that this program supports",
            ));
        }
        let signed = Signed::deserialize(&statement);
        let lacks = |error| format!("it is signed, but a field of the statement is missing or invalid: {error}");
        let signed = signed.map_err(|error| broken(&lacks(error)))?;
        Ok(Self { signed, whole: statement })
    }

    /// Returns an error if the files of a run are much longer than the attested files, before any of them is read.
    fn require_length(&self, run: &RunFolder) -> Result<(), Stop> {
        let files = self.signed.predicate.files.iter();
        let attested: u64 = files.map(|file| file.file.bytes).fold(0, u64::saturating_add);
        let failed = |error| folder::differs(format!("read the files of run `{}`: {error}", run.id));
        match record_files::bytes(&run.path).map_err(failed)? {
            found if found <= attested.saturating_add(MORE_BYTES_MAX) => Ok(()),
            found => Err(folder::differs(format!(
                "the record of run `{}` has {found} bytes, {attested} bytes were attested",
                run.id
            ))),
        }
    }

    /// Returns an error unless a folder has every changed path as the run left it.
    fn require_in(&self, folder: &Path, exposure: &mut Exposure) -> Result<String, Stop> {
        let changed = &self.signed.predicate.run.changed;
        let links = changed.iter().filter(|change| change.op == ChangeOp::Symlink).map(|change| &change.path);
        let links: BTreeSet<&ScopePath> = links.collect();
        // A folder that the run removed may remain, because the user may have other files in it.
        for change in changed.iter().filter(|change| change.op != ChangeOp::Rmdir) {
            let differs = |problem: &dyn fmt::Display| {
                let path = visible::line(change.path.as_str());
                folder::differs(format!("`{path}` in `{}` {problem}", folder.display()))
            };
            let unreadable = |error: io::Error| differs(&format_args!("cannot be read: {error}"));
            match is_as_left(folder, change, exposure).map_err(unreadable)? {
                true => {}
                false if change.op.removes() => return Err(differs(&"exists, but the run removed it")),
                false => return Err(differs(&"is not as the run left it")),
            }
            // A path below a link is in another place, so its absence does not prove that it was removed.
            let link = if change.op.removes() { link_above(folder, &change.path).map_err(unreadable)? } else { None };
            if let Some(link) = link.filter(|link| !links.contains(link)) {
                let link = visible::line(link.as_str());
                return Err(differs(&format_args!("is below `{link}`, a link that the run did not make")));
            }
        }
        folder::no_repository(folder, changed)?;
        Ok(format!("{}, as the run left them", counted(changed.len(), "path")))
    }
}

/// Adds notes about files that match now but that other users can change: through a hard link, or because every user
/// may write them.
fn note(rows: &mut Rows, exposure: &Exposure) {
    let (linked, writable) = (exposure.linked(), exposure.writable);
    if linked > 0 {
        rows.row(
            "note",
            format_args!(
                "{} with a second name (a hard link), through which others may change the content",
                counted(linked, "file")
            ),
        );
    }
    if writable > 0 {
        rows.row("note", format_args!("{} that every user of this machine may write", counted(writable, "file")));
    }
}

fn folder_of(arguments: &VerifyRunArguments, statement: &Attestation) -> Result<RunFolder, Stop> {
    let all = runs::list(&arguments.runs.runs_dir)?;
    let run_id = &*statement.signed.predicate.run.run_id;
    let found = all.into_iter().find(|run| run.id == run_id);
    found.ok_or_else(|| {
        let (id, place) = (visible::line(run_id), arguments.runs.runs_dir.display());
        Stop::new(
            Exit::Usage,
            format!("the signature is valid, but run `{id}` is not in `{place}`, so nothing else was checked"),
        )
        .with_help("name the folder of runs: `--runs-dir D`; or check only the signature: `--signature-only`")
    })
}

/// Compares the run's folder with what was attested.
fn record(rows: &mut Rows, attested: &Attestation, run: &RunFolder) -> Result<(), Stop> {
    attested.require_length(run)?;
    let journal = journal::open_of_anybody(run)?;
    let verified = &journal.verified;
    let head = attested.signed.predicate.run.journal;
    let (records, found) = (head.records, verified.records_count());
    if found != records {
        let what = if found < records { "lost its last records" } else { "continued after it was attested" };
        return Err(folder::differs(format!(
            "run `{}` {what}: its journal has {found} records, {records} were attested",
            run.id
        )));
    }
    if head.hash != verified.head() {
        return Err(folder::differs(format!(
            "the journal of run `{}` is not the attested one: its last record has the hash {}",
            run.id,
            verified.head()
        )));
    }
    let evidence = RunEvidence::read(run, &journal)?;
    drop(journal);
    let now = serde_json::from_slice(&evidence.statement_bytes()?);
    let now = now.map_err(|error| Stop::new(Exit::Internal, error.to_string()))?;
    if let Some(difference) = compare::first(&attested.whole, &now) {
        return Err(folder::differs(format!("run `{}` is not as it was attested: {difference}", run.id)));
    }
    rows.row(
        "journal",
        format_args!("{}, as attested", counted(usize::try_from(records).unwrap_or(usize::MAX), "record")),
    );
    rows.row("files", format_args!("{} of the record, as attested", evidence.files_count()));
    note(rows, evidence.exposure());
    rows.row("workspace", folder::workspace(run, &evidence)?);
    if let Some(sealed) = &evidence.terms.workspace.holdouts {
        rows.row("hold-outs", folder::holdouts(run, &sealed.root)?);
    }
    Ok(())
}
