//! The models that a plan's nodes ask: which table of `[models]` each one means, and how a plan prints it.
//!
//! A plan holds no key. What it prints of a model is covered by its digest, so that a resume asks the same models, whatever they cost.

use super::Plan;
use crate::config::{ConfiguredModel, ModelAccess};
use glovebox_host::llm::Provider;
use glovebox_models::chat::Effort;
use glovebox_pipeline::ir::NodeId;
use glovebox_record::spend::Price;
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The model that a node asks.
#[derive(Debug, Clone, PartialEq)]
pub struct ChosenModel {
    /// Its table.
    pub model: Arc<PlannedModel>,
    /// How hard it thinks, if the pipeline says so.
    pub effort: Option<Effort>,
}

/// A table of `[models]` that some node means.
#[derive(Debug, Clone, PartialEq)]
pub struct PlannedModel {
    /// The name of the table.
    pub name: String,
    /// How the model is reached.
    pub access: ModelAccess,
    /// What it costs, if the operator says so.
    pub price: Option<Price>,
}

impl PlannedModel {
    /// The model as the configuration has it.
    pub fn configured(&self) -> ConfiguredModel<'_> {
        ConfiguredModel { name: &self.name, access: &self.access }
    }
}

impl Plan {
    /// The price of a node's model, if the operator sets one.
    pub fn price_of(&self, node: &NodeId) -> Option<Price> {
        self.models.by_node.get(node).map_or(self.models.price, |chosen| chosen.model.price)
    }

    /// Every model that a node asks, by the name of its table.
    pub fn asked_models(&self) -> BTreeMap<&str, &Arc<PlannedModel>> {
        self.models.by_node.values().map(|chosen| (chosen.model.name.as_str(), &chosen.model)).collect()
    }

    /// The word for who answers: `scripted`, `live` or `simulated`.
    pub fn model_word(&self) -> &'static str {
        let provider = match (&self.models.script, self.models.by_node.is_empty()) {
            (Some(_), _) => Provider::Scripted,
            (None, false) => Provider::Live,
            (None, true) => Provider::Simulated,
        };
        provider.as_str()
    }

    pub(super) fn printed_models(&self) -> Vec<PlanModel<'_>> {
        self.asked_models().into_values().map(|model| PlanModel::new(model)).collect()
    }
}

/// A model that some node asks.
#[derive(Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct PlanModel<'a> {
    /// Its name in glovebox.toml.
    pub name: &'a str,
    /// Its wire format.
    pub provider: &'a str,
    /// Its exact name at the provider.
    pub model: &'a str,
    /// Where it is asked.
    pub endpoint: String,
    /// What it costs, if the operator says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub price: Option<Price>,
}

impl<'a> PlanModel<'a> {
    fn new(model: &'a PlannedModel) -> Self {
        let PlannedModel { name, access, price } = model;
        let (provider, endpoint) = (access.family.as_str(), access.endpoint.to_string());
        Self { name, provider, model: access.model.as_str(), endpoint, price: *price }
    }
}

/// The model that a node asks.
#[derive(Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct PlanAsks<'a> {
    /// Its name in glovebox.toml.
    pub name: &'a str,
    /// `low`, `medium` or `high`; absent where the provider decides.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effort: Option<&'static str>,
}

impl<'a> PlanAsks<'a> {
    pub(super) fn new(chosen: &'a ChosenModel) -> Self {
        Self { name: &chosen.model.name, effort: chosen.effort.map(Effort::as_str) }
    }
}
