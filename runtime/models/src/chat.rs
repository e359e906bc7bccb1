//! Requests to models and their answers, independent of the provider.
//!
//! Messages have the types of the record, so a request is stored as it was sent. A part of kind `opaque:<family>` belongs to the
//! provider: it is sent back unchanged to the same family, and to no other.

use glovebox_record::Tokens;
use glovebox_record::session::{Message, MessagePart};
use glovebox_record::spend::Money;
use glovebox_schema::Schema;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// The exact name of a model, as its provider knows it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ModelId(String);

impl ModelId {
    /// Returns the name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns true if an answer by `answered` comes from this model: its name is the same, or the same with a date appended.
    pub fn is_answered_by(&self, answered: &ModelId) -> bool {
        let rest = answered.0.strip_prefix("models/").unwrap_or(&answered.0).strip_prefix(&self.0);
        rest.is_some_and(|rest| rest.is_empty() || rest.strip_prefix('-').is_some_and(is_date))
    }
}

/// Returns true for a date such as `20250929` or `2025-09-29`.
fn is_date(text: &str) -> bool {
    let digits = text.bytes().filter(u8::is_ascii_digit).count();
    let dashes = text.bytes().enumerate().filter(|(_, byte)| *byte == b'-').map(|(at, _)| at);
    digits == 8 && (text.len() == 8 || (text.len() == 10 && dashes.eq([4, 7])))
}

impl From<&str> for ModelId {
    fn from(name: &str) -> Self {
        Self(name.to_owned())
    }
}

impl fmt::Display for ModelId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Reasoning effort of a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Effort {
    /// Low effort.
    Low,
    /// Medium effort.
    Medium,
    /// High effort.
    High,
}

impl Effort {
    /// Every effort, from the lowest to the highest.
    pub const ALL: [Self; 3] = [Self::Low, Self::Medium, Self::High];

    /// Returns the name in pipelines and requests.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
        }
    }
}

/// A tool that the model may call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tool {
    /// Name of the tool.
    pub name: String,
    /// Description for the model.
    pub description: String,
    /// JSON Schema of the arguments, as text.
    pub parameters: String,
}

/// Tuning options of an answer. `None` stands for the provider's default.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Settings {
    /// Maximum number of tokens of the answer, including thinking.
    pub output_tokens_max: Option<u64>,
    /// Temperature, from 0 to 2.
    pub temperature: Option<f64>,
    /// Nucleus sampling, from 0 to 1.
    pub top_p: Option<f64>,
    /// Reasoning effort.
    pub effort: Option<Effort>,
}

/// One request to a model. Provider and model are not part of it: they belong to the target.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Request {
    /// The conversation, oldest first.
    pub messages: Vec<Message>,
    /// Tools the model may call.
    pub tools: Vec<Tool>,
    /// Tuning options of the answer.
    pub settings: Settings,
    /// Schema that the provider must enforce; `None` if it must not enforce one.
    pub schema: Option<Arc<Schema>>,
    /// The subagent that asks; `None` for the stage's own conversation.
    pub agent: Option<AgentId>,
    /// Time limit of the answer; `None` if only the limits of the stage apply.
    pub within: Option<Duration>,
}

/// The name of a subagent within one attempt.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AgentId(String);

impl AgentId {
    /// Maximum length of a name, in characters.
    const CHARACTERS_MAX: usize = 32;

    /// Parses a name of letters, digits and `-`. Returns `None` for any other text.
    pub fn parse(text: &str) -> Option<Self> {
        let is_plain = text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
        (is_plain && (1..=Self::CHARACTERS_MAX).contains(&text.len())).then(|| Self(text.to_owned()))
    }

    /// Returns the name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Request {
    /// Returns the number of bytes of all text that a provider reads. Images are not text: [`Request::images`] counts them.
    pub fn bytes(&self) -> usize {
        let parts = self.messages.iter().flat_map(|message| &message.parts).filter(|part| part.kind != IMAGE);
        let texts = parts.map(|part| part.text.len() + part.fields.iter().map(|(_, value)| value.len()).sum::<usize>());
        let tools = self.tools.iter().map(|tool| tool.name.len() + tool.description.len() + tool.parameters.len());
        let schema = self.schema.iter().map(|schema| schema.text().len());
        texts.chain(tools).chain(schema).sum()
    }

    /// Returns the number of images.
    pub fn images(&self) -> u64 {
        let parts = self.messages.iter().flat_map(|message| &message.parts);
        parts.filter(|part| part.kind == IMAGE).count() as u64
    }
}

/// Why an answer ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Finish {
    /// The answer is complete.
    #[default]
    Stop,
    /// The answer calls tools.
    ToolCalls,
    /// The maximum number of tokens was reached.
    Length,
    /// The provider's filter withheld the rest.
    ContentFilter,
    /// The provider gave another reason.
    Other,
}

impl Finish {
    /// Returns the name that a guest gets.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Stop => "stop",
            Self::ToolCalls => "tool-calls",
            Self::Length => "length",
            Self::ContentFilter => "content-filter",
            Self::Other => "other",
        }
    }
}

