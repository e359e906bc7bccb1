//! Tests that the files of a run are equal after every record, whether they are written during the run or rebuilt from its journal.

use cap_std::ambient_authority;
use cap_std::fs::Dir;
use glovebox_engine::driver::Follow;
use glovebox_engine::project::{ProjectError, Projector, WRITE_EVERY};
use glovebox_journal::blobs::DirBlobs;
use glovebox_journal::event::{
    Artifact, Attempt, BranchId, Digest, Event, EventText, NodeId, Receipt, Record, RefusedChange, RouteCandidate,
    RouteTaken, RunFinished, RunResumed, RunStarted, StageFiles, StageFinished, StageModel, StagePassed, StageReady,
    StageRefusals, StageRetrying, StageStarted, StoredOutput, Task, Verdict, Work,
};
use glovebox_journal::ports::BlobStore;
use glovebox_journal::rewind::Fold;
use glovebox_pipeline::Source;
use glovebox_pipeline::ir::Pipeline;
use glovebox_record::{Failure, FailureClass, Outcome, Status};
use glovebox_state::evidence::Replay;
use serde_json::Value;
use std::collections::BTreeMap;
use std::ops::{Deref, DerefMut};
use std::path::{Path, PathBuf};
use std::sync::Arc;

const PIPELINE: &str = r#"digraph demo {
    goal="make it pass"
    start [shape=Mdiamond]
    workspace [prompt="implement $goal", max_retries=1]
    test [shape=parallelogram, tool_command="true"]
    done [shape=Msquare]
    start -> workspace -> test
    test -> done [condition="outcome=success", weight=3]
    test -> workspace [condition="outcome=fail"]
}"#;

struct Run {
    folder: tempfile::TempDir,
    blobs: Arc<DirBlobs>,
    pipeline: Arc<Pipeline>,
}

/// A projector, and the fold that it follows.
struct FoldedProjector {
    projector: Projector<DirBlobs>,
    replay: Replay,
}

impl FoldedProjector {
    fn tell(&mut self, records: &[Record]) -> Result<(), ProjectError> {
        for record in records {
            if record.seq > self.replay.state.seq {
                self.replay.apply(record);
            }
            self.projector.record(record, &self.replay);
        }
        self.projector.advance()
    }
}

impl Deref for FoldedProjector {
    type Target = Projector<DirBlobs>;

    fn deref(&self) -> &Self::Target {
        &self.projector
    }
}

impl DerefMut for FoldedProjector {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.projector
    }
}

