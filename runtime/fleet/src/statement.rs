//! What the operator of a fleet says about one machine: it is admitted with these roles, or it is expelled.
//!
//! Statements about a machine are numbered from 1 without a gap, and each is signed by the operator. So nobody else can admit a
//! machine, and an older admission cannot be put after the statement that ended it.

use glovebox_record::{Label, Tier};
use glovebox_signing::envelope::{Broken, Envelope, PayloadType};
use glovebox_signing::key::{PublicKey, SigningKey};
use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

/// The version of the document.
const SCHEMA_VERSION: u32 = 1;
/// Maximum number of characters of a name.
const NAME_CHARS_MAX: usize = 63;
/// Maximum number of labels of a machine.
pub const LABELS_MAX: usize = 64;

/// What a machine, or the user of one, may do in a fleet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Begin runs: sign the first frame of a journal.
    Submit,
    /// Drive runs: sign every frame.
    Drive,
    /// Make attempts of stages that build.
    Build,
    /// Make attempts of stages that judge, with hold-outs in reach.
    Verify,
}

impl Role {
    /// Every role.
    pub const ALL: [Self; 4] = [Self::Submit, Self::Drive, Self::Build, Self::Verify];

    /// Returns the word for people, settings and JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Submit => "submit",
            Self::Drive => "drive",
            Self::Build => "build",
            Self::Verify => "verify",
        }
    }
}

impl FromStr for Role {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let known = Self::ALL.map(Self::as_str).join("`, `");
        Self::ALL.into_iter().find(|role| role.as_str() == text).ok_or_else(|| format!("expected `{known}`"))
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The name of a machine: 1 to 63 characters of `a-z`, `0-9`, `-`, `_` and `.`, the first a letter or a digit.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String")]
pub struct Word(String);

impl Word {
    /// Returns the text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for Word {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let is_inner =
            |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'-' | b'_' | b'.');
        let is_first = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
        let is_word = (1..=NAME_CHARS_MAX).contains(&text.len()) && text.bytes().all(is_inner);
        match is_word && text.as_bytes().first().is_some_and(is_first) {
            true => Ok(Self(text.to_owned())),
            false => Err(format!(
                "expected 1 to {NAME_CHARS_MAX} characters of a-z, 0-9, `-`, `_` and `.`, the first a letter or a digit"
            )),
        }
    }
}

impl TryFrom<String> for Word {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl From<Word> for String {
    fn from(word: Word) -> Self {
        word.0
    }
}

impl fmt::Display for Word {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A statement of the operator about one machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(title = "fleet-machine.json")]
pub struct Statement {
    /// Version of this document.
    schema_version: u32,
    /// Id of the fleet. The statement means nothing in another one.
    pub(crate) fleet: String,
    /// 1 for the first statement about the machine, one more for each later one.
    pub(crate) number: u64,
    /// The public key of the machine: `ed25519:` and 32 bytes in base64.
    #[schemars(with = "String")]
    pub machine: PublicKey,
    /// When the operator said it. It is shown and decides nothing: the place in the stream does.
    #[schemars(with = "String")]
    pub at: Timestamp,
    /// What the machine may do; null if it is expelled.
    pub admission: Option<Admission>,
}

/// What an admitted machine may do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Admission {
    /// The name of the machine, for people.
    pub name: Word,
    /// Its roles, at least one.
    pub may: BTreeSet<Role>,
    /// Labels that it may claim.
    pub labels: BTreeSet<Label>,
    /// The tier in which it must confine commands, at least; null if every tier will do.
    pub tier: Option<Tier>,
    /// The last day, in UTC, on which it is admitted; null for no end.
    #[schemars(with = "Option<String>")]
    pub until: Option<Date>,
}

impl Admission {
    /// Returns true if the admission has not ended at this time.
    pub fn is_valid_at(&self, time: Timestamp) -> bool {
        self.until.is_none_or(|until| time.to_zoned(TimeZone::UTC).date() <= until)
    }

    /// Returns true if the machine has one of these roles.
    pub fn has_any(&self, roles: &[Role]) -> bool {
        roles.iter().any(|role| self.may.contains(role))
    }
}

