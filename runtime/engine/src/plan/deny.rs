//! Rules that refuse a plan: `run=cargo publish`, `write=.github/`, `reach=*`, `widened` and their like.
//!
//! Pure. A rule is a word, or a word and a value. It refuses every capability that overlaps the value: a grant above a path and a
//! grant below it both match. What a shell text does cannot be read from it with certainty. A rule about a command therefore
//! matches more texts rather than fewer, and only `run=*` matches all.

use super::Plan;
use super::capability::{Capability, Region, is_within, narrower};
use super::capability_set::PlanCapabilities;
use super::compare::Addition;
use glovebox_pipeline::ir::NodeId;
use glovebox_pipeline::nearest::nearest;
use glovebox_record::scope::Entry;
use glovebox_sandbox::proxy::rules::Rules;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The words a rule begins with.
const WORDS: [&str; 8] = ["model", "network-full", "plugin", "reach", "read", "run", "widened", "write"];

/// Why a text is not a rule.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DenyError {
    /// Another word.
    #[error(
        "`{0}` is not a rule: `run=`, `reach=`, `read=`, `write=`, `plugin=`, `model`, `network-full` or `widened` is expected"
    )]
    Unknown(String),
    /// No value.
    #[error("the rule `{rule}` needs a value: `{rule}=*` or `{rule}=` and {expected}")]
    Bare {
        /// The word.
        rule: String,
        /// What may stand there.
        expected: &'static str,
    },
    /// A value after a word that takes none.
    #[error("the rule `{0}` takes no value")]
    Alone(String),
    /// A path or a host that cannot be read.
    #[error("the rule `{rule}`: {problem}")]
    Value {
        /// The rule as written.
        rule: String,
        /// What is wrong.
        problem: String,
    },
}

impl DenyError {
    /// The nearest word that begins a rule.
    pub fn help(&self) -> Option<String> {
        let Self::Unknown(text) = self else { return None };
        let (word, value) = text.split_once('=').map_or((text.as_str(), None), |(word, value)| (word, Some(value)));
        let nearest = nearest(word, WORDS)?;
        let meant =
            value.filter(|_| !stands_alone(nearest)).map_or(nearest.to_owned(), |value| format!("{nearest}={value}"));
        Some(format!("did you mean `{meant}`?"))
    }
}

fn stands_alone(word: &str) -> bool {
    matches!(word, "model" | "network-full" | "widened")
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
    Command(Vec<String>),
    AnyHost,
    Host(String),
    Read(Entry),
    Machine(String),
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
    /// The node that has the grant; absent when the run as a whole has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// The grant, such as `write src/`.
    pub grant: String,
    /// Who gave it.
    pub from: String,
}

impl Deny {
    /// Reads a rule.
    pub fn parse(text: &str) -> Result<Deny, DenyError> {
        let (word, value) = text.split_once('=').map_or((text, None), |(word, value)| (word, Some(value.trim())));
        let bare = |expected| DenyError::Bare { rule: word.to_owned(), expected };
        let filled = |expected| value.filter(|value| !value.is_empty()).ok_or_else(|| bare(expected));
        let alone = |what| if value.is_none() { Ok(what) } else { Err(DenyError::Alone(word.to_owned())) };
        let what = match word {
            "run" => match filled("the first words of a command")? {
                "*" => What::AnyCommand,
                words => What::Command(words.split_whitespace().map(str::to_owned).collect()),
            },
            "reach" => match filled("a host such as `api.example.com`")? {
                "*" => What::AnyHost,
                host => What::Host(self::host(text, host)?),
            },
            "read" => match filled("a path such as `secrets/`")? {
                path if path.starts_with('/') => What::Machine(folder(path)),
                path => What::Read(entry(text, path)?),
            },
            "write" => What::Write(entry(text, filled("a path such as `src/`")?)?),
            "plugin" => match filled("a plugin's name")? {
                "*" => What::AnyPlugin,
                name => What::Plugin(name.to_owned()),
            },
            "model" => alone(What::Model)?,
            "network-full" => alone(What::FullNetwork)?,
            "widened" => alone(What::Widened)?,
            _ => return Err(DenyError::Unknown(text.to_owned())),
        };
        Ok(Deny { text: text.to_owned(), what })
    }

    /// True for `widened`, which needs another plan to compare with.
    pub fn needs_other(&self) -> bool {
        self.what == What::Widened
    }

