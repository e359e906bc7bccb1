//! Renders a conversation between a stage and its model, for people.
//!
//! Text of models, tools and files is escaped and indented below a title, so that it cannot imitate a row of Glovebox.

use super::paint::Paint;
use super::rows::Rows;
use super::{duration, of_generation, summary, visible};
use glovebox_journal::event::{Attempt, BranchId, StageFinished};
use glovebox_models::chat::{FieldName, IMAGE, TEXT, TOOL_CALL, TOOL_RESULT};
use glovebox_record::session::{Message, MessagePart};
use glovebox_record::transcript::Turn;
use glovebox_record::{FailureCode, Session, Tokens};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// Maximum number of lines of an argument or a result, unless everything is shown.
const LINES_MAX: usize = 10;
/// Maximum number of characters of a line of an argument or a result, unless everything is shown.
const CHARACTERS_MAX: usize = 200;
/// Width of the column of titles, in characters.
const TITLE: usize = 10;
/// Name of the artifact that marks a stage that could read hold-outs.
const WITHHELD_FILE: &str = "withheld.json";

/// How much of a conversation is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Length {
    /// Everything.
    Full,
    /// No system prompt, and long results are cut.
    Cut,
}

/// The facts about an attempt that are shown above its conversation.
#[derive(Debug, Clone, Copy)]
pub struct Head<'a> {
    /// The attempt.
    pub attempt: &'a Attempt,
    /// The end of the attempt; `None` if it has not ended.
    pub finished: Option<&'a StageFinished>,
    /// Whether a resume went back to before the attempt.
    pub is_undone: bool,
}

/// A page with the conversations of several attempts.
pub struct Page {
    rows: Rows,
    paint: Paint,
    length: Length,
    is_cut: bool,
    /// Names of the tools that were called, by the id of the call.
    tools: BTreeMap<String, String>,
}

impl Page {
    /// Creates an empty page.
    pub fn new(length: Length) -> Self {
        let paint = Paint::stdout();
        let rows = Rows::below_a_title(TITLE).painted(paint);
        Self { rows, paint, length, is_cut: false, tools: BTreeMap::new() }
    }

    /// Returns the text of the page. `whole` is the command that shows everything.
    pub fn finish(mut self, whole: &str) -> String {
        if self.is_cut {
            self.rows.line(format_args!("{} {whole}", self.paint.title(&format!("{:<w$}", "whole", w = TITLE + 2))));
        }
        self.rows.finish()
    }

    /// Adds an attempt and its turns.
    pub fn attempt(&mut self, head: Head<'_>, turns: &[Turn]) {
        self.tools.clear();
        self.rows.line(title(head, self.paint));
        self.model(head, turns);
        let continues =
            head.finished.and_then(|stage| stage.model.session.as_ref()).filter(|it| it.continues.is_some());
        for (at, turn) in turns.iter().enumerate() {
            self.asked(turn, continues.filter(|_| at == 0));
            let agent = turn.agent.as_ref().map(|agent| format!("subagent {}: ", visible::line(agent)));
            self.rows.row(format_args!("turn {}", at + 1), agent.unwrap_or_default() + &cost(turn));
            turn.answer.iter().for_each(|part| self.part("assistant", part));
            if let Some(error) = &turn.error {
                self.rows.row("error", format_args!("{error}: {}", turn.message.as_deref().unwrap_or_default()));
            }
        }
        let Some(stage) = head.finished else { return };
        let answered = turns.iter().filter(|turn| turn.error.is_none()).count();
        let others = (stage.model.turns_used as usize).saturating_sub(answered);
        if others > 0 && !turns.is_empty() {
            self.rows.row("", format_args!("{others} later turns were not kept: the transcript is too long"));
        }
        if !stage.model.tokens.is_zero() {
            self.rows.row("tokens", summary::spent(stage.model.tokens, stage.model.cost, stage.model.is_estimated));
        }
    }

