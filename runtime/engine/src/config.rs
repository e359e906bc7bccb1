//! `glovebox.toml`: which plugins exist, what the operator grants them, and what every stage is bounded by.
//!
//! Parsing is pure: the text goes in, a [`Config`] or every [`ConfigProblem`] comes out. A field that is unknown, or that this
//! version could not enforce, is an error that names the field and the line; nothing is ever ignored, since an ignored
//! denial is a permission. Paths are kept as written: who resolves them has the folder of the file.

mod exec;
mod field;
mod run;
pub mod sandbox;

pub use exec::{ExecSetting, Toolchain, is_env_name_allowed};
pub use run::RunSetting;

use field::Fields;
use glovebox_host::grants::Grants;
use glovebox_pipeline::diagnostic::Diagnostic;
use glovebox_pipeline::lower::handler::Role;
use glovebox_pipeline::span::Span;
use glovebox_record::{LimitName, LimitSettings, Limits};
use sandbox::SandboxSetting;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// The name of the file, looked up from the pipeline's folder upward to the workdir.
pub const CONFIG_FILE_NAME: &str = "glovebox.toml";

/// What `glovebox.toml` says. The default is what an absent file means: no plugins, no commands' environment, no bounds of its own.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Config {
    /// The file's name as given, for messages; empty when there is no file.
    pub file_name: String,
    /// Third-party components by the `type` a node names them with.
    pub plugins: BTreeMap<String, PluginEntry>,
    /// Components with lint rules, by name.
    pub rules: BTreeMap<String, RuleEntry>,
    /// How the run's copy of the project is made.
    pub workspace: WorkspaceSetting,
    /// How commands find their programs.
    pub exec: ExecSetting,
    /// What commands run in.
    pub sandbox: SandboxSetting,
    /// Bounds of a run as a whole.
    pub run: RunSetting,
    /// Bounds for every stage; a plugin's or a node's own bound wins when it is lower.
    pub limits: LimitSettings,
}

/// One `[plugins."ns.name"]` table. The default grants nothing.
#[derive(Debug, Clone, PartialEq)]
pub struct PluginEntry {
    /// The component, relative to the file.
    pub path: String,
    /// Stands in for the manifest of a component that carries none; else intersected with it.
    pub wants: Option<Grants>,
    /// What the operator allows; absent means nothing.
    pub grants: Option<Grants>,
    /// What part its stages have in a run; a builder unless the operator says otherwise.
    pub role: Role,
    /// Line of the table, from 1.
    pub line: usize,
}

/// What a component of rules may do to a graph beside judging it. The default: nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum TransformGrant {
    /// A transform that changes anything is an error.
    #[default]
    None,
    /// `transform = true`: it may change the graph, as long as the plan allows no more than before.
    Change,
    /// `transform = "widen"`: it may also change what the plan allows.
    Widen,
}

impl TransformGrant {
    /// The lines of `glovebox.lock` that agree to it.
    pub fn lines(self) -> Vec<String> {
        let lines: &[&str] = match self {
            Self::None => &[],
            Self::Change => &["transform"],
            Self::Widen => &["transform", "widen"],
        };
        lines.iter().map(|line| (*line).to_owned()).collect()
    }
}

/// One `[rules."ns.name"]` table: a component that judges graphs, and changes them where it may.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuleEntry {
    /// The component, relative to the file.
    pub path: String,
    /// Whether it may change graphs.
    pub transform: TransformGrant,
    /// Line of the table, from 1.
    pub line: usize,
    /// Place of its name in bytes.
    pub place: std::ops::Range<usize>,
}

/// The `[workspace]` table.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WorkspaceSetting {
    /// Ignored files that are copied all the same, in the grammar of scope paths.
    pub include: Vec<String>,
}

/// Something wrong in `glovebox.toml`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigProblem {
    /// Stable rule name: `config_syntax`, `config_unknown_field`, `config_unenforceable`, `config_value`, `config_missing_field`.
    pub rule: &'static str,
    /// The file's name as given.
    pub file_name: String,
    /// Dotted path of the field, such as `plugins."acme.review".grants.network`.
    pub field: String,
    /// Its line, from 1.
    pub line: usize,
    /// Its place in bytes.
    pub span: Span,
    /// The thing, the place, the expected.
    pub message: String,
    /// The line to paste, where there is one.
    pub help: Option<String>,
}

