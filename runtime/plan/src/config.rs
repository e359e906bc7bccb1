//! The settings in `glovebox.toml`: which plugins exist, what the operator grants them, and the limits of every stage.
//!
//! Parsing is pure: the result of a text is a [`Config`] or all [`ConfigProblem`]s. A field that is unknown, or that this
//! version could not enforce, is an error that names the field and the line. No field is ever ignored, since an ignored
//! denial would be a permission. Paths are kept as written, and the caller resolves them against the folder of the file.

mod agents;
mod exec;
mod field;
pub mod fleet;
mod mcp;
mod models;
mod plugin;
mod recovery;
mod run;
pub mod sandbox;
mod trust;
mod verify;

pub use agents::AgentEntry;
pub use exec::{ExecSetting, Toolchain, VenvSetting, is_env_name_allowed};
pub use fleet::FleetSetting;
pub use mcp::ServerEntry;
pub use models::{ConfiguredModel, KeySource, ModelAccess, ModelEntry};
pub use plugin::{ComponentSource, PluginEntry, RegistrySource};
pub use recovery::{DiscardPattern, RecoverySetting};
pub use run::{PARALLEL_MAX, RunSetting};
pub use trust::{LIST_TAG, ListSource, TrustKeySetting, TrustKeySource, TrustSetting};

use crate::verify::Verify;
use field::{Field, Fields, File, Place};
use glovebox_pipeline::diagnostic::Diagnostic;
use glovebox_pipeline::ir::Role;
use glovebox_pipeline::span::Span;
use glovebox_record::program::AgentProgram;
use glovebox_record::scope::Entry;
use glovebox_record::{LimitName, LimitSettings, Limits};
use sandbox::SandboxSetting;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::Path;
use std::sync::Arc;

/// The name of the file. It is looked for in the pipeline's folder and in the folders above it.
pub const CONFIG_FILE_NAME: &str = "glovebox.toml";

/// All tables of the file.
const TABLES: [&str; 15] = [
    "plugins",
    "rules",
    "policy",
    "workspace",
    "exec",
    "sandbox",
    "limits",
    "models",
    "agents",
    "mcp",
    "run",
    "verify",
    "recovery",
    "trust",
    "fleet",
];

/// The settings of `glovebox.toml`. The default is the settings of an absent file: no plugins, no environment for commands,
/// no limits.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Config {
    /// The file's name as given, for messages. Empty if there is no file.
    pub file_name: String,
    /// Plugins, by the `type` of the nodes that use them.
    pub plugins: BTreeMap<String, PluginEntry>,
    /// Rule plugins, by name.
    pub rules: BTreeMap<String, RuleEntry>,
    /// Policies over tool calls and edges, by name.
    pub policies: BTreeMap<String, PolicyEntry>,
    /// How the run's copy of the project is made.
    pub workspace: WorkspaceSetting,
    /// How commands find their programs.
    pub exec: ExecSetting,
    /// The settings for the sandbox of commands.
    pub sandbox: SandboxSetting,
    /// Models by name: how each is reached, and its price.
    pub models: BTreeMap<String, ModelEntry>,
    /// Agent programs: where the file of each is, and what it can read of the machine.
    pub agents: BTreeMap<AgentProgram, AgentEntry>,
    /// Tool servers, by name.
    pub mcp: BTreeMap<String, Arc<ServerEntry>>,
    /// Limits of a run as a whole.
    pub run: RunSetting,
    /// The commands that verification stages run in addition to a model's plan. `None` unless the operator sets them.
    pub verify: Option<Arc<Verify>>,
    /// The settings of write recovery. `None` unless the operator enables it.
    pub recovery: Option<RecoverySetting>,
    /// The keys that may sign plugins. `None` if the file has no `[trust]`: then no signature is read.
    pub trust: Option<TrustSetting>,
    /// The fleet that this project uses, and on which machines its stages may run.
    pub fleet: FleetSetting,
    /// Limits for every stage. A lower limit of a plugin or a node has precedence.
    pub limits: LimitSettings,
}

