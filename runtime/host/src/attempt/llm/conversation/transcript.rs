//! A line of the transcript: the source of the answer, the new messages of the request, the answer, and the cost.
//!
//! Every kind of model, including a simulated one, produces the same lines. For a provider, the line ends with the bytes of the exchange.

use crate::budget::Account;
use glovebox_models::ask::Exchange;
use glovebox_models::chat::{AgentId, Answer, ModelId, Usage};
use glovebox_models::error::ModelError;
use glovebox_models::image::described;
use glovebox_models::target::Target;
use glovebox_record::session::Message;
use glovebox_record::transcript::{Turn, TurnTokens};
use serde_json::Value;

/// The new messages of a request.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NewMessages<'a> {
    /// Number of messages that were already in the thread.
    pub(crate) repeated: usize,
    /// The messages that were not in the thread.
    pub(crate) new: &'a [Message],
    pub(crate) account: Option<&'a Account>,
    /// The subagent that asks; `None` for the stage itself.
    pub(crate) agent: Option<&'a AgentId>,
}

/// The source of an answer, and its price.
#[derive(Debug, Clone, Copy)]
pub(super) struct TurnSource<'a> {
    pub(super) provider: &'a str,
    pub(super) model: Option<&'a ModelId>,
    pub(super) tries: Option<u32>,
    /// Cost of failed tries.
    pub(super) lost: Usage,
}

impl<'a> TurnSource<'a> {
    /// Creates the source of an answer that no provider gave.
    pub(super) fn local(provider: &'a str) -> Self {
        Self { provider, model: None, tries: None, lost: Usage::default() }
    }
}

impl NewMessages<'_> {
    /// Returns the line of a turn, without a line break.
    pub(super) fn line(&self, source: TurnSource<'_>, answered: &Result<Answer, ModelError>) -> Vec<u8> {
        let (answer, error) = (answered.as_ref().ok(), answered.as_ref().err());
        let usage = answer.map(|answer| answer.usage).unwrap_or_default().plus(source.lost);
        let turn = Turn {
            provider: source.provider.to_owned(),
            model: source.model.map(ModelId::to_string),
            answered_by: answer.and_then(|answer| answer.model.as_ref()).map(ModelId::to_string),
            tries: source.tries,
            error: error.map(|error| error.kind.to_string()),
            message: error.map(|error| error.message.to_owned()),
            agent: self.agent.map(|agent| agent.as_str().to_owned()),
            repeated: self.repeated as u64,
            asked: Some(self.new.iter().map(shown).collect()),
            answer: answer.map(|answer| answer.parts.to_vec()).unwrap_or_default(),
            usage: TurnTokens {
                input: usage.input,
                output: usage.output,
                cache_read: usage.cache_read,
                cache_write: usage.cache_write,
                reasoning: usage.reasoning,
            },
            cost: self.account.map(|account| account.cost(usage)).unwrap_or_default(),
            is_estimated: source.lost != Usage::default() || answer.is_some_and(|answer| answer.is_estimated),
        };
        serde_json::to_vec(&turn).unwrap_or_default()
    }
}

/// Returns a message as it is recorded: an image is replaced by its digest.
fn shown(message: &Message) -> Message {
    Message { role: message.role.to_owned(), parts: message.parts.iter().map(described).collect() }
}

/// An exchange with a provider. It contains no key, and its texts were searched for hold-outs.
pub(crate) struct ProviderExchange<'a> {
    /// The request as it is recorded.
    pub(crate) sent: &'a [u8],
    pub(crate) exchange: &'a Exchange,
    pub(crate) tries: u32,
    /// Cost of failed tries.
    pub(crate) lost: Usage,
    pub(crate) answered: &'a Result<Answer, ModelError>,
}

impl ProviderExchange<'_> {
    /// Returns the line of the transcript. The request is already JSON and stays unchanged, except that a key from a file of the
    /// project is removed.
    pub(crate) fn line(&self, target: &Target, new: NewMessages<'_>) -> Vec<u8> {
        let source = TurnSource {
            provider: target.family.as_str(),
            model: Some(&target.model),
            tries: Some(self.tries),
            lost: self.lost,
        };
        let mut text = new.line(source, self.answered);
        text.pop();
        text.extend_from_slice(b",\"received\":");
        let received = Value::String(String::from_utf8_lossy(&self.exchange.received).into_owned());
        text.extend_from_slice(received.to_string().as_bytes());
        text.extend_from_slice(b",\"sent\":");
        text.extend_from_slice(self.sent);
        text.extend_from_slice(b"}\n");
        match &target.key {
            Some(key) => key.removed_from(String::from_utf8_lossy(&text).into_owned()).into_bytes(),
            None => text,
        }
    }
}

/// Returns a line without the bytes of its exchange, for a transcript that is too long to contain them.
pub(crate) fn without_bytes(line: &[u8]) -> Option<Vec<u8>> {
    let mut value: Value = serde_json::from_slice(line).ok()?;
    let fields = value.as_object_mut()?;
    fields.remove("sent");
    fields.remove("received");
    let mut text = serde_json::to_vec(&value).ok()?;
    text.push(b'\n');
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use glovebox_models::chat::text_part;

    #[test]
    fn a_line_can_do_without_its_bytes() {
        let answered = Ok(Answer { parts: vec![text_part("hi")], ..Answer::default() });
        let new = [Message { role: "user".to_owned(), parts: vec![text_part("u")] }];
        let question = NewMessages { repeated: 1, new: &new, account: None, agent: None };
        let line = question.line(TurnSource::local("scripted"), &answered);
        let turn: Turn = serde_json::from_slice(&line).unwrap();
        assert_eq!((turn.repeated, turn.answer[0].text.as_str(), turn.asked.map(|new| new.len())), (1, "hi", Some(1)));
        let mut long = line.clone();
        long.pop();
        long.extend_from_slice(b",\"sent\":{\"a\":1},\"received\":\"x\"}\n");
        let short = without_bytes(&long).unwrap();
        let (short, line): (Value, Value) =
            (serde_json::from_slice(&short).unwrap(), serde_json::from_slice(&line).unwrap());
        assert_eq!(short, line);
    }
}
