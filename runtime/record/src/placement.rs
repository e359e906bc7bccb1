//! What the machine of a stage must have, and what a machine has.
//!
//! A [`Need`] narrows the machines on which a stage may run. It grants nothing: a machine that has everything may still refuse
//! the stage. Labels are what the operator of a machine says about it; architecture, tier and programs are found out on the
//! machine. The text form is that of the attribute `runs_on`, such as `gpu, arch=arm64, program=cargo`. This module probes nothing.

use crate::Tier;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::ops::Range;
use std::str::FromStr;

/// Maximum length of a label and of the name of a program, bytes.
pub const LABEL_BYTES_MAX: usize = 63;
/// Maximum number of entries in one text.
pub const ENTRIES_MAX: usize = 16;

/// A word that the operator of a machine gives it, such as `gpu`: 1 to [`LABEL_BYTES_MAX`] bytes of `a-z`, `0-9`, `-`, `_` and
/// `.`, of which the first is a letter or a digit. Names of architectures and tiers are not labels.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String", inline)]
pub struct Label(String);

impl Label {
    /// Returns the label as written.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for Label {
    type Err = NeedFault;

    fn from_str(text: &str) -> Result<Self, NeedFault> {
        if let Some(arch) = Arch::parse(text) {
            return Err(NeedFault::Meant { text: text.to_owned(), entry: format!("arch={arch}") });
        }
        if let Some(tier) = confining(text) {
            return Err(NeedFault::Meant { text: text.to_owned(), entry: format!("tier={tier}") });
        }
        let is_inner = |byte: u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.');
        let is_first = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
        let is_label = text.len() <= LABEL_BYTES_MAX && text.bytes().all(is_inner);
        match is_label && text.as_bytes().first().is_some_and(is_first) {
            true => Ok(Self(text.to_owned())),
            false => Err(NeedFault::Label(text.chars().take(LABEL_BYTES_MAX + 1).collect())),
        }
    }
}

impl TryFrom<String> for Label {
    type Error = NeedFault;

    fn try_from(text: String) -> Result<Self, NeedFault> {
        text.parse()
    }
}

impl From<Label> for String {
    fn from(label: Label) -> Self {
        label.0
    }
}

impl fmt::Display for Label {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The name of a program, such as `cargo`: 1 to [`LABEL_BYTES_MAX`] bytes of letters, digits, `-`, `_`, `.` and `+`, of which the
/// first is a letter, a digit or `_`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String", inline)]
pub struct ProgramName(String);

impl ProgramName {
    /// Returns the name, which contains no folder.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for ProgramName {
    type Err = NeedFault;

    fn from_str(text: &str) -> Result<Self, NeedFault> {
        let is_inner = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'+');
        let is_first = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
        let is_name = text.len() <= LABEL_BYTES_MAX && text.bytes().all(is_inner);
        match is_name && text.as_bytes().first().is_some_and(is_first) {
            true => Ok(Self(text.to_owned())),
            false => Err(NeedFault::Program(text.chars().take(LABEL_BYTES_MAX + 1).collect())),
        }
    }
}

impl TryFrom<String> for ProgramName {
    type Error = NeedFault;

    fn try_from(text: String) -> Result<Self, NeedFault> {
        text.parse()
    }
}

impl From<ProgramName> for String {
    fn from(name: ProgramName) -> Self {
        name.0
    }
}

impl fmt::Display for ProgramName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The architecture of a machine's processor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
pub enum Arch {
    /// 64-bit x86, also called amd64.
    #[serde(rename = "x86_64")]
    X86,
    /// 64-bit ARM, also called arm64.
    #[serde(rename = "aarch64")]
    Arm,
}

impl Arch {
    /// Returns the name in records and output, which is also that of Rust and of `uname`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::X86 => "x86_64",
            Self::Arm => "aarch64",
        }
    }

    /// Parses a name: `x86_64` or `amd64`, `aarch64` or `arm64`. `None` for any other text.
    pub fn parse(name: &str) -> Option<Self> {
        match name {
            "x86_64" | "amd64" => Some(Self::X86),
            "aarch64" | "arm64" => Some(Self::Arm),
            _ => None,
        }
    }
}

impl fmt::Display for Arch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What the machine of a stage must have. The default is nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "Vec<String>", into = "Vec<String>")]
#[schemars(with = "Vec<String>", inline)]
pub struct Need {
    /// The machine has all of these labels.
    pub labels: BTreeSet<Label>,
    /// The machine has this architecture. `None` for any.
    pub arch: Option<Arch>,
    /// The machine confines commands in this tier or a stronger one. `None` for any.
    pub tier: Option<Tier>,
    /// Commands find all of these programs on the machine.
    pub programs: BTreeSet<ProgramName>,
}

