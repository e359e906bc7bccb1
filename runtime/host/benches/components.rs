//! Measures the cost of a component call. Each figure has a native baseline that is measured in the same run.
//!
//! `cargo bench -p glovebox-host` prints a table with the median, the median of the baseline, and their ratio. Both are measured
//! alternately (A B A B …), so that a change of the machine's speed affects both. No result passes or fails.

#![allow(clippy::unwrap_used)] // A benchmark may panic.

#[path = "../../../tests/guests/mod.rs"]
#[allow(dead_code, reason = "the suites of several crates use it")]
mod guests;
#[path = "../../../benches/table.rs"]
mod table;

use glovebox_host::call::{Call, CallObserver, CommandGrant, FileSetting, FileSource, FileTier};
use glovebox_host::component::Component;
use glovebox_host::host::{Host, HostConfig};
use glovebox_host::input::StageInput;
use glovebox_record::scope::{Entry, Scope};
use glovebox_record::{Attempt, BranchId, Ending, Limits, Task, Work};
use glovebox_workspace::protect::Protected;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use table::{row, timed};
use tokio::runtime::Runtime;
use wasmtime::component::{Component as Code, Linker};
use wasmtime::{Config, Engine, Store};

const SAMPLES: usize = 301;
/// Number of files opened in one call, so that the cost of the call itself is negligible.
const FILES: usize = 500;

/// A component without imports, to measure the cost of instantiation alone.
const BARE: &str = "(component (core module $m (memory 2) (func (export \"run\"))) (core instance $i (instantiate $m)) \
                    (func (export \"run\") (canon lift (core func $i \"run\"))))";

fn main() {
    let folder = tempfile::tempdir().unwrap();
    table::head();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let host = Host::new(HostConfig::in_process(None, 4)).unwrap();
    dispatch(&host, &runtime);
    instantiate();
    load(folder.path());
    for tier in [FileTier::Posix, FileTier::Workspace] {
        files(&host, &runtime, folder.path(), tier);
    }
}

/// Measures one whole call: thread, store, grants, instance, export, report and drop.
fn dispatch(host: &Host, runtime: &Runtime) {
    let component = host.load(&guests::component("(func $execute)")).unwrap();
    let call = || timed(|| execute(host, runtime, &component, call(FileTier::None, None, &[])));
    let thread = || timed(|| runtime.block_on(runtime.spawn_blocking(|| ())).unwrap());
    row("dispatch of a component stage", SAMPLES, call, thread, "an empty closure on a blocking thread");
    row("dispatch of a component stage", 51, call, || timed(spawn), "spawn of `true`, what a process would cost");
}

fn instantiate() {
    let engine = Engine::new(Config::new().epoch_interruption(true)).unwrap();
    let pre = Linker::<()>::new(&engine)
        .instantiate_pre(&Code::new(&engine, wat::parse_str(BARE).unwrap()).unwrap())
        .unwrap();
    let instantiate = || {
        timed(|| {
            let mut store = Store::new(&engine, ());
            store.set_epoch_deadline(1);
            std::hint::black_box(pre.instantiate(&mut store).unwrap());
        })
    };
    let memory = || timed(|| drop(std::hint::black_box(vec![1_u8; 128 << 10])));
    row("instantiate, store made and dropped", SAMPLES, instantiate, memory, "128 KiB allocated, filled and freed");
}

