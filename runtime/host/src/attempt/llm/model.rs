//! The model that is bound to one attempt of a node. It answers the turns.
//!
//! Three kinds of model work without a provider: a script, the answers of the node's `test.*` attributes, and the specification's
//! simulated answer. The fourth kind asks a provider. This module knows neither the guest nor the conversation. The caller is
//! responsible for counting, limits and grants.

mod attributes;
mod guard;
mod live;
mod scripted;
mod simulated;

pub use attributes::{TEST_PREFIX, TestAnswers, TestAttributeError};
pub use guard::TextGuard;
pub(super) use live::AskOptions;
pub use live::Live;
pub use scripted::{Script, ScriptError};

use super::observer::LiveAnswer;
use crate::budget::Account;
use glovebox_models::ask::Exchange;
use glovebox_models::chat::{Answer, Request, Usage};
use glovebox_models::error::{ErrorKind, ModelError};
use glovebox_models::target::Target;
use glovebox_record::session::MessagePart;
use glovebox_record::{NodeId, Outcome, Status};
use glovebox_schema::Schema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The model of one attempt.
#[derive(Debug)]
pub struct Model {
    kind: ModelKind,
    node: NodeId,
    /// Index of the next turn in the script. It starts after the turns that finished attempts of the node used.
    position: u32,
    guard: Option<TextGuard>,
    /// The watcher of unfinished answers.
    watcher: Option<LiveAnswer>,
    account: Option<Account>,
    /// The schema of the stage's final answer, and the name of the object in the context.
    schema: Option<(Arc<Schema>, String)>,
}

#[derive(Debug)]
enum ModelKind {
    Scripted(Arc<Script>),
    Tested(TestAnswers),
    Live(Live),
    Simulated,
}

/// The source of a model's answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Provider {
    /// A script.
    Scripted,
    /// The node's `test.*` attributes.
    Test,
    /// A provider.
    Live,
    /// The specification's simulated answer.
    Simulated,
}

impl Provider {
    /// Returns the name in records and in `llm.info`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Scripted => "scripted",
            Self::Test => "test",
            Self::Live => "live",
            Self::Simulated => "simulated",
        }
    }
}

/// An outcome that a model declares. The guest gets it as a part of kind `outcome`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DeclaredOutcome {
    /// Status of the stage.
    pub status: Status,
    /// Label of the edge that the run should follow.
    #[serde(default)]
    pub preferred_label: String,
    /// Ids of the nodes that the run should continue with.
    #[serde(default)]
    pub suggested_next_ids: Vec<String>,
    /// Updates of the pipeline's context.
    #[serde(default)]
    pub context_updates: BTreeMap<String, Value>,
    /// Notes for people.
    #[serde(default)]
    pub notes: String,
    /// Why the stage failed.
    #[serde(default)]
    pub failure_reason: String,
}

impl DeclaredOutcome {
    /// Returns the part of an answer that contains this outcome.
    pub(crate) fn part(&self) -> MessagePart {
        let text = serde_json::to_string(self).unwrap_or_default();
        MessagePart { kind: OUTCOME.to_owned(), text, fields: Vec::new() }
    }
}

/// Returns true if the stage failed because another model answered than the one that was asked.
pub fn is_of_another_model(outcome: &Outcome) -> bool {
    let code = format!("provider/{}", ErrorKind::PinViolation);
    outcome.failure.as_ref().is_some_and(|failure| failure.code.as_str() == code)
}

/// Kind of the part that contains a declared outcome.
pub(crate) const OUTCOME: &str = "outcome";

impl Model {
    /// Chooses the model of a node. The first of these that exists is used: a script that mentions the node; the node's
    /// `test.*` attributes; a script that does not mention the node, so that its first turn is an error; the simulated
    /// answer.
    ///
    /// `turns_used` is the number of turns of the node's finished attempts, and `finished_attempts` the number of these attempts.
    pub fn bind(
        node: &NodeId,
        attributes: &[(String, String)],
        script: Option<&Arc<Script>>,
        turns_used: u32,
        finished_attempts: u32,
    ) -> Result<Model, TestAttributeError> {
        let tested = TestAnswers::read(attributes, finished_attempts)?;
        let kind = match (script, tested) {
            (Some(script), _) if script.mentions(node) => ModelKind::Scripted(Arc::clone(script)),
            (_, Some(answers)) => ModelKind::Tested(answers),
            (Some(script), None) => ModelKind::Scripted(Arc::clone(script)),
            (None, None) => ModelKind::Simulated,
        };
        Ok(Model {
            kind,
            node: node.clone(),
            position: turns_used,
            guard: None,
            watcher: None,
            account: None,
            schema: None,
        })
    }

    /// Sets the guard that checks every text to and from the model. A text with a hold-out fails the attempt with class `scope` and
    /// code `holdout/leak`.
    pub fn guarded(self, guard: TextGuard) -> Self {
        Model { guard: Some(guard), ..self }
    }

    /// Sets the watcher of unfinished answers. A guarded model has none: only a finished answer is searched for hold-outs.
    pub fn watched(self, watcher: LiveAnswer) -> Self {
        Model { watcher: Some(watcher), ..self }
    }

