//! Components with manifests, a host, and plans that use them, for the tests of binding and of attempts.

use crate::guests;
use glovebox_engine::driver::Assignment;
use glovebox_host::host::{Host, HostConfig};
use glovebox_host::inspect::inspect;
use glovebox_journal::event::{Attempt, BranchId, Digest, Task, Work};
use glovebox_pipeline::Source;
use glovebox_pipeline::ir::Pipeline;
use glovebox_plan::bind::{BindErrors, BindOptions, OperatorFiles, bind};
use glovebox_plan::components::{Catalog, PluginFile};
use glovebox_plan::config::Config;
use glovebox_plan::lock::{Lock, LockedPlugin};
use glovebox_plan::plan::Plan;
use glovebox_state::run_state::Branch;
use std::sync::{Arc, OnceLock};

/// The wants of the built-in `tool` component.
const TOOL: &str = r#"{"filesystem":"none","commands":["*"]}"#;
/// The wants of the built-in `codergen` component.
const CODERGEN: &str = r#"{"filesystem":"posix","read":["./"],"write":["./"],"commands":["*"],"model":true}"#;

/// Returns the host that all tests of a suite share.
pub(crate) fn host() -> Arc<Host> {
    static HOST: OnceLock<Arc<Host>> = OnceLock::new();
    let make = || Arc::new(Host::new(HostConfig::in_process(None, 4)).expect("host"));
    Arc::clone(HOST.get_or_init(make))
}

/// Builds a guest of `tests/guests` with this behaviour, and a manifest with this name and these wants.
pub(crate) fn component(behaviour: &str, name: &str, wants: &str) -> Arc<[u8]> {
    let manifest = format!(r#"{{"name":"{name}","version":"0.1.0","description":"","wants":{wants}}}"#);
    let mut bytes = guests::build(behaviour);
    let section = "glovebox:manifest";
    let mut body = vec![u8::try_from(section.len()).expect("short")];
    body.extend_from_slice(section.as_bytes());
    body.extend_from_slice(manifest.as_bytes());
    bytes.push(0);
    let mut length = body.len();
    while length >= 0x80 {
        bytes.push(u8::try_from(length & 0x7f).expect("seven bits") | 0x80);
        length >>= 7;
    }
    bytes.push(u8::try_from(length).expect("seven bits"));
    bytes.extend(body);
    bytes.into()
}

/// Creates a catalog with built-in components and these plugins.
pub(crate) fn catalog(plugins: &[(&str, Arc<[u8]>)]) -> Catalog {
    let mut catalog = Catalog::default();
    catalog.builtins.insert("codergen".to_owned(), component("asks-model", "codergen", CODERGEN).to_vec().into());
    catalog.builtins.insert("tool".to_owned(), component("runs-command", "tool", TOOL).to_vec().into());
    for (name, bytes) in plugins {
        let file = PluginFile { path: "p.wasm".to_owned(), bytes: Ok(Arc::clone(bytes)), signatures: Ok(Vec::new()) };
        catalog.plugins.insert((*name).to_owned(), file);
    }
    catalog
}

/// Parses a configuration.
pub(crate) fn config(text: &str) -> Config {
    Config::parse(text, "glovebox.toml").unwrap_or_else(|problems| panic!("{problems:?}"))
}

/// Creates a lock file that agrees to what a configuration grants a plugin with these bytes.
pub(crate) fn agreed(config: &Config, name: &str, bytes: &[u8]) -> Lock {
    let inspection = inspect(bytes).expect("component");
    let plugin = LockedPlugin::for_plugin(name, &config.plugins[name], None, &inspection);
    Lock { plugins: [(name.to_owned(), plugin)].into() }
}

/// Parses a pipeline of one node between start and exit.
pub(crate) fn pipeline(attributes: &str) -> Arc<Pipeline> {
    whole(&format!("digraph g {{ s [shape=Mdiamond] n [{attributes}] e [shape=Msquare] s -> n -> e }}"))
}

/// Parses a pipeline from its text.
pub(crate) fn whole(text: &str) -> Arc<Pipeline> {
    let checked = glovebox_pipeline::check(Source::new(text), &glovebox_pipeline::Inputs::default());
    Arc::new(checked.pipeline.unwrap_or_else(|| panic!("{text}: {:?}", checked.diagnostics)))
}

/// Binds without a sandbox, as with the flag.
pub(crate) fn plan(
    pipeline: &Arc<Pipeline>,
    catalog: &Catalog,
    config: &Config,
    lock: &Lock,
) -> Result<Plan, BindErrors> {
    let options = BindOptions { no_sandbox: true, ..BindOptions::default() };
    bind(Arc::clone(pipeline), catalog, OperatorFiles { config, lock }, &host(), options)
}

/// Creates the first attempt of a node, on a branch in this state.
pub(crate) fn assignment(node: &str, branch: Branch) -> Assignment {
    let started = serde_json::json!({
        "schema_version": 1, "engine_version": "0.1.0", "run_id": "run-1", "generation": 0, "pipeline_name": "p", "goal": "",
        "pipeline_path": "pipeline.dot", "pipeline_digest": Digest::ZERO, "plan_digest": Digest::ZERO,
        "base_digest": Digest::ZERO, "capabilities_digest": Digest::ZERO, "source_dir": "/project", "model": "simulated", "sandbox_tier": "none", "steps_max": 9,
    });
    let task = Task { generation: 0, branch: BranchId::main(), node: node.into(), visit: 1, work: Work::Handler };
    Assignment {
        steering: Default::default(),
        attempt: Attempt { task, ordinal: 1, id: "A1".into() },
        token: 5,
        run: Arc::new(serde_json::from_value(started).unwrap()),
        branch: Arc::new(branch),
        granted: Vec::new(),
        stop: Arc::default(),
        pulse: Default::default(),
    }
}