    fn model(&mut self, head: Head<'_>, turns: &[Turn]) {
        if let Some(failure) = head.finished.and_then(|stage| stage.outcome.failure.as_ref()) {
            let (class, code) = (failure.class.as_str(), failure.code.as_str());
            self.rows.row("because", format_args!("{class} ({code}): {}", failure.reason));
        }
        if head.finished.is_some_and(|stage| stage.files.artifacts.iter().any(|kept| kept.name == WITHHELD_FILE)) {
            self.rows.row("note", "this stage could read hold-outs: do not show this conversation to builders");
        }
        let Some(first) = turns.first() else { return self.rows.row("none", why_none(head)) };
        let Turn { provider, model, .. } = first;
        let answered =
            turns.iter().rev().find_map(|turn| turn.answered_by.as_ref()).filter(|it| model.as_ref() != Some(it));
        let answered = answered.map(|name| format!(", answered as {name}")).unwrap_or_default();
        let name = head.finished.and_then(|stage| stage.model.asked.as_ref()).map(|asked| format!("{}: ", asked.name));
        let model = model.as_ref().map(|model| format!(" {model}")).unwrap_or_default();
        self.rows.row("model", format_args!("{}{provider}{model}{answered}", name.unwrap_or_default()));
    }

    /// Adds the new part of a request. If the stage continues the conversation of another stage, its first request
    /// begins with all of that conversation.
    fn asked(&mut self, turn: &Turn, continues: Option<&Session>) {
        let Some(asked) = &turn.asked else {
            return self.rows.row("asked", "not stored by the version of Glovebox that made the run");
        };
        let earlier = match continues {
            Some(_) if self.length == Length::Cut => asked.len().saturating_sub(1),
            _ => 0,
        };
        if let (Some(session), true) = (continues, earlier > 0) {
            let system = asked.iter().filter(|message| message.role == "system").count();
            let thread = session.thread.as_ref().map(|thread| format!(" of thread `{thread}`")).unwrap_or_default();
            asked[..earlier].iter().filter(|message| message.role == "system").for_each(|it| self.message(it));
            self.rows.row("earlier", format_args!("{} messages{thread}", earlier - system));
            self.is_cut = true;
        }
        asked[earlier..].iter().for_each(|message| self.message(message));
    }

    fn message(&mut self, message: &Message) {
        if message.role == "system" && self.length == Length::Cut {
            let characters: usize = message.parts.iter().map(|part| part.text.chars().count()).sum();
            self.rows.row("system", format_args!("{characters} characters"));
            self.is_cut = true;
            return;
        }
        message.parts.iter().for_each(|part| self.part(&message.role, part));
    }

    fn part(&mut self, role: &str, part: &MessagePart) {
        match part.kind.as_str() {
            TEXT => self.block(role, visible::block(part.text.trim_end()).lines()),
            TOOL_CALL => self.call(part),
            TOOL_RESULT => self.result(part),
            "outcome" => self.rows.row("outcome", &part.text),
            IMAGE => self.rows.row("image", image(part)),
            kind => {
                let body = format!("{kind}, {} bytes", part.text.len());
                self.rows.row("other", body);
            }
        }
    }

    fn call(&mut self, part: &MessagePart) {
        let name = FieldName::Name.value_in(part);
        self.tools.insert(FieldName::Id.value_in(part).to_owned(), name.to_owned());
        let mut lines = vec![visible::line(name).into_owned()];
        match serde_json::from_str::<Map<String, Value>>(&part.text) {
            Ok(arguments) => arguments.iter().for_each(|(name, value)| lines.extend(self.argument(name, value))),
            Err(_) => lines.extend(self.cut(&part.text)),
        }
        let problem = part.fields.iter().find(|(name, _)| name == "problem");
        lines.extend(problem.map(|(_, problem)| format!("not called: {}", visible::line(problem))));
        self.block("call", lines.iter().map(String::as_str));
    }

    /// Returns the lines of an argument: next to its name if there is one line, or else below the name.
    fn argument(&mut self, name: &str, value: &Value) -> Vec<String> {
        let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        let name = visible::line(name);
        let lines = self.cut(&text);
        match &lines[..] {
            [] => vec![format!("{name}:")],
            [only] => vec![format!("{name}: {only}")],
            _ => std::iter::once(format!("{name}:")).chain(lines.iter().map(|line| format!("  {line}"))).collect(),
        }
    }

