//! Edge conditions (spec §10): parsed once, and evaluated without side effects.
//!
//! A condition is a conjunction of comparisons of text. For `==`, `||` or `>`, the diagnostic says what to write instead.
//! Evaluation reads the outcome of a stage and the context, and cannot fail.

#![expect(
    clippy::result_large_err,
    reason = "a diagnostic ends the parsing of one value; it is built once and moved twice"
)]

use crate::diagnostic::Diagnostic;
use crate::dot::SourceMap;
use crate::keyed::Text;
use crate::outcome::{Answer, Lookup};
use crate::span::Span;
use glovebox_record::{FailureClass, Status};
use std::fmt;

/// Maximum number of comparisons in one condition.
const CLAUSES_MAX: usize = 256;

/// A conjunction of clauses. It holds if all clauses hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Condition {
    /// The source text.
    pub text: Text,
    /// The clauses in the order of the text.
    pub clauses: Vec<Clause>,
}

/// One comparison in a condition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Clause {
    /// The key whose value the clause reads.
    pub key: ConditionKey,
    /// The operator.
    pub operator: Operator,
    /// The text to compare with.
    pub literal: Text,
    /// True if the file spells the status as other engines do, such as `succeeded`. `literal` is then Glovebox's name.
    pub is_foreign: bool,
    /// The span of the clause in the file.
    pub span: Span,
    /// The span of the literal, including quotes; empty for a bare key.
    pub literal_span: Span,
}

/// The key that a clause reads: `outcome`, `preferred_label`, `context.…` or a bare context key. A key consists of
/// words separated by dots.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConditionKey(Text);

impl ConditionKey {
    /// Parses a key. `None` unless each word begins with a letter or `_`.
    fn parse(text: &str) -> Option<Self> {
        let mut begins = true;
        for byte in text.bytes() {
            if begins && !(byte.is_ascii_alphabetic() || byte == b'_') {
                return None;
            }
            begins = byte == b'.';
        }
        (!begins).then(|| Self(text.into()))
    }

    /// Returns the key as written.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns true if the key means the status of the outcome.
    pub fn is_outcome(&self) -> bool {
        matches!(self.as_str(), "outcome" | "context.outcome")
    }

    /// Returns true if the key means the label that the stage prefers.
    pub fn is_preferred_label(&self) -> bool {
        self.as_str() == "preferred_label"
    }

    /// Returns true if the key means the class of the last failure.
    pub fn is_failure_class(&self) -> bool {
        matches!(self.as_str(), "failure_class" | "context.failure_class")
    }

    /// Returns the value of the key. A `context.x` key is looked up as `context.x`, then as `x` (spec §10.4).
    fn resolve(&self, answer: &Answer<'_>, lookup: Lookup<'_>) -> String {
        let key = self.as_str();
        match key {
            "outcome" => answer.status.as_str().to_owned(),
            "preferred_label" => answer.preferred_label.to_owned(),
            _ => {
                let value = lookup(key);
                match key.strip_prefix("context.") {
                    Some(rest) if value.is_empty() => lookup(rest),
                    _ => value,
                }
            }
        }
    }
}

impl fmt::Display for ConditionKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Statuses that have another name in other engines (decision other-spellings).
const OTHER_STATUSES: [(&str, Status); 2] = [("succeeded", Status::Success), ("failed", Status::Fail)];

/// Failure classes that have another name in other engines.
const OTHER_CLASSES: [(&str, FailureClass); 3] = [
    ("transient_infra", FailureClass::Transient),
    ("budget_exhausted", FailureClass::Budget),
    ("structural", FailureClass::Scope),
];

/// Returns Glovebox's name of a failure class.
fn class(word: &str) -> &str {
    OTHER_CLASSES.iter().find(|(theirs, _)| *theirs == word).map_or(word, |(_, class)| class.as_str())
}

/// The operators of comparisons.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operator {
    /// `=`
    Equal,
    /// `!=`
    NotEqual,
    /// A bare key: the clause holds if the value is neither empty nor `false`.
    Truthy,
}

impl Condition {
    /// Parses a condition. `places` maps offsets in the text to spans in the file.
    ///
    /// # Errors
    /// Returns a `condition_syntax` diagnostic at the invalid text, with a fix if the fix is certain.
    pub fn parse(text: &str, places: &SourceMap) -> Result<Condition, Diagnostic> {
        let mut reader = Reader { text, at: 0, places };
        let mut clauses = vec![reader.clause()?];
        while reader.conjunction()? {
            if clauses.len() == CLAUSES_MAX {
                return Err(reader.too_many_clauses());
            }
            clauses.push(reader.clause()?);
        }
        Ok(Condition { text: text.into(), clauses })
    }

