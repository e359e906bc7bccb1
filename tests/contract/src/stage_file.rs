//! What one call gets, as the author of a plugin writes it: the input, the files, the answers of the model, the grants, and what is
//! expected. One JSON document with a published schema; `--input` and `--cases` read the same.
//!
//! Everything has a default except what a case expects. A field that does not exist is an error. The document is bounded before it is
//! parsed, and its paths are checked before a file is made.

use glovebox_host::grants::Grants;
use glovebox_host::input::{OutgoingEdge, StageInput};
use glovebox_host::inspect::Manifest;
use glovebox_host::llm::Script;
use glovebox_record::path::ScopePath;
use glovebox_record::scope::Entry;
use glovebox_record::{Attempt, BranchId, Failure, FailureClass, NodeId, Status, Task, Work};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Maximum length of a stage file, in bytes.
pub const BYTES_MAX: u64 = 4 << 20;
/// Maximum number of files of one stage.
pub const FILES_MAX: usize = 1000;

/// The folder that is hidden from every stage of the kit, as the sealed hold-outs of a run are.
pub(crate) const HIDDEN: &str = "scripts/scenarios/";
/// All folders that are hidden from a stage of the kit.
const ALL_HIDDEN: [&str; 3] = [HIDDEN, ".git/", ".glovebox/"];

/// One call of a plugin, and what is expected of it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(title = "stage.json")]
pub struct StageFile {
    /// What the handler is told.
    pub input: StageFileInput,
    /// The files of the project before the call: path and text. Default: none in a case, and sample files with `--input`.
    pub files: Option<BTreeMap<String, String>>,
    /// The turns of the model, with the fields of a scripted turn: `text`, `tool`, `outcome`, `usage`. Default: one simulated answer.
    pub model: Option<Vec<Map<String, Value>>>,
    /// What the operator grants. The plugin gets what it wants and this grants. Default: all that it wants.
    #[schemars(with = "Option<BTreeMap<String, Value>>")]
    pub grants: Option<Grants>,
    /// What is expected of the call. Required in a case.
    pub expect: Option<Expectation>,
}

/// What the handler is told. The host adds what follows from the grants.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct StageFileInput {
    /// Id of the node.
    pub node: String,
    /// Type of the handler. Default: the name in the manifest.
    pub handler_type: Option<String>,
    /// Label of the node.
    pub label: String,
    /// Prompt of the node, with its variables expanded.
    pub prompt: Option<String>,
    /// Goal of the pipeline.
    pub goal: String,
    /// Attributes of the node.
    pub attributes: BTreeMap<String, String>,
    /// Context of the pipeline.
    pub context: BTreeMap<String, Value>,
    /// Outgoing edges of the node.
    pub outgoing: Vec<StageFileEdge>,
    /// The failure of the stage before.
    pub last_failure: Option<StageFileFailure>,
    /// Further values.
    pub extra: BTreeMap<String, String>,
    /// Number of the visit of this node, from 1.
    pub visit: u32,
    /// Number of the attempt of this visit, from 1.
    pub ordinal: u32,
}

impl Default for StageFileInput {
    fn default() -> Self {
        Self {
            node: "stage".to_owned(),
            handler_type: None,
            label: "stage".to_owned(),
            prompt: None,
            goal: String::new(),
            attributes: BTreeMap::new(),
            context: BTreeMap::new(),
            outgoing: Vec::new(),
            last_failure: None,
            extra: BTreeMap::new(),
            visit: 1,
            ordinal: 1,
        }
    }
}

/// An outgoing edge.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StageFileEdge {
    /// Id of the node that the edge leads to.
    pub to: String,
    /// Label of the edge.
    #[serde(default)]
    pub label: String,
    /// Condition of the edge.
    #[serde(default)]
    pub condition: String,
    /// Weight of the edge.
    #[serde(default)]
    pub weight: i32,
}

/// The failure of the stage before.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StageFileFailure {
    /// Class of the failure.
    pub class: FailureClass,
    /// Code of the failure.
    pub code: String,
    /// Reason of the failure.
    #[serde(default)]
    pub reason: String,
}