/// Why a statement does not count.
#[derive(Debug, thiserror::Error)]
pub enum StatementFault {
    /// The operator did not sign it.
    #[error("the operator did not sign it: {0}")]
    Broken(#[from] Broken),
    /// It is not of this form.
    #[error("it is no statement of this version: {0}")]
    Form(#[from] serde_json::Error),
    /// It has another version.
    #[error("it has version {0}, expected {SCHEMA_VERSION}")]
    Version(u32),
    /// It is about another machine or another fleet.
    #[error("it is about another {0}")]
    Other(&'static str),
    /// Its number is not the next one.
    #[error("it is number {found}, expected {expected}: an older statement was brought back, or one was removed")]
    Number {
        /// The number.
        found: u64,
        /// The number after that of the statement before.
        expected: u64,
    },
}

impl Statement {
    /// Creates the statement that follows number `last`; 0 if it is the first one.
    pub(crate) fn new(fleet: &str, machine: PublicKey, last: u64, admission: Option<Admission>) -> Self {
        let (fleet, at) = (fleet.to_owned(), Timestamp::now());
        Self { schema_version: SCHEMA_VERSION, fleet, number: last + 1, machine, at, admission }
    }

    /// Returns the message with the statement, signed by the operator.
    pub(crate) fn sign(&self, operator: &SigningKey) -> Result<String, serde_json::Error> {
        Ok(Envelope::sign(PayloadType::FLEET_MACHINE, &serde_json::to_vec(self)?, &[operator]).to_line())
    }

    /// Reads the statement that follows number `last`. The caller compares the machine and the fleet with what it expects.
    pub(crate) fn open(message: &[u8], operator: &PublicKey, last: u64) -> Result<Self, StatementFault> {
        let payload = Envelope::open(PayloadType::FLEET_MACHINE, message, operator)?;
        let found: Self = serde_json::from_slice(&payload)?;
        match (found.schema_version, found.number) {
            (SCHEMA_VERSION, number) if number == last + 1 => Ok(found),
            (SCHEMA_VERSION, found) => Err(StatementFault::Number { found, expected: last + 1 }),
            (version, _) => Err(StatementFault::Version(version)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(seed: u8) -> SigningKey {
        SigningKey::from_seed(&[seed; 32]).unwrap()
    }

    fn admission(until: Option<&str>) -> Admission {
        Admission {
            name: "builder-1".parse().unwrap(),
            may: [Role::Build, Role::Drive].into(),
            labels: ["gpu".parse().unwrap()].into(),
            tier: Some(Tier::Full),
            until: until.map(|date| date.parse().unwrap()),
        }
    }

    #[test]
    fn only_the_next_statement_of_the_operator_counts() {
        let (operator, other, machine) = (key(1), key(2), key(3).public());
        let statement = Statement::new("F", machine, 1, Some(admission(None)));
        let message = statement.sign(&operator).unwrap();
        let open = |operator: &SigningKey, last| Statement::open(message.as_bytes(), &operator.public(), last);
        assert_eq!(open(&operator, 1).unwrap(), statement);
        for last in [0, 2, 9] {
            let fault = open(&operator, last).unwrap_err();
            assert!(matches!(fault, StatementFault::Number { found: 2, .. }), "{fault}");
        }
        assert!(matches!(open(&other, 1), Err(StatementFault::Broken(Broken::OtherKey(..)))));
        // The same bytes as a document of another kind.
        let text = serde_json::to_vec(&statement).unwrap();
        let settings = Envelope::sign(PayloadType::FLEET, &text, &[&operator]).to_line();
        let fault = Statement::open(settings.as_bytes(), &operator.public(), 1).unwrap_err();
        assert!(matches!(fault, StatementFault::Broken(Broken::Type { .. })), "{fault}");
    }

    #[test]
    fn an_admission_ends_with_its_last_day() {
        for (time, expected) in [("2026-12-31T23:59:59Z", true), ("2027-01-01T00:00:00Z", false)] {
            assert_eq!(admission(Some("2026-12-31")).is_valid_at(time.parse().unwrap()), expected, "{time}");
            assert!(admission(None).is_valid_at(time.parse().unwrap()));
        }
        assert!(admission(None).has_any(&[Role::Verify, Role::Drive]));
        assert!(!admission(None).has_any(&[Role::Verify, Role::Submit]));
    }

    #[test]
    fn a_name_has_only_plain_characters() {
        for good in ["a", "gpu-1", "0.x_y", &"a".repeat(63)] {
            assert_eq!(good.parse::<Word>().unwrap().as_str(), good);
        }
        for bad in ["", "A", "-a", ".", "a b", "a\u{202e}", &"a".repeat(64)] {
            assert!(bad.parse::<Word>().is_err(), "{bad}");
        }
    }
}
