//! Shortens a long conversation: replaces old turns by a list of their calls and texts.
//!
//! No model writes the list, so it costs nothing, contains nothing invented, and is the same in a repeated attempt. The list contains
//! no results of tools: they come from files and programs, and must not look like a message of the user. Only whole turns are removed,
//! so that every result keeps its call.

use crate::picture::{IMAGE, PICTURE_WEIGHT, fields_shown, pictures_of};
use glovebox_plugin_sdk::llm::{Message, Part};

/// Maximum number of compactions in one attempt.
pub(crate) const COMPACTIONS_MAX: u32 = 8;
/// Maximum length of a line of the list, in characters.
const LINE_CHARS_MAX: usize = 300;

const HEAD: &str = "Earlier turns of this conversation were removed to make room. The list below is a record of them, oldest first, and no \
    instruction. Files may have changed since. Call the tools again for what you still need.";

/// Maximum lengths after a compaction, in bytes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CompactionLimits {
    /// Maximum for the kept turns. The last turn is always kept.
    pub(crate) turns: usize,
    /// Maximum for the list.
    pub(crate) list: usize,
}

impl CompactionLimits {
    /// Returns a quarter of a context window for turns, and an eighth for the list. A token is estimated as four bytes.
    pub(crate) fn for_context(tokens: u64) -> Self {
        let tokens = usize::try_from(tokens).unwrap_or(usize::MAX);
        Self { turns: tokens, list: tokens / 2 }
    }

    /// Returns the smallest room, for a conversation that the model refused as too long.
    pub(crate) fn least(self) -> Self {
        Self { turns: 0, list: self.list / 4 }
    }
}

/// A conversation that was shortened.
#[derive(Debug)]
pub(crate) struct Compaction {
    /// System prompt, task, list, and the last turns.
    pub(crate) messages: Vec<Message>,
    /// The removed messages as text.
    pub(crate) removed: String,
    /// Number of removed messages.
    pub(crate) count: usize,
}

/// Shortens a conversation. Returns `None` if nothing can be removed. `task` is the index of the message with the stage's task.
pub(crate) fn compact(messages: &[Message], task: usize, room: CompactionLimits) -> Option<Compaction> {
    let turns = (task + 1..messages.len()).rev().filter(|at| messages[*at].role == "assistant");
    let fits = |at: usize| messages[at..].iter().map(bytes).sum::<usize>() <= room.turns;
    let mut turns = turns.peekable();
    let last = *turns.peek()?;
    let kept = turns.take_while(|at| *at == last || fits(*at)).last().unwrap_or(last);
    let removed: Vec<&Message> = messages[1..task].iter().chain(&messages[task + 1..kept]).collect();
    if removed.iter().all(|message| is_list(message)) {
        return None;
    }
    let lines: Vec<String> =
        removed.iter().enumerate().flat_map(|(at, message)| lines(message, &removed[at + 1..])).collect();
    let list = Message::text("user", listed(&lines, room.list));
    let head = [messages.first()?.to_owned(), messages[task].to_owned(), list];
    let text = removed.iter().map(|message| written(message)).collect::<Vec<_>>().join("\n");
    let messages = head.into_iter().chain(messages[kept..].iter().cloned()).collect();
    Some(Compaction { messages, removed: text, count: removed.len() })
}

fn bytes(message: &Message) -> usize {
    let weight = |part: &Part| if part.kind == IMAGE { PICTURE_WEIGHT } else { part.text.len() };
    message.parts.iter().map(weight).sum()
}

/// Returns true if the message is the list of an earlier compaction.
fn is_list(message: &Message) -> bool {
    message.role == "user" && message.parts.first().is_some_and(|part| part.text.starts_with(HEAD))
}

/// Returns the list's lines for a message. `behind` are the removed messages after it, with the results of its calls.
fn lines(message: &Message, behind: &[&Message]) -> Vec<String> {
    if is_list(message) {
        return message.whole_text().lines().skip(1).map(str::to_owned).collect();
    }
    let line = |part: &Part| match (part.kind.as_str(), message.role.as_str()) {
        ("tool-call", _) => {
            let name = part.field("name").unwrap_or_default();
            let gone = if pictures_of(behind, part.field("id")) > 0 { ", its picture was removed" } else { "" };
            Some(short(&format!("- called {name} {}: {}{gone}", part.text, end_of(part, behind))))
        }
        ("text", "assistant") if !part.text.trim().is_empty() => Some(short(&format!("- you said: {}", part.text))),
        ("text", "user") => Some(short(&format!("- the user said: {}", part.text))),
        _ => None,
    };
    message.parts.iter().filter_map(line).collect()
}

/// Returns a word for the result of a call.
fn end_of(call: &Part, behind: &[&Message]) -> &'static str {
    let id = call.field("id");
    let mut results = behind.iter().flat_map(|message| &message.parts).filter(|part| part.kind == "tool-result");
    match results.find(|result| result.field("call-id") == id) {
        Some(result) if result.field("is-error") == Some("true") => "error",
        Some(_) => "ok",
        None => "no answer",
    }
}

/// Returns the text as one line. The middle of a long line is removed.
fn short(text: &str) -> String {
    let line: Vec<char> = text.split_whitespace().collect::<Vec<_>>().join(" ").chars().collect();
    if line.len() <= LINE_CHARS_MAX {
        return line.into_iter().collect();
    }
    let (first, last) = (&line[..LINE_CHARS_MAX * 2 / 3], &line[line.len() - LINE_CHARS_MAX / 3..]);
    first.iter().chain(&[' ', '…', ' ']).chain(last).collect()
}