/// What is expected of a call. Only what is named is compared.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Expectation {
    /// Status of the outcome.
    pub status: Option<Status>,
    /// Code of the failure.
    pub code: Option<String>,
    /// A part of the reason of the failure.
    pub reason_contains: Option<String>,
    /// Parts of the notes.
    pub notes_contain: Vec<String>,
    /// The preferred label.
    pub label: Option<String>,
    /// Values of the context that the outcome sets.
    pub context: BTreeMap<String, Value>,
    /// Files after the call: the text of a file, or null for one that does not exist.
    pub files: BTreeMap<String, Option<String>>,
}

impl Expectation {
    fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

impl StageFile {
    /// Reads a stage file.
    ///
    /// # Errors
    /// Returns what is wrong, with line and column where the text is not JSON of the schema.
    pub fn parse(text: &str) -> Result<Self, String> {
        // serde reads a list as the fields in order.
        if text.trim_start().starts_with('[') {
            return Err("it is a list, expected a JSON object".to_owned());
        }
        let file: Self = serde_json::from_str(text).map_err(|problem| problem.to_string())?;
        file.check()?;
        Ok(file)
    }

    /// Reads a stage file that must say what it expects.
    ///
    /// # Errors
    /// As [`StageFile::parse`].
    pub fn parse_case(text: &str) -> Result<Self, String> {
        let file = Self::parse(text)?;
        match &file.expect {
            Some(_) => Ok(file),
            None => Err("a case needs `expect`, such as `\"expect\": {\"status\": \"success\"}`".to_owned()),
        }
    }

    fn check(&self) -> Result<(), String> {
        let files = self.files.iter().flatten().map(|(path, _)| path);
        if files.clone().count() > FILES_MAX {
            return Err(format!("`files` has more than {FILES_MAX} files"));
        }
        files.clone().try_for_each(|path| check_path(path))?;
        let known: BTreeSet<&str> = files.map(String::as_str).collect();
        let above = |path: &&str| path.match_indices('/').any(|(at, _)| known.contains(&path[..at]));
        if let Some(path) = known.iter().find(|path| above(path)) {
            return Err(format!("`{}` is below a path that is a file", glovebox_names::visible::line(path)));
        }
        if let Some(expect) = &self.expect {
            if expect.is_empty() {
                return Err("`expect` names nothing, so the case could not fail: name `status`, for example".to_owned());
            }
            expect.files.keys().try_for_each(|path| check_path(path))?;
        }
        if self.input.visit == 0 || self.input.ordinal == 0 {
            return Err("`visit` and `ordinal` count from 1".to_owned());
        }
        self.script().map(drop)
    }

    /// Returns the script of the model. `None` for the simulated answer.
    pub(crate) fn script(&self) -> Result<Option<Arc<Script>>, String> {
        let turns = self.model.as_ref().map(|turns| turns.iter().cloned().map(Value::Object).collect());
        turns.map(|turns| Script::for_node(self.node(), turns).map(Arc::new)).transpose()
    }

    pub(crate) fn node(&self) -> NodeId {
        NodeId::from(self.input.node.as_str())
    }