/// Tokens of a request and its answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Usage {
    /// Tokens sent, including those from the provider's cache.
    pub input: u64,
    /// Tokens received, including thinking.
    pub output: u64,
    /// Tokens of `input` that came from the provider's cache.
    pub cache_read: u64,
    /// Tokens of `input` that the provider stored in its cache.
    pub cache_write: u64,
    /// Tokens of `output` that are thinking.
    pub reasoning: u64,
    /// Cost as stated by the provider; `None` if it states no cost.
    #[serde(deserialize_with = "dollars", serialize_with = "in_dollars", skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<Money>,
}

impl Usage {
    /// Returns the numbers of tokens sent and received.
    pub fn tokens(self) -> Tokens {
        Tokens { input: self.input, output: self.output }
    }

    /// Returns the sum of both usages.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        let cost = [self.cost_usd, other.cost_usd].into_iter().flatten().map(|cost| cost.0).reduce(u64::saturating_add);
        Self {
            input: self.input.saturating_add(other.input),
            output: self.output.saturating_add(other.output),
            cache_read: self.cache_read.saturating_add(other.cache_read),
            cache_write: self.cache_write.saturating_add(other.cache_write),
            reasoning: self.reasoning.saturating_add(other.reasoning),
            cost_usd: cost.map(Money),
        }
    }
}

fn in_dollars<S: Serializer>(cost: &Option<Money>, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&cost.unwrap_or_default())
}

/// Reads an amount of money from a number or a text.
fn dollars<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Money>, D::Error> {
    let text = match Value::deserialize(deserializer)? {
        Value::String(text) => text,
        number => number.to_string(),
    };
    let wrong = |error| serde::de::Error::custom(format!("`cost_usd` is `{text}`: {error}"));
    text.parse().map(Some).map_err(wrong)
}

/// The answer of a model in one turn.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Answer {
    /// Parts in order, of kind `text`, `tool-call`, `outcome` or `opaque:<family>`.
    pub parts: Vec<MessagePart>,
    /// Why the answer ended.
    pub finish: Finish,
    /// Tokens of the exchange.
    pub usage: Usage,
    /// True if the provider did not count the tokens, and they are estimated.
    pub is_estimated: bool,
    /// The model that answered, as the provider names it; `None` for a scripted answer.
    pub model: Option<ModelId>,
}

impl Answer {
    /// Returns the text of all text parts.
    pub fn text(&self) -> String {
        self.parts.iter().filter(|part| part.kind == TEXT).map(|part| part.text.as_str()).collect()
    }

    /// Returns the parts that call tools.
    pub fn tool_calls(&self) -> impl Iterator<Item = &MessagePart> {
        self.parts.iter().filter(|part| part.kind == TOOL_CALL)
    }
}

/// Kind of a part with text.
pub const TEXT: &str = "text";
/// Kind of a part that calls a tool.
pub const TOOL_CALL: &str = "tool-call";
/// Kind of a part with a tool's result.
pub const TOOL_RESULT: &str = "tool-result";
/// Kind of a part with an image.
pub const IMAGE: &str = "image";

/// Name of a field of a part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FieldName {
    /// Id of a tool call.
    Id,
    /// Name of the called tool.
    Name,
    /// Id of the call to which a result belongs.
    CallId,
    /// `true` if a result is an error.
    IsError,
}

impl FieldName {
    /// Returns the name in the record.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Id => "id",
            Self::Name => "name",
            Self::CallId => "call-id",
            Self::IsError => "is-error",
        }
    }

    /// Returns the value of this field in a part, or an empty text if there is no such field.
    pub fn value_in(self, part: &MessagePart) -> &str {
        let found = part.fields.iter().find(|(name, _)| name == self.as_str());
        found.map_or("", |(_, value)| value.as_str())
    }
}

/// Returns a part with text.
pub fn text_part(text: impl Into<String>) -> MessagePart {
    MessagePart { kind: TEXT.to_owned(), text: text.into(), fields: Vec::new() }
}

/// Returns a part that calls a tool. `arguments` is JSON.
pub fn call_part(id: impl Into<String>, name: impl Into<String>, arguments: impl Into<String>) -> MessagePart {
    let fields = [(FieldName::Id, id.into()), (FieldName::Name, name.into())];
    let fields = fields.map(|(name, value)| (name.as_str().to_owned(), value)).to_vec();
    MessagePart { kind: TOOL_CALL.to_owned(), text: arguments.into(), fields }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_of_the_model_or_of_the_model_with_a_date() {
        let check = |pin: &str, answered: &str, expected: bool| {
            assert_eq!(ModelId::from(pin).is_answered_by(&answered.into()), expected, "{pin} {answered}");
        };
        for answered in ["gpt-5", "gpt-5-2025-08-07", "gpt-5-20250807", "models/gpt-5"] {
            check("gpt-5", answered, true);
        }
        for answered in ["", "gpt-5-mini", "gpt-5-2025", "gpt-5-2025-0807", "gpt-52025-08-07", "gpt-4", "GPT-5"] {
            check("gpt-5", answered, false);
        }
    }
}