/// The changes that a rule plugin may make to a graph. The default allows none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum TransformGrant {
    /// A transform that changes anything is an error.
    #[default]
    None,
    /// `transform = true`: the plugin may change the graph, as long as the plan allows no more than before.
    Change,
    /// `transform = "widen"`: the plugin may also change the graph so that the plan allows more.
    Widen,
}

impl TransformGrant {
    /// Returns the lines of `glovebox.lock` that agree to this grant.
    pub fn lines(self) -> Vec<String> {
        let lines: &[&str] = match self {
            Self::None => &[],
            Self::Change => &["transform"],
            Self::Widen => &["transform", "widen"],
        };
        lines.iter().map(|line| (*line).to_owned()).collect()
    }
}

/// One `[rules."ns.name"]` table: a component that checks graphs, and changes them if this is granted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuleEntry {
    /// The path of the component, relative to `glovebox.toml`.
    pub path: String,
    /// Whether the plugin may change graphs.
    pub transform: TransformGrant,
    /// Line of the table, from 1.
    pub line: usize,
    /// Byte range of the name in the file.
    pub place: std::ops::Range<usize>,
}

/// One `[policy."ns.name"]` table: a component that judges tool calls and edges.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PolicyEntry {
    /// The path of the component, relative to `glovebox.toml`.
    pub path: String,
    /// Line of the table, from 1.
    pub line: usize,
    /// Byte range of the name in the file.
    pub place: std::ops::Range<usize>,
}

/// The `[workspace]` table.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WorkspaceSetting {
    /// Ignored files that are copied nevertheless, in the syntax of scope paths.
    pub include: Vec<String>,
    /// Byte ranges of the entries of `include` in the file.
    pub include_places: Vec<std::ops::Range<usize>>,
    /// Folders of installed dependencies, which commands see read-only. `None` for the usual folders of the kind of project.
    pub dependencies: Option<Vec<Entry>>,
    /// The part of the project's repository that commands may read.
    pub history: HistorySetting,
    /// True if commands work on a copy of the files instead of an overlay.
    pub copies_files: bool,
}

/// The part of the project's repository that commands may read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum HistorySetting {
    /// Every commit, if nothing that commands read can leave the machine or show a hold-out. Otherwise one commit.
    #[default]
    IfNothingLeaves,
    /// One commit.
    Commit,
    /// Every commit.
    Whole,
}

/// A problem in `glovebox.toml`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigProblem {
    /// Stable rule name: `config_syntax`, `config_unknown_field`, `config_unenforceable`, `config_value`, `config_missing_field`.
    pub rule: &'static str,
    /// The file's name as given.
    pub file_name: String,
    /// Dotted path of the field, such as `plugins."acme.review".grants.network`.
    pub field: String,
    /// Line of the problem, from 1.
    pub line: usize,
    /// Byte range of the problem.
    pub span: Span,
    /// What is wrong, where, and what is expected.
    pub message: String,
    /// The line to paste. `None` if there is none.
    pub help: Option<String>,
}

impl fmt::Display for ConfigProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.file_name, self.line, self.message)
    }
}

impl ConfigProblem {
    /// Returns the problem as a diagnostic about the text of `glovebox.toml`, so that it is printed like a problem of a pipeline.
    pub fn to_diagnostic(&self) -> Diagnostic {
        let diagnostic = Diagnostic::error(self.rule, self.message.clone(), self.span);
        match &self.help {
            Some(help) => diagnostic.with_help(help.clone()),
            None => diagnostic,
        }
    }
}

impl Config {
    /// Returns the names of `[rules]` in the order of the file, which is the order in which the plugins are called.
    pub fn rules_in_order(&self) -> Vec<&str> {
        let mut rules: Vec<(&String, &RuleEntry)> = self.rules.iter().collect();
        rules.sort_by_key(|(_, entry)| entry.place.start);
        rules.into_iter().map(|(name, _)| name.as_str()).collect()
    }