impl Run {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("tempdir");
        let blobs = Arc::new(DirBlobs::open_in(&open(folder.path())).expect("blobs"));
        let checked = glovebox_pipeline::check(Source::new(PIPELINE), &glovebox_pipeline::Inputs::default());
        let pipeline = Arc::new(checked.pipeline.unwrap_or_else(|| panic!("{:?}", checked.diagnostics)));
        Self { folder, blobs, pipeline }
    }

    fn dir(&self, name: &str) -> PathBuf {
        let path = self.folder.path().join(name);
        std::fs::create_dir_all(&path).expect("folder");
        path
    }

    fn projector(&self, at: &Path) -> FoldedProjector {
        let projector = Projector::new(open(at), Arc::clone(&self.blobs), Arc::clone(&self.pipeline));
        FoldedProjector { projector, replay: Replay::default() }
    }

    /// Writes all files of a journal.
    fn rebuild(&self, at: &Path, records: &[Record]) {
        let mut projector = self.projector(at);
        projector.tell(records).expect("take");
        projector.caught_up().expect("write");
    }

    fn artifact(&self, name: &str, text: &str) -> Artifact {
        let digest = self.blobs.put_bytes(text.as_bytes()).expect("blob");
        Artifact { name: name.to_owned(), media_type: "text/plain".to_owned(), digest, bytes: text.len() as u64 }
    }

    fn finished(&self, node: &str, ordinal: u32, outcome: Outcome) -> StageFinished {
        StageFinished {
            handler: "codergen".to_owned(),
            duration_ms: 5,
            refusals: StageRefusals { listed: Vec::new(), total: 2 },
            model: StageModel { turns_used: 1, ..StageModel::default() },
            ..StageFinished::new(attempt(node, ordinal), outcome)
        }
    }

    /// Returns the records of a run with a retry, a node with the name of a folder of the run directory, a crash and an end.
    fn records(&self) -> Vec<Record> {
        let failure =
            Failure::new(FailureClass::Scope, "scope/write", "guardrail_violation: wrote disallowed files: x");
        let output = self.blobs.put_bytes(b"out").expect("blob");
        let files = StageFiles {
            artifacts: vec![self.artifact("prompt.md", "do"), self.artifact("draft.md", "x")],
            stdout: Some(StoredOutput { digest: output, bytes: 3 }),
            quarantined: vec![RefusedChange { path: "x".into(), reason: "outside".into() }],
            ..StageFiles::default()
        };
        let mut first = StageFinished { files, ..self.finished("workspace", 1, Outcome::failed(failure)) };
        first.follow_up.retrying = true;
        let mut success = Outcome::new(Status::Success);
        success.context_updates.insert("tests_passed".into(), Value::from("true"));
        let mut second = self.finished("workspace", 2, success);
        second.files.artifacts =
            vec![self.artifact("prompt.md", "do again"), self.artifact("status.json", "{\"outcome\":\"fail\"}")];
        let mut test = self.finished("test", 1, Outcome::new(Status::Success));
        test.commands.receipts = vec![receipt()];
        test.files.artifacts = vec![self.artifact("tool.stdout.txt", "ok")];
        let events = vec![
            Event::RunStarted(Box::new(started(&self.pipeline))),
            Event::StagePassed(passed("start")),
            route("start", "workspace", 0, ""),
            ready("workspace", 1),
            claimed("workspace", 1),
            Event::StageFinished(Box::new(first)),
            Event::StageRetrying(StageRetrying {
                task: attempt("workspace", 1).task,
                ordinal: 2,
                delay_ms: 0,
                due_at: at(6),
            }),
            ready("workspace", 2),
            Event::RunResumed(Box::new(RunResumed { worker: "w2".into(), ..RunResumed::default() })),
            claimed("workspace", 2),
            Event::StageFinished(Box::new(second)),
            route("workspace", "test", 1, ""),
            ready("test", 1),
            claimed("test", 1),
            Event::StageFinished(Box::new(test)),
            route("test", "done", 2, "outcome=success"),
            Event::RunFinished(RunFinished {
                status: Verdict::Success,
                exit_node: Some("done".into()),
                failure: None,
                resumes_at: None,
                artifact: None,
            }),
        ];
        events.into_iter().zip(1..).map(|(event, seq)| record(seq, event)).collect()
    }
}

fn open(path: &Path) -> Dir {
    Dir::open_ambient_dir(path, ambient_authority()).expect("open")
}

fn at(seq: u64) -> jiff::Timestamp {
    jiff::Timestamp::from_millisecond(1_700_000_000_000 + i64::try_from(seq).expect("small") * 1000).expect("time")
}

fn record(seq: u64, event: Event) -> Record {
    Record {
        seq,
        at: at(seq),
        prev: Digest::ZERO,
        hash: Digest::hash(&seq.to_le_bytes()),
        event,
        text: EventText::default(),
    }
}

fn started(pipeline: &Pipeline) -> RunStarted {
    let text = serde_json::json!({
        "schema_version": 1, "engine_version": "0.1.0", "run_id": "r1", "generation": 0,
        "pipeline_name": pipeline.name, "goal": pipeline.goal, "pipeline_path": "pipeline.dot",
        "pipeline_digest": Digest::hash(b"p"), "plan_digest": Digest::hash(b"q"), "capabilities_digest": Digest::hash(b"c"),
        "base_digest": Digest::hash(b"b"),
        "source_dir": "/project", "model": "simulated", "sandbox_tier": "unconfined", "steps_max": 200,
    });
    serde_json::from_value(text).expect("run.started")
}

