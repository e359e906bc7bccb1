//! Chooses a table of `[models]` for each node.
//!
//! Model, provider and effort come from the node, its style sheet, the graph, or the default table. There is no guessing: a
//! node that matches no table, or more than one, is an error in the pipeline file.

#![expect(clippy::result_large_err, reason = "a diagnostic is built once for a node and moved twice")]

use super::request::Place;
use crate::config::{Config, ModelAccess};
use crate::plan::{ChosenModel, PlannedModel};
use glovebox_host::agents::programs::families;
use glovebox_host::llm::{Provider, TEST_PREFIX};
use glovebox_models::chat::Effort;
use glovebox_models::family::Family;
use glovebox_pipeline::diagnostic::Diagnostic;
use glovebox_pipeline::ir::{Node, NodeId};
use glovebox_pipeline::key::{self, Key};
use glovebox_pipeline::nearest::nearest;
use glovebox_record::program::AgentProgram;
use glovebox_workspace::refusal::escaped;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The models that were chosen, by node, and the problems.
#[derive(Default)]
pub(super) struct Chosen {
    pub(super) models: BTreeMap<NodeId, ChosenModel>,
    pub(super) problems: Vec<Diagnostic>,
}

/// Chooses a model for each node. Chooses none if no table of `[models]` has the access to a model.
pub(super) fn choose<'a>(config: &Config, nodes: impl Iterator<Item = &'a Node>) -> Chosen {
    let mut chosen = Chosen::default();
    let tables = tables(config);
    for node in nodes.filter(|_| !tables.is_empty()) {
        match (ModelRequest::for_node(node).table(&tables), effort(node)) {
            (Ok(model), Ok(effort)) => {
                chosen.problems.extend(unsupported_format(node, model));
                let model = ChosenModel { model: Arc::clone(model), effort };
                chosen.models.insert(node.id.clone(), model);
            }
            // The test answers of the node replace the model that was not found.
            (Err(_), _) if has_test_answers(node) => {}
            (model, effort) => chosen.problems.extend(model.err().into_iter().chain(effort.err())),
        }
    }
    chosen
}

/// Returns an error if the agent program of a node does not support the wire format of its model.
fn unsupported_format(node: &Node, model: &PlannedModel) -> Option<Diagnostic> {
    let backend = node.agent.backend.as_ref()?;
    let spoken = families(backend.program);
    if spoken.contains(&model.access.family) {
        return None;
    }
    let place = Place::for_node(node);
    let listed = spoken.iter().map(|family| format!("`{family}`")).collect::<Vec<_>>().join(", ");
    let message = format!(
        "node `{place}` starts `{}`, which asks models of {listed}, but the provider of its model `{}` is `{}`",
        backend.program, model.name, model.access.family
    );
    let error = Diagnostic::error("agent_program", message, place.span_of(key::AGENT_BACKEND));
    Some(place.named_in(
        error.with_help("set `llm_model` to a table of `[models]` with a `provider` that the program supports"),
    ))
}

fn has_test_answers(node: &Node) -> bool {
    node.attributes.iter().any(|(key, _)| key.as_str().starts_with(TEST_PREFIX))
}

/// Returns the tables of `[models]` that have the access to a model, not only a price.
fn tables(config: &Config) -> Vec<Arc<PlannedModel>> {
    let entries = config.models.iter().filter(|(name, _)| name.as_str() != Provider::Scripted.as_str());
    let planned = entries.filter_map(|(name, entry)| {
        let access: ModelAccess = entry.access.clone()?;
        Some(Arc::new(PlannedModel { name: name.to_owned(), access, price: entry.price }))
    });
    planned.collect()
}

/// The model attributes of a node.
struct ModelRequest<'a> {
    place: Place<'a>,
    model: Option<&'a str>,
    provider: Option<&'a str>,
}