/// Returns the list. If it would be too long, its first lines are left out.
fn listed(lines: &[String], bytes_max: usize) -> String {
    let mut left = bytes_max;
    let fits = |line: &&String| {
        let length = line.len() + 1;
        let fits = length <= left;
        left = left.saturating_sub(length);
        fits
    };
    let kept = lines.iter().rev().take_while(fits).count();
    let left_out = lines.len() - kept;
    let more = (left_out > 0).then(|| format!("- {left_out} earlier lines are left out"));
    let lines = more.iter().chain(&lines[left_out..]).map(String::as_str);
    std::iter::once(HEAD).chain(lines).collect::<Vec<_>>().join("\n")
}

/// Returns a message as text for the artifact.
fn written(message: &Message) -> String {
    let part = |part: &Part| {
        let about: Vec<String> = fields_shown(part).map(|(name, value)| format!(" {name}={value}")).collect();
        format!("## {} {}{}\n\n{}\n", message.role, part.kind, about.concat(), part.text)
    };
    message.parts.iter().map(part).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn turn(number: usize, result: &str) -> [Message; 2] {
        let id = number.to_string();
        let call = Part::new("tool-call", format!("{{\"path\":\"f{number}\"}}"))
            .with("id", id.as_str())
            .with("name", "read_file");
        let result = Part::new("tool-result", result).with("call-id", id);
        let said = Part::new("text", format!("I read\nf{number}. OUTCOME: FAIL"));
        [
            Message { role: "assistant".to_owned(), parts: vec![said, call] },
            Message { role: "tool".to_owned(), parts: vec![result] },
        ]
    }

    fn talk(turns: usize) -> Vec<Message> {
        let begin = [Message::text("system", "rules"), Message::text("user", "the task")];
        begin.into_iter().chain((1..=turns).flat_map(|number| turn(number, "secret content"))).collect()
    }

    const SMALL: CompactionLimits = CompactionLimits { turns: 0, list: 1000 };

    #[test]
    fn old_turns_become_a_list_and_results_keep_their_calls() {
        let short = compact(&talk(3), 1, SMALL).unwrap();
        let texts: Vec<String> = short.messages.iter().map(Message::whole_text).collect();
        assert_eq!((short.messages.len(), texts[0].as_str(), texts[1].as_str()), (5, "rules", "the task"));
        let expected = format!(
            "{HEAD}\n- you said: I read f1. OUTCOME: FAIL\n- called read_file {{\"path\":\"f1\"}}: ok\n\
             - you said: I read f2. OUTCOME: FAIL\n- called read_file {{\"path\":\"f2\"}}: ok"
        );
        assert_eq!(texts[2], expected);
        assert_eq!(short.messages[3].parts[1].field("id"), short.messages[4].parts[0].field("call-id"));
        assert!(short.removed.contains("## tool tool-result call-id=2\n\nsecret content"), "{}", short.removed);
    }

    #[test]
    fn a_list_goes_on_where_it_was() {
        let mut messages = compact(&talk(2), 1, SMALL).unwrap().messages;
        assert!(compact(&messages, 1, SMALL).is_none(), "nothing but a list could go");
        messages.extend(turn(3, "more"));
        let again = compact(&messages, 1, SMALL).unwrap();
        let list = again.messages[2].whole_text();
        assert_eq!(
            (list.matches(HEAD).count(), list.matches("\"f1\"").count(), list.matches("\"f2\"").count()),
            (1, 1, 1)
        );
    }

    #[test]
    fn as_many_turns_stay_as_there_is_room_for() {
        let length = |room: usize| {
            compact(&talk(5), 1, CompactionLimits { turns: room, list: 1000 }).map(|short| short.messages.len())
        };
        let of_turn: usize = turn(1, "secret content").iter().map(bytes).sum();
        assert_eq!((length(0), length(of_turn * 3), length(of_turn * 5)), (Some(5), Some(9), None));
        assert!(compact(&talk(0), 1, SMALL).is_none() && compact(&talk(1), 1, SMALL).is_none());
    }

    #[test]
    fn earlier_stages_go_first_and_the_task_stays() {
        let mut messages = talk(1);
        messages.splice(1..1, [Message::text("user", "an earlier task"), Message::text("assistant", "done")]);
        let short = compact(&messages, 3, SMALL).unwrap();
        assert_eq!(short.messages[1].whole_text(), "the task");
        assert!(short.messages[2].whole_text().ends_with("- the user said: an earlier task\n- you said: done"));
    }

    #[test]
    fn a_picture_that_goes_is_named_and_its_bytes_are_nowhere() {
        let mut messages = talk(2);
        let id = messages[2].parts.iter().find_map(|part| part.field("id")).unwrap().to_owned();
        let picture =
            Part::new("image", "").with("call-id", id).with("media-type", "image/png").with("data", "iVBORw0KGgo=");
        messages[3].parts.push(picture);
        let short = compact(&messages, 1, CompactionLimits { turns: 0, list: 4000 }).unwrap();
        assert!(short.messages[2].whole_text().contains(": ok, its picture was removed"), "{:?}", short.messages[2]);
        assert!(
            short.removed.contains("media-type=image/png") && !short.removed.contains("iVBOR"),
            "{}",
            short.removed
        );
    }

    #[test]
    fn a_list_is_bounded() {
        let short = compact(&talk(50), 1, CompactionLimits { turns: 0, list: 200 }).unwrap();
        let list = short.messages[2].whole_text();
        assert!(
            list.len() < HEAD.len() + 250 && list.contains("earlier lines are left out") && list.contains("\"f49\""),
            "{list}"
        );
    }
}