/// Two architectures, which no machine has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ArchConflict(pub Arch, pub Arch);

impl fmt::Display for ArchConflict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`arch={}` and `arch={}`", self.0, self.1)
    }
}

/// What is wrong with a text, and where.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{fault}")]
pub struct NeedError {
    /// The byte range of the entry in the text. Empty for a missing entry.
    pub range: Range<usize>,
    /// What is wrong.
    pub fault: NeedFault,
}

/// What is wrong with an entry of a need, or with a label.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NeedFault {
    /// Nothing stands between two commas.
    #[error("an entry is empty")]
    Empty,
    /// There are more entries than [`ENTRIES_MAX`].
    #[error("there are more than {ENTRIES_MAX} entries")]
    TooMany,
    /// The text is not a label.
    #[error(
        "`{0}` is not a label: 1 to {LABEL_BYTES_MAX} characters of a-z, 0-9, `-`, `_` and `.` are expected, the first a letter or a digit"
    )]
    Label(String),
    /// The text is the name of an architecture or of a tier, which no label can have.
    #[error("`{text}` is not a label: `{entry}` is expected")]
    Meant {
        /// The text.
        text: String,
        /// The entry that its author probably means.
        entry: String,
    },
    /// The key before `=` is unknown.
    #[error("unknown key `{0}`: `arch`, `program` or `tier` is expected")]
    Key(String),
    /// The value of `program` is not the name of one.
    #[error(
        "`{0}` is not the name of a program: 1 to {LABEL_BYTES_MAX} letters, digits, `-`, `_`, `.` and `+` are expected, without a folder"
    )]
    Program(String),
    /// The value of `arch` is unknown.
    #[error("unknown architecture `{0}`: `x86_64` or `aarch64` is expected")]
    Arch(String),
    /// The value of `tier` is unknown.
    #[error("unknown tier `{0}`: `full`, `bwrap` or `landlock` is expected")]
    Tier(String),
    /// Two architectures are needed.
    #[error("no machine has both {0}")]
    ArchConflict(ArchConflict),
}

impl Need {
    /// Parses entries that are separated by commas, with optional white space around them. An empty text is no need. Of two
    /// tiers, the stronger one is needed.
    ///
    /// # Errors
    ///
    /// Returns the first entry that is wrong.
    pub fn parse(text: &str) -> Result<Self, NeedError> {
        let mut need = Self::default();
        if text.trim().is_empty() {
            return Ok(need);
        }
        let mut offset = 0;
        for (index, written) in text.split(',').enumerate() {
            let entry = written.trim();
            let start = offset + (written.len() - written.trim_start().len());
            offset += written.len() + 1;
            let added = if index < ENTRIES_MAX { need.add(entry) } else { Err(NeedFault::TooMany) };
            added.map_err(|fault| NeedError { range: start..start + entry.len(), fault })?;
        }
        Ok(need)
    }

    /// Adds one entry: a label, `arch=VALUE`, `program=NAME` or `tier=VALUE`. Of two tiers, the stronger one is needed.
    ///
    /// # Errors
    ///
    /// Fails for anything else, and for a second architecture. Then the need is as before.
    pub fn add(&mut self, entry: &str) -> Result<(), NeedFault> {
        let Some((key, value)) = entry.split_once('=') else {
            let label = if entry.is_empty() { Err(NeedFault::Empty) } else { entry.parse() };
            self.labels.insert(label?);
            return Ok(());
        };
        let (key, value) = (key.trim(), value.trim());
        match key {
            "arch" => {
                let arch = Arch::parse(value).ok_or_else(|| NeedFault::Arch(value.to_owned()))?;
                self.arch = one_arch(self.arch, Some(arch)).map_err(NeedFault::ArchConflict)?;
            }
            "tier" => {
                let tier = confining(value).ok_or_else(|| NeedFault::Tier(value.to_owned()))?;
                self.tier = self.tier.max(Some(tier));
            }
            "program" => drop(self.programs.insert(value.parse()?)),
            _ => return Err(NeedFault::Key(key.to_owned())),
        }
        Ok(())
    }

