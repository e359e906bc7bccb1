//! `glovebox verify-run`: does an attestation hold, and is the run in this folder still the one that was attested?
//!
//! It needs the attestation and a public key; no network, no service and no key of the user who ran it. The first thing that does not
//! hold is named, and ends it with exit 11.

use crate::arguments::VerifyRunArguments;
use crate::attest::compare;
use crate::attest::envelope::{Envelope, FILE_BYTES_MAX};
use crate::attest::keys::PublicKey;
use crate::attest::statement::{self, PREDICATE_TYPE, RunEvidence, SCHEMA_VERSION, STATEMENT_TYPE};
use crate::exit::{Ended, Exit, Stop};
use crate::runs::{self, RunFolder};
use crate::terminal::rows::Rows;
use crate::terminal::{self, counted, paint::Paint, visible};
use crate::{journal, regular_file};
use glovebox_engine::run::{HOLDOUTS_DIR, WORKSPACE_DIR};
use glovebox_record::path::ScopePath;
use glovebox_sandbox::apply::open_before;
use glovebox_sandbox::holdout::Seal;
use glovebox_sandbox::restore;
use serde_json::Value;
use std::fmt;
use std::io::{self, Read};
use std::path::Path;

/// Checks the signature, then the run's journal, its files, its workspace and its hold-outs.
pub fn verify_run(arguments: &VerifyRunArguments) -> Ended {
    let key = PublicKey::read(&arguments.key)?;
    let statement = Attestation::read(&arguments.file, &key)?;
    let mut rows = Rows::new(12).painted(Paint::stdout());
    let run = &statement.predicate()["run"];
    let exit = &run["exit"];
    rows.row("run", visible::line(&format!("{}: {}, exit {}", statement.run_id(), text(&run["status"]), exit["code"])));
    rows.row("signed", format_args!("with {}", key.id()));
    if let Some(folder) = &arguments.tree {
        rows.row("tree", statement.require_in(folder)?);
    }
    if arguments.signature_only {
        rows.row("record", "not compared: `--signature-only`");
    } else {
        record(&mut rows, &statement, &folder_of(arguments, &statement)?)?;
    }
    terminal::print(rows.finish());
    Ok(Exit::Ok)
}

/// A statement whose signature holds.
struct Attestation(Value);

impl Attestation {
    fn read(file: &Path, key: &PublicKey) -> Result<Self, Stop> {
        let mut bytes = Vec::new();
        let read = regular_file::open(file).and_then(|file| file.take(FILE_BYTES_MAX).read_to_end(&mut bytes));
        read.map_err(|error| Stop::io(format!("read the attestation `{}`", file.display()), &error))?;
        let broken = |problem: &dyn fmt::Display| {
            let problem = problem.to_string();
            let message = format!("the attestation `{}` does not hold: {}", file.display(), visible::line(&problem));
            Stop::new(Exit::Mismatch, message)
                .with_help("get the attestation again from its author, and the author's public key")
        };
        let payload = Envelope::open(&bytes, key).map_err(|error| broken(&error))?;
        let statement: Value = serde_json::from_slice(&payload).map_err(|error| broken(&error))?;
        let of = |name: &str| statement[name].as_str().unwrap_or_default();
        let (kind, predicate) = (of("_type"), of("predicateType"));
        let version = statement["predicate"]["schema_version"].as_u64();
        if (kind, predicate) != (STATEMENT_TYPE, PREDICATE_TYPE) || version != Some(SCHEMA_VERSION.into()) {
            return Err(broken(&"it is signed, but it is no statement about a run that this version knows"));
        }
        Ok(Self(statement))
    }

    fn predicate(&self) -> &Value {
        &self.0["predicate"]
    }

    fn run_id(&self) -> &str {
        text(&self.predicate()["run"]["run_id"])
    }

