//! Tests one attempt: which changes of a stage to its copy reach the journal, and which never do.

use crate::components::{agreed, assignment, catalog, component, config, host, pipeline, plan};
use cap_std::ambient_authority;
use cap_std::fs::Dir;
use glovebox_engine::attempt::{AttemptSandbox, Prepared, Workbench, sweep};
use glovebox_engine::driver::Assignment;
use glovebox_engine::run::RunDir;
use glovebox_host::call::{Claim as Stated, FileSetting, FileSource, Report};
use glovebox_journal::blobs::DirBlobs;
use glovebox_journal::event::{ChangeOp, Digest, Ending, StageFinished};
use glovebox_journal::ports::BlobStore;
use glovebox_plan::lock::Lock;
use glovebox_plan::prepare::executor::SandboxEnv;
use glovebox_record::path::ScopePath;
use glovebox_record::scope::Scope;
use glovebox_record::{CommandEnding, Failure, FailureClass, FailureCode, LimitName, Limits, Outcome, Receipt, Status};
use glovebox_state::run_state::Branch;
use glovebox_workspace::protect::Protected;
use glovebox_workspace::view::View;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

struct Bench {
    folder: tempfile::TempDir,
    bench: Arc<Workbench<DirBlobs>>,
}

impl Bench {
    fn new(attributes: &str) -> Self {
        Self::with("shouts", attributes)
    }

