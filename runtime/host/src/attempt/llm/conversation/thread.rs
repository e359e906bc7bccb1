//! Finds the messages of a request that are new, because a component sends the whole conversation with each request.

use glovebox_models::chat::Answer;
use glovebox_record::Digest;
use glovebox_record::session::{Message, MessagePart};

/// Hashes of the messages of a thread so far. The stage and each of its subagents have one thread each.
#[derive(Debug, Default)]
pub(super) struct Thread(Vec<Digest>);

impl Thread {
    /// Adds a request. Returns how many of its messages were already in the thread.
    pub(super) fn ask(&mut self, messages: &[Message]) -> usize {
        let hashes: Vec<Digest> = messages.iter().map(|message| meaning(&message.role, &message.parts)).collect();
        let repeated = self.0.iter().zip(&hashes).take_while(|(before, now)| before == now).count();
        self.0 = hashes;
        repeated
    }

    /// Adds an answer, which the next request repeats.
    pub(super) fn add_answer(&mut self, answer: &Answer) {
        self.0.push(meaning(ASSISTANT, &answer.parts));
    }
}

const ASSISTANT: &str = "assistant";

/// Returns the hash of a message. Fields of answers are ignored, because the host adds some before the component gets the answer.
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
    Digest::hash(&text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use glovebox_models::chat::{call_part, text_part};

    fn message(role: &str, text: &str) -> Message {
        Message { role: role.to_owned(), parts: vec![text_part(text)] }
    }

    #[test]
    fn what_was_said_before_is_counted() {
        let mut thread = Thread::default();
        let begin = [message("system", "s"), message("user", "u")];
        assert_eq!(thread.ask(&begin), 0);
        let parts = vec![call_part("1", "glob", "{}")];
        thread.add_answer(&Answer { parts: parts.clone(), ..Answer::default() });
        let mut answer = Message { role: "assistant".to_owned(), parts };
        answer.parts[0].fields.push(("problem".to_owned(), "refused".to_owned()));
        let next = [&begin[..], &[answer, message("tool", "r")]].concat();
        assert_eq!(thread.ask(&next), 3, "the answer is not new, whatever the host added");
        assert_eq!(thread.ask(&next), 4, "the same question again");
        let shorter = [message("system", "s"), message("user", "a summary")];
        assert_eq!(thread.ask(&shorter), 1, "a conversation that was made shorter");
    }
}
