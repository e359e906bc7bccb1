//! Shared by the test suites: one host for the process, calls without grants, and expectations about their reports.

use crate::guests;
use glovebox_host::call::{Call, CallObserver, CommandGrant, FileTier, Report};
use glovebox_host::component::Component;
use glovebox_host::host::{Host, HostConfig};
use glovebox_host::input::StageInput;
use glovebox_record::{Attempt, BranchId, Ending, FailureClass, LimitName, Limits, Status, Task, Work};
use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock};

/// Guests with one test or more, in this suite or in the neighbouring ones. `every_guest_has_a_test` compares the list with the folders.
pub(crate) const TESTED: &[&str] = &[
    "artifact-flood",
    "artifact-tricks",
    "asks-model",
    "crowd",
    "endless-loop",
    "entry-hog",
    "exits",
    "handle-hog",
    "huge-argument",
    "lies",
    "log-flood",
    "loud-command",
    "malformed-outcome",
    "memory-hog",
    "opens-sockets",
    "output-flood",
    "overreads-completion",
    "panics",
    "refusal-flood",
    "remembers",
    "runs-command",
    "shouts",
    "sleeping-command",
    "sleeps",
    "stack-overflow",
    "table-hog",
    "traps",
    "write-hog",
];

/// Returns the names of all guests in alphabetical order.
pub(crate) fn guest_names() -> Vec<String> {
    let entries = std::fs::read_dir(guests::folder()).unwrap().map(Result::unwrap);
    let folders = entries.filter(|entry| entry.path().is_dir());
    let mut names: Vec<String> = folders.map(|entry| entry.file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

pub(crate) struct World {
    pub(crate) host: Host,
    pub(crate) runtime: tokio::runtime::Runtime,
    pub(crate) folder: tempfile::TempDir,
}

/// Returns the host of this process. There is only one, because starting a host and compiling take long.
pub(crate) fn world() -> &'static World {
    static WORLD: OnceLock<World> = OnceLock::new();
    WORLD.get_or_init(|| {
        let folder = tempfile::tempdir().unwrap();
        let config = HostConfig::in_process(Some(folder.path().join("cache")), 4);
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        World { host: Host::new(config).unwrap(), runtime, folder }
    })
}

pub(crate) fn load(name: &str) -> Arc<Component> {
    assert!(TESTED.contains(&name));
    world().host.load(&guests::build(name)).unwrap()
}

pub(crate) fn call(limits: &[(LimitName, u64)]) -> Call {
    let mut bounds = Limits { wall_ms: 30_000, ..Limits::default() };
    bounds.replace(&limits.iter().copied().collect());
    let attempt = Attempt {
        task: Task { generation: 0, branch: BranchId::main(), node: "n".into(), visit: 1, work: Work::Handler },
        ordinal: 1,
        id: "run-1/n".into(),
    };
    Call {
        input: StageInput {
            run: "run-1".into(),
            attempt,
            handler_type: "test.guest".to_owned(),
            label: "n".to_owned(),
            prompt: None,
            goal: "stay inside".to_owned(),
            attributes: vec![],
            context: BTreeMap::new(),
            outgoing: vec![],
            write_paths: vec![],
            commands: CommandGrant::default(),
            last_failure: None,
            extra: vec![],
        },
        tier: FileTier::None,
        files: None,
        commands: None,
        program: None,
        model: None,
        conversation: Default::default(),
        hooks: None,
        policy: None,
        tools: glovebox_host::tools::ToolSetting::default(),
        limits: bounds,
        canceled: Arc::new(AtomicBool::new(false)),
        revocation: None,
        observer: CallObserver::unobserved(),
    }
}

pub(crate) fn execute(name: &str, call: Call) -> Report {
    let component = load(name);
    world().runtime.block_on(world().host.execute(&component, call))
}

pub(crate) fn run(name: &str, limits: &[(LimitName, u64)]) -> Report {
    execute(name, call(limits))
}

pub(crate) fn usage(report: &Report, name: LimitName) -> (u64, u64) {
    let found = report.usage.iter().find(|usage| usage.name == name).unwrap();
    (found.used.unwrap(), found.limit)
}

#[track_caller]
pub(crate) fn expect_failure(report: &Report, class: FailureClass, code: &str) {
    let failure = report.outcome.failure.as_ref().unwrap_or_else(|| panic!("no failure: {report:?}"));
    assert_eq!(
        (report.outcome.status, failure.class, failure.code.as_str()),
        (Status::Fail, class, code),
        "{report:?}"
    );
}

#[track_caller]
pub(crate) fn expect_limit(report: &Report, name: LimitName) {
    expect_failure(report, FailureClass::Budget, &format!("limit/{name}"));
    assert_eq!(report.ending, Ending::LimitHit(name.to_string()));
    let (used, limit) = usage(report, name);
    assert!(used >= limit, "{name}: used {used} of {limit}");
}
