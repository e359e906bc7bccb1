//! Tests a run directory and its workspace: created, interrupted and opened again.

use cap_std::ambient_authority;
use cap_std::fs::Dir;
use glovebox_engine::driver::{Assignment, AttemptResult, RunError};
use glovebox_engine::run::{DriveLimits, NewRun, ResumeTerms, RunDir, Session, apply_changes};
use glovebox_engine::signals::LocalSignals;
use glovebox_engine::stores::{OpenStores, Stores};
use glovebox_journal::event::{ChangeOp, Digest, Event, FileChange, Record, StageFiles, StageFinished, Verdict};
use glovebox_journal::memory::{MemoryBlobs, MemoryLeases, MemoryLog};
use glovebox_journal::ports::{BlobStore, Leases, PortError, RunLog};
use glovebox_journal::sqlite::{SqliteReader, VerifiedJournal};
use glovebox_pipeline::Source;
use glovebox_pipeline::ir::Pipeline;
use glovebox_pipeline::{Inputs, check};
use glovebox_plan::config::ExecSetting;
use glovebox_plan::config::sandbox::SandboxSetting;
use glovebox_plan::plan::{
    Confinement, OperatorBounds, Plan, PlanFindings, PlannedChecks, PlannedCommands, PlannedFolders, PlannedModels,
    PlannedPlacement, SandboxPlan,
};
use glovebox_plan::prepare::executor::Worker;
use glovebox_record::spend::SpendBounds;
use glovebox_record::{Outcome, Status};
use glovebox_workspace::project::{Base, Include};
use glovebox_workspace::run_folder::JOURNAL_FILE;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, OnceLock};

const SOURCE: &str = "digraph g { goal=\"ship\"; max_steps=30; start [shape=Mdiamond]; exit [shape=Msquare];
    a [prompt=\"x\"]; b [prompt=\"y\"]; start -> a -> b -> exit }";

struct Place {
    folder: tempfile::TempDir,
    pipeline: Pipeline,
}

impl Place {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(folder.path().join("project/src")).unwrap();
        std::fs::write(folder.path().join("project/src/main.rs"), "fn main() {}").unwrap();
        std::fs::write(folder.path().join("project/old.txt"), "old").unwrap();
        std::fs::create_dir(folder.path().join("run")).unwrap();
        let pipeline = check(Source::new(SOURCE), &Inputs::default()).pipeline.expect("the graph is valid");
        Self { folder, pipeline }
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.folder.path().join(name)
    }

    fn run_dir(&self) -> RunDir {
        let path = self.path("run");
        RunDir { dir: Dir::open_ambient_dir(&path, ambient_authority()).unwrap(), path, key: None }
    }

    fn new_run<'a>(files: &'a BTreeMap<String, String>, project: &'a Path) -> NewRun<'a> {
        NewRun {
            run_id: "run-1".into(),
            source: SOURCE,
            files,
            pipeline_path: "pipeline.dot".into(),
            project,
            include: Include::default(),
            script: Some(b"script"),
            inputs: BTreeMap::new(),
            from: None,
            steps_max: Some(100),
            wall_max: None,
            stall: Default::default(),
            spend_max: SpendBounds::default(),
            labels: BTreeMap::new(),
            earlier: Vec::new(),
            shared: None,
        }
    }

    async fn create(&self) -> (Session, Vec<Record>) {
        let (files, project) = (BTreeMap::new(), self.path("project"));
        let new = Self::new_run(&files, &project);
        let (session, (), records) =
            Session::create(self.run_dir(), worker("first"), &plan(&self.pipeline), new, |_, _| None, |_, _| Ok(()))
                .await
                .unwrap();
        (session, records)
    }

    fn open(&self) -> Session {
        open(self.run_dir(), "second").unwrap()
    }

    fn read(&self, path: &str) -> Option<String> {
        std::fs::read_to_string(self.path("run/workspace").join(path)).ok()
    }
}

fn worker(name: &str) -> Worker {
    Worker { name: name.to_owned(), ..Worker::default() }
}

/// Opens the run as `resume` does: reads and verifies its journal, then takes it over.
fn open(dir: RunDir, name: &str) -> Result<Session, RunError> {
    let verified = SqliteReader::open(&dir.path.join(JOURNAL_FILE))?.read_start_and_resumes(None)?;
    Session::open(dir, worker(name), &verified)?.read(&mut ())
}