    /// Returns true if every machine has what is needed.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Returns what both needs ask for together.
    ///
    /// # Errors
    ///
    /// Fails if they need two architectures, which no machine has.
    pub fn and(&self, other: &Self) -> Result<Self, ArchConflict> {
        Ok(Self {
            labels: self.labels.union(&other.labels).cloned().collect(),
            arch: one_arch(self.arch, other.arch)?,
            tier: self.tier.max(other.tier),
            programs: self.programs.union(&other.programs).cloned().collect(),
        })
    }

    /// Returns the entries in a fixed order: the labels by name, `arch=`, `tier=`, and `program=` by name. Equal needs have equal
    /// entries.
    pub fn entries(&self) -> Vec<String> {
        let arch = self.arch.map(|arch| format!("arch={arch}"));
        let tier = self.tier.map(|tier| format!("tier={tier}"));
        let programs = self.programs.iter().map(|program| format!("program={program}"));
        self.labels.iter().map(ToString::to_string).chain(arch).chain(tier).chain(programs).collect()
    }
}

/// Returns the architecture that both need. `None` if neither needs one.
fn one_arch(one: Option<Arch>, other: Option<Arch>) -> Result<Option<Arch>, ArchConflict> {
    match (one, other) {
        (Some(one), Some(other)) if one != other => Err(ArchConflict(one, other)),
        _ => Ok(one.or(other)),
    }
}

fn confining(name: &str) -> Option<Tier> {
    Tier::parse(name).filter(|tier| Tier::CONFINING.contains(tier))
}

impl fmt::Display for Need {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.entries().join(", "))
    }
}

impl TryFrom<Vec<String>> for Need {
    type Error = NeedFault;

    fn try_from(entries: Vec<String>) -> Result<Self, NeedFault> {
        let mut need = Self::default();
        entries.iter().try_for_each(|entry| need.add(entry))?;
        Ok(need)
    }
}

impl From<Need> for Vec<String> {
    fn from(need: Need) -> Self {
        need.entries()
    }
}

/// What a machine has. The default is nothing, so that it lacks whatever a stage needs.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MachineFacts {
    /// The labels that its operator gives it.
    pub labels: BTreeSet<Label>,
    /// The architecture of its processor. `None` for one that no need can name.
    pub arch: Option<Arch>,
    /// The tier in which it confines commands. `None` without a sandbox.
    pub tier: Option<Tier>,
    /// Whether commands find a program, for each program that was looked for.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub programs: BTreeMap<ProgramName, bool>,
}

impl MachineFacts {
    /// Returns the programs of a need that were not looked for on the machine.
    pub fn unknown(&self, need: &Need) -> BTreeSet<ProgramName> {
        need.programs.iter().filter(|program| !self.programs.contains_key(*program)).cloned().collect()
    }

    /// Returns what the machine lacks of a need: labels by name, the architecture, the tier, and programs by name. Empty if the
    /// machine has everything. It lacks a program that was not looked for.
    pub fn lacking(&self, need: &Need) -> Vec<Lack> {
        let labels = need.labels.difference(&self.labels).cloned().map(Lack::Label);
        let arch = need.arch.filter(|arch| self.arch != Some(*arch));
        let arch = arch.map(|needed| Lack::Arch { needed, found: self.arch });
        let tier = need.tier.filter(|tier| self.tier < Some(*tier));
        let tier = tier.map(|needed| Lack::Tier { needed, found: self.tier });
        let programs = need.programs.iter().filter(|program| self.programs.get(*program) != Some(&true));
        labels.chain(arch).chain(tier).chain(programs.cloned().map(Lack::Program)).collect()
    }
}

/// One thing that a stage needs and a machine does not have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Lack {
    /// A label.
    Label(Label),
    /// An architecture.
    Arch {
        /// The architecture that is needed.
        needed: Arch,
        /// The architecture of the machine.
        found: Option<Arch>,
    },
    /// A tier.
    Tier {
        /// The weakest tier that is accepted.
        needed: Tier,
        /// The tier of the machine.
        found: Option<Tier>,
    },
    /// A program.
    Program(ProgramName),
}

impl fmt::Display for Lack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Label(label) => write!(f, "label `{label}`"),
            Self::Program(program) => write!(f, "program `{program}`"),
            Self::Arch { needed, found: Some(found) } => write!(f, "arch `{needed}` (this machine is `{found}`)"),
            Self::Arch { needed, found: None } => write!(f, "arch `{needed}` (this machine is another one)"),
            Self::Tier { needed, found: Some(found) } => write!(f, "tier `{needed}` (this machine has `{found}`)"),
            Self::Tier { needed, found: None } => write!(f, "tier `{needed}` (commands run without a sandbox)"),
        }
    }
}