impl fmt::Display for ConfigProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.file_name, self.line, self.message)
    }
}

impl ConfigProblem {
    /// The same as a diagnostic over the text of `glovebox.toml`, for the same printer as a pipeline's.
    pub fn to_diagnostic(&self) -> Diagnostic {
        let diagnostic = Diagnostic::error(self.rule, self.message.clone(), self.span);
        match &self.help {
            Some(help) => diagnostic.with_help(help.clone()),
            None => diagnostic,
        }
    }
}

impl Config {
    /// The names of `[rules]` in the order they are written: in that order they are asked.
    pub fn rules_in_order(&self) -> Vec<&str> {
        let mut rules: Vec<(&String, &RuleEntry)> = self.rules.iter().collect();
        rules.sort_by_key(|(_, entry)| entry.place.start);
        rules.into_iter().map(|(name, _)| name.as_str()).collect()
    }

    /// The plugins that the operator binds as verifiers.
    pub fn verifiers(&self) -> BTreeSet<String> {
        let verifiers = self.plugins.iter().filter(|(_, entry)| entry.role == Role::Verifier);
        verifiers.map(|(name, _)| name.clone()).collect()
    }

    /// The largest component a handler may be, bytes: what the operator wrote, whether for all stages or for this plugin, else
    /// the default.
    pub fn component_bytes(&self, handler: &str) -> u64 {
        let granted = self.plugins.get(handler).and_then(|plugin| plugin.grants.as_ref()).map(|grants| &grants.limits);
        let operator = granted.map_or_else(|| self.limits.clone(), |granted| self.limits.merge(granted));
        operator.get(LimitName::ComponentBytes).unwrap_or_else(|| Limits::default().component_bytes)
    }

    /// Parses the file's text, or gives everything that is wrong with it in file order.
    pub fn parse(text: &str, file_name: &str) -> Result<Config, Vec<ConfigProblem>> {
        let mut fields = Fields::new(text, file_name);
        let root = fields.parse();
        let mut config = Config { file_name: file_name.to_owned(), ..Config::default() };
        for (key, value) in root.get_ref() {
            let path = key.get_ref().as_ref();
            match path {
                "plugins" => config.plugins = plugins(&mut fields, value),
                "rules" => config.rules = rules(&mut fields, value),
                "workspace" => config.workspace = workspace(&mut fields, value),
                "exec" => config.exec = exec::parse(&mut fields, value),
                "sandbox" => config.sandbox = sandbox::parse(&mut fields, value),
                "limits" => config.limits = fields.limits("limits", value),
                "run" => config.run = run::parse(&mut fields, value),
                _ => fields.unknown(key, path, &["plugins", "rules", "workspace", "exec", "sandbox", "limits", "run"]),
            }
        }
        for (name, entry) in config.rules.iter().filter(|(name, _)| config.plugins.contains_key(*name)) {
            let path = format!("rules.\"{name}\"");
            let message = format!("`{path}` has the name of a plugin: another name is expected");
            fields.value_problem(&path, entry.place.clone(), message, None);
        }
        fields.finish(config)
    }
}

fn plugins(fields: &mut Fields<'_>, value: &field::Value<'_>) -> BTreeMap<String, PluginEntry> {
    named(fields, "plugins", value, plugin)
}

fn rules(fields: &mut Fields<'_>, value: &field::Value<'_>) -> BTreeMap<String, RuleEntry> {
    named(fields, "rules", value, rule)
}

/// The tables of a table, each under the name of a component.
fn named<T>(
    fields: &mut Fields<'_>,
    table: &str,
    value: &field::Value<'_>,
    read: fn(&mut Fields<'_>, &str, std::ops::Range<usize>, &field::Value<'_>) -> Option<T>,
) -> BTreeMap<String, T> {
    let mut entries = BTreeMap::new();
    for (key, value) in fields.table(table, value) {
        let name = key.get_ref().as_ref();
        let path = format!("{table}.\"{name}\"");
        if !is_plugin_name(name) {
            let message = format!(
                "`{path}` is no plugin name: two or more words of a-z, 0-9 and `-` joined by `.` are expected, such as `acme.review`"
            );
            fields.value_problem(&path, key.span(), message, None);
            continue;
        }
        if let Some(entry) = read(fields, &path, key.span(), value) {
            entries.insert(name.to_owned(), entry);
        }
    }
    entries
}