    /// Returns true if every clause holds. A `context.x` key is looked up as `context.x`, then as `x` (spec §10.4).
    pub fn holds(&self, answer: &Answer<'_>, lookup: Lookup<'_>) -> bool {
        self.clauses.iter().all(|clause| clause.holds(answer, lookup))
    }

    /// Returns true if the condition can hold only after failures of this class.
    pub fn requires_class(&self, required: FailureClass) -> bool {
        self.clauses.iter().any(|clause| {
            clause.key.is_failure_class()
                && clause.operator == Operator::Equal
                && class(&clause.literal) == required.as_str()
        })
    }

    /// Returns true if the condition can hold after a stage with the status `retry`, but not after one with the status `fail`.
    pub fn waits_for_retry(&self) -> bool {
        let admits = |status: Status| {
            let mut clauses = self.clauses.iter().filter(|clause| clause.key.is_outcome());
            clauses.all(|clause| clause.admits(status.as_str()))
        };
        admits(Status::Retry) && !admits(Status::Fail)
    }

    /// True if a clause reads the outcome's status.
    pub fn reads_outcome(&self) -> bool {
        self.clauses.iter().any(|clause| clause.key.is_outcome())
    }
}

impl Clause {
    fn holds(&self, answer: &Answer<'_>, lookup: Lookup<'_>) -> bool {
        self.admits(&self.value(answer, lookup))
    }

    /// Returns the value that the clause reads, as text. Empty if there is no value.
    pub fn value(&self, answer: &Answer<'_>, lookup: Lookup<'_>) -> String {
        self.key.resolve(answer, lookup)
    }

    /// Returns true if the clause holds for this value of its key.
    pub fn admits(&self, value: &str) -> bool {
        let is_equal = match self.key.is_failure_class() {
            true => class(value) == class(&self.literal),
            false => value == self.literal,
        };
        match self.operator {
            Operator::Equal => is_equal,
            Operator::NotEqual => !is_equal,
            Operator::Truthy => !value.is_empty() && value != "false",
        }
    }
}

/// Parses the text of a condition. Parsing ends at the first mistake, because a condition is only one line.
struct Reader<'a> {
    text: &'a str,
    at: usize,
    places: &'a SourceMap,
}

/// Operators of other engines that are words. They are refused by name (decision other-spellings).
const WORD_OPERATORS: [&str; 8] =
    ["contains", "matches", "startswith", "starts_with", "endswith", "ends_with", "in", "not"];

const OPERATORS: &str = "write `key=value` or `key!=value`, joined by `&&`";

impl<'a> Reader<'a> {
    fn clause(&mut self) -> Result<Clause, Diagnostic> {
        self.space();
        let start = self.at;
        let key = self.key()?;
        self.space();
        let operator = self.operator()?;
        self.space();
        let begin = self.at;
        let literal = if operator == Operator::Truthy { Text::default() } else { self.literal(&key)? };
        let [span, literal_span] = [start, begin].map(|start| self.places.span(start..self.at));
        let foreign = OTHER_STATUSES.iter().find(|(theirs, _)| key.is_outcome() && *theirs == literal);
        let is_foreign = foreign.is_some();
        let literal = foreign.map_or(literal, |(_, status)| Text::new_static(status.as_str()));
        Ok(Clause { key, operator, literal, is_foreign, span, literal_span })
    }

