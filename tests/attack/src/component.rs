//! The attacks of a component on a prepared tree of files, one call each, in the host that runs every plugin.
//!
//! The component works on a layer over the files, as in a run. There are three witnesses: the files, which must not
//! change; the changes in the layer, all of which must be in the write scope; and the canary, which the component must
//! not return.

use glovebox_host::call::{Call, CallObserver, CommandGrant, FileSetting, FileSource, FileTier, Report};
use glovebox_host::component::Component;
use glovebox_host::host::Host;
use glovebox_host::input::StageInput;
use glovebox_hostile::evaluate::{AttackResult, EvaluatedRow, Finding, evaluate};
use glovebox_hostile::row::{Payload, Proof, Row};
use glovebox_hostile::target::{self, Tier};
use glovebox_record::scope::{Entry, Scope};
use glovebox_record::{Attempt, AttemptId, BranchId, Ending, Limits, Task, Work};
use glovebox_workspace::layer::Layer;
use glovebox_workspace::protect::Protected;
use glovebox_workspace::regular_file::{self, Links};
use glovebox_workspace::stage::{ChangeLimits, StageError, ViewOverrides, WorkspaceView};
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// The content of hidden files. A component that returns this text has escaped.
const CANARY: &str = "canary-of-the-hidden-files";

/// The write scope in the tree. `go.mod` does not exist.
const WRITE: [&str; 3] = ["out/", "src/main.rs", "go.mod"];

/// The absolute path of the tree, as the component sees it.
const OWN_PATH: &str = "/home/me/proj";

/// Maximum length of the files that are compared, in bytes.
const CONTENT_BYTES_MAX: u64 = 1 << 24;

/// Runs every row in a new folder below `parent`, and removes the folder afterwards.
pub(crate) fn run(
    host: &Host,
    intruder: &[u8],
    parent: &Path,
    rows: &[Row],
    tier: Tier,
) -> Result<Vec<EvaluatedRow>, String> {
    let failed = |step: &str, error: &dyn std::fmt::Display| format!("failed to {step}: {error}");
    let component = host.load(intruder).map_err(|error| failed("load the hostile component", &error))?;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let runtime = runtime.map_err(|error| failed("start the executor", &error))?;
    let mut evaluated = Vec::new();
    for (index, row) in rows.iter().enumerate() {
        let at = parent.join(format!("tree-{index}"));
        let tree = AttackedTree::plant(&at).map_err(|error| failed("plant the files to attack", &error))?;
        let finding = attack(host, &component, &runtime, &tree, row);
        let finding = finding.map_err(|error| failed("look at what the hostile component wrote", &error))?;
        evaluated.push(evaluate(row, finding, &Ok(Vec::new()), tier));
    }
    Ok(evaluated)
}

fn attack(
    host: &Host,
    component: &Arc<Component>,
    runtime: &tokio::runtime::Runtime,
    tree: &AttackedTree,
    row: &Row,
) -> Result<Finding, StageError> {
    let before = tree.look();
    let layer = Layer::open(&tree.root, &tree.folder.join("layer"), &scope(), &ViewOverrides::default())?;
    let report = runtime.block_on(host.execute(component, call(&layer, tree, row)));
    let after = tree.look();
    let changed = before.keys().chain(after.keys()).filter(|path| before.get(*path) != after.get(*path));
    let mut touched: Vec<String> = changed.map(|path| format!("`{path}` was changed")).collect();
    touched.dedup();
    let found = WorkspaceView::Layer(layer).changes(&ChangeLimits::new(limits(row)), &Protected::default())?;
    let disallowed = found.iter().filter(|change| !change.is_allowed());
    touched.extend(disallowed.map(|change| format!("`{}` is a change outside the write scope", change.path)));
    let leaked = report.outcome.notes.contains(CANARY);
    let (ended, result) = ending(&report);
    Ok(Finding::of_component(result, ended, touched, leaked))
}

/// Returns how the call ended, and the report of the component if there is one.
fn ending(report: &Report) -> (target::Ending, Option<AttackResult>) {
    match &report.ending {
        Ending::Returned => (target::Ending::Exited, serde_json::from_str(&report.outcome.notes).ok()),
        Ending::LimitHit(name) => (target::Ending::Stopped(format!("limit `{name}`")), None),
        Ending::Trapped(_) => (target::Ending::Stopped("trapped".to_owned()), None),
        Ending::Canceled => (target::Ending::Canceled, None),
        Ending::NotLinked(reason) => (target::Ending::Stopped(format!("not linked: {reason}")), None),
        Ending::Revoked(reason) => (target::Ending::Stopped(format!("revoked: {reason}")), None),
        Ending::SandboxLost => (target::Ending::Stopped("its sandbox was killed".to_owned()), None),
        Ending::MachineLost => (target::Ending::Stopped("its machine was lost".to_owned()), None),
    }
}