fn rule(
    fields: &mut Fields<'_>,
    path: &str,
    place: std::ops::Range<usize>,
    value: &field::Value<'_>,
) -> Option<RuleEntry> {
    let (mut file, mut names_file, mut transform) = (None, false, TransformGrant::None);
    for (key, value) in fields.table(path, value) {
        let name = key.get_ref().as_ref();
        let field = format!("{path}.{name}");
        match name {
            "path" => {
                names_file = true;
                file = fields.text(&field, value).filter(|text| fields.not_empty(&field, value, text));
            }
            "transform" => transform = transform_grant(fields, &field, value),
            _ => fields.unknown(key, &field, &["path", "transform"]),
        }
    }
    if !names_file {
        fields.missing(path, "path", place.clone(), "path = \"rules.wasm\"");
    }
    Some(RuleEntry { path: file?, transform, line: fields.line(place.start), place })
}

fn transform_grant(fields: &mut Fields<'_>, field: &str, value: &field::Value<'_>) -> TransformGrant {
    match (value.get_ref().as_bool(), value.get_ref().as_str()) {
        (Some(true), _) => TransformGrant::Change,
        (Some(false), _) => TransformGrant::None,
        (None, Some("widen")) => TransformGrant::Widen,
        _ => {
            let message = format!("`{field}` is none of `true`, `false` and `\"widen\"`");
            fields.value_problem(field, value.span(), message, None);
            TransformGrant::None
        }
    }
}

fn plugin(
    fields: &mut Fields<'_>,
    path: &str,
    place: std::ops::Range<usize>,
    value: &field::Value<'_>,
) -> Option<PluginEntry> {
    let (mut file, mut wants, mut grants, mut role) = (None, None, None, Role::default());
    let mut names_file = false;
    for (key, value) in fields.table(path, value) {
        let name = key.get_ref().as_ref();
        let field = format!("{path}.{name}");
        match name {
            "path" => {
                names_file = true;
                file = fields.text(&field, value).filter(|text| fields.not_empty(&field, value, text));
            }
            "wants" => wants = Some(fields.grants(&field, value)),
            "grants" => grants = Some(fields.grants(&field, value)),
            "role" => role = plugin_role(fields, &field, value),
            _ => fields.unknown(key, &field, &["path", "wants", "grants", "role"]),
        }
    }
    let line = fields.line(place.start);
    if !names_file {
        fields.missing(path, "path", place, "path = \"target/plugin.wasm\"");
    }
    Some(PluginEntry { path: file?, wants, grants, role, line })
}

fn plugin_role(fields: &mut Fields<'_>, field: &str, value: &field::Value<'_>) -> Role {
    let roles = [Role::Builder, Role::Verifier];
    let named = value.get_ref().as_str();
    roles.into_iter().find(|role| named == Some(role.as_str())).unwrap_or_else(|| {
        let message = format!("`{field}` must be `\"builder\"` or `\"verifier\"`");
        fields.value_problem(field, value.span(), message, None);
        Role::default()
    })
}

fn workspace(fields: &mut Fields<'_>, value: &field::Value<'_>) -> WorkspaceSetting {
    let mut setting = WorkspaceSetting::default();
    for (key, value) in fields.table("workspace", value) {
        let name = key.get_ref().as_ref();
        let field = format!("workspace.{name}");
        match name {
            "include" => setting.include = fields.scope_paths(&field, value),
            _ => fields.unknown(key, &field, &["include"]),
        }
    }
    setting
}

/// True for `ns.name`: at least one dot, so that a plugin can never take the name of a built-in handler.
pub fn is_plugin_name(name: &str) -> bool {
    let word = |word: &str| {
        word.starts_with(|c: char| c.is_ascii_lowercase())
            && word.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-' || c == '_')
    };
    name.len() <= 64 && name.contains('.') && name.split('.').all(word)
}

#[cfg(test)]
mod tests;
