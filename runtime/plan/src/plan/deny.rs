//! Rules that refuse a plan, such as `run=cargo publish`, `write=.github/`, `reach=*` and `widened`.
//!
//! Pure. A rule is a keyword, or a keyword and a value. It refuses every capability that overlaps the value: a grant
//! above a path and a grant below the path both match. A shell text does not show with certainty what it runs. In
//! doubt, a rule about a command matches, and only `run=*` is certain to match all commands.

use super::capability::{Capability, CommandWords, MachineFolder, Region, narrower};
use super::capability_set::PlanCapabilities;
use super::compare::Addition;
use super::{Plan, ServerGrant};
use glovebox_pipeline::ir::NodeId;
use glovebox_pipeline::nearest::nearest;
use glovebox_record::network::{HostRule, HostRuleError};
use glovebox_record::scope::Entry;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// The expected value of `read`.
const EXPECTED_READ: &str = "a path such as `secrets/`";
/// The keywords with which a rule begins.
const WORDS: [&str; 8] = ["model", "network-full", "plugin", "reach", "read", "run", "widened", "write"];
/// The keywords that take no value.
const WORDS_ALONE: [&str; 3] = ["model", "network-full", "widened"];

/// Why a text is not a rule.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DenyError {
    /// The keyword is unknown.
    #[error(
        "`{0}` is not a rule: expected `run=`, `reach=`, `read=`, `write=`, `plugin=`, `model`, `network-full` or `widened`"
    )]
    Unknown(String),
    /// The keyword has no value.
    #[error("the rule `{rule}` needs a value: `{rule}=*` or `{rule}=` and {expected}")]
    Bare {
        /// The keyword.
        rule: String,
        /// The expected values.
        expected: &'static str,
    },
    /// The keyword takes no value, but has one.
    #[error("the rule `{0}` takes no value")]
    Alone(String),
    /// The value is not a valid path or host.
    #[error("the rule `{rule}`: {problem}")]
    Value {
        /// The rule as written.
        rule: String,
        /// What is wrong.
        problem: String,
    },
}

impl DenyError {
    /// Returns the known keyword that is most similar to an unknown one.
    pub fn help(&self) -> Option<String> {
        let Self::Unknown(text) = self else { return None };
        let (word, value) = text.split_once('=').map_or((text.as_str(), None), |(word, value)| (word, Some(value)));
        let nearest = nearest(word, WORDS)?;
        let meant = value
            .filter(|_| !WORDS_ALONE.contains(&nearest))
            .map_or(nearest.to_owned(), |value| format!("{nearest}={value}"));
        Some(format!("did you mean `{meant}`?"))
    }
}

/// A rule that refuses capabilities.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Deny {
    text: String,
    what: What,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum What {
    AnyCommand,
    Command(CommandWords),
    AnyHost,
    Host(HostRule),
    Read(Entry),
    Machine(MachineFolder),
    Write(Entry),
    AnyPlugin,
    Plugin(String),
    Model,
    FullNetwork,
    Widened,
}

/// A grant that a rule refuses.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Denied {
    /// The rule as written.
    pub rule: String,
    /// The node that has the grant. Absent if the run as a whole has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// The grant, such as `write src/`.
    pub grant: String,
    /// The origin of the grant.
    pub from: String,
}

/// A rule as written, in its parts.
#[derive(Clone, Copy)]
struct RuleText<'a> {
    text: &'a str,
    word: &'a str,
    value: Option<&'a str>,
}

impl<'a> RuleText<'a> {
    fn value(self, expected: &'static str) -> Result<&'a str, DenyError> {
        let value = self.value.filter(|value| !value.is_empty());
        value.ok_or_else(|| DenyError::Bare { rule: self.word.to_owned(), expected })
    }

    fn alone(self, what: What) -> Result<What, DenyError> {
        if self.value.is_none() { Ok(what) } else { Err(DenyError::Alone(self.word.to_owned())) }
    }

    fn path(self, expected: &'static str) -> Result<Entry, DenyError> {
        let path = self.value(expected)?;
        Entry::parse(if path == "*" { "./" } else { path }).map_err(|error| self.problem(&error))
    }

    fn host(self) -> Result<What, DenyError> {
        let host = self.value("a host such as `api.example.com`")?;
        if host == "*" {
            return Ok(What::AnyHost);
        }
        host.parse().map(What::Host).map_err(|error: HostRuleError| self.problem(&error))
    }

    fn problem(self, problem: &dyn fmt::Display) -> DenyError {
        DenyError::Value { rule: self.text.to_owned(), problem: problem.to_string() }
    }
}

impl Deny {
    /// Parses a rule.
    pub fn parse(text: &str) -> Result<Deny, DenyError> {
        let (word, value) = text.split_once('=').map_or((text, None), |(word, value)| (word, Some(value.trim())));
        let written = RuleText { text, word, value };
        let what = match word {
            "run" => match written.value("the first words of a command")? {
                "*" => What::AnyCommand,
                words => What::Command(CommandWords(words.split_whitespace().map(str::to_owned).collect())),
            },
            "reach" => written.host()?,
            "read" => match written.value(EXPECTED_READ)? {
                path if path.trim_end_matches('/').is_empty() => What::Machine(MachineFolder("/".to_owned())),
                path if path.starts_with('/') => What::Machine(MachineFolder(path.trim_end_matches('/').to_owned())),
                _ => What::Read(written.path(EXPECTED_READ)?),
            },
            "write" => What::Write(written.path("a path such as `src/`")?),
            "plugin" => match written.value("a plugin's name")? {
                "*" => What::AnyPlugin,
                name => What::Plugin(name.to_owned()),
            },
            "model" => written.alone(What::Model)?,
            "network-full" => written.alone(What::FullNetwork)?,
            "widened" => written.alone(What::Widened)?,
            _ => return Err(DenyError::Unknown(text.to_owned())),
        };
        Ok(Deny { text: text.to_owned(), what })
    }