    /// Asks a provider, unless a script answers. The node's `test.*` attributes apply only to runs without a provider.
    pub fn or_live(self, live: Live) -> Self {
        let kind = match self.kind {
            ModelKind::Simulated | ModelKind::Tested(_) => ModelKind::Live(live),
            kind => kind,
        };
        Model { kind, ..self }
    }

    /// Sets the account to which the model's cost is booked. Without an account, the cost is not limited.
    pub fn charged_to(self, account: Account) -> Self {
        Model { account: Some(account), ..self }
    }

    /// Sets the schema that the stage's final answer must match. The object is stored as `NAME.output` in the context.
    pub fn answering(self, schema: Option<(Arc<Schema>, String)>) -> Self {
        Model { schema, ..self }
    }

    /// Returns the schema of the stage's final answer, and the name of the object in the context.
    pub(crate) fn schema(&self) -> Option<(&Schema, &str)> {
        self.schema.as_ref().map(|(schema, name)| (&**schema, name.as_str()))
    }

    pub(crate) fn account(&self) -> Option<&Account> {
        self.account.as_ref()
    }

    /// Returns the address and settings of the provider's model, or `None` if no provider answers.
    pub(crate) fn target(&self) -> Option<&Arc<Target>> {
        match &self.kind {
            ModelKind::Live(live) => Some(&live.target),
            ModelKind::Scripted(_) | ModelKind::Tested(_) | ModelKind::Simulated => None,
        }
    }

    /// Returns the maximum usage of the next turn. For a provider this is an estimate.
    pub(crate) fn next_usage(&self, request: &Request) -> Usage {
        match &self.kind {
            ModelKind::Scripted(script) => script.usage(&self.node, self.position),
            ModelKind::Live(live) => live.most(request),
            ModelKind::Tested(_) | ModelKind::Simulated => Usage::default(),
        }
    }

    /// Returns the guard that checks the texts.
    pub(crate) fn guard(&self) -> Option<&TextGuard> {
        self.guard.as_ref()
    }

    /// Returns the watcher of unfinished answers.
    pub(crate) fn watcher(&self) -> Option<&LiveAnswer> {
        self.watcher.as_ref().filter(|_| self.guard.is_none())
    }

    /// Returns the source of the answers.
    pub fn provider(&self) -> Provider {
        match self.kind {
            ModelKind::Scripted(_) => Provider::Scripted,
            ModelKind::Tested(_) => Provider::Test,
            ModelKind::Live(_) => Provider::Live,
            ModelKind::Simulated => Provider::Simulated,
        }
    }

    /// Returns true if the model accepts images.
    pub(crate) fn takes_images(&self) -> bool {
        match &self.kind {
            ModelKind::Live(live) => live.target.images,
            _ => true,
        }
    }

    /// Returns the pairs that `llm.info` returns to a guest.
    pub fn info(&self) -> Vec<(String, String)> {
        let schema = self.schema().map(|(schema, _)| schema);
        let (mut info, mode) = match &self.kind {
            ModelKind::Live(live) => (live.info(), schema.map_or(live::OFF, |schema| live.schema_mode(schema))),
            _ => {
                let provider = self.provider().as_str();
                let pairs = [("provider", provider), ("model", provider)];
                (pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec(), live::OFF)
            }
        };
        let pairs = schema.map(|schema| [("output-schema", schema.text()), ("output-schema-mode", mode)]);
        info.extend(pairs.into_iter().flatten().map(|(name, value)| (name.to_owned(), value.to_owned())));
        info
    }

    /// Answers the next turn.
    pub(super) fn answer(&mut self, request: &Request, options: AskOptions<'_>) -> Reply {
        let schema = self.schema.as_ref().map(|(schema, _)| Arc::clone(schema));
        let answered = match &mut self.kind {
            ModelKind::Live(live) => return live.ask(request, options),
            ModelKind::Scripted(script) => script.turn(&self.node, self.position),
            ModelKind::Tested(answers) => Ok(answers.answer(&self.node, schema.as_deref())),
            ModelKind::Simulated => Ok(simulated::answer(&self.node, schema.as_deref())),
        };
        self.position += u32::from(answered.is_ok());
        Reply { answered, lost: Usage::default(), exchanged: None }
    }

    /// Sets the schema of a request, and its effort if the guest has set none.
    pub(crate) fn settle(&self, request: &mut Request) {
        if let ModelKind::Live(live) = &self.kind {
            live.settle(request, self.schema.as_ref().map(|(schema, _)| schema));
        }
    }
}

/// The result of a request.
pub(super) struct Reply {
    /// The answer, or why there is none.
    pub(super) answered: Result<Answer, ModelError>,
    /// Cost of failed tries.
    pub(super) lost: Usage,
    /// The bytes sent and received; `None` if no provider was asked.
    pub(super) exchanged: Option<LastExchange>,
}

/// The bytes of an exchange with a provider.
pub(super) struct LastExchange {
    /// The last try.
    pub(super) exchange: Exchange,
    /// Number of tries.
    pub(super) tries: u32,
}