/// Creates a plan whose stages these tests execute themselves.
fn plan(pipeline: &Pipeline) -> Plan {
    Plan {
        pipeline: Arc::new(pipeline.clone()),
        bindings: BTreeMap::new(),
        folders: PlannedFolders::default(),
        commands: PlannedCommands {
            exec: ExecSetting::default(),
            sandbox: SandboxPlan {
                confinement: Confinement::NotNeeded,
                setting: SandboxSetting::default(),
                degradations: Vec::new(),
            },
        },
        models: PlannedModels::default(),
        placement: PlannedPlacement::default(),
        checks: PlannedChecks::default(),
        bounds: OperatorBounds { disk_bytes_max: u64::MAX, parallel_max: 4, spend_max: SpendBounds::default() },
        findings: PlanFindings::default(),
        hidden: OnceLock::new(),
    }
}

fn change(path: &str, op: ChangeOp, digest: Option<Digest>) -> FileChange {
    FileChange {
        path: glovebox_record::path::ScopePath::parse(path).unwrap(),
        op,
        digest,
        bytes: 3,
        executable: false,
        mode: None,
        target: None,
    }
}

fn finish(claim: &Assignment, changes: Vec<FileChange>) -> StageFinished {
    let finished = StageFinished::new(claim.attempt.clone(), Outcome::new(Status::Success));
    let files = StageFiles { changes, ..StageFiles::default() };
    StageFinished { handler: "codergen".to_owned(), files, ..finished }
}

type Failed = Box<dyn std::error::Error + Send + Sync>;

/// Drives the run: `a` writes, creates and deletes files; `b` fails with an error of the runtime unless `whole` is true.
async fn drive<S: Stores>(place: &Place, session: &mut Session<S>, whole: bool) -> Result<(), RunError> {
    let blobs = session.blobs.clone();
    let stage = async |claim: Assignment| -> Result<AttemptResult, Failed> {
        if claim.attempt.task.node == "b" {
            return if whole { Ok(finish(&claim, Vec::new()).into()) } else { Err("the machine is on fire".into()) };
        }
        let digest = blobs.put_bytes(b"new")?;
        let changes = vec![
            change("old.txt", ChangeOp::Delete, None),
            change("made", ChangeOp::Mkdir, None),
            change("made/new.txt", ChangeOp::Write, Some(digest)),
        ];
        Ok(finish(&claim, changes).into())
    };
    session.drive(&plan(&place.pipeline), &LocalSignals::new(), DriveLimits::default(), &mut (), stage).await
}

#[tokio::test]
async fn the_first_record_names_what_is_stored_already() {
    let place = Place::new();
    let (session, records) = place.create().await;
    let kinds: Vec<_> = records.iter().map(|record| record.event.kind()).collect();
    assert_eq!(kinds, ["run.started", "stage.passed", "route.taken", "stage.ready"]);
    let Event::RunStarted(started) = &records[0].event else { panic!("the first record is the start") };
    assert_eq!(session.blobs.read_all(&started.pipeline.digest, 10_000).unwrap(), SOURCE.as_bytes());
    assert_eq!(session.blobs.read_all(&started.model.script_digest.unwrap(), 10).unwrap(), b"script");
    let base: Base =
        serde_json::from_slice(&session.blobs.read_all(&started.workspace.base_digest, 10_000).unwrap()).unwrap();
    assert_eq!(base.files.keys().collect::<Vec<_>>(), ["old.txt", "src/main.rs"]);
    assert_eq!(place.read("src/main.rs").as_deref(), Some("fn main() {}"));
    assert_eq!(
        (started.bounds.steps_max, started.pipeline.goal.as_str(), started.run_id.as_str()),
        (30, "ship", "run-1")
    );
    assert_eq!(session.state().main().context.text("graph.goal"), "ship");
}

#[tokio::test]
async fn a_run_that_was_cut_off_goes_on_from_its_last_commit() {
    let place = Place::new();
    let (mut session, _) = place.create().await;
    let error = drive(&place, &mut session, false).await.unwrap_err();
    assert_eq!(error.to_string(), "could not execute node `b`");
    drop(session);
    assert_eq!((place.read("made/new.txt").as_deref(), place.read("old.txt")), (Some("new"), None));
    // A crash during the application of changes, or another process, may leave the workspace in this state.
    std::fs::remove_file(place.path("run/workspace/made/new.txt")).unwrap();
    std::fs::write(place.path("run/workspace/old.txt"), "back again").unwrap();

    let mut session = place.open();
    assert_eq!((session.run_id(), session.verdict()), ("run-1".into(), None));
    session.resume(&place.pipeline, ResumeTerms::default(), None, &mut ()).await.unwrap();
    assert_eq!((place.read("made/new.txt").as_deref(), place.read("old.txt")), (Some("new"), None));
    drive(&place, &mut session, true).await.unwrap();
    assert_eq!(session.verdict(), Some(Verdict::Success));
    let completed: Vec<&str> = session.state().main().completed.kept().map(|node| node.as_str()).collect();
    assert_eq!(completed, ["start", "a", "b"]);
    let started = kinds(&session).await.into_iter().filter(|kind| *kind == "stage.started").count();
    assert_eq!(started, 3, "`a` once, `b` twice: a finished stage is not executed again");
    assert_eq!(
        std::fs::read_to_string(place.path("project/old.txt")).unwrap(),
        "old",
        "the user's tree is never written"
    );
}