fn attempt(node: &str, ordinal: u32) -> Attempt {
    let task = Task { generation: 0, branch: BranchId::main(), node: node.into(), visit: 1, work: Work::Handler };
    Attempt { task, ordinal, id: format!("{node}-{ordinal}").into() }
}

fn passed(node: &str) -> StagePassed {
    let (generation, branch) = (0, BranchId::main());
    StagePassed { generation, branch, node: node.into(), visit: 1, status: Status::Success }
}

fn ready(node: &str, ordinal: u32) -> Event {
    Event::StageReady(StageReady { task: attempt(node, ordinal).task, ordinal, due_at: None })
}

fn claimed(node: &str, ordinal: u32) -> Event {
    Event::StageStarted(StageStarted {
        attempt: attempt(node, ordinal),
        worker: "w1".into(),
        machine: None,
        moved: None,
    })
}

fn route(from: &str, to: &str, edge: usize, condition: &str) -> Event {
    let (to, condition) = (NodeId::from(to), condition.to_owned());
    let candidate = RouteCandidate { edge, to: to.clone(), condition, matched: true, reason: "holds".into() };
    Event::RouteTaken(RouteTaken {
        generation: 0,
        branch: BranchId::main(),
        from: from.into(),
        to,
        how: "condition".into(),
        edge: Some(edge),
        candidates: vec![candidate],
    })
}

fn receipt() -> Receipt {
    let text = serde_json::json!({
        "id": "test-1/1", "argv": ["sh", "-c", "true"], "cwd": "", "env_names": [], "tier": "unconfined", "how": "exited",
        "code": 0, "duration_ms": 1, "stdout_digest": Digest::ZERO, "stdout_bytes": 0, "stderr_digest": Digest::ZERO, "stderr_bytes": 0,
    });
    serde_json::from_value(text).expect("receipt")
}

/// Returns every file below a folder, except the blobs.
fn files(root: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).expect("list") {
            let path = entry.expect("entry").path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let name = path.strip_prefix(root).expect("below").display().to_string();
                found.insert(name, std::fs::read(&path).expect("read"));
            }
        }
    }
    found
}

fn json(files: &BTreeMap<String, Vec<u8>>, name: &str) -> Value {
    let bytes = files.get(name).unwrap_or_else(|| panic!("{name} is missing among {:?}", files.keys()));
    serde_json::from_slice(bytes).unwrap_or_else(|error| panic!("{name}: {error}"))
}

#[test]
fn made_again_is_the_same_as_made_live_at_every_record() {
    let run = Run::new();
    let records = run.records();
    let live_at = run.dir("live");
    let mut live = run.projector(&live_at);
    live.caught_up().expect("nothing yet");
    for count in 0..=records.len() {
        if count > 0 {
            live.tell(&records[count - 1..count]).expect("live");
        }
        let again_at = run.dir(&format!("again-{count}"));
        // A crash may leave half a line and an old file.
        std::fs::write(again_at.join("progress.ndjson"), "{\"seq\":1,").expect("half a line");
        std::fs::write(again_at.join("live.json"), "{}").expect("old file");
        let mut again = run.projector(&again_at);
        again.tell(&records[..count]).expect("take");
        again.caught_up().expect("write");
        // Some records are written one by one, others several at a time.
        if count > 0 && count % 3 != 1 {
            live.write().expect("written");
            assert_eq!(files(&live_at), files(&again_at), "after {count} records");
        }
        // A resumed projector gets the last records a second time and continues after them.
        again.tell(&records[count.saturating_sub(1)..]).expect("go on");
        let whole_at = run.dir(&format!("whole-{count}"));
        run.rebuild(&whole_at, &records);
        assert_eq!(files(&again_at), files(&whole_at), "resumed after {count} records");
    }
}