/// Measures loading a compiled component into a new host. The baselines are compiling it and reading the file.
fn load(folder: &Path) {
    let bytes = fs::read(component("codergen")).expect("components are built by `cargo xtask components`");
    let cache = folder.join("cache");
    let config = || HostConfig::in_process(Some(cache.clone()), 1);
    let hosts: Vec<Host> = (0..22).map(|_| Host::new(config()).unwrap()).collect();
    hosts[0].load(&bytes).unwrap();
    let mut warm = hosts[1..].iter();
    let load = || {
        let host = warm.next_back().unwrap_or(&hosts[0]);
        timed(|| host.load(&bytes).map(drop).unwrap())
    };
    let artefact = fs::read_dir(cache.join("aot")).unwrap().map(|entry| entry.unwrap().path());
    let artefact = artefact.max_by_key(|path| fs::metadata(path).unwrap().len()).unwrap();
    let read = || timed(|| _ = std::hint::black_box(blake3::hash(&fs::read(&artefact).unwrap())));
    row("AOT load of codergen, verified", 20, load, read, "reading and hashing the same file");
    let compile = || {
        let cold = Host::new(HostConfig::in_process(None, 1)).unwrap();
        timed(|| cold.load(&bytes).map(drop).unwrap())
    };
    row("compile of codergen", 5, compile, read, "reading and hashing the compiled file");
}

/// Measures opening, reading and closing a small file three folders deep.
fn files(host: &Host, runtime: &Runtime, folder: &Path, tier: FileTier) {
    let deep = folder.join("project/a/b/c");
    fs::create_dir_all(&deep).unwrap();
    fs::write(deep.join("file.txt"), [b'x'; 10]).unwrap();
    let component = host.load(&guests::build("escapes")).unwrap();
    let step: &[(&str, &str)] = match tier {
        FileTier::Posix => &[("o01", "a/b/c/file.txt"), ("r", "")],
        _ => &[("Fr", "a/b/c/file.txt")],
    };
    let steps: Vec<_> = step.iter().copied().cycle().take(step.len() * FILES).collect();
    let project = folder.join("project");
    let with = |steps: &[(&str, &str)]| {
        let files = FileSetting {
            source: FileSource::Folder(project.clone()),
            scope: Scope::new(vec![Entry::parse("./").unwrap()], vec![], vec![]),
            protected: Protected::default(),
            known_as: Vec::new(),
            is_of_plugin: false,
        };
        timed(|| execute(host, runtime, &component, call(tier, Some(files), steps)))
    };
    let measured = || with(&steps).saturating_sub(with(&[])) / FILES as u32;
    let native = || timed(|| (0..FILES).for_each(|_| drop(fs::read(deep.join("file.txt")).unwrap()))) / FILES as u32;
    row(&format!("open and read a file, tier {tier:?}").to_lowercase(), 31, measured, native, "`std::fs::read`");
}

fn component(name: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/components").join(format!("{name}.wasm"))
}

fn execute(host: &Host, runtime: &Runtime, component: &Arc<Component>, call: Call) {
    let report = runtime.block_on(host.execute(component, call));
    assert_eq!(report.ending, Ending::Returned, "{report:?}");
}

fn call(tier: FileTier, files: Option<FileSetting>, steps: &[(&str, &str)]) -> Call {
    let attempt = Attempt {
        task: Task { generation: 0, branch: BranchId::main(), node: "n".into(), visit: 1, work: Work::Handler },
        ordinal: 1,
        id: "run-1/n".into(),
    };
    let input = StageInput {
        run: "run-1".into(),
        attempt,
        handler_type: "bench.guest".to_owned(),
        label: "n".to_owned(),
        prompt: None,
        goal: String::new(),
        attributes: steps.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect(),
        context: BTreeMap::new(),
        outgoing: vec![],
        write_paths: vec![],
        commands: CommandGrant::default(),
        last_failure: None,
        extra: vec![],
    };
    let limits = Limits { outcome_bytes: 64 << 20, ..Limits::default() };
    let observer = CallObserver::unobserved();
    Call {
        input,
        tier,
        files,
        commands: None,
        program: None,
        model: None,
        conversation: Default::default(),
        hooks: None,
        policy: None,
        tools: glovebox_host::tools::ToolSetting::default(),
        limits,
        canceled: Arc::new(AtomicBool::new(false)),
        revocation: None,
        observer,
    }
}

fn spawn() {
    let mut command = Command::new("true");
    assert!(command.stdin(Stdio::null()).stdout(Stdio::null()).status().unwrap().success());
}
