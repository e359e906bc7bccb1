//! A question to a person: its type, its choices, and the valid answers.
//!
//! An answer is untrusted text. Unless the question takes free text, or yes and no, the answer is valid only if it
//! names one choice by key, label or target. Similar texts do not match, and an invalid answer never selects the first
//! choice (decision choices-name-label-and-target).

use crate::NodeId;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Maximum length of a free-text answer, in bytes.
pub const ANSWER_BYTES_MAX: usize = 16 * 1024;

/// The kind of answer that a question expects (spec §6.2).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum QuestionType {
    /// One of the choices.
    #[default]
    MultipleChoice,
    /// Yes or no.
    YesNo,
    /// Any text.
    Freeform,
    /// A confirmation of the next step. If there is no choice for "no", the answer "no" fails the gate.
    Confirmation,
}

/// The values of `human.type`.
pub const QUESTION_TYPES: &[(&str, QuestionType)] = &[
    ("multiple_choice", QuestionType::MultipleChoice),
    ("yes_no", QuestionType::YesNo),
    ("freeform", QuestionType::Freeform),
    ("confirmation", QuestionType::Confirmation),
];

impl QuestionType {
    /// Returns the name used in files.
    pub fn as_str(self) -> &'static str {
        QUESTION_TYPES.iter().find(|(_, kind)| *kind == self).map_or("", |(word, _)| word)
    }

    /// Returns true if the question can be answered with yes or no.
    pub fn takes_yes_or_no(self) -> bool {
        matches!(self, Self::YesNo | Self::Confirmation)
    }
}

/// One choice: an outgoing edge of the gate.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Choice {
    /// The accelerator key, in upper case.
    pub key: String,
    /// The label as written, including the accelerator.
    pub label: String,
    /// The target of the edge.
    pub to: NodeId,
    /// True if the gate fails when this choice is made.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub declines: bool,
}

impl Choice {
    /// Creates the choice for an edge with this label.
    pub fn new(label: &str, to: NodeId) -> Self {
        Self { key: accelerator(label).0, label: label.to_owned(), to, declines: false }
    }

    /// Returns the label without its accelerator.
    pub fn shown(&self) -> &str {
        accelerator(&self.label).1
    }
}

/// An answer to a question.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// One of the choices.
    Choice(Choice),
    /// The answer "no" to a confirmation that has no choice for it.
    No,
    /// Free text, which is recorded separately.
    Text,
}

/// Why an answer is not valid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AnswerError {
    /// The answer names no choice.
    #[error("`{value}` is not an answer to this question, expected {expected}")]
    Unknown {
        /// The given answer, in one line.
        value: String,
        /// The valid answers.
        expected: String,
    },
    /// The answer names several choices.
    #[error("`{value}` names more than one choice, expected a whole label: {expected}")]
    Ambiguous {
        /// The given answer, in one line.
        value: String,
        /// The valid answers.
        expected: String,
    },
    /// The free text is empty.
    #[error("the answer is empty, expected text")]
    Empty,
    /// The free text is too long.
    #[error("the answer has {0} bytes, expected at most {ANSWER_BYTES_MAX}")]
    TooLong(usize),
}

/// The type and the choices of a question, which determine the valid answers.
#[derive(Debug, Clone, Copy)]
pub struct Answers<'a> {
    /// Type of the question.
    pub kind: QuestionType,
    /// Choices in file order.
    pub choices: &'a [Choice],
}

impl Answers<'_> {
    /// Parses an answer.
    pub fn read(&self, value: &str) -> Result<Answer, AnswerError> {
        if value.len() > ANSWER_BYTES_MAX {
            return Err(AnswerError::TooLong(value.len()));
        }
        let value = value.trim();
        if self.kind == QuestionType::Freeform {
            return if value.is_empty() { Err(AnswerError::Empty) } else { Ok(Answer::Text) };
        }
        let named = |matches: &dyn Fn(&Choice) -> bool| -> Vec<&Choice> {
            self.choices.iter().filter(|choice| matches(choice)).collect()
        };
        let words = normalized(value);
        let found = [
            named(&|choice| choice.to == *value),
            named(&|choice| normalized(&choice.label) == words),
            named(&|choice| choice.key.eq_ignore_ascii_case(value)),
        ];
        match found.iter().find(|found| !found.is_empty()).map(Vec::as_slice) {
            Some([one]) => Ok(Answer::Choice((*one).clone())),
            Some(_) => Err(AnswerError::Ambiguous { value: one_line(value), expected: self.expected() }),
            None => self
                .yes_or_no(&words)
                .ok_or_else(|| AnswerError::Unknown { value: one_line(value), expected: self.expected() }),
        }
    }

    /// Returns the answer that approves: "yes" if the question takes it, otherwise the first choice that does not
    /// decline (spec §6.4). `None` if there is no such choice.
    pub fn approval(&self) -> Option<Answer> {
        match self.kind {
            QuestionType::Freeform => Some(Answer::Text),
            kind if kind.takes_yes_or_no() => self.yes_or_no("yes"),
            _ => self.choices.iter().find(|choice| !choice.declines).cloned().map(Answer::Choice),
        }
    }

    /// Describes the valid answers, for a message.
    pub fn expected(&self) -> String {
        if self.kind == QuestionType::Freeform {
            return "any text".to_owned();
        }
        let listed: Vec<String> =
            self.choices.iter().map(|choice| format!("`{}` ({})", choice.key, one_line(choice.shown()))).collect();
        let no = if self.kind == QuestionType::Confirmation && self.choices.len() < 2 { " or `no`" } else { "" };
        format!("{}{no}", listed.join(", "))
    }

    fn yes_or_no(&self, word: &str) -> Option<Answer> {
        let is_yes = match word {
            "yes" | "y" | "true" => true,
            "no" | "n" | "false" => false,
            _ => return None,
        };
        if !self.kind.takes_yes_or_no() {
            return None;
        }
        let refuses = |choice: &Choice| choice.declines || is_refusal(&choice.label);
        let no = self.choices.iter().position(refuses).or((self.choices.len() > 1).then_some(1));
        let wanted = if is_yes { (0..self.choices.len()).find(|index| Some(*index) != no) } else { no };
        match wanted.and_then(|index| self.choices.get(index)) {
            Some(choice) => Some(Answer::Choice(choice.clone())),
            None if !is_yes && self.kind == QuestionType::Confirmation => Some(Answer::No),
            None => None,
        }
    }
}