async fn kinds<S: Stores>(session: &Session<S>) -> Vec<&'static str> {
    session.journal.read(&session.run_id(), 1, 1000).await.unwrap().iter().map(|record| record.event.kind()).collect()
}

#[tokio::test]
async fn a_finished_run_says_so() {
    let place = Place::new();
    let (mut session, _) = place.create().await;
    drive(&place, &mut session, true).await.unwrap();
    drop(session);
    let mut session = place.open();
    let before = kinds(&session).await;
    let error = session.resume(&place.pipeline, ResumeTerms::default(), None, &mut ()).await.unwrap_err();
    assert_eq!(error.to_string(), "run `run-1` has ended (success), expected one that failed or was interrupted");
    assert_eq!(kinds(&session).await, before);
}

#[tokio::test]
async fn nobody_else_may_drive_a_run_that_is_driven() {
    let place = Place::new();
    let (session, _) = place.create().await;
    let error = open(place.run_dir(), "second").err().expect("it is taken");
    assert!(matches!(error, RunError::Port(PortError::Unavailable(_))), "{error}");
    drop(session);
    place.open();
}

#[tokio::test]
async fn a_directory_without_a_first_record_is_no_run() {
    let place = Place::new();
    let nothing = VerifiedJournal::empty();
    let error = Session::open(place.run_dir(), worker("second"), &nothing).err().expect("nothing was started");
    assert!(matches!(error, RunError::NotStarted), "{error}");
}

#[tokio::test]
async fn a_rotten_blob_stops_a_resume() {
    let place = Place::new();
    let (mut session, _) = place.create().await;
    drive(&place, &mut session, false).await.unwrap_err();
    drop(session);
    let journal = rusqlite::Connection::open(place.path("run/journal.sqlite")).unwrap();
    let sql = "UPDATE blob SET bytes = CAST('bad' AS BLOB) WHERE digest = ?1";
    assert_eq!(journal.execute(sql, [Digest::hash(b"new").as_bytes()]).unwrap(), 1);
    drop(journal);
    std::fs::remove_file(place.path("run/workspace/made/new.txt")).unwrap();
    let mut session = place.open();
    let error = session.resume(&place.pipeline, ResumeTerms::default(), None, &mut ()).await.unwrap_err();
    assert!(matches!(error, RunError::Workspace(_)), "{error}");
    assert_eq!(place.read("made/new.txt"), None, "nothing that is not what was stored gets into the workspace");
}

/// Stores that several processes share.
#[derive(Clone, Default)]
struct Shared {
    log: MemoryLog,
    blobs: Arc<MemoryBlobs>,
    leases: MemoryLeases,
}

impl Stores for Shared {
    type Log = MemoryLog;
    type Blobs = MemoryBlobs;
    type Lease = MemoryLeases;
    type Mail = ();
}

impl Shared {
    async fn open(&self) -> Result<OpenStores<Self>, PortError> {
        let held = self.leases.take(&"run-1".into()).await?;
        let (journal, blobs, lease) = (self.log.clone(), Arc::clone(&self.blobs), self.leases.clone());
        Ok(OpenStores { journal, blobs, mail: (), lease, held })
    }
}