    /// Returns the names of `[policy]` in the order of the file, which is the order in which the policies are asked.
    pub fn policies_in_order(&self) -> Vec<&str> {
        let mut policies: Vec<(&String, &PolicyEntry)> = self.policies.iter().collect();
        policies.sort_by_key(|(_, entry)| entry.place.start);
        policies.into_iter().map(|(name, _)| name.as_str()).collect()
    }

    /// Returns the plugins that the operator binds as verifiers.
    pub fn verifiers(&self) -> BTreeSet<String> {
        let verifiers = self.plugins.iter().filter(|(_, entry)| entry.role == Role::Verifier);
        verifiers.map(|(name, _)| name.clone()).collect()
    }

    /// Returns the maximum size of a handler's component, in bytes: the lower of the operator's limits for all stages and for
    /// this plugin. If there is neither, returns the default.
    pub fn component_bytes(&self, handler: &str) -> u64 {
        let granted = self.plugins.get(handler).and_then(|plugin| plugin.grants.as_ref()).map(|grants| &grants.limits);
        let granted = granted.and_then(|granted| granted.get(LimitName::ComponentBytes));
        let own = self.limits.get(LimitName::ComponentBytes);
        granted.into_iter().chain(own).min().unwrap_or_else(|| Limits::default().component_bytes)
    }

    /// Parses the file's text. On failure, returns all problems in file order.
    pub fn parse(text: &str, file_name: &str) -> Result<Config, Vec<ConfigProblem>> {
        let mut fields = Fields::new(File { text, name: file_name });
        let root = fields.parse();
        let mut config = Config { file_name: file_name.to_owned(), ..Config::default() };
        for field in Fields::root(root.get_ref()) {
            match field.name {
                "plugins" => config.plugins = named(&mut fields, &field, plugin::parse),
                "rules" => config.rules = named(&mut fields, &field, rule),
                "policy" => config.policies = named(&mut fields, &field, policy),
                "workspace" => config.workspace = workspace(&mut fields, &field),
                "exec" => config.exec = exec::parse(&mut fields, &field),
                "sandbox" => config.sandbox = sandbox::parse(&mut fields, &field),
                "limits" => config.limits = fields.limits(&field),
                "models" => config.models = models::parse(&mut fields, &field),
                "agents" => config.agents = agents::parse(&mut fields, &field),
                "mcp" => config.mcp = mcp::parse(&mut fields, &field),
                "run" => config.run = run::parse(&mut fields, &field),
                "verify" => config.verify = Some(Arc::new(verify::parse(&mut fields, &field))),
                "trust" => config.trust = Some(trust::parse(&mut fields, &field)),
                "recovery" => config.recovery = recovery::parse(&mut fields, &field),
                "fleet" => config.fleet = fleet::parse(&mut fields, &field),
                _ => fields.unknown(&field, &TABLES),
            }
        }
        let rules = config.rules.iter().map(|(name, entry)| ("rules", name, &entry.place));
        let policies = config.policies.iter().map(|(name, entry)| ("policy", name, &entry.place));
        for (table, name, place) in rules.chain(policies) {
            let is_taken = config.plugins.contains_key(name) || (table == "policy" && config.rules.contains_key(name));
            if is_taken {
                let path = format!("{table}.\"{name}\"");
                let message = format!("`{path}` has the name of a plugin: another name is expected");
                fields.value_problem(Place { path, span: place.clone() }, message);
            }
        }
        fields.finish(config)
    }
}

