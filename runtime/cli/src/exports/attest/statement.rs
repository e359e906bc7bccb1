//! What is attested of a run: an in-toto statement about the files that it changed, built only from its journal and its
//! folder.
//!
//! The same journal gives the same statement, so a verifier rebuilds the statement and compares.

use crate::exit::{Exit, Stop};
use crate::runs::RunFolder;
use crate::runs::changes::Changes;
use crate::runs::journal;
use crate::runs::recorded::allowed;
use crate::terminal::visible;
use glovebox_journal::event::{QuestionAnswered, RunStarted};
use glovebox_journal::sqlite::OpenJournal;
use glovebox_plan::plan::PlanCapabilities;
use glovebox_record::{ChangeOp, Digest, DigestedFile, FileChange};
use glovebox_signing::key::Sha256;
use glovebox_state::evidence::{RunStatus, RunSummary, VerdictFile};
use glovebox_workspace::exposure::Exposure;
use glovebox_workspace::record_files::{self, RecordFiles};
use schemars::JsonSchema;
use serde::Serialize;
use std::borrow::Cow;
use std::io::{self, Read};

/// The type of every in-toto statement.
pub const STATEMENT_TYPE: &str = "https://in-toto.io/Statement/v1";
/// Type of the predicate of Glovebox's statements. It is a name, not an address.
pub const PREDICATE_TYPE: &str = "glovebox:attestation/run/v1";
/// Version of the predicate of Glovebox's statements.
pub const SCHEMA_VERSION: u32 = 1;

/// An in-toto statement about a run.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(title = "statement.json")]
pub struct Statement<'a> {
    /// Always `https://in-toto.io/Statement/v1`.
    #[serde(rename = "_type")]
    statement_type: &'static str,
    /// The run, with the hash of its last record, then each file that the run wrote.
    subject: Vec<Product<'a>>,
    /// Always `glovebox:attestation/run/v1`.
    predicate_type: &'static str,
    /// The attested facts of the run.
    predicate: Predicate<'a>,
}

/// A subject of the statement: the run, or a file that it wrote.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Product<'a> {
    /// `run:` and the run's id, or the path of a file relative to the project.
    name: Cow<'a, str>,
    /// Digests of the file, or the hash of the run's last record.
    digest: &'a ProductDigests,
}

/// Digests as in-toto writes them: hexadecimal digits without a prefix.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ProductDigests {
    /// BLAKE3.
    blake3: String,
    /// SHA-256 of a file, for other tools; absent for the run.
    #[serde(skip_serializing_if = "Option::is_none")]
    sha256: Option<String>,
}

/// The attested facts of a run.
#[derive(Debug, Serialize, JsonSchema)]
struct Predicate<'a> {
    /// Always 1.
    schema_version: u32,
    /// The document of `glovebox show RUN --json`: result, receipts, changes, refusals, digests of pipeline, plan and
    /// components, the tier of the sandbox, the root of the hold-outs, the end of the journal.
    run: VerdictFile<'a>,
    /// The grants of each stage.
    grants: &'a PlanCapabilities,
    /// The answers to human gates, in order.
    answers: &'a [QuestionAnswered],
    /// Every file of the run's record.
    files: Vec<AttestedFile<'a>>,
}

/// A file of the run's record.
#[derive(Debug, Serialize, JsonSchema)]
struct AttestedFile<'a> {
    /// Path and digest of the file.
    #[serde(flatten)]
    file: &'a DigestedFile,
    /// True if the owner of the file may execute it.
    executable: bool,
}

/// Everything from which the attestation of a run is built.
pub struct RunEvidence {
    /// The summary of the run.
    pub summary: RunSummary,
    /// The `run.started` event, with the changes that later resumes made to it.
    pub terms: RunStarted,
    /// The changes of the run.
    pub changes: Changes,
    grants: PlanCapabilities,
    answers: Vec<QuestionAnswered>,
    record: RecordFiles,
    head: ProductDigests,
    products: Vec<(String, ProductDigests)>,
}