#[tokio::test]
async fn a_second_session_takes_over_a_run_whose_lease_was_lost() {
    let (place, shared) = (Place::new(), Shared::default());
    let (files, project) = (BTreeMap::new(), place.path("project"));
    let (new, plan) = (Place::new_run(&files, &project), plan(&place.pipeline));
    let (dir, stores) = (place.run_dir(), shared.open().await.unwrap());
    let created = Session::create_in(dir, stores, worker("m1"), &plan, new, |_, _| None, |_, _| Ok(())).await;
    let (mut first, (), _) = created.unwrap();
    assert!(matches!(shared.open().await.err(), Some(PortError::Unavailable(_))), "the run is driven");
    let blobs = Arc::clone(&shared.blobs);
    let stage = async |claim: Assignment| -> Result<AttemptResult, Failed> {
        if claim.attempt.task.node == "b" {
            shared.leases.end(&"run-1".into());
            return std::future::pending().await;
        }
        let digest = blobs.put_bytes(b"new")?;
        Ok(finish(&claim, vec![change("new.txt", ChangeOp::Write, Some(digest))]).into())
    };
    let driven = first.drive(&plan, &LocalSignals::new(), DriveLimits::default(), &mut (), stage).await;
    assert_eq!(driven.unwrap_err().to_string(), "the store is unavailable: the lease of run `run-1` was lost");

    std::fs::remove_file(place.path("run/workspace/new.txt")).unwrap();
    let (stores, run) = (shared.open().await.unwrap(), "run-1".into());
    let second = Session::read_from(place.run_dir(), stores, &run, worker("m2"), &mut ()).await;
    let mut second = second.unwrap();
    second.take_over(&place.pipeline, &mut ()).await.unwrap();
    assert_eq!(place.read("new.txt").as_deref(), Some("new"), "the workspace is that of the journal");
    drive(&place, &mut second, true).await.unwrap();
    assert_eq!(second.verdict(), Some(Verdict::Success));
    let kinds = kinds(&second).await;
    let takeovers = kinds.iter().filter(|kind| **kind == "run.taken_over").count();
    let finished = kinds.iter().filter(|kind| **kind == "stage.finished").count();
    assert_eq!((takeovers, finished), (1, 2));
    let late = drive(&place, &mut first, true).await.unwrap_err();
    assert!(matches!(late, RunError::NotStarted | RunError::TakenOver { .. } | RunError::Port(_)), "{late}");
}

/// The environment variable with the folder for the child process. The child runs this test program.
const CHILD: &str = "GLOVEBOX_TEST_SESSION";

/// In the child process: starts or resumes the run and drives it until it ends or the child is killed.
#[tokio::test]
async fn child() {
    let Some(folder) = std::env::var_os(CHILD) else { return };
    let path = Path::new(&folder).join("run");
    let dir = RunDir { dir: Dir::open_ambient_dir(&path, ambient_authority()).unwrap(), path, key: None };
    let pipeline = check(Source::new(SOURCE), &Inputs::default()).pipeline.unwrap();
    let mut session = open(dir, &format!("process {}", std::process::id())).unwrap();
    session.resume(&pipeline, ResumeTerms::default(), None, &mut ()).await.unwrap();
    let blobs = session.blobs.clone();
    let stage = async |claim: Assignment| -> Result<AttemptResult, Failed> {
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        let digest = blobs.put_bytes(b"new")?;
        let path = format!("by-{}.txt", claim.attempt.task.node);
        Ok(finish(&claim, vec![change(&path, ChangeOp::Write, Some(digest))]).into())
    };
    session.drive(&plan(&pipeline), &LocalSignals::new(), DriveLimits::default(), &mut (), stage).await.unwrap();
}

#[tokio::test]
async fn a_run_killed_again_and_again_ends_as_if_it_had_not_been() {
    let place = Place::new();
    drop(place.create().await);
    let spawn = || {
        std::process::Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "session::child", "--nocapture"])
            .env(CHILD, place.folder.path())
            .stdout(std::process::Stdio::null())
            .stderr(std::process::Stdio::null())
            .spawn()
            .unwrap()
    };
    for round in 0..12 {
        let mut child = spawn();
        std::thread::sleep(std::time::Duration::from_millis(6 * round));
        child.kill().unwrap();
        child.wait().unwrap();
    }
    // The last process finishes the run. If the run had already ended, that process reports it and fails.
    let finished_before = place.open().verdict().is_some();
    assert_eq!(spawn().wait().unwrap().success(), !finished_before);
    let session = place.open();
    // The last child may have been killed after the last record, before its changes were applied. The next process that opens
    // the run applies them.
    apply_changes(&session.dir.workspace(), &*session.blobs, session.state().main().changes.values()).unwrap();
    assert_eq!(session.verdict(), Some(Verdict::Success));
    let completed: Vec<&str> = session.state().main().completed.kept().map(|node| node.as_str()).collect();
    assert_eq!(completed, ["start", "a", "b"]);
    assert_eq!(
        kinds(&session).await.iter().filter(|kind| **kind == "stage.finished").count(),
        2,
        "nothing is told twice"
    );
    for path in ["by-a.txt", "by-b.txt"] {
        assert_eq!(place.read(path).as_deref(), Some("new"));
    }
}
