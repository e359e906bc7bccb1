//! A model of a provider. All requests of all components to providers are sent from here.

use super::{LastExchange, Reply};
use glovebox_models::ask::{self, AskResult, AskStep, estimated_input};
use glovebox_models::chat::{Effort, Request, Usage};
use glovebox_models::deadline::CallDeadline;
use glovebox_models::error::{ErrorKind, ModelError};
use glovebox_models::target::Target;
use glovebox_schema::Schema;
use std::sync::Arc;
use std::time::Instant;

/// A model of a provider, and how to ask it.
#[derive(Debug)]
pub struct Live {
    /// Address and settings of the model.
    pub target: Arc<Target>,
    /// Reasoning effort.
    pub effort: Option<Effort>,
}

/// Schema mode in which the provider gets the schema with every request.
const WITH_TOOLS: &str = "with-tools";
/// Schema mode in which the provider gets the schema with requests that offer no tools.
const WITHOUT_TOOLS: &str = "without-tools";
/// Schema mode in which the provider never gets the schema.
pub(super) const OFF: &str = "off";

/// The deadline of a request, and its observer.
pub(in super::super) struct AskOptions<'a> {
    pub(in super::super) deadline: CallDeadline<'a>,
    /// Called with each step of the request.
    pub(in super::super) on_step: &'a mut dyn FnMut(AskStep<'_>),
}

impl Live {
    /// Returns the maximum usage of a turn: an upper estimate of the request's tokens, and the longest answer.
    pub(super) fn most(&self, request: &Request) -> Usage {
        let input = estimated_input(request);
        Usage { input, output: self.target.output_tokens(&request.settings), ..Usage::default() }
    }

    pub(super) fn info(&self) -> Vec<(String, String)> {
        let Target { family, model, context_tokens, images, .. } = &*self.target;
        let pairs = [
            ("provider", family.to_string()),
            ("model", model.to_string()),
            ("context-window", context_tokens.to_string()),
            ("images", images.to_string()),
        ];
        pairs.map(|(name, value)| (name.to_owned(), value)).to_vec()
    }

    pub(super) fn settle(&self, request: &mut Request, schema: Option<&Arc<Schema>>) {
        request.settings.effort = request.settings.effort.or(self.effort);
        // The schema applies only to the stage's own final answer.
        let schema = schema.filter(|_| request.agent.is_none() && request.within.is_none());
        request.schema = schema
            .filter(|schema| match self.schema_mode(schema) {
                WITH_TOOLS => true,
                mode => mode == WITHOUT_TOOLS && request.tools.is_empty(),
            })
            .map(Arc::clone);
    }

    /// Returns the schema mode of the requests: `with-tools`, `without-tools` or `off`.
    pub(super) fn schema_mode(&self, schema: &Schema) -> &'static str {
        match self.target.family {
            family if !self.target.schema_mode || !family.takes(schema) => OFF,
            family if family.has_schema_beside_tools() => WITH_TOOLS,
            _ => WITHOUT_TOOLS,
        }
    }

    /// Asks the provider.
    pub(super) fn ask(&self, request: &Request, options: AskOptions<'_>) -> Reply {
        let AskResult { answered, exchange, tries, lost } = ask_within(&self.target, request, options);
        Reply { answered, lost, exchanged: Some(LastExchange { exchange, tries }) }
    }
}

/// Asks with the request's own time limit. A late answer is discarded, but its cost is still charged.
fn ask_within(target: &Target, request: &Request, options: AskOptions<'_>) -> AskResult {
    let AskOptions { deadline, on_step } = options;
    let Some(within) = request.within else { return ask::ask(target, request, deadline, on_step) };
    let own = Instant::now() + within;
    let mut asked = ask::ask(target, request, CallDeadline { at: own.min(deadline.at), ..deadline }, on_step);
    let has_passed = Instant::now() >= own && own < deadline.at;
    let is_late = match &asked.answered {
        Ok(answer) => {
            let paid = answer.usage;
            asked.lost = if has_passed { asked.lost.plus(paid) } else { asked.lost };
            has_passed
        }
        Err(error) => has_passed && error.kind == ErrorKind::LimitExceeded,
    };
    if is_late {
        let message = format!("the answer did not come within {} s", within.as_secs());
        asked.answered = Err(ModelError::new(ErrorKind::RequestTimeout, message));
    }
    asked
}