impl<'a> ModelRequest<'a> {
    fn for_node(node: &'a Node) -> Self {
        let of_codex = node.agent.backend.as_ref().is_some_and(|backend| backend.program == AgentProgram::Codex);
        let text = |key: Key<'_>| {
            node.attributes.get(key).map(|attribute| attribute.value.trim()).filter(|text| !text.is_empty())
        };
        let own = text(key::CODEX_MODEL).filter(|_| of_codex);
        Self {
            place: Place::for_node(node),
            model: own.or_else(|| text(key::LLM_MODEL)),
            provider: text(key::LLM_PROVIDER),
        }
    }

    /// Returns the one table that matches. No match and several matches are errors.
    fn table<'t>(&self, tables: &'t [Arc<PlannedModel>]) -> Result<&'t Arc<PlannedModel>, Diagnostic> {
        let named = self.named(tables);
        if let Some(model) = self.model.filter(|_| named.is_empty()) {
            return Err(self.unknown(model, tables));
        }
        let fitting: Vec<_> = named.iter().copied().filter(|table| self.is_of_provider(table)).collect();
        let only = |tables: &[&'t Arc<PlannedModel>]| match tables {
            [one] => Some(*one),
            several => several.iter().copied().find(|table| table.access.is_default),
        };
        match (fitting.is_empty(), self.provider) {
            (true, Some(provider)) => Err(self.of_another_provider(provider, &named)),
            _ => only(&fitting).ok_or_else(|| self.ambiguous(&fitting)),
        }
    }

    /// Returns the tables for the model name of the node, or all tables if the node has none. The name is looked up as
    /// the name of a table first, then as the name of a model.
    fn named<'t>(&self, tables: &'t [Arc<PlannedModel>]) -> Vec<&'t Arc<PlannedModel>> {
        let Some(model) = self.model else { return tables.iter().collect() };
        if let Some(table) = tables.iter().find(|table| table.name == model) {
            return vec![table];
        }
        tables.iter().filter(|table| table.access.model.as_str() == model).collect()
    }

    /// Returns true if the table belongs to the provider that the node names. The provider's name can be that of the
    /// table or of its wire format. An unknown provider name stands for the format of chat completions, which many
    /// providers use.
    fn is_of_provider(&self, table: &PlannedModel) -> bool {
        let Some(provider) = self.provider else { return true };
        let meant = match provider {
            "google" => Family::Gemini,
            other => {
                Family::ALL.into_iter().find(|family| family.as_str() == other).unwrap_or(Family::OpenaiCompatible)
            }
        };
        table.name == provider || table.access.family == meant
    }

    fn unknown(&self, model: &str, tables: &[Arc<PlannedModel>]) -> Diagnostic {
        let names = || tables.iter().flat_map(|table| [table.name.as_str(), table.access.model.as_str()]);
        let shown = escaped(model);
        let message =
            format!("node `{}` names the model `{shown}`, which `[models]` in glovebox.toml does not have", self.place);
        let found = self.error(key::LLM_MODEL, message);
        let found = match nearest(model, names()) {
            Some(nearest) => found.with_note(format!("did you mean `{nearest}`?")),
            None => found.with_note(format!("`[models]` has {}", listed(tables.iter()))),
        };
        let provider = self.provider.unwrap_or("anthropic");
        found.with_help(format!("add it to glovebox.toml:\n[models.{shown:?}]\nprovider = {:?}", escaped(provider)))
    }

    fn of_another_provider(&self, provider: &str, named: &[&Arc<PlannedModel>]) -> Diagnostic {
        let shown = escaped(provider);
        let message = match (self.model, named) {
            (Some(model), [table, ..]) => format!(
                "node `{}` names the provider `{shown}`, but the model `{}` is of `{}` in glovebox.toml",
                self.place,
                escaped(model),
                table.access.family
            ),
            _ => format!("node `{}` names the provider `{shown}`, of which glovebox.toml has no model", self.place),
        };
        let help = "correct `llm_provider`, or add a table with this `provider` under `[models]` in glovebox.toml";
        self.error(key::LLM_PROVIDER, message).with_help(help)
    }

    fn ambiguous(&self, fitting: &[&Arc<PlannedModel>]) -> Diagnostic {
        let names = listed(fitting.iter().copied());
        let (attribute, message) = match self.model {
            Some(model) => (
                key::LLM_MODEL,
                format!(
                    "node `{}` names the model `{}`, which several tables have: {names}",
                    self.place,
                    escaped(model)
                ),
            ),
            None => {
                (key::LLM_PROVIDER, format!("node `{}` names no model, and none of {names} is the default", self.place))
            }
        };
        self.error(attribute, message)
            .with_help("set `llm_model` to one of them, or `default = true` in its table in glovebox.toml")
    }

    fn error(&self, attribute: Key<'_>, message: String) -> Diagnostic {
        self.place.named_in(Diagnostic::error("model_unknown", message, self.place.span_of(attribute)))
    }
}

fn listed<'t>(tables: impl Iterator<Item = &'t Arc<PlannedModel>>) -> String {
    tables.map(|table| format!("`{}`", table.name)).collect::<Vec<_>>().join(", ")
}

/// Returns the reasoning effort of the node's model. `None` if the node does not set one.
fn effort(node: &Node) -> Result<Option<Effort>, Diagnostic> {
    let Some(attribute) = node.attributes.get(key::REASONING_EFFORT) else { return Ok(None) };
    let text = attribute.value.trim();
    let found = Effort::ALL.into_iter().find(|effort| effort.as_str() == text);
    if found.is_some() || text.is_empty() {
        return Ok(found);
    }
    let message =
        format!("`reasoning_effort` of node `{}` is `{}`, expected `low`, `medium` or `high`", node.id, escaped(text));
    Err(Diagnostic::error("reasoning_effort_valid", message, attribute.span).with_node(node.id.as_str()))
}