    /// Returns the input in the types of the host. As in a run, attributes that are not there have the defaults of the manifest.
    pub(crate) fn stage_input(&self, name: &str, grants: &Grants, manifest: Option<&Manifest>) -> StageInput {
        let mut input = self.input.clone();
        let defaults = manifest
            .into_iter()
            .flat_map(|manifest| manifest.defaults(|name| self.input.attributes.contains_key(name)));
        input.attributes.extend(defaults.map(|(name, value)| (name.to_owned(), value.to_owned())));
        let node = self.node();
        StageInput {
            run: "plugin-test".into(),
            attempt: Attempt {
                task: Task { generation: 0, branch: BranchId::main(), node, visit: input.visit, work: Work::Handler },
                ordinal: input.ordinal,
                id: "plugin-test/stage".into(),
            },
            handler_type: input.handler_type.unwrap_or_else(|| name.to_owned()),
            label: input.label,
            prompt: input.prompt,
            goal: input.goal,
            attributes: input.attributes.into_iter().collect(),
            context: input.context,
            outgoing: input.outgoing.into_iter().map(StageFileEdge::into_edge).collect(),
            write_paths: grants.write.clone(),
            commands: crate::commands::grant(grants),
            last_failure: input.last_failure.map(|failure| Failure::new(failure.class, failure.code, failure.reason)),
            extra: input.extra.into_iter().collect(),
        }
    }
}

impl StageFileEdge {
    fn into_edge(self) -> OutgoingEdge {
        OutgoingEdge { to: self.to, label: self.label, condition: self.condition, weight: self.weight }
    }
}

/// Returns the entries that are hidden from every stage of the kit. All of them are literals that can be parsed.
pub(crate) fn hidden() -> Vec<Entry> {
    ALL_HIDDEN.iter().filter_map(|text| Entry::parse(text).ok()).collect()
}

fn check_path(path: &str) -> Result<(), String> {
    let shown = glovebox_names::visible::line(path);
    let parsed = ScopePath::parse(path).map_err(|problem| format!("`{shown}` is not a path of a file: {problem}"))?;
    if parsed.is_root() {
        return Err("the empty path is not a path of a file".to_owned());
    }
    match hidden().iter().find(|entry| entry.contains(&parsed)) {
        Some(entry) => Err(format!("`{shown}` is below `{entry}`, which is hidden from every stage")),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_understood_is_refused() {
        let check = |text: &str, expected: &str| {
            let problem = StageFile::parse_case(text).unwrap_err();
            assert!(problem.contains(expected), "{text}: {problem}");
        };
        check("", "EOF while parsing");
        check("{", "line 1 column 1");
        check(" []", "it is a list");
        check("{\"inputs\": {}}", "unknown field `inputs`");
        check("{}", "needs `expect`");
        check("{\"expect\": {}}", "could not fail");
        check("{\"expect\": {\"status\": \"fine\"}}", "unknown variant `fine`");
        check("{\"files\": {\"../x\": \"\"}}", "`../x` is not a path of a file");
        check("{\"files\": {\"\": \"\"}}", "the empty path");
        check("{\"files\": {\"a/b\": \"\", \"a\": \"\"}}", "`a/b` is below a path that is a file");
        check("{\"files\": {\".git/config\": \"\"}}", "hidden from every stage");
        check("{\"files\": {\"a\\u202e\": 1}}", "invalid type");
        check("{\"expect\": {\"files\": {\"/etc/passwd\": \"\"}}}", "`/etc/passwd` is not a path");
        check("{\"model\": [{\"text\": \"a\"}, {}]}", "turn 2 of the model");
        check("{\"grants\": {\"network\": true}}", "cannot enforce `network`");
        check("{\"input\": {\"visit\": 0}}", "count from 1");
        check(&format!("{{\"input\": {{\"context\": {{\"a\": {}}}}}}}", "[".repeat(500)), "recursion limit");
        let files: Vec<String> = (0..=FILES_MAX).map(|number| format!("\"{number}\": \"\"")).collect();
        check(&format!("{{\"files\": {{{}}}}}", files.join(",")), "more than 1000 files");
    }

    #[test]
    fn a_file_gives_what_the_handler_is_told() {
        let text = r#"{"input": {"prompt": "p", "attributes": {"a": "b"}, "outgoing": [{"to": "n", "label": "yes"}],
            "last_failure": {"class": "transient", "code": "x/y"}},
            "grants": {"filesystem": "workspace", "write": ["out/"], "commands": ["cargo test"]},
            "expect": {"status": "success"}}"#;
        let file = StageFile::parse_case(text).unwrap();
        let input = file.stage_input("acme.x", file.grants.as_ref().unwrap(), None);
        assert_eq!((input.handler_type.as_str(), input.prompt.as_deref()), ("acme.x", Some("p")));
        assert_eq!(input.attributes, [("a".to_owned(), "b".to_owned())]);
        assert_eq!((input.outgoing[0].label.as_str(), input.write_paths[0].to_string().as_str()), ("yes", "out/"));
        assert_eq!(input.commands.argv_prefixes, [["cargo", "test"]]);
    }
}
