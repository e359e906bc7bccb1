//! The models that a plan's nodes ask: the table of `[models]` for each node, and how a plan prints it.
//!
//! A plan contains no key. The printed properties of a model are covered by the plan's digest, so that a resume asks the same
//! models. Only their prices may change.

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
    /// The model, from its table.
    pub model: Arc<PlannedModel>,
    /// The reasoning effort. `None` if the pipeline does not set one.
    pub effort: Option<Effort>,
}

/// A table of `[models]` that some node uses.
#[derive(Debug, Clone, PartialEq)]
pub struct PlannedModel {
    /// The name of the table.
    pub name: String,
    /// How the model is reached.
    pub access: ModelAccess,
    /// The price of the model. `None` if the operator sets none.
    pub price: Option<Price>,
}

impl PlannedModel {
    /// Returns the model as it is configured.
    pub fn configured(&self) -> ConfiguredModel<'_> {
        ConfiguredModel { name: &self.name, access: &self.access }
    }
}

impl Plan {
    /// Returns the price of a node's model. `None` if the operator sets none.
    pub fn price_of(&self, node: &NodeId) -> Option<Price> {
        self.models.by_node.get(node).map_or(self.models.price, |chosen| chosen.model.price)
    }

    /// Returns every model that a node asks, by the name of its table.
    pub fn asked_models(&self) -> BTreeMap<&str, &Arc<PlannedModel>> {
        self.models.by_node.values().map(|chosen| (chosen.model.name.as_str(), &chosen.model)).collect()
    }

    /// Returns the source of the answers: `scripted`, `live` or `simulated`.
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
    /// The name of the model's table in `glovebox.toml`.
    pub name: &'a str,
    /// The wire format of the model's provider.
    pub provider: &'a str,
    /// The exact name of the model at the provider.
    pub model: &'a str,
    /// The address of the provider.
    pub endpoint: String,
    /// The price of the model. Absent if the operator sets none.
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
    /// The name of the model's table in `glovebox.toml`.
    pub name: &'a str,
    /// The reasoning effort: `low`, `medium` or `high`. Absent if the provider decides.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effort: Option<&'static str>,
}

impl<'a> PlanAsks<'a> {
    pub(super) fn new(chosen: &'a ChosenModel) -> Self {
        Self { name: &chosen.model.name, effort: chosen.effort.map(Effort::as_str) }
    }
}