fn call(layer: &Arc<Layer>, tree: &AttackedTree, row: &Row) -> Call {
    let words = match row.payload {
        Payload::Component(words) | Payload::Program(words) => words,
        Payload::Shell(_) => &[],
    };
    let names = ["attack", "first", "second"];
    let fill = |word: &str| word.replace("{secret}", &tree.secret.to_string_lossy());
    let attributes = names.iter().zip(words).map(|(name, word)| ((*name).to_owned(), fill(word))).collect();
    let limits = limits(row);
    Call {
        input: StageInput {
            run: "doctor".into(),
            attempt: Attempt {
                task: Task {
                    generation: 0,
                    branch: BranchId::main(),
                    node: row.id.into(),
                    visit: 1,
                    work: Work::Handler,
                },
                ordinal: 1,
                id: AttemptId::new(format!("doctor/{}", row.id)),
            },
            handler_type: "intruder".to_owned(),
            label: row.title.to_owned(),
            prompt: None,
            goal: "get out".to_owned(),
            attributes,
            context: BTreeMap::new(),
            outgoing: Vec::new(),
            write_paths: Vec::new(),
            commands: CommandGrant::default(),
            last_failure: None,
            extra: Vec::new(),
        },
        tier: FileTier::Posix,
        files: Some(FileSetting {
            source: FileSource::Layer(Arc::clone(layer)),
            scope: scope(),
            protected: Protected::default(),
            known_as: vec![OWN_PATH.to_owned()],
            is_of_plugin: false,
        }),
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
        observer: CallObserver::unobserved(),
    }
}

fn limits(row: &Row) -> Limits {
    // A short limit for an attack that the host must end.
    let wall_ms = if row.proof == Proof::Ended { 400 } else { 10_000 };
    Limits { wall_ms, memory_bytes: 64 << 20, write_bytes: 1 << 20, write_entries: 200, ..Limits::default() }
}

/// Returns the scope: everything is readable, three entries are writable, one is hidden. All entries are literals, so
/// each of them can be parsed.
fn scope() -> Scope {
    let entries = |texts: &[&str]| texts.iter().filter_map(|text| Entry::parse(text).ok()).collect::<Vec<_>>();
    Scope::new(entries(&["./"]), entries(&WRITE), entries(&["scenarios/holdout/"]))
}

/// A tree with writable, read-only and hidden files, and with links to read-only and hidden files.
struct AttackedTree {
    folder: PathBuf,
    root: PathBuf,
    secret: PathBuf,
}

impl AttackedTree {
    fn plant(folder: &Path) -> io::Result<Self> {
        let (root, secret) = (folder.join("tree"), folder.join("secret.txt"));
        for name in ["src", "ro", "out/d", "visible", "scenarios/holdout/deep"] {
            fs::create_dir_all(root.join(name))?;
        }
        for (name, content) in [
            ("Cargo.toml", "root"),
            ("src/main.rs", "main"),
            ("src/lib.rs", "lib"),
            ("src/secret.rs", CANARY),
            ("ro/a", "read only"),
            ("out/own", "own"),
            ("out/d/h.toml", "mine"),
            ("visible/v", "v"),
            ("scenarios/readme", "readme"),
            ("scenarios/holdout/h.toml", CANARY),
            ("scenarios/holdout/deep/x", CANARY),
        ] {
            fs::write(root.join(name), content)?;
        }
        fs::write(&secret, CANARY)?;
        fs::hard_link(root.join("src/secret.rs"), root.join("out/hard"))?;
        for (target, link) in
            [("../scenarios/holdout", "to_holdout"), ("../src", "to_src"), ("/etc/passwd", "to_passwd")]
        {
            symlink(target, root.join("out").join(link))?;
        }
        Ok(Self { folder: folder.to_owned(), root, secret })
    }

    /// Returns the state of all files except those in the layer.
    fn look(&self) -> BTreeMap<String, String> {
        let mut seen = BTreeMap::new();
        [&self.root, &self.secret].into_iter().for_each(|path| self.remember(path, &mut seen));
        seen
    }

    fn remember(&self, path: &Path, seen: &mut BTreeMap<String, String>) {
        let Ok(meta) = path.symlink_metadata() else { return };
        let inside = path.strip_prefix(&self.root).unwrap_or(path).to_string_lossy().into_owned();
        let content = if meta.is_file() {
            regular_file::read(path, Links::Follow, CONTENT_BYTES_MAX).unwrap_or_default()
        } else {
            Vec::new()
        };
        let times = if meta.is_dir() { (0, 0) } else { (meta.mtime(), meta.mtime_nsec()) };
        let text = String::from_utf8_lossy(&content).into_owned();
        seen.insert(inside, format!("{:o} {} {times:?} {text}", meta.mode(), meta.ino()));
        if meta.is_dir() {
            let entries = fs::read_dir(path).into_iter().flatten().flatten();
            entries.for_each(|entry| self.remember(&entry.path(), seen));
        }
    }
}

impl Drop for AttackedTree {
    fn drop(&mut self) {
        let _gone = fs::remove_dir_all(&self.folder);
    }
}