/// Reads the tables below a table. Each key is the name of a component.
fn named<T>(
    fields: &mut Fields<'_>,
    table: &Field<'_, '_>,
    read: fn(&mut Fields<'_>, &Field<'_, '_>) -> Option<T>,
) -> BTreeMap<String, T> {
    let mut entries = BTreeMap::new();
    for field in fields.table(table).into_iter().map(Field::quoted) {
        if !is_plugin_name(field.name) {
            let message = format!(
                "`{field}` is not a plugin name: write two or more words of a-z, 0-9 and `-`, joined by `.`, such as `acme.review`"
            );
            fields.value_problem(field.at_key(), message);
        } else if let Some(entry) = read(fields, &field) {
            entries.insert(field.name.to_owned(), entry);
        }
    }
    entries
}

fn rule(fields: &mut Fields<'_>, table: &Field<'_, '_>) -> Option<RuleEntry> {
    let (mut path, mut has_path, mut transform) = (None, false, TransformGrant::None);
    for field in fields.table(table) {
        match field.name {
            "path" => (has_path, path) = (true, fields.path(&field)),
            "transform" => transform = transform_grant(fields, &field),
            _ => fields.unknown(&field, &["path", "transform"]),
        }
    }
    if !has_path {
        fields.missing_path(table, Path::new("rules.wasm"));
    }
    Some(RuleEntry { path: path?, transform, line: fields.line(table), place: table.at_key().span })
}

fn policy(fields: &mut Fields<'_>, table: &Field<'_, '_>) -> Option<PolicyEntry> {
    let (mut path, mut has_path) = (None, false);
    for field in fields.table(table) {
        match field.name {
            "path" => (has_path, path) = (true, fields.path(&field)),
            _ => fields.unknown(&field, &["path"]),
        }
    }
    if !has_path {
        fields.missing_path(table, Path::new("policy.wasm"));
    }
    Some(PolicyEntry { path: path?, line: fields.line(table), place: table.at_key().span })
}

fn transform_grant(fields: &mut Fields<'_>, field: &Field<'_, '_>) -> TransformGrant {
    match (field.value.as_bool(), field.value.as_str()) {
        (Some(true), _) => TransformGrant::Change,
        (Some(false), _) => TransformGrant::None,
        (None, Some("widen")) => TransformGrant::Widen,
        _ => {
            fields.value_problem(field.at_value(), format!("`{field}` must be `true`, `false` or `\"widen\"`"));
            TransformGrant::None
        }
    }
}

fn workspace(fields: &mut Fields<'_>, table: &Field<'_, '_>) -> WorkspaceSetting {
    let mut setting = WorkspaceSetting::default();
    for field in fields.table(table) {
        match field.name {
            "include" => {
                (setting.include, setting.include_places) = fields.scope_paths(&field).into_iter().unzip();
            }
            "dependencies" => setting.dependencies = Some(sandbox::subtrees(fields, &field)),
            "git" => match fields.text(&field).as_deref() {
                None => {}
                Some("commit") => setting.history = HistorySetting::Commit,
                Some("history") => setting.history = HistorySetting::Whole,
                Some(other) => {
                    let message = format!("`{field}` is `{other}`: `commit` or `history` is expected");
                    fields.value_problem(field.at_value(), message);
                }
            },
            "files" => match fields.text(&field).as_deref() {
                None | Some("overlay") => {}
                Some("copy") => setting.copies_files = true,
                Some(other) => {
                    let message = format!("`{field}` is `{other}`: `overlay` or `copy` is expected");
                    fields.value_problem(field.at_value(), message);
                }
            },
            _ => fields.unknown(&field, &["include", "dependencies", "git", "files"]),
        }
    }
    setting
}

/// Returns true for `ns.name`. The name has at least one dot, so that a plugin can never take the name of a built-in handler.
pub fn is_plugin_name(name: &str) -> bool {
    let word = |word: &str| {
        word.starts_with(|c: char| c.is_ascii_lowercase())
            && word.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-' || c == '_')
    };
    name.len() <= 64 && name.contains('.') && name.split('.').all(word)
}

#[cfg(test)]
mod tests;