    fn meets(&self, capability: &Capability) -> bool {
        match (&self.what, capability) {
            (What::AnyCommand, Capability::Shell(_) | Capability::Argv(_) | Capability::AnyCommand)
            | (What::Command(_), Capability::AnyCommand)
            | (What::AnyHost, Capability::Reach(_) | Capability::FullNetwork)
            | (What::Host(_) | What::FullNetwork, Capability::FullNetwork)
            | (What::AnyPlugin, Capability::Plugin(_))
            | (What::Model, Capability::Model) => true,
            (What::Command(words), Capability::Shell(text)) => is_in_shell(words, text),
            (What::Command(words), Capability::Argv(prefix)) => is_in_argv(words, prefix),
            (What::Host(denied), Capability::Reach(host)) => is_same_host(denied, host),
            (What::Read(denied), Capability::Read(region) | Capability::ReadHoldouts(region))
            | (What::Write(denied), Capability::Write(region)) => has_any(region, denied),
            (What::Write(denied), Capability::Scratch(entry) | Capability::Cache(entry)) => {
                narrower(denied, entry).is_some()
            }
            (What::Machine(denied), Capability::ReadMachine(folder)) => {
                is_within(folder, denied) || is_within(denied, folder)
            }
            (What::Plugin(denied), Capability::Plugin(name)) => denied == name,
            _ => false,
        }
    }
}

/// Every grant of a plan that a rule refuses, rule by rule. `additions` is what the plan has beyond another.
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

fn entry(rule: &str, text: &str) -> Result<Entry, DenyError> {
    Entry::parse(if text == "*" { "./" } else { text })
        .map_err(|error| DenyError::Value { rule: rule.to_owned(), problem: error.to_string() })
}

fn folder(path: &str) -> String {
    if path == "/" { path.to_owned() } else { path.trim_end_matches('/').to_owned() }
}

fn host(rule: &str, text: &str) -> Result<String, DenyError> {
    match Rules::parse(&[text.to_owned()]) {
        Ok(_) => Ok(text.to_owned()),
        Err(error) => Err(DenyError::Value { rule: rule.to_owned(), problem: error.to_string() }),
    }
}

/// True when a region has anything at, above or below a denied path that exists for the node.
fn has_any(region: &Region, denied: &Entry) -> bool {
    // Written without a slash, a folder is meant as well.
    let subtree = match denied.is_subtree() {
        true => denied.clone(),
        false => Entry::parse(&format!("{denied}/")).unwrap_or_else(|_| denied.clone()),
    };
    narrower(&subtree, &region.entry).is_some_and(|common| !region.hides(common))
}

/// True when one entry of a domain list allows anything the other does; ports make no difference.
fn is_same_host(one: &str, other: &str) -> bool {
    let name = |entry: &str| entry.split_once(':').map_or(entry, |(name, _)| name).to_owned();
    let (one, other) = (name(one), name(other));
    let within = |outer: &str, inner: &str| match outer.strip_prefix("*.") {
        Some(domain) => inner.strip_suffix(domain).is_some_and(|front| front.ends_with('.')),
        None => outer == inner,
    };
    within(&one, &other) || within(&other, &one)
}

/// True when programs with these leading words include the denied command. Options before the words that matter are skipped.
fn is_in_argv(denied: &[String], prefix: &[String]) -> bool {
    let plain = |words: &[String]| -> Vec<String> {
        let words = words.iter().enumerate();
        words.filter(|(at, word)| *at == 0 || !is_option(word)).map(|(_, word)| program(word).to_owned()).collect()
    };
    let (denied, prefix) = (plain(denied), plain(prefix));
    denied.iter().zip(&prefix).all(|(one, other)| one == other)
}

/// True when the denied words occur in this order within one command of a shell text.
fn is_in_shell(denied: &[String], text: &str) -> bool {
    let commands = text.split([';', '&', '|', '\n', '(', ')', '{', '}', '`']);
    let has_all = |command: &str| {
        let quotes = |letter: char| letter.is_whitespace() || matches!(letter, '"' | '\'' | '\\' | '<' | '>' | '$');
        let mut words = command.split(quotes).filter(|word| !word.is_empty());
        denied.iter().all(|wanted| words.any(|word| program(word) == program(wanted)))
    };
    commands.into_iter().any(has_all)
}

fn is_option(word: &str) -> bool {
    word.starts_with(['-', '+'])
}

/// A program's name without its folder.
fn program(word: &str) -> &str {
    word.rsplit('/').find(|name| !name.is_empty()).unwrap_or(word)
}

#[cfg(test)]
mod tests;