#[test]
fn records_are_gathered_for_a_while_and_the_end_is_written_at_once() {
    let run = Run::new();
    let records = run.records();
    let at = run.dir("gathered");
    let mut live = run.projector(&at);
    live.tell(&records[..5]).expect("take");
    assert!(live.due().is_none() && files(&at).is_empty(), "nothing is due before the journal was read back");
    live.caught_up().expect("write");
    let before = files(&at);
    live.tell(&records[5..8]).expect("take");
    live.tell(&records[8..11]).expect("take");
    assert_eq!(files(&at), before, "they wait");
    let due = live.due().expect("something waits");
    assert!(due <= std::time::Instant::now() + WRITE_EVERY);
    std::thread::sleep(WRITE_EVERY);
    live.tell(&records[11..12]).expect("take");
    assert_ne!(files(&at), before, "long enough ago");
    assert!(live.due().is_none());
    live.tell(&records[12..]).expect("take");
    assert_eq!(json(&files(&at), "final.json")["status"], "success", "the end waits for nothing");
}

#[test]
fn what_waits_is_bounded_in_bytes() {
    let run = Run::new();
    let records = run.records();
    let at = run.dir("bounded");
    let mut live = run.projector(&at);
    live.tell(&records[..5]).expect("take");
    live.caught_up().expect("write");
    let text = "x".repeat(60_000);
    for seq in 6..40 {
        let outcome = Outcome { notes: text.clone(), ..Outcome::new(Status::Success) };
        let finished = run.finished(&format!("n{seq}"), 1, outcome);
        live.tell(&[record(seq, Event::StageFinished(Box::new(finished)))]).expect("take");
    }
    let lines = files(&at)["progress.ndjson"].len();
    assert!(lines > 800_000, "{lines} bytes are written, though the time has not come");
}

#[test]
fn a_checkpoint_does_not_grow_with_the_run() {
    let run = Run::new();
    let begun = run.records()[..5].to_vec();
    let length = |stages: u64| {
        let at = run.dir(&format!("of-{stages}"));
        let stages = (6..6 + stages).map(|seq| {
            let finished = run.finished("workspace", 1, Outcome::new(Status::Success));
            record(seq, Event::StageFinished(Box::new(finished)))
        });
        let records: Vec<Record> = begun.iter().cloned().chain(stages).collect();
        run.rebuild(&at, &records);
        let files = files(&at);
        let checkpoint = json(&files, "checkpoint.json");
        assert_eq!(checkpoint["journal_seq"], records.len());
        assert_eq!(checkpoint["completed_total"], records.len() as u64 - 5 + 1);
        files["checkpoint.json"].len()
    };
    let (short, long) = (length(300), length(3000));
    assert!(long < short + 50, "{short} bytes after 300 stages, {long} after 3,000");
}

/// A reader of `trace.jsonl` can compute the context: the file has the whole context at the beginning and at a resume, and
/// changes in between.
#[test]
fn the_trace_tells_the_context_by_what_became_different() {
    let run = Run::new();
    let at = run.dir("run");
    run.rebuild(&at, &run.records());
    let files = files(&at);
    let mut context = serde_json::Map::new();
    for line in String::from_utf8(files["trace.jsonl"].clone()).expect("text").lines() {
        let line: Value = serde_json::from_str(line).expect("line");
        if let Some(whole) = line["context"].as_object() {
            context = whole.clone();
        }
        let delta = &line["context_delta"];
        for (key, value) in ["added", "updated"].iter().filter_map(|kind| delta[kind].as_object()).flatten() {
            context.insert(key.clone(), value.clone());
        }
        for key in delta["removed"].as_array().into_iter().flatten() {
            context.remove(key.as_str().expect("a key"));
        }
    }
    // The exit has no line with a context.
    context.insert("current_node".to_owned(), "done".into());
    assert_eq!(Value::Object(context), json(&files, "checkpoint.json")["context"]);
}