impl RunEvidence {
    /// Reads the evidence of a run that has ended. Returns an error if the run has not ended.
    pub fn read(run: &RunFolder, journal: &OpenJournal) -> Result<Self, Stop> {
        let mut answers = Vec::new();
        let summary = RunSummary::read(journal, |record| {
            answers.extend(record.event.question_answered().cloned());
        });
        let summary = summary.map_err(|error| journal::unreadable(run, &error))?;
        require_end(run, &summary)?;
        let terms = journal::current_start(run, &journal.verified.records)?;
        let changes = Changes::read(run)?;
        let written = |change: &&FileChange| change.op == ChangeOp::Write;
        let products = summary.files.changed.values().filter(written).map(|change| product(&changes, change));
        let products = products.collect::<Result<_, _>>()?;
        let failed = |error| Stop::new(Exit::Mismatch, format!("read the files of run `{}`: {error}", run.id));
        Ok(Self {
            grants: allowed(run, &terms)?,
            record: record_files::list(&run.path).map_err(failed)?,
            head: ProductDigests { blake3: summary.head.hash.hex(), sha256: None },
            summary,
            terms,
            changes,
            answers,
            products,
        })
    }

    /// Returns the number of files of the run's record.
    pub fn files_count(&self) -> usize {
        self.record.files.len()
    }

    /// Returns who else may change files of the run's record.
    pub fn exposure(&self) -> &Exposure {
        &self.record.exposure
    }

    /// Returns the bytes of the statement that are signed.
    pub fn statement_bytes(&self) -> Result<Vec<u8>, Stop> {
        serde_json::to_vec(&self.statement()).map_err(|error| Stop::new(Exit::Internal, error.to_string()))
    }

    fn statement(&self) -> Statement<'_> {
        let mut result = VerdictFile::new(&self.summary, &self.terms);
        result.new_configuration = self.changes.new_configuration(self.summary.files.changed.values());
        let run = Product { name: format!("run:{}", self.terms.run_id).into(), digest: &self.head };
        let products = self.products.iter().map(|(name, digest)| Product { name: name.as_str().into(), digest });
        let files =
            self.record.files.iter().map(|found| AttestedFile { file: &found.file, executable: found.executable });
        Statement {
            statement_type: STATEMENT_TYPE,
            subject: std::iter::once(run).chain(products).collect(),
            predicate_type: PREDICATE_TYPE,
            predicate: Predicate {
                schema_version: SCHEMA_VERSION,
                run: result,
                grants: &self.grants,
                answers: &self.answers,
                files: files.collect(),
            },
        }
    }
}

fn require_end(run: &RunFolder, summary: &RunSummary) -> Result<(), Stop> {
    if matches!(summary.status, RunStatus::Success | RunStatus::Fail) {
        return Ok(());
    }
    let message = format!("run `{}` has not ended, so there is nothing to attest", run.id);
    Err(Stop::new(Exit::Usage, message).with_help(format!("wait for it, or continue it: `glovebox resume {}`", run.id)))
}

fn product(changes: &Changes, change: &FileChange) -> Result<(String, ProductDigests), Stop> {
    let path = visible::line(change.path.as_str());
    let damaged = |problem: io::Error| Stop::new(Exit::Mismatch, format!("read the blob of `{path}`: {problem}"));
    let expected = change.digest.as_ref().ok_or_else(|| damaged(io::ErrorKind::NotFound.into()))?;
    let (found, sha256) = digests(changes.open(expected).map_err(damaged)?).map_err(damaged)?;
    if found != *expected {
        return Err(damaged(io::Error::other(format!("it has the digest {found}, not {expected}"))));
    }
    Ok((change.path.to_string(), ProductDigests { blake3: found.hex(), sha256: Some(sha256) }))
}

