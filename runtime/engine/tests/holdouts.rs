//! Tests hold-outs over a run: they are sealed before the first stage, searched for in every result and file of a
//! stage, and disclosed to no builder.

use crate::components::{assignment, catalog, config, host, whole};
use cap_std::ambient_authority;
use cap_std::fs::Dir;
use glovebox_engine::attempt::{Prepared, Workbench};
use glovebox_engine::driver::{Assignment, RunError};
use glovebox_engine::run::{HoldoutError, Holdouts, NewRun, RunDir, Session};
use glovebox_host::call::{Artifact, FileSource, Report};
use glovebox_host::input::StageInput;
use glovebox_jail::jail::ExecPolicy;
use glovebox_journal::event::{
    BranchId, ChangeOp, Digest, Event, FileChange, Isolation, Record, RunStarted, StageFinished, Work,
};
use glovebox_journal::ports::BlobStore;
use glovebox_plan::bind::{BindOptions, OperatorFiles, bind};
use glovebox_plan::lock::Lock;
use glovebox_plan::plan::HostCapability;
use glovebox_plan::plan::{Plan, PolicyKind};
use glovebox_plan::prepare::executor::{SandboxEnv, Worker};
use glovebox_record::path::ScopePath;
use glovebox_record::scope::{Entry, Scope};
use glovebox_record::{Ending, Failure, FailureClass, FailureCode, Limits, Outcome, Status, Tier};
use glovebox_state::run_state::{Branch, FailedStage, RunState};
use glovebox_workspace::project::Include;
use glovebox_workspace::protect::Protected;
use glovebox_workspace::view::View;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

const SECRET: &str = "test \"$(cat answer.txt)\" = \"forty-two apples in a basket\"";
const HINT: &str = "hint: count what is in the basket";

fn source(builder: &str, tool: &str) -> String {
    format!(
        "digraph g {{ graph [scenarios=\"checks\"] s [shape=Mdiamond] e [shape=Msquare]\n\
         b [prompt=\"write it\", allowed_write_paths=\"src/\", {builder}]\n\
         t [shape=parallelogram, tool_command=\"sh checks/a.sh\", allowed_write_paths=\"out/\", {tool}]\n\
         s -> b -> t; t -> e [condition=\"outcome=success\"]; t -> b [condition=\"outcome=fail\"] }}"
    )
}

fn full() -> HostCapability {
    HostCapability { tier: Some(Tier::Full), ..HostCapability::default() }
}

struct Place {
    folder: tempfile::TempDir,
    source: String,
    plan: Arc<Plan>,
    /// The sessions of created runs. Their journals store small blobs, so they must stay open.
    sessions: Mutex<Vec<Session>>,
}

