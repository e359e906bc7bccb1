//! What is kept of each turn: who answered, what was new in the question, the answer, and what both cost.
//!
//! Every kind of model gets the same line, a simulated one too. A provider's line has the bytes of the exchange behind it.

use crate::budget::Account;
use glovebox_models::chat::{AgentId, Answer, ModelId, Request, Usage};
use glovebox_models::error::ModelError;
use glovebox_models::image::described;
use glovebox_record::Digest;
use glovebox_record::session::{Message, MessagePart};
use glovebox_record::transcript::{Turn, TurnTokens};
use serde_json::Value;

/// The messages of a conversation so far, by what they say.
#[derive(Debug, Default)]
pub(super) struct Told(Vec<Digest>);

/// What is new in a question.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Question<'a> {
    /// How many messages were said before.
    pub(crate) repeated: usize,
    /// The others.
    pub(crate) new: &'a [Message],
    pub(crate) account: Option<&'a Account>,
    /// The subagent that asks.
    pub(crate) agent: Option<&'a AgentId>,
}

/// Who was asked.
#[derive(Debug, Clone, Copy)]
pub(super) struct Asked<'a> {
    pub(super) provider: &'a str,
    pub(super) model: Option<&'a ModelId>,
    pub(super) tries: Option<u32>,
    /// What tries without an answer may have cost.
    pub(super) lost: Usage,
}

impl<'a> Asked<'a> {
    /// A model that never leaves the machine.
    pub(super) fn here(provider: &'a str) -> Self {
        Self { provider, model: None, tries: None, lost: Usage::default() }
    }
}

impl Told {
    /// Takes note of a question: how many of its messages were said before.
    pub(super) fn ask(&mut self, request: &Request) -> usize {
        let said: Vec<Digest> = request.messages.iter().map(|message| meaning(&message.role, &message.parts)).collect();
        let repeated = self.0.iter().zip(&said).take_while(|(before, now)| before == now).count();
        self.0 = said;
        repeated
    }

    /// Takes note of an answer, which the next question repeats.
    pub(super) fn answered(&mut self, answer: &Answer) {
        self.0.push(meaning(ASSISTANT, &answer.parts));
    }
}

const ASSISTANT: &str = "assistant";

/// What a message says. The host adds fields to answers when it hands them on, so fields of answers do not count.
fn meaning(role: &str, parts: &[MessagePart]) -> Digest {
    let mut text = Vec::new();
    let mut add = |word: &str| {
        text.extend_from_slice(&word.len().to_le_bytes());
        text.extend_from_slice(word.as_bytes());
    };
    add(role);
    for part in parts {
        add(&part.kind);
        add(&part.text);
        for (name, value) in part.fields.iter().filter(|_| role != ASSISTANT) {
            add(name);
            add(value);
        }
    }
    Digest::of(&text)
}

impl Question<'_> {
    /// The line of a turn, without a line break.
    pub(super) fn line(&self, asked: Asked<'_>, answered: &Result<Answer, ModelError>) -> Vec<u8> {
        let (answer, error) = (answered.as_ref().ok(), answered.as_ref().err());
        let usage = answer.map(|answer| answer.usage).unwrap_or_default().plus(asked.lost);
        let turn = Turn {
            provider: asked.provider.to_owned(),
            model: asked.model.map(ModelId::to_string),
            answered_by: answer.and_then(|answer| answer.model.as_ref()).map(ModelId::to_string),
            tries: asked.tries,
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
            is_estimated: asked.lost != Usage::default() || answer.is_some_and(|answer| answer.is_estimated),
        };
        serde_json::to_vec(&turn).unwrap_or_default()
    }
}

/// A message as the record has it: an image by its digest.
fn shown(message: &Message) -> Message {
    Message { role: message.role.to_owned(), parts: message.parts.iter().map(described).collect() }
}

/// A line without the bytes of its exchange, for a transcript that has become too long for them.
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
    use glovebox_models::chat::{call_part, text_part};

    fn message(role: &str, text: &str) -> Message {
        Message { role: role.to_owned(), parts: vec![text_part(text)] }
    }

    fn request(messages: &[Message]) -> Request {
        Request { messages: messages.to_vec(), ..Request::default() }
    }

    #[test]
    fn what_was_said_before_is_counted() {
        let mut told = Told::default();
        let begin = [message("system", "s"), message("user", "u")];
        assert_eq!(told.ask(&request(&begin)), 0);
        let parts = vec![call_part("1", "glob", "{}")];
        told.answered(&Answer { parts: parts.clone(), ..Answer::default() });
        let mut answer = Message { role: "assistant".to_owned(), parts };
        answer.parts[0].fields.push(("problem".to_owned(), "refused".to_owned()));
        let next = [&begin[..], &[answer, message("tool", "r")]].concat();
        assert_eq!(told.ask(&request(&next)), 3, "the answer is not new, whatever the host added");
        assert_eq!(told.ask(&request(&next)), 4, "the same question again");
        let shorter = [message("system", "s"), message("user", "a summary")];
        assert_eq!(told.ask(&request(&shorter)), 1, "a conversation that was made shorter");
    }

    #[test]
    fn a_line_can_do_without_its_bytes() {
        let answered = Ok(Answer { parts: vec![text_part("hi")], ..Answer::default() });
        let question = Question { repeated: 1, new: &[message("user", "u")], account: None, agent: None };
        let line = question.line(Asked::here("scripted"), &answered);
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