/// Returns the BLAKE3 and SHA-256 digests of all bytes of a reader.
pub fn digests(mut bytes: impl Read) -> io::Result<(Digest, String)> {
    let (mut blake3, mut sha256) = (blake3::Hasher::new(), Sha256::default());
    let mut buffer = vec![0; 128 << 10];
    loop {
        match bytes.read(&mut buffer) {
            Ok(0) => return Ok((blake3.finalize().into(), sha256.finish())),
            Ok(read) => {
                blake3.update(&buffer[..read]);
                sha256.update(&buffer[..read]);
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exports::attest::signed::Signed;
    use cap_std::ambient_authority;
    use cap_std::fs::Dir;
    use glovebox_journal::blobs::DirBlobs;
    use glovebox_journal::event::{
        AnsweredBy, Attempt, AttemptId, BranchId, Event, QuestionId, RunFinished, StageFinished, StreamKey, Verdict,
    };
    use glovebox_journal::ports::{BlobStore, RunLog};
    use glovebox_journal::sqlite::{SqliteLog, SqliteReader};
    use glovebox_record::path::ScopePath;
    use glovebox_record::{CommandEnding, Outcome, Refusal, RefusedChange, Status};
    use glovebox_state::simulation;
    use glovebox_workspace::project::Base;
    use glovebox_workspace::run_folder::JOURNAL_FILE;
    use jiff::Timestamp;
    use serde::Deserialize;
    use serde_json::{Value, json};
    use std::time::SystemTime;

    const SHA256_OF_ABC: &str = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

    /// A reader that is interrupted before each read, and that returns two bytes at a time.
    struct Interrupted<'a>(&'a [u8], bool);

    impl Read for Interrupted<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            self.1 = !self.1;
            if self.1 { Err(io::ErrorKind::Interrupted.into()) } else { self.0.read(&mut buffer[..2]) }
        }
    }

    struct Failing;

    impl Read for Failing {
        fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
            Err(io::ErrorKind::PermissionDenied.into())
        }
    }

    #[test]
    fn both_digests_are_of_all_bytes() {
        for found in [digests(&b"abc"[..]), digests(Interrupted(b"abc", false))] {
            assert_eq!(found.unwrap(), (Digest::hash(b"abc"), SHA256_OF_ABC.to_owned()));
        }
        assert_eq!(digests(Failing).unwrap_err().kind(), io::ErrorKind::PermissionDenied);
    }

    /// The folder of a run that wrote `out/text` and `.envrc`, removed `old`, and was refused to write `kept`.
    struct Recorded {
        _place: tempfile::TempDir,
        run: RunFolder,
    }

    impl Recorded {
        async fn new(verdict: Option<Verdict>) -> Self {
            let place = tempfile::tempdir().unwrap();
            let run =
                RunFolder { id: "run".to_owned(), path: place.path().to_path_buf(), created: SystemTime::UNIX_EPOCH };
            let log = SqliteLog::open(&run.path.join(JOURNAL_FILE), "run".into()).unwrap();
            let blobs = log.blobs(&Dir::open_ambient_dir(&run.path, ambient_authority()).unwrap()).unwrap();
            let finished = verdict.map(|status| RunFinished {
                status,
                exit_node: None,
                failure: None,
                resumes_at: None,
                artifact: None,
            });
            let events = [started(&blobs), answered(), changed(&blobs)].into_iter();
            let events: Vec<Event> = events.chain(finished.map(Event::RunFinished)).collect();
            log.append(&"run".into(), &[(StreamKey::Run, 0)], Timestamp::UNIX_EPOCH, &events).await.unwrap();
            Self { _place: place, run }
        }

        fn read(&self) -> Result<RunEvidence, Stop> {
            let reader = SqliteReader::open(&self.run.path.join(JOURNAL_FILE)).unwrap();
            let journal = OpenJournal { verified: reader.read_start_and_resumes(None).unwrap(), reader };
            RunEvidence::read(&self.run, &journal)
        }

        fn statement(&self) -> Value {
            serde_json::from_slice(&self.read().unwrap().statement_bytes().unwrap()).unwrap()
        }
    }

    fn started(blobs: &DirBlobs) -> Event {
        let graph = simulation::pipeline("digraph g { start [shape=Mdiamond]; exit [shape=Msquare]; start -> exit }");
        let mut started = simulation::started(&graph, 9, None);
        started.workspace.base_digest = blobs.put_bytes(&Base::default().to_json()).unwrap();
        let allowed = serde_json::to_vec(&PlanCapabilities::default()).unwrap();
        started.plan.capabilities_digest = blobs.put_bytes(&allowed).unwrap();
        Event::RunStarted(Box::new(started))
    }

    fn answered() -> Event {
        Event::QuestionAnswered(Box::new(QuestionAnswered {
            generation: 0,
            branch: BranchId::main(),
            node: "ask".into(),
            visit: 1,
            question: QuestionId::new("q"),
            how: AnsweredBy::Command,
            by: "ada".to_owned(),
            answered_at: Timestamp::UNIX_EPOCH,
            value: "yes".to_owned(),
            answer: None,
            text: String::new(),
            sheet: None,
            recovery: false,
        }))
    }

    fn changed(blobs: &DirBlobs) -> Event {
        let path = |path| ScopePath::parse(path).unwrap();
        let written = |name, bytes: &[u8]| FileChange {
            digest: Some(blobs.put_bytes(bytes).unwrap()),
            bytes: bytes.len() as u64,
            ..FileChange::bare(path(name), ChangeOp::Write)
        };
        let attempt = Attempt { task: simulation::task("make"), ordinal: 1, id: AttemptId::new("a") };
        let mut finished = StageFinished::new(attempt, Outcome::new(Status::Success));
        finished.files.changes =
            vec![written("out/text", b"abc"), written(".envrc", b"x"), FileChange::bare(path("old"), ChangeOp::Delete)];
        finished.files.quarantined = vec![RefusedChange { path: "kept".to_owned(), reason: "not allowed".to_owned() }];
        finished.refusals.listed = vec![Refusal::new("write", "kept", "not allowed", "")];
        finished.commands.receipts = vec![simulation::receipt(Some(1), CommandEnding::Exited)];
        finished.handler = "codergen".to_owned();
        Event::StageFinished(Box::new(finished))
    }

    #[tokio::test]
    async fn a_statement_names_the_written_files_the_answers_and_new_configuration() {
        let recorded = Recorded::new(Some(Verdict::Success)).await;
        let statement = recorded.statement();
        let subjects = statement["subject"].as_array().unwrap();
        let names: Vec<_> = subjects.iter().map(|subject| subject["name"].as_str().unwrap()).collect();
        assert_eq!(names, ["run:run", ".envrc", "out/text"]);
        let digest = json!({ "blake3": Digest::hash(b"abc").hex(), "sha256": SHA256_OF_ABC });
        assert_eq!(subjects[2]["digest"], digest);
        let predicate = &statement["predicate"];
        assert_eq!(predicate["answers"][0]["value"], "yes");
        assert_eq!(predicate["run"]["new_configuration"][0]["path"], ".envrc");
        assert_eq!(predicate["files"][0]["path"], JOURNAL_FILE);
        assert_eq!(recorded.read().unwrap().files_count(), predicate["files"].as_array().unwrap().len());
        std::fs::write(recorded.run.path.join("final.json"), "{}").unwrap();
        assert_eq!(recorded.read().unwrap().files_count(), 2);
    }

    #[tokio::test]
    async fn only_a_run_that_has_ended_has_evidence() {
        for verdict in [Verdict::Success, Verdict::Fail] {
            assert!(Recorded::new(Some(verdict)).await.read().is_ok());
        }
        let stop = Recorded::new(None).await.read().err().unwrap();
        assert_eq!(stop.exit, Exit::Usage);
        assert!(stop.message.contains("has not ended"), "{}", stop.message);
    }

    #[tokio::test]
    async fn a_file_whose_stored_bytes_were_changed_has_no_evidence() {
        let recorded = Recorded::new(Some(Verdict::Success)).await;
        let database = rusqlite::Connection::open(recorded.run.path.join(JOURNAL_FILE)).unwrap();
        let sql = "UPDATE blob SET bytes = CAST('abd' AS BLOB) WHERE bytes = CAST('abc' AS BLOB)";
        assert_eq!(database.execute(sql, []).unwrap(), 1);
        drop(database);
        let stop = recorded.read().err().unwrap();
        assert_eq!(stop.exit, Exit::Mismatch);
        assert!(stop.message.contains("`out/text`: it has the digest"), "{}", stop.message);
    }

    /// The required members of a kind of object in the published schema. The root has no name.
    fn required(schema: &Value, kind: &str) -> Vec<String> {
        let of_kind = if kind.is_empty() { schema } else { &schema["$defs"][kind] };
        of_kind["required"].as_array().unwrap().iter().map(|name| name.as_str().unwrap().to_owned()).collect()
    }

    #[tokio::test]
    async fn a_statement_that_lacks_a_required_member_is_refused_by_name() {
        let schema = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/schemas/statement.schema.json"));
        let schema: Value = serde_json::from_str(schema).unwrap();
        let whole = Recorded::new(Some(Verdict::Fail)).await.statement();
        assert_eq!(Signed::deserialize(&whole).unwrap().predicate.run.status, "fail");
        let mut checked = 0;
        let mut check = |place: &str, name: &str| {
            let mut less = whole.clone();
            let object = less.pointer_mut(place).and_then(Value::as_object_mut).unwrap_or_else(|| panic!("{place}"));
            assert!(object.remove(name).is_some(), "{place}/{name}");
            let error = Signed::deserialize(&less).err().map(|error| error.to_string());
            assert_eq!(error, Some(format!("missing field `{name}`")), "{place}");
            checked += 1;
        };
        for (kind, place) in [
            ("", ""),
            ("Product", "/subject/0"),
            ("ProductDigests", "/subject/0/digest"),
            ("Predicate", "/predicate"),
            ("AttestedFile", "/predicate/files/0"),
            ("VerdictFile", "/predicate/run"),
            ("ExitShape", "/predicate/run/exit"),
            ("JournalHead", "/predicate/run/journal"),
            ("Visit", "/predicate/run/visited/0"),
            ("CommandEvidence", "/predicate/run/receipts/0"),
            ("UnverifiedStage", "/predicate/run/unverified/0"),
            ("QuarantinedFile", "/predicate/run/quarantined/0"),
        ] {
            required(&schema, kind).iter().for_each(|name| check(place, name));
        }
        ["node", "times", "operation", "path", "reason"]
            .iter()
            .for_each(|name| check("/predicate/run/refused/0", name));
        assert!(checked > 60, "{checked}");
    }

    #[tokio::test]
    async fn a_member_may_be_null_or_new_but_not_of_another_kind() {
        let mut whole = Recorded::new(Some(Verdict::Fail)).await.statement();
        whole["predicate"]["run"]["new"] = json!(1);
        assert!(Signed::deserialize(&whole).is_ok(), "a later version may add members");
        let run = whole["predicate"]["run"].as_object().unwrap();
        let nulls: Vec<String> =
            run.iter().filter(|(_, value)| value.is_null()).map(|(name, _)| name.clone()).collect();
        assert!(nulls.len() > 3, "{nulls:?}");
        for name in nulls {
            let mut other = whole.clone();
            other["predicate"]["run"][&name] = json!([true]);
            assert!(Signed::deserialize(&other).is_err(), "{name}");
        }
    }
}