impl Place {
    fn new(builder: &str, tool: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        for (path, text) in [
            ("project/checks/a.sh", format!("{SECRET} || echo \"{HINT}\"\n")),
            ("project/src/lib.rs", "fn main() {}\n".to_owned()),
        ] {
            std::fs::create_dir_all(folder.path().join(path).parent().unwrap()).unwrap();
            std::fs::write(folder.path().join(path), text).unwrap();
        }
        std::fs::create_dir(folder.path().join("run")).unwrap();
        let source = source(builder, tool);
        let sealed = vec![Entry::parse("checks/").unwrap()];
        let options = BindOptions { available: full(), sealed, ..BindOptions::default() };
        let bound = bind(
            whole(&source),
            &catalog(&[]),
            OperatorFiles { config: &config(""), lock: &Lock::default() },
            &host(),
            options,
        );
        let plan = Arc::new(bound.unwrap_or_else(|errors| panic!("{errors}")));
        Self { folder, source, plan, sessions: Mutex::default() }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn run_dir(&self) -> RunDir {
        let path = self.path("run");
        RunDir { dir: Dir::open_ambient_dir(&path, ambient_authority()).unwrap(), path, key: None }
    }

    async fn begin(&self) -> Result<(Session, Vec<Record>), RunError> {
        let new = NewRun {
            run_id: "run-1".into(),
            source: &self.source,
            files: &BTreeMap::new(),
            pipeline_path: "pipeline.dot".into(),
            project: &self.path("project"),
            include: Include::parse(&["./"]).unwrap(),
            script: None,
            inputs: BTreeMap::new(),
            from: None,
            steps_max: None,
            wall_max: None,
            stall: Default::default(),
            spend_max: glovebox_record::spend::SpendBounds::default(),
            labels: BTreeMap::new(),
            earlier: Vec::new(),
            shared: None,
        };
        let worker = Worker { name: "w".into(), ..Worker::default() };
        let created = Session::create(self.run_dir(), worker, &self.plan, new, |_, _| None, |_, _| Ok(())).await;
        created.map(|(session, (), records)| (session, records))
    }

    fn open(&self, started: &RunStarted) -> Result<Option<Holdouts>, HoldoutError> {
        let state = RunState { run: Some(Arc::new(started.clone())), ..RunState::default() };
        Holdouts::open(&self.run_dir(), &state, &self.source)
    }

    async fn bench(&self) -> Workbench<glovebox_journal::blobs::DirBlobs> {
        let (session, records) = self.begin().await.unwrap();
        let holdouts = self.open(started(&records)).unwrap().map(Arc::new);
        let blobs = Arc::clone(&session.blobs);
        self.sessions.lock().unwrap().push(session);
        Workbench {
            handed_on: None,
            plan: Arc::clone(&self.plan),
            host: host(),
            run: Arc::new(self.run_dir()),
            blobs,
            sandbox_env: SandboxEnv {
                copies_files: false,
                tier: Some(Tier::Full),
                can_mount: true,
                policy: ExecPolicy::default(),
                project: self.path("project"),
                private: Vec::new(),
                environment: None,
                server_env: Default::default(),
            },
            protected: Protected::new(&["checks/"]),
            budget: Arc::default(),
            targets: Arc::default(),
            revocations: Arc::default(),
            policies: Arc::default(),
            base: Arc::default(),
            ignored: Default::default(),
            holdouts,
            progress: tokio::sync::mpsc::channel(8).0,
            output_watch: None,
            preparing: Default::default(),
            held: Default::default(),
        }
    }
}

fn started(records: &[Record]) -> &RunStarted {
    let Event::RunStarted(started) = &records[0].event else { panic!("the first record is the start") };
    started
}

fn claim(node: &str) -> Assignment {
    assignment(node, Branch::default())
}

fn report(notes: &str, failure: Option<(&str, &str)>) -> Report {
    let status = if failure.is_some() { Status::Fail } else { Status::Success };
    let failure = failure.map(|(code, reason)| Failure {
        class: FailureClass::Deterministic,
        code: FailureCode::from(code.to_owned()),
        reason: reason.to_owned(),
    });
    let context_updates = [("tool.output".to_owned(), serde_json::Value::from(notes))].into();
    Report {
        outcome: Outcome {
            status,
            preferred_label: None,
            suggested_next_ids: Vec::new(),
            context_updates,
            notes: notes.to_owned(),
            failure,
        },
        claims: Vec::new(),
        ending: Ending::Returned,
        usage: Vec::new(),
        refusals: Vec::new(),
        refusals_total: 0,
        receipts: Vec::new(),
        tool_calls: Vec::new(),
        artifacts: vec![Artifact {
            name: "tool.stdout.txt".to_owned(),
            media_type: "text/plain".to_owned(),
            data: format!("{notes}\n{HINT}\nhint: {SECRET}\n").into_bytes(),
        }],
        log: Vec::new(),
        stdout: Vec::new(),
        stderr: Vec::new(),
        turns_used: 0,
        conversation: Vec::new(),
        tokens: glovebox_record::Tokens::default(),
        cost: glovebox_record::spend::Money::default(),
        is_estimated: false,
        transcript: Vec::new(),
        answered_by: None,
        resume_at: None,
        steered: Vec::new(),
        duration_ms: 1,
        touched_files: true,
    }
}

/// Writes a file of a stage without the checks of its view.
fn write(files: &FileSource, path: &str, content: &str) {
    match files {
        FileSource::Folder(root) => {
            std::fs::create_dir_all(root.join(path).parent().unwrap()).unwrap();
            std::fs::write(root.join(path), content).unwrap();
        }
        FileSource::Layer(layer) => {
            let view = View::over(layer, Scope::everything(), Limits::default(), Arc::default()).unwrap();
            Arc::new(view).write_file(&ScopePath::parse(path).unwrap(), content.as_bytes()).unwrap();
        }
    }
}

async fn settle(place: &Place, node: &str, wrote: &[(&str, &str)], report: Report) -> (StageFinished, Vec<u8>) {
    let bench = place.bench().await;
    let Prepared { call, sandbox: stage } = bench.prepare(&claim(node)).unwrap();
    drop(call);
    let files = stage.as_ref().unwrap().files();
    wrote.iter().for_each(|(path, content)| write(&files, path, content));
    drop(files);
    let fact = bench.finish(&claim(node), report, stage).unwrap().finished;
    let answer = fact.files.artifacts.iter().find(|artifact| artifact.name == "withheld.json");
    let answer = answer.map(|artifact| bench.blobs.read_all(&artifact.digest, 10_000).unwrap()).unwrap_or_default();
    (fact, answer)
}

#[tokio::test]
async fn a_run_commits_to_its_hold_outs_before_the_first_stage_and_copies_none() {
    let place = Place::new("label=b", "label=t");
    let (session, records) = place.begin().await.unwrap();
    let sealed = started(&records).workspace.holdouts.clone().unwrap();
    assert_eq!(
        (sealed.folders.clone(), sealed.files, sealed.reach.clone()),
        (vec!["checks/".into()], 1, vec!["t".into()])
    );
    assert!(sealed.root != Digest::ZERO && sealed.opt_outs.is_empty());
    assert!(!place.path("run/workspace/checks").exists() && place.path("run/workspace/src/lib.rs").exists());
    let base = session.blobs.read_all(&started(&records).workspace.base_digest, 100_000).unwrap();
    assert!(!String::from_utf8(base).unwrap().contains("checks"), "not even named");
    let journal = serde_json::to_string(&records).unwrap();
    assert!(!journal.contains("apples") && !journal.contains("a.sh\":"), "{journal}");
    let holdouts = place.open(started(&records)).unwrap().unwrap();
    let folder = place.plan.holdouts_of(&glovebox_pipeline::ir::NodeId::new("t"));
    assert_eq!(std::fs::read_dir(holdouts.source(folder[0].path())).unwrap().count(), 1);
    assert!(place.plan.holdouts_of(&glovebox_pipeline::ir::NodeId::new("b")).is_empty());
    let mut without = started(&records).clone();
    without.workspace.holdouts = None;
    assert!(place.open(&without).unwrap().is_none());
}

#[tokio::test]
async fn a_run_goes_on_only_with_the_hold_outs_it_began_with() {
    let place = Place::new("label=b", "label=t");
    let (_session, records) = place.begin().await.unwrap();
    std::fs::write(place.path("run/holdouts/files/checks/a.sh"), "exit 0\n").unwrap();
    assert!(matches!(place.open(started(&records)), Err(HoldoutError::Differs(1))));
    std::fs::remove_file(place.path("run/holdouts/seal.json")).unwrap();
    assert!(matches!(place.open(started(&records)), Err(HoldoutError::Reopen(_))));
}

#[tokio::test]
async fn what_stages_wrote_before_a_resume_makes_nothing_public() {
    let place = Place::new("label=b", "label=t");
    let (_session, records) = place.begin().await.unwrap();
    let line = std::fs::read_to_string(place.path("project/checks/a.sh")).unwrap();
    std::fs::write(place.path("run/workspace/src/copy.txt"), &line).unwrap();
    let mut state = RunState { run: Some(Arc::new(started(&records).clone())), ..RunState::default() };
    let finds = |state: &RunState| {
        let holdouts = Holdouts::open(&place.run_dir(), state, &place.source).unwrap().unwrap();
        holdouts.canary().find(&line).is_some()
    };
    assert!(!finds(&state), "the run began with it");
    let path = ScopePath::parse("src/copy.txt").unwrap();
    let written = FileChange {
        path: path.clone(),
        op: ChangeOp::Write,
        digest: None,
        bytes: 1,
        executable: false,
        mode: None,
        target: None,
    };
    let mut branch = Branch::default();
    branch.changes.insert_mut(path, written);
    state.branches.insert(BranchId::main(), Arc::new(branch));
    assert!(finds(&state));
}

#[tokio::test]
async fn hold_outs_that_cannot_be_sealed_stop_the_run_before_it_begins() {
    let place = Place::new("label=b", "label=t");
    std::os::unix::fs::symlink("a.sh", place.path("project/checks/link")).unwrap();
    let Err(RunError::Holdouts(error)) = place.begin().await else { panic!("not refused") };
    assert!(matches!(error.downcast_ref(), Some(HoldoutError::Seal(_))), "{error}");
    assert!(!place.path("run/workspace").exists());
}

#[tokio::test]
async fn a_verifier_tells_its_verdict_and_hints() {
    let place = Place::new("label=b", "label=t");
    let (fact, answer) = settle(&place, "t", &[], report(SECRET, Some(("tool/exit-code", "tool_exit_code_1")))).await;
    let told = serde_json::to_string(&fact.outcome).unwrap();
    assert!(!told.contains("apples") && told.contains("verdict: fail") && told.contains(HINT), "{told}");
    let expected = "output withheld, because that stage can read hold-outs";
    assert_eq!(fact.outcome.failure.as_ref().map(|failure| failure.reason.as_str()), Some(expected));
    assert!(fact.outcome.context_updates.is_empty(), "no condition names `tool.output`");
    assert!(String::from_utf8(answer).unwrap().contains("apples"), "people can read the whole answer");
    let bench = Place::new("label=b", "scenario_feedback=full");
    let (fact, _) = settle(&bench, "t", &[], report(SECRET, None)).await;
    assert_eq!(fact.outcome.notes, SECRET, "the opt-out tells everything");
    assert_eq!(bench.plan.holdout_plan().opt_outs, ["builders can read what `t` prints"]);
}

#[tokio::test]
async fn a_builder_is_told_the_summary_alone() {
    let place = Place::new("label=b", "label=t");
    let bench = place.bench().await;
    let printed = vec![("tool.stdout.txt".to_owned(), bench.blobs.put_bytes(SECRET.as_bytes()).unwrap())];
    let mut branch = Branch::default();
    branch.context.set("graph.scenarios", "checks".into());
    let limit = "the stage reached `limits.write_bytes` (1) at `forty-two apples`";
    branch.last_failure = Some(Failure::new(FailureClass::Budget, "limit/write_bytes", limit));
    let failed = |node: &str| {
        Arc::new(FailedStage {
            node: node.into(),
            work: Work::Handler,
            notes: "1 failed".to_owned(),
            printed: printed.clone(),
        })
    };
    branch.last_failed = Some(failed("t"));
    let expected = "stage `t` failed; output withheld, because that stage can read hold-outs";
    let told =
        |input: &StageInput| input.last_failure.clone().map(|told| (told.class, told.code, told.reason)).unwrap();
    let input = bench.prepare(&assignment("b", branch.clone())).unwrap().call.input;
    assert_eq!(input.extra[1].1, "summary: 1 failed\n");
    assert!(input.context.is_empty(), "no name for the hold-outs");
    assert_eq!(told(&input), (FailureClass::Deterministic, FailureCode::STAGE_FAILED, expected.to_owned()));
    // The start node has no component, so the result that it passes on may be the verifier's.
    branch.last_failed = Some(Arc::new(FailedStage {
        node: "s".into(),
        work: Work::Handler,
        notes: String::new(),
        printed: Vec::new(),
    }));
    glovebox_engine::attempt::sweep(&bench.run);
    let passed_on = bench.prepare(&assignment("b", branch.clone())).unwrap().call.input;
    assert_eq!(told(&passed_on).2, expected.replace("`t`", "`s`"));
    branch.last_failed = Some(failed("b"));
    glovebox_engine::attempt::sweep(&bench.run);
    let input = bench.prepare(&assignment("b", branch.clone())).unwrap().call.input;
    assert!(input.extra[1].1.contains("apples"), "what a stage without hold-outs printed is told");
    assert_eq!(told(&input).2, limit);
}

fn check_leak(fact: &StageFinished, what: &str) {
    let failure = fact.outcome.failure.as_ref().unwrap();
    let expected = format!("holdout_leak: {what} contains text of a hold-out scenario");
    assert_eq!(
        (failure.class, failure.code.as_str(), &failure.reason),
        (FailureClass::Scope, "holdout/leak", &expected)
    );
    assert_eq!(fact.refusals.listed.iter().map(|refusal| refusal.path.as_str()).collect::<Vec<_>>(), ["checks/a.sh:1"]);
    assert!(fact.files.changes.is_empty(), "it changes nothing");
    assert!(!serde_json::to_string(&fact).unwrap().contains("apples"));
}

#[tokio::test]
async fn a_builder_that_quotes_a_hold_out_fails_and_is_quoted_nowhere() {
    let place = Place::new("label=b", "label=t");
    let line = std::fs::read_to_string(place.path("project/checks/a.sh")).unwrap();
    let fine = [("src/lib.rs", "fn answer() {}\n")];
    let (fact, _) = settle(&place, "b", &fine, report(&line, None)).await;
    check_leak(&fact, "the result of the stage");
    assert!(fact.files.artifacts.is_empty(), "what it kept quotes it too");
    let place = Place::new("label=b", "label=t");
    let quiet = Report { artifacts: Vec::new(), ..report("done", None) };
    let (fact, _) = settle(&place, "b", &[("src/x", &line)], quiet).await;
    check_leak(&fact, "a file of the stage");
}

#[tokio::test]
async fn a_verifier_leaves_nothing_behind_and_what_it_may_commit_is_leak_checked() {
    let place = Place::new("label=b", "scenario_writes=commit");
    assert_eq!(place.plan.holdout_plan().opt_outs, ["`t` commits what it writes, and builders can read it"]);
    let line = std::fs::read_to_string(place.path("project/checks/a.sh")).unwrap();
    let log = [("out/log", line.as_str())];
    let (fact, _) = settle(&place, "t", &log, report("done", None)).await;
    check_leak(&fact, "a file of the stage");
    let place = Place::new("label=b", "label=t");
    let (fact, _) = settle(&place, "t", &log, report("done", None)).await;
    let aside: Vec<&str> = fact.files.quarantined.iter().map(|file| file.path.as_str()).collect();
    assert_eq!((fact.files.changes.len(), aside), (0, vec!["out", "out/log"]), "without the opt-out it is scratch");
    assert_eq!((fact.outcome.failure, fact.commands.isolation), (None, Some(Isolation::NotIsolated)));
    let place = Place::new("label=b", "scenario_writes=commit, allowed_write_paths=\"out/,checks/\"");
    let swapped = [("checks/a.sh", "exit 0\n")];
    let (fact, _) = settle(&place, "t", &swapped, report("done", None)).await;
    assert!(
        fact.files.changes.iter().all(|change| !change.path.as_str().starts_with("checks")),
        "{:?}",
        fact.files.changes
    );
}

#[test]
fn commands_without_walls_are_refused_where_hold_outs_are_sealed() {
    let pipeline = whole(&source("label=b", "label=t"));
    let bound = |sealed: Vec<Entry>| {
        let options = BindOptions { no_sandbox: true, available: full(), sealed, ..BindOptions::default() };
        bind(
            Arc::clone(&pipeline),
            &catalog(&[]),
            OperatorFiles { config: &config(""), lock: &Lock::default() },
            &host(),
            options,
        )
    };
    assert!(bound(Vec::new()).is_ok());
    let policy = bound(vec![Entry::parse("checks/").unwrap()]).unwrap_err().policy.unwrap();
    assert_eq!(policy.kind, PolicyKind::HoldoutsOpen);
    assert!(policy.to_string().contains("`t`"), "{policy}");
}

#[tokio::test]
async fn who_opted_out_is_recorded_and_not_watched() {
    let place = Place::new("codex.allow_read_scenarios=true", "label=t");
    let (_session, records) = place.begin().await.unwrap();
    let sealed = started(&records).workspace.holdouts.clone().unwrap();
    assert_eq!(
        (sealed.reach, sealed.opt_outs),
        (vec!["b".into(), "t".into()], vec!["builder `b` may read hold-outs".into()])
    );
    let id = glovebox_pipeline::ir::NodeId::new("b");
    assert!(!place.plan.is_leak_checked(&id) && place.plan.withholds(&id));
    assert_ne!(place.plan.digest(), Digest::ZERO);
    let json = serde_json::to_value(place.plan.to_json()).unwrap();
    assert_eq!(json["holdouts"]["opt_outs"][0], "builder `b` may read hold-outs");
}