    fn key(&mut self) -> Result<ConditionKey, Diagnostic> {
        let start = self.at;
        let key = self.take_while(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.'));
        if key.is_empty() {
            return Err(self.no_key());
        }
        ConditionKey::parse(key).ok_or_else(|| {
            let message =
                format!("invalid key `{key}`: expected `outcome`, `preferred_label` or `context.` and a name");
            self.error(message, start..self.at)
        })
    }

    fn no_key(&self) -> Diagnostic {
        let here = self.next_char();
        match self.rest().chars().next() {
            None if self.at == 0 => self.error("the condition is empty", here),
            None => self.error("expected a comparison after `&&`, found the end of the condition", here),
            Some('!') => self
                .error("unexpected `!` before a key", here)
                .with_help("compare with `!=`, such as `context.ready!=true`"),
            Some('(' | ')') => self.error("a condition must not contain parentheses", here).with_help(OPERATORS),
            Some('$') => self
                .error("unexpected `$` before a key", here)
                .with_help("write the key without `$`, such as `context.ready=true`"),
            Some(found) => {
                self.error(format!("expected `outcome`, `preferred_label` or a context key, found `{found}`"), here)
            }
        }
    }

    fn operator(&mut self) -> Result<Operator, Diagnostic> {
        let rest = self.rest();
        if rest.is_empty() || rest.starts_with(['&', '|']) {
            return Ok(Operator::Truthy);
        }
        if rest.starts_with('=') && !rest.starts_with("==") && !rest.starts_with("=~") {
            self.at += 1;
            return Ok(Operator::Equal);
        }
        for (written, instead) in [("===", "="), ("==", "="), ("!==", "!="), ("<>", "!=")] {
            if rest.starts_with(written) {
                let message = format!("unknown operator `{written}`: expected `{instead}`");
                let diagnostic = self.error(message, self.at..self.at + written.len());
                return Err(self.fixed(diagnostic.with_help(format!("write `{instead}`")), instead));
            }
        }
        if rest.starts_with("!=") {
            self.at += 2;
            return Ok(Operator::NotEqual);
        }
        Err(self.no_operator())
    }

    fn no_operator(&self) -> Diagnostic {
        let rest = self.rest();
        if let Some(written) = ["<=", ">=", "=~", "<", ">", "~"].into_iter().find(|written| rest.starts_with(written)) {
            let range = self.at..self.at + written.len();
            return self
                .error(format!("unknown operator `{written}`: a condition can only compare for equality"), range)
                .with_help(
                    "set a context key in the stage that knows the number, and compare it: `context.enough=true`",
                );
        }
        let word: String = rest.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
        match word.as_str() {
            "and" | "AND" => self.wrong_conjunction(word.len()),
            "or" | "OR" => self.no_or(word.len()),
            "" => {
                self.error(format!("expected `=` or `!=`, found `{}`", &self.text[self.next_char()]), self.next_char())
            }
            word if WORD_OPERATORS.contains(&word.to_lowercase().as_str()) => self
                .error(
                    format!("unknown operator `{word}`: a condition can only compare for equality"),
                    self.at..self.at + word.len(),
                )
                .with_help(
                    "let a tool stage search the text, such as `tool_command=\"grep -q READY notes.md\"`, and compare its `outcome`",
                ),
            _ => self
                .error(format!("expected `=`, `!=` or `&&`, found `{word}`"), self.at..self.at + word.len())
                .with_help(OPERATORS),
        }
    }

    /// Reports a word of this length that is used in place of `&&`.
    fn wrong_conjunction(&self, length: usize) -> Diagnostic {
        let word = &self.text[self.at..self.at + length];
        let message = format!("expected `&&` between comparisons, found `{word}`");
        self.fixed(self.error(message, self.at..self.at + length).with_help("write `&&`"), "&&")
    }

    fn no_or(&self, length: usize) -> Diagnostic {
        let range = self.at..self.at + length;
        self.error("a condition must not contain `or`", range)
            .with_help("add a second edge to the same node, with the other condition")
    }

    fn literal(&mut self, key: &ConditionKey) -> Result<Text, Diagnostic> {
        self.space();
        let start = self.at;
        let rest = self.rest();
        if rest.starts_with('"') {
            return self.quoted().map(Text::from);
        }
        let text = self.take_while(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b':' | b'-'));
        if text.is_empty() {
            return Err(self.no_literal(key));
        }
        if let Some(found) = self.rest().chars().next().filter(|c| !c.is_whitespace() && !matches!(c, '&' | '|')) {
            let end = start + self.text[start..].find([' ', '&', '|']).unwrap_or(self.text.len() - start);
            let value = &self.text[start..end];
            let message = format!("a value that contains `{found}` must be quoted");
            let help = match found {
                ',' => "compare with one value, and add a second edge to the same node for the other value".to_owned(),
                _ => format!("write `{key}=\\\"{value}\\\"`; the quotes need escapes inside the attribute"),
            };
            return Err(self.error(message, self.next_char()).with_help(help));
        }
        // `BareLiteral` or `Integer` in the grammar (spec §10.2).
        let digits = text.strip_prefix('-').unwrap_or(text);
        let is_number = !digits.is_empty() && digits.bytes().all(|digit| digit.is_ascii_digit());
        match is_number || text.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_') {
            true => Ok(text.into()),
            false => Err(self.not_bare(key, start)),
        }
    }

    fn not_bare(&self, key: &ConditionKey, start: usize) -> Diagnostic {
        let text = &self.text[start..self.at];
        let message =
            format!("`{text}` needs quotes: a bare value must be a whole number, or begin with a letter or `_`");
        let diagnostic = self.error(message, start..self.at);
        let quoted = format!("\\\"{text}\\\"");
        self.fixed(diagnostic.with_help(format!("write `{key}={quoted}`")), &quoted)
    }

    fn no_literal(&self, key: &ConditionKey) -> Diagnostic {
        let here = self.next_char();
        match self.rest().chars().next() {
            None | Some('&' | '|') => self
                .error(format!("expected a value to compare `{key}` with"), here)
                .with_help(format!("write `{key}=\\\"\\\"` to compare with an empty value")),
            Some('\'') => self
                .error("a value must be bare or in double quotes", here)
                .with_help(format!("write `{key}=value`, or `{key}=\\\"two words\\\"`")),
            Some(found) => self.error(format!("expected a value to compare `{key}` with, found `{found}`"), here),
        }
    }

    fn quoted(&mut self) -> Result<String, Diagnostic> {
        let start = self.at;
        let mut value = String::new();
        let mut chars = self.text[start + 1..].char_indices();
        while let Some((offset, c)) = chars.next() {
            match c {
                '"' => {
                    self.at = start + 1 + offset + 1;
                    return Ok(value);
                }
                '\\' => match chars.next() {
                    Some((_, 'n')) => value.push('\n'),
                    Some((_, 't')) => value.push('\t'),
                    Some((_, escaped)) => value.push(escaped),
                    None => break,
                },
                _ => value.push(c),
            }
        }
        Err(self.error("the value's closing quote is missing", start..self.text.len()))
    }

    /// Skips `&&`. Returns false at the end of the text.
    fn conjunction(&mut self) -> Result<bool, Diagnostic> {
        self.space();
        let rest = self.rest();
        if rest.is_empty() {
            return Ok(false);
        }
        if rest.starts_with("&&") {
            self.at += 2;
            return Ok(true);
        }
        if rest.starts_with("||") {
            return Err(self.no_or(2));
        }
        if rest.starts_with('&') {
            return Err(self.wrong_conjunction(1));
        }
        if rest.starts_with('|') {
            return Err(self.no_or(1));
        }
        Err(self.no_conjunction())
    }

    fn too_many_clauses(&self) -> Diagnostic {
        let message = format!("the condition has more than {CLAUSES_MAX} comparisons");
        self.error(message, self.at - 2..self.at).with_help("compare with one value that an earlier stage computed")
    }

    fn no_conjunction(&self) -> Diagnostic {
        let word: String = self.rest().chars().take_while(|c| !c.is_whitespace()).collect();
        match word.as_str() {
            "and" | "AND" => self.wrong_conjunction(word.len()),
            "or" | "OR" => self.no_or(word.len()),
            _ => self
                .error(
                    format!("expected `&&` or the end of the condition, found `{word}`"),
                    self.at..self.at + word.len(),
                )
                .with_help("put a value with spaces in escaped quotes: `preferred_label=\\\"Try again\\\"`"),
        }
    }

    /// Reads ASCII characters while `wanted` accepts them.
    fn take_while(&mut self, wanted: impl Fn(u8) -> bool) -> &'a str {
        let rest = self.rest();
        let length = rest.bytes().take_while(|byte| byte.is_ascii() && wanted(*byte)).count();
        self.at += length;
        &rest[..length]
    }

    fn space(&mut self) {
        let rest = self.rest();
        if !rest.as_bytes().first().is_some_and(u8::is_ascii_graphic) {
            self.at += rest.len() - rest.trim_start().len();
        }
    }

    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    /// Returns the range of the next character. Empty at the end.
    fn next_char(&self) -> std::ops::Range<usize> {
        let length = self.rest().chars().next().map_or(0, char::len_utf8);
        self.at..self.at + length
    }

    fn error(&self, message: impl Into<String>, range: std::ops::Range<usize>) -> Diagnostic {
        Diagnostic::error("condition_syntax", message, self.places.span(range))
    }

    /// Adds a fix that replaces the text of the finding, if the span of that text is exact.
    fn fixed(&self, diagnostic: Diagnostic, replacement: &str) -> Diagnostic {
        let span = diagnostic.span;
        if self.places.exact() { diagnostic.with_fix(span, replacement) } else { diagnostic }
    }
}