    /// Requires that a folder has every file as the run left it.
    fn require_in(&self, folder: &Path) -> Result<String, Stop> {
        let differs = |path: &str, problem: &dyn fmt::Display| {
            not_attested(format!("`{}` in `{}` {problem}", visible::line(path), folder.display()))
        };
        // The first is the run.
        let files = self.0["subject"].as_array().into_iter().flatten().skip(1);
        let mut count = 0;
        for file in files {
            let path = text(&file["name"]);
            let found = ScopePath::parse(path).map_err(|problem| differs(path, &problem)).and_then(|_| {
                let found = open_before(folder, path).and_then(statement::digests);
                found.map_err(|error| differs(path, &format_args!("cannot be read: {error}")))
            })?;
            if file["digest"]["sha256"] != Value::String(found.1) {
                return Err(differs(path, &"is not as the run left it"));
            }
            count += 1;
        }
        for change in self.predicate()["run"]["changed"].as_array().into_iter().flatten() {
            let path = text(&change["path"]);
            let is_gone = matches!(open_before(folder, path), Err(error) if error.kind() == io::ErrorKind::NotFound);
            if change["op"] == "delete" && !is_gone {
                return Err(differs(path, &"is there; the run removed it"));
            }
        }
        Ok(format!("{}, as the run left them", counted(count, "file")))
    }
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn not_attested(message: impl fmt::Display) -> Stop {
    Stop::new(Exit::Mismatch, message.to_string())
        .with_help("do not trust it as what was attested: get a copy, or attest the run as it is now")
}

fn folder_of(arguments: &VerifyRunArguments, statement: &Attestation) -> Result<RunFolder, Stop> {
    let all = runs::list(&arguments.runs.runs_dir)?;
    let found = all.into_iter().find(|run| run.id == statement.run_id());
    found.ok_or_else(|| {
        let (id, place) = (visible::line(statement.run_id()), arguments.runs.runs_dir.display());
        Stop::new(
            Exit::Usage,
            format!("the signature holds, but run `{id}` is not in `{place}`, so nothing else was checked"),
        )
        .with_help("name the folder of runs: `--runs-dir D`; or be content with the signature: `--signature-only`")
    })
}

/// Compares what was attested with what the run's folder holds.
fn record(rows: &mut Rows, attested: &Attestation, run: &RunFolder) -> Result<(), Stop> {
    let (reader, verified) = journal::open_of_anybody(run)?;
    let head = &attested.predicate()["run"]["journal"];
    let (records, found) = (head["records"].as_u64().unwrap_or_default(), verified.records_count());
    if found != records {
        let what = if found < records { "lost its last records" } else { "went on after it was attested" };
        return Err(not_attested(format!(
            "run `{}` {what}: its journal has {found} records, {records} were attested",
            run.id
        )));
    }
    if *head != serde_json::json!({ "records": records, "hash": verified.head() }) {
        return Err(not_attested(format!(
            "the journal of run `{}` is another: it ends with {}",
            run.id,
            verified.head()
        )));
    }
    let evidence = RunEvidence::read(run, (&reader, &verified))?;
    drop(reader);
    let now = serde_json::from_slice(&evidence.statement_bytes()?);
    let now = now.map_err(|error| Stop::new(Exit::Internal, error.to_string()))?;
    if let Some(difference) = compare::first(&attested.0, &now) {
        return Err(not_attested(format!("run `{}` is not as it was attested: {difference}", run.id)));
    }
    rows.row(
        "journal",
        format_args!("{}, as attested", counted(usize::try_from(records).unwrap_or(usize::MAX), "record")),
    );
    rows.row("files", format_args!("{} of the record, as attested", evidence.files_count()));
    rows.row("workspace", workspace(run, &evidence)?);
    if let Some(sealed) = &evidence.terms.holdouts {
        rows.row("hold-outs", holdouts(run, &sealed.root)?);
    }
    Ok(())
}

/// Compares the run's workspace with its journal.
fn workspace(run: &RunFolder, evidence: &RunEvidence) -> Result<&'static str, Stop> {
    let place = run.path.join(WORKSPACE_DIR);
    if !place.exists() {
        return Ok("not there any more");
    }
    let changes = &evidence.changes;
    let differing = restore::differing(&place, &changes.base, changes.changes.iter());
    let differing =
        differing.map_err(|error| not_attested(format!("read the workspace of run `{}`: {error}", run.id)))?;
    match differing.first() {
        None => Ok("every file is as the journal says"),
        Some(path) => {
            Err(not_attested(format!("`{path}` in the workspace of run `{}` is not as the journal says", run.id)))
        }
    }
}

/// Compares the sealed hold-outs with their root.
fn holdouts(run: &RunFolder, root: &glovebox_record::Digest) -> Result<&'static str, Stop> {
    let place = run.path.join(HOLDOUTS_DIR);
    if !place.exists() {
        return Ok("not there; their root is attested");
    }
    let verified = Seal::open(&place).and_then(|seal| seal.verify(root, &seal.files()));
    match verified.as_deref() {
        Ok([]) => Ok("as they were sealed"),
        Ok([first, ..]) => Err(not_attested(format!(
            "hold-out `{}` of run `{}` is not as it was sealed",
            visible::line(&first.path),
            run.id
        ))),
        Err(error) => Err(not_attested(format!("hold-outs of run `{}`: {error}", run.id))),
    }
}