    /// Returns true for `widened`, which needs another plan to compare with.
    pub fn needs_other(&self) -> bool {
        self.what == What::Widened
    }

    fn meets(&self, capability: &Capability) -> bool {
        match (&self.what, capability) {
            (_, Capability::ToolServer(_, grant) | Capability::ToolProvider(_, grant)) => self.meets_server(grant),
            (
                What::AnyCommand,
                Capability::Shell(_) | Capability::Hook(..) | Capability::Argv(_) | Capability::AnyCommand,
            )
            | (What::Command(_), Capability::AnyCommand)
            | (What::AnyHost, Capability::Reach(_) | Capability::FullNetwork)
            | (What::Host(_) | What::FullNetwork, Capability::FullNetwork)
            | (What::AnyPlugin, Capability::Plugin(_))
            | (What::Model, Capability::Model) => true,
            (What::Command(words), Capability::Shell(text) | Capability::Hook(_, text)) => words.is_in_shell(text),
            (What::Command(words), Capability::Argv(prefix)) => words.is_in_argv(&prefix.0),
            (What::Host(denied), Capability::Reach(host)) => denied.overlaps(host),
            (What::Read(denied), Capability::Read(region) | Capability::ReadHoldouts(region))
            | (What::Write(denied), Capability::Write(region)) => has_any(region, denied),
            (What::Write(denied), Capability::Scratch(entry) | Capability::Cache(entry)) => {
                narrower(denied, entry).is_some()
            }
            (What::Machine(denied), Capability::ReadMachine(folder)) => {
                folder.is_within(denied) || denied.is_within(folder)
            }
            (What::Plugin(denied), Capability::Plugin(name)) => denied == name,
            _ => false,
        }
    }
}

impl Deny {
    /// Returns true if the rule refuses a grant of a tool server or a tool provider.
    fn meets_server(&self, grant: &ServerGrant) -> bool {
        match (&self.what, grant) {
            (What::AnyCommand, ServerGrant::Start(_))
            | (What::AnyHost, ServerGrant::Reach(_) | ServerGrant::FullNetwork)
            | (What::Host(_) | What::FullNetwork, ServerGrant::FullNetwork) => true,
            (What::Command(words), ServerGrant::Start(command)) => words.is_in_argv(command),
            (What::Host(denied), ServerGrant::Reach(host)) => denied.overlaps(host),
            (What::Read(denied), ServerGrant::Read(entry)) => narrower(&denied.as_folder(), entry).is_some(),
            _ => false,
        }
    }
}

/// Returns every grant of a plan that a rule refuses, rule by rule. `additions` is what the plan allows and another plan does not.
pub fn denied(plan: &Plan, capabilities: &PlanCapabilities, rules: &[Deny], additions: &[Addition]) -> Vec<Denied> {
    let mut found: Vec<Denied> = Vec::new();
    let mut refuse = |rule: &Deny, node: Option<&NodeId>, capability: &Capability| {
        let denied = Denied {
            rule: rule.text.clone(),
            node: node.map(ToString::to_string),
            grant: capability.to_string(),
            from: plan.origin(node, capability).to_string(),
        };
        if !found.contains(&denied) {
            found.push(denied);
        }
    };
    for rule in rules {
        if rule.needs_other() {
            additions.iter().for_each(|more| refuse(rule, more.node.as_ref(), &more.capability));
            continue;
        }
        for (node, own) in &capabilities.nodes {
            own.iter().filter(|capability| rule.meets(capability)).for_each(|found| refuse(rule, Some(node), found));
        }
    }
    found
}

/// Returns true if any path at, above or below a denied path exists in the region.
fn has_any(region: &Region, denied: &Entry) -> bool {
    // A folder without a final slash also stands for its subtree.
    let subtree = denied.as_folder();
    narrower(&subtree, &region.entry).is_some_and(|common| !region.hides(common))
}

impl CommandWords {
    /// Returns true if a grant of commands with this prefix can run this command. Options are skipped in the comparison.
    fn is_in_argv(&self, prefix: &[String]) -> bool {
        fn plain(words: &[String]) -> impl Iterator<Item = &str> {
            let words = words.iter().map(|word| CommandWord(word)).enumerate();
            words.filter(|(at, word)| *at == 0 || !word.is_option()).map(|(_, word)| word.program())
        }
        plain(&self.0).zip(plain(prefix)).all(|(one, other)| one == other)
    }

    /// Returns true if these words occur in this order within one command of a shell text.
    fn is_in_shell(&self, text: &str) -> bool {
        let mut commands = text.split([';', '&', '|', '\n', '(', ')', '{', '}', '`']);
        let has_all = |command: &str| {
            let separates = |c: char| c.is_whitespace() || matches!(c, '"' | '\'' | '\\' | '<' | '>' | '$');
            let mut words = command.split(separates).filter(|word| !word.is_empty()).map(CommandWord);
            self.0.iter().all(|wanted| words.any(|word| word.program() == CommandWord(wanted).program()))
        };
        commands.any(has_all)
    }
}

/// One word of a command.
#[derive(Clone, Copy)]
struct CommandWord<'a>(&'a str);

impl<'a> CommandWord<'a> {
    fn is_option(self) -> bool {
        self.0.starts_with(['-', '+'])
    }

    /// Returns the name of a program without its folder.
    fn program(self) -> &'a str {
        self.0.rsplit('/').find(|name| !name.is_empty()).unwrap_or(self.0)
    }
}

#[cfg(test)]
mod tests;