/// Splits a label into its accelerator and the rest: `[K] Label`, `K) Label`, `K - Label`, or the first character (spec §4.6).
pub fn accelerator(label: &str) -> (String, &str) {
    let label = label.trim();
    if let Some((key, rest)) = label.strip_prefix('[').and_then(|label| label.split_once(']')) {
        let is_key = (1..=3).contains(&key.chars().count()) && key.chars().all(char::is_alphanumeric);
        if is_key && !rest.trim().is_empty() {
            return (key.to_uppercase(), rest.trim());
        }
    }
    let mut characters = label.chars();
    let first = characters.next().filter(|first| first.is_alphanumeric());
    if let Some(key) = first {
        let rest = characters.as_str();
        if let Some(rest) = rest.strip_prefix(") ").or_else(|| rest.strip_prefix(" - ")) {
            return (key.to_uppercase().collect(), rest.trim());
        }
    }
    let key = label.chars().find(|character| character.is_alphanumeric());
    (key.map(|key| key.to_uppercase().collect()).unwrap_or_default(), label)
}

fn is_refusal(label: &str) -> bool {
    ["no", "cancel", "reject", "deny", "decline", "abort", "stop"].contains(&normalized(label).as_str())
}

fn normalized(label: &str) -> String {
    accelerator(label).1.to_lowercase()
}

fn one_line(text: &str) -> String {
    text.chars().take(80).collect::<String>().escape_debug().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn choices(labels: &[&str]) -> Vec<Choice> {
        let of = |label: &&str| Choice::new(label, accelerator(label).1.to_lowercase().replace(' ', "_").into());
        labels.iter().map(of).collect()
    }

    fn read(kind: QuestionType, labels: &[&str], value: &str) -> Result<String, String> {
        let choices = choices(labels);
        match (Answers { kind, choices: &choices }).read(value) {
            Ok(Answer::Choice(choice)) => Ok(choice.shown().to_owned()),
            Ok(other) => Ok(format!("{other:?}")),
            Err(error) => Err(error.to_string()),
        }
    }

    #[test]
    fn accelerators_have_four_spellings() {
        for (label, key, rest) in [
            ("[Y] Yes, deploy", "Y", "Yes, deploy"),
            ("y) Yes, deploy", "Y", "Yes, deploy"),
            ("Y - Yes, deploy", "Y", "Yes, deploy"),
            ("Yes, deploy", "Y", "Yes, deploy"),
            ("[OK] Go", "OK", "Go"),
            ("[a b] Go", "A", "[a b] Go"),
            ("", "", ""),
        ] {
            assert_eq!(accelerator(label), (key.to_owned(), rest), "{label}");
        }
    }

    #[test]
    fn an_answer_names_one_choice_or_does_not_count() {
        let many = QuestionType::MultipleChoice;
        for value in ["s", "S", "ship it", " Ship It ", "[S] Ship it", "ship_it"] {
            assert_eq!(read(many, &["[S] Ship it", "Fix"], value), Ok("Ship it".to_owned()), "{value}");
        }
        let wrong = read(many, &["[S] Ship it", "Fix"], "maybe\n").unwrap_err();
        assert_eq!(wrong, "`maybe` is not an answer to this question, expected `S` (Ship it), `F` (Fix)");
        assert!(read(many, &["Retry", "Reject"], "r").unwrap_err().contains("more than one"));
        assert_eq!(read(many, &["Retry", "Reject"], "reject"), Ok("Reject".to_owned()));
        assert!(read(many, &["Ship", "Fix"], "yes").is_err(), "only questions of yes and no take the words");
        assert!(read(many, &["Ship", "Fix"], "").is_err());
    }

    #[test]
    fn yes_and_no_find_their_choice_in_any_order() {
        let kind = QuestionType::YesNo;
        for labels in [["Yes", "No"], ["No", "Yes"]] {
            assert_eq!(read(kind, &labels, "y"), Ok("Yes".to_owned()));
            assert_eq!(read(kind, &labels, "no"), Ok("No".to_owned()));
        }
        assert_eq!(read(kind, &["[A] Approve", "[R] Reject"], "no"), Ok("Reject".to_owned()));
        assert_eq!(read(kind, &["Reject", "Approve"], "yes"), Ok("Approve".to_owned()));
        assert_eq!(read(QuestionType::Confirmation, &["Go"], "no"), Ok("No".to_owned()));
        assert_eq!(read(QuestionType::Confirmation, &["Go"], "yes"), Ok("Go".to_owned()));
        assert!(read(kind, &["Go"], "no").is_err());
    }

    #[test]
    fn a_free_text_is_bounded() {
        assert_eq!(read(QuestionType::Freeform, &[], "anything"), Ok("Text".to_owned()));
        assert!(read(QuestionType::Freeform, &[], " \n").unwrap_err().contains("empty"));
        assert!(read(QuestionType::Freeform, &[], &"x".repeat(ANSWER_BYTES_MAX + 1)).unwrap_err().contains("at most"));
    }
}