    fn result(&mut self, part: &MessagePart) {
        let name = self.tools.get(FieldName::CallId.value_in(part)).map_or("", String::as_str);
        let title = if FieldName::IsError.value_in(part) == "true" { "failed" } else { "result" };
        let head = visible::line(name).into_owned();
        let lines: Vec<String> = std::iter::once(head).chain(self.cut(&part.text)).collect();
        self.block(title, lines.iter().map(String::as_str));
    }

    /// Returns the lines of a text, escaped and, unless everything is shown, cut to few and short lines.
    fn cut(&mut self, text: &str) -> Vec<String> {
        let safe = visible::block(text.trim_end());
        let lines: Vec<&str> = safe.lines().collect();
        if self.length == Length::Full {
            return lines.into_iter().map(str::to_owned).collect();
        }
        let mut kept: Vec<String> = Vec::new();
        for line in lines.iter().take(LINES_MAX) {
            let mut short: String = line.chars().take(CHARACTERS_MAX).collect();
            if short.len() < line.len() {
                short.push('…');
                self.is_cut = true;
            }
            kept.push(short);
        }
        if let more @ 1.. = lines.len().saturating_sub(LINES_MAX) {
            kept.push(format!("… {more} more lines"));
            self.is_cut = true;
        }
        kept
    }

    /// Adds a row with several lines. The first line is next to the title.
    fn block<'l>(&mut self, title: &str, lines: impl Iterator<Item = &'l str>) {
        let below = format!("\n{:w$}", "", w = TITLE + 3);
        let title = visible::line(title).into_owned();
        self.rows.block(title, lines.collect::<Vec<_>>().join(&below));
    }
}

fn title(head: Head<'_>, paint: Paint) -> String {
    let Head { attempt, finished, is_undone } = head;
    let task = &attempt.task;
    let branch = match task.branch == BranchId::main() {
        true => String::new(),
        false => format!(" in branch {}", visible::line(task.branch.as_str())),
    };
    let again = if attempt.ordinal > 1 { format!(" attempt {}", attempt.ordinal) } else { String::new() };
    let end = match finished {
        Some(stage) => format!("{} in {}", paint.status(stage.outcome.status.as_str()), duration(stage.duration_ms)),
        None => "has not ended".to_owned(),
    };
    let left = if is_undone { super::LEFT } else { "" };
    let (node, visit, generation) = (visible::line(task.node.as_str()), task.visit, of_generation(task.generation));
    format!("{node} visit {visit}{again}{branch}{generation}: {end}{left}")
}

/// Returns why an attempt has no conversation.
fn why_none(head: Head<'_>) -> String {
    let Some(stage) = head.finished else { return "the model has not answered yet".to_owned() };
    if stage.outcome.failure.as_ref().is_some_and(|failure| failure.code == FailureCode::HOLDOUT_LEAK) {
        return "not stored, because it contained text of a hold-out".to_owned();
    }
    match &stage.model.session {
        Some(_) => "no model was asked".to_owned(),
        None => format!("`{}` asks no model", stage.handler),
    }
}

/// Returns the usage and cost of a turn, or the provider if no usage was counted.
fn cost(turn: &Turn) -> String {
    let usage = turn.usage;
    let tokens = Tokens { input: usage.input, output: usage.output };
    let tries = turn.tries.filter(|tries| *tries > 1).map(|tries| format!(", asked {tries} times")).unwrap_or_default();
    if tokens.is_zero() {
        return format!("{}{tries}", turn.provider);
    }
    let counted =
        [(usage.cache_read, "from the cache"), (usage.cache_write, "into the cache"), (usage.reasoning, "thinking")];
    let counted = counted.iter().filter(|(tokens, _)| *tokens > 0).map(|(tokens, what)| format!("{tokens} {what}"));
    let counted = counted.collect::<Vec<_>>().join(", ");
    let counted = if counted.is_empty() { counted } else { format!(" ({counted})") };
    format!("{}{counted}{tries}", summary::spent(tokens, turn.cost, turn.is_estimated))
}

/// Describes an image in one line: its type, size and digest. The record does not contain its bytes.
fn image(part: &MessagePart) -> String {
    let field = |wanted: &str| part.fields.iter().find(|(name, _)| name == wanted).map_or("?", |(_, value)| value);
    format!(
        "{}, {} bytes, {}",
        visible::line(field("media-type")),
        visible::line(field("bytes")),
        visible::line(field("digest"))
    )
}