    /// Creates a pipeline with one stage. If the stage names a plugin, the plugin has this behaviour.
    fn with(behaviour: &str, attributes: &str) -> Self {
        let folder = tempfile::tempdir().expect("tempdir");
        let path = folder.path().to_owned();
        std::fs::create_dir_all(path.join("workspace/src")).expect("workspace");
        std::fs::write(path.join("workspace/src/lib.rs"), "old").expect("file");
        std::fs::write(path.join("workspace/secret.txt"), "secret").expect("file");
        let dir = Dir::open_ambient_dir(&path, ambient_authority()).expect("open");
        let grants = "[plugins.\"acme.review\"]\npath = \"p.wasm\"\n\
             grants = { filesystem = \"posix\", read = [\"src/\"], write = [\"src/\"] }\n";
        let (config, bytes) = (
            config(grants),
            component(behaviour, "acme.review", r#"{"filesystem":"posix","read":["./"],"write":["./"]}"#),
        );
        let lock =
            if attributes.contains("acme.review") { agreed(&config, "acme.review", &bytes) } else { Lock::default() };
        let plan = plan(&pipeline(attributes), &catalog(&[("acme.review", bytes)]), &config, &lock);
        let bench = Workbench {
            handed_on: None,
            plan: Arc::new(plan.unwrap_or_else(|errors| panic!("{errors}"))),
            host: host(),
            blobs: Arc::new(DirBlobs::open_in(&dir).expect("blobs")),
            run: Arc::new(RunDir { path, dir, key: None }),
            sandbox_env: SandboxEnv {
                copies_files: false,
                tier: None,
                can_mount: false,
                policy: glovebox_jail::jail::ExecPolicy::default(),
                project: PathBuf::from("/project"),
                private: Vec::new(),
                environment: None,
                server_env: Default::default(),
            },
            protected: Protected::default(),
            budget: Arc::default(),
            targets: Arc::default(),
            revocations: Arc::default(),
            policies: Arc::default(),
            base: Arc::default(),
            ignored: Default::default(),
            holdouts: None,
            progress: tokio::sync::mpsc::channel(8).0,
            output_watch: None,
            preparing: Default::default(),
            held: Default::default(),
        };
        Self { folder, bench: Arc::new(bench) }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Prepares the layer, changes it with `act` without the limits of the stage's scope, and finishes the attempt with this
    /// report.
    async fn settle(&self, act: impl FnOnce(&Loose), report: Report) -> StageFinished {
        let Prepared { call, sandbox } = self.bench.prepare(&claim()).expect("prepared");
        drop(call);
        act(&Loose::on(sandbox.as_ref().expect("a stage that may write has a layer")));
        let fact = self.bench.finish(&claim(), report, sandbox).expect("settled").finished;
        let left = std::fs::read_dir(self.path("stage")).map_or(0, Iterator::count);
        assert_eq!(left, 0, "what the layer kept is removed");
        assert_eq!(std::fs::read(self.path("workspace/src/lib.rs")).expect("read"), b"old", "nothing is committed yet");
        fact
    }
}

/// A view without any restriction: what a component could do if the checks of its own view failed.
struct Loose(Arc<View>);

impl Loose {
    fn on(sandbox: &AttemptSandbox) -> Self {
        let FileSource::Layer(layer) = sandbox.files() else { panic!("a component without commands works on a layer") };
        let view = View::over(&layer, Scope::everything(), Limits::default(), Arc::default());
        Self(Arc::new(view.expect("view")))
    }

    fn write(&self, path: &str, content: &str) {
        self.0.write_file(&at(path), content.as_bytes()).expect("write");
    }
}

fn at(path: &str) -> ScopePath {
    ScopePath::parse(path).expect("path")
}

fn claim() -> Assignment {
    assignment("n", Branch::default())
}

fn outcome(status: Status) -> Outcome {
    Outcome {
        status,
        preferred_label: None,
        suggested_next_ids: Vec::new(),
        context_updates: BTreeMap::new(),
        notes: String::new(),
        failure: None,
    }
}

fn report() -> Report {
    Report {
        outcome: outcome(Status::Success),
        claims: Vec::new(),
        ending: Ending::Returned,
        usage: Vec::new(),
        refusals: Vec::new(),
        refusals_total: 0,
        tool_calls: Vec::new(),
        receipts: Vec::new(),
        artifacts: Vec::new(),
        log: Vec::new(),
        stdout: Vec::new(),
        stderr: Vec::new(),
        turns_used: 2,
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

fn receipt(id: &str, code: i32) -> Receipt {
    Receipt {
        id: id.to_owned(),
        argv: vec!["true".to_owned()],
        cwd: String::new(),
        program: None,
        env_names: Vec::new(),
        tier: glovebox_record::Tier::Unconfined,
        degradations: Vec::new(),
        subject: false,
        hook: None,
        over: None,
        no_proof: None,
        printed_class: None,
        how: CommandEnding::Exited,
        code: Some(code),
        duration_ms: 1,
        stdout_digest: Digest::ZERO,
        stdout_bytes: 0,
        stderr_digest: Digest::ZERO,
        stderr_bytes: 0,
    }
}

fn write_both(files: &Loose) {
    files.write("src/lib.rs", "new");
    files.write("evil.txt", "evil");
    files.write("also.txt", "evil");
}

#[tokio::test]
async fn allowed_changes_are_stored_and_listed() {
    let bench = Bench::new("prompt=x, allowed_write_paths=\"src/\"");
    let act = |files: &Loose| {
        files.write("src/lib.rs", "new");
        files.write("src/more.rs", "more");
    };
    let fact = bench.settle(act, report()).await;
    assert_eq!((fact.outcome.status, fact.model.turns_used, fact.files.quarantined.len()), (Status::Success, 2, 0));
    let paths: Vec<_> = fact.files.changes.iter().map(|change| (change.path.as_str(), change.op)).collect();
    assert_eq!(paths, [("src/lib.rs", ChangeOp::Write), ("src/more.rs", ChangeOp::Write)]);
    let digest = fact.files.changes[0].digest.expect("stored");
    assert_eq!(bench.bench.blobs.read_all(&digest, 10).expect("blob"), b"new");
}

#[tokio::test]
async fn disallowed_changes_fail_the_stage_and_are_set_aside() {
    let bench = Bench::new("prompt=x, allowed_write_paths=\"src/\"");
    let fact = bench.settle(write_both, report()).await;
    let failure = fact.outcome.failure.expect("failure");
    assert_eq!(
        (fact.outcome.status, failure.class, failure.code.as_str()),
        (Status::Fail, FailureClass::Scope, "scope/write")
    );
    assert_eq!(failure.reason, "guardrail_violation: wrote disallowed files: also.txt,evil.txt");
    assert_eq!(fact.files.quarantined.len(), 2);
    assert_eq!(fact.files.changes.len(), 1, "what was allowed counts: the fix loop goes on from it");
    assert!(bench.path("quarantine/A1/report.json").exists());
    assert!(!bench.path("workspace/evil.txt").exists());
}

#[tokio::test]
async fn thousands_of_disallowed_paths_make_no_endless_reason() {
    let made = Bench::new("prompt=x, allowed_write_paths=\"src/\"");
    let act = |files: &Loose| (0..500).for_each(|n| files.write(&format!("{n:0>200}"), "x"));
    let fact = made.settle(act, report()).await;
    let reason = fact.outcome.failure.expect("failure").reason;
    assert!(reason.len() < 9 << 10 && reason.ends_with(" more"), "{} bytes", reason.len());
    assert_eq!(fact.files.quarantined.len(), 500);
}

#[tokio::test]
async fn a_stages_own_reason_stays_readable() {
    let bench = Bench::new("prompt=x, allowed_write_paths=\"src/\"");
    let failure = Failure {
        class: FailureClass::Deterministic,
        code: "tool/exit-code".into(),
        reason: "tool_exit_code_1".to_owned(),
    };
    let failed = Outcome { failure: Some(failure), ..outcome(Status::Fail) };
    let fact = bench.settle(write_both, Report { outcome: failed, ..report() }).await;
    assert_eq!(fact.outcome.notes, "the stage itself failed: tool_exit_code_1");
    assert_eq!(fact.outcome.failure.map(|failure| failure.code), Some(FailureCode::SCOPE_WRITE));
}

#[tokio::test]
async fn a_stage_that_did_not_end_by_itself_changes_nothing() {
    let endings =
        [Ending::Trapped("trap".into()), Ending::LimitHit("wall_ms".into()), Ending::Revoked("it leaks".into())];
    for ending in endings.into_iter().chain([Ending::Canceled]) {
        let bench = Bench::new("prompt=x, allowed_write_paths=\"src/\"");
        let failed = outcome(Status::Fail);
        let fact = bench.settle(write_both, Report { ending: ending.clone(), outcome: failed, ..report() }).await;
        assert!(fact.files.changes.is_empty() && fact.files.quarantined.is_empty(), "{ending:?}");
        assert!(!bench.path("quarantine").exists(), "{ending:?}");
    }
}

#[tokio::test]
async fn more_than_a_limit_allows_is_a_failure_that_names_it() {
    let bench = Bench::new("prompt=x, allowed_write_paths=\"src/\", limits.write_bytes=10");
    let fact = bench.settle(|files| files.write("src/lib.rs", &"x".repeat(11)), report()).await;
    let failure = fact.outcome.failure.expect("failure");
    assert_eq!((failure.class, failure.code.as_str()), (FailureClass::Budget, "limit/write_bytes"));
    assert_eq!((fact.ending, fact.files.changes.len()), (Ending::LimitHit("write_bytes".to_owned()), 0));
}

#[tokio::test]
async fn a_claim_without_evidence_fails_the_stage() {
    let check = async |claims: &[(&str, &str)], expected: Option<&str>| {
        let bench = Bench::new("prompt=x, allowed_write_paths=\"src/\"");
        let stated = |(kind, value): &(&str, &str)| Stated { kind: (*kind).to_owned(), value: (*value).to_owned() };
        let claims = claims.iter().map(stated).collect();
        let receipts = vec![receipt("A1/1", 0), receipt("A1/2", 1)];
        let fact = bench.settle(|_| {}, Report { claims, receipts, ..report() }).await;
        let failure = fact.outcome.failure;
        assert_eq!(failure.as_ref().map(|failure| failure.class), expected.map(|_| FailureClass::Contract));
        assert!(failure.is_none_or(|failure| failure.reason.contains(expected.unwrap_or_default())));
    };
    check(&[("command-passed", "A1/1"), ("file-written", "src/lib.rs")], None).await;
    check(&[("new-kind", "x")], Some("this kind of claim is unknown")).await;
    check(&[("command-passed", "A1/2")], Some("with exit code 1")).await;
    check(&[("command-passed", "B7/1")], Some("the stage has no receipt of this id")).await;
    check(&[("file-written", "src/none.rs")], Some("has no file of this path")).await;
    check(&[("file-written", "../../journal.sqlite")], Some("has no file of this path")).await;
    check(&[("artifact", "proof.txt")], Some("no artifact of this name")).await;
}

#[tokio::test]
async fn a_stage_that_can_change_nothing_reads_the_workspace_itself() {
    let bench = Bench::new("type=\"acme.review\"");
    let Prepared { call, sandbox } = bench.bench.prepare(&claim()).expect("prepared");
    let files = call.files.expect("it may read");
    assert!(sandbox.is_none() && call.commands.is_none() && call.model.is_none() && files.scope.write.is_empty());
    assert!(matches!(files.source, FileSource::Folder(root) if root == bench.path("workspace")));
    let writer = Bench::new("type=\"acme.review\", allowed_write_paths=\"src/\"");
    let Prepared { call, .. } = writer.bench.prepare(&claim()).expect("prepared");
    let FileSetting { source: FileSource::Layer(layer), scope, .. } = call.files.expect("files") else {
        panic!("a component without commands works on a layer")
    };
    let view = View::over(&layer, scope, Limits::default(), Arc::default()).expect("view");
    assert!(
        view.stat(&at("src/lib.rs")).is_ok() && view.stat(&at("secret.txt")).is_err(),
        "only what it may see exists"
    );
    assert!(!writer.path("stage").exists(), "it has changed nothing yet");
    sweep(&writer.bench.run);
    assert!(!writer.path("stage").exists());
}

#[tokio::test]
async fn a_component_is_executed_from_copy_to_fact() {
    let bench = Bench::new("prompt=x, max_turns=3, allowed_write_paths=\"src/\"");
    let fact = bench.bench.execute(&claim()).await.expect("executed").finished;
    assert_eq!((&fact.attempt, fact.follow_up.retrying), (&claim().attempt, false));
    assert_eq!(fact.model.turns_used, 3, "it asks its model until the limit");
    let turns = fact.usage.iter().find(|usage| usage.name == LimitName::Turns).expect("reported");
    assert_eq!((turns.used, turns.limit), (Some(3), 3));
    assert!(fact.files.changes.is_empty() && !bench.path("stage/A1").exists());
}

#[tokio::test]
async fn a_component_that_lies_fails_the_contract() {
    let bench = Bench::with("lies", "type=\"acme.review\"");
    let fact = bench.bench.execute(&claim()).await.expect("executed").finished;
    let failure = fact.outcome.failure.expect("failure");
    assert_eq!((failure.class, failure.code), (FailureClass::Contract, FailureCode::CLAIM_UNPROVEN));
}

#[tokio::test]
async fn the_input_hides_the_engines_counters_and_names_the_way_on() {
    let bench = Bench::new("prompt=\"do $goal\", label=\"Build\"");
    let mut branch = Branch::default();
    branch.context.set("internal.retry_count.n", 2.into());
    branch.context.set("tests_passed", "true".into());
    let Prepared { call, .. } = bench.bench.prepare(&assignment("n", branch)).expect("prepared");
    assert_eq!(call.input.context.keys().collect::<Vec<_>>(), ["tests_passed"]);
    assert_eq!((call.input.label.as_str(), call.input.outgoing[0].to.as_str()), ("Build", "e"));
    assert_eq!((call.input.handler_type.as_str(), call.input.attempt.id.as_str()), ("codergen", "A1"));
}