#[test]
fn the_files_say_what_other_tools_read() {
    let run = Run::new();
    let at = run.dir("run");
    run.rebuild(&at, &run.records());
    let files = files(&at);
    let manifest = json(&files, "manifest.json");
    assert_eq!((manifest["name"].as_str(), manifest["goal"].as_str()), (Some("demo"), Some("make it pass")));
    let checkpoint = json(&files, "checkpoint.json");
    assert_eq!(checkpoint["current_node"], "done");
    assert_eq!(checkpoint["completed_nodes"], serde_json::json!(["start", "workspace", "test"]));
    assert_eq!(checkpoint["context"]["tests_passed"], "true");
    assert!(
        checkpoint["node_retries"].is_object() && checkpoint["logs"].as_array().is_some_and(|logs| logs.len() == 3)
    );
    let last = json(&files, "final.json");
    assert_eq!(
        (last["status"].as_str(), last["run_id"].as_str(), last["exit_node"].as_str()),
        (Some("success"), Some("r1"), Some("done"))
    );
    for field in ["timestamp", "final_git_commit_sha", "cxdb_context_id", "cxdb_head_turn_id"] {
        assert!(last[field].is_string(), "{field}: {last}");
    }
    assert!(last.get("failure_reason").is_none(), "{last}");
    assert_eq!((last["refusals_total"].as_u64(), last["quarantined"].as_u64()), (Some(6), Some(1)));
    assert_eq!(json(&files, "live.json")["event"]["kind"], "run.finished");
    assert_eq!(json(&files, "test/receipts.json")["receipts"][0]["code"], 0);
}

#[test]
fn a_nodes_folder_holds_its_latest_attempt_and_nothing_forged() {
    let run = Run::new();
    let at = run.dir("run");
    run.rebuild(&at, &run.records());
    let files = files(&at);
    assert!(!files.keys().any(|name| name.starts_with("workspace/")), "a node never writes into the workspace");
    let status = json(&files, "node-workspace/status.json");
    assert_eq!(
        (status["outcome"].as_str(), status["status_owner_attempt_id"].as_str()),
        (Some("success"), Some("workspace-2"))
    );
    assert_eq!(files["node-workspace/prompt.md"], b"do again");
    assert!(!files.contains_key("node-workspace/draft.md"), "left by an earlier attempt");
    assert!(!files.contains_key("node-workspace/stdout.log"), "left by an earlier attempt");
    assert_eq!(files["artifacts/workspace.1.1/draft.md"], b"x");
    assert_eq!(files["artifacts/workspace.1.2/prompt.md"], b"do again");
}

#[test]
fn lines_are_whole_sorted_and_of_the_known_types() {
    let run = Run::new();
    let at = run.dir("run");
    let records = run.records();
    run.rebuild(&at, &records);
    let files = files(&at);
    let progress = String::from_utf8(files["progress.ndjson"].clone()).expect("text");
    let read: Vec<Record> = progress.lines().map(|line| serde_json::from_str(line).expect("record")).collect();
    assert_eq!(read, records);
    let trace = String::from_utf8(files["trace.jsonl"].clone()).expect("text");
    let types: Vec<String> = trace
        .lines()
        .map(|line| {
            let value: Value = serde_json::from_str(line).expect("line");
            assert_eq!(line, glovebox_journal::event::canonical(&value).expect("canonical"), "keys are sorted");
            assert_eq!(value["schema_version"], 1);
            value["type"].as_str().expect("type").to_owned()
        })
        .collect();
    let expected = [
        "SessionInitialized",
        "PipelineStarted",
        "NodeInputCaptured",
        "NodeOutputCaptured",
        "RouteEvaluated",
        "NodeInputCaptured",
        "NodeOutputCaptured",
        "ResumeLoaded",
        "NodeInputCaptured",
        "NodeOutputCaptured",
        "RouteEvaluated",
        "NodeInputCaptured",
        "NodeOutputCaptured",
        "RouteEvaluated",
        "PipelineCompleted",
    ];
    assert_eq!(types, expected);
    let delta = trace.lines().filter(|line| line.contains("NodeOutputCaptured")).nth(2).expect("second attempt");
    let delta: Value = serde_json::from_str(delta).expect("line");
    assert_eq!(delta["context_delta"]["added"]["tests_passed"], "true", "{delta}");
    assert!(trace.contains(
        r#""candidates":[{"condition":"outcome=success","matched":true,"reason":"holds","to":"done","weight":3}]"#
    ));
}
