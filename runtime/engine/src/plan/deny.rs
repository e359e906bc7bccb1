//! Rules that refuse a plan: `run=cargo publish`, `write=.github/`, `reach=*`, `widened` and their like.
//!
//! Pure. A rule is a word, or a word and what it is about. It refuses every power that has anything of what it names, so a grant
//! that covers a path and one that lies below it are both met. What a shell text does cannot be read from it with certainty: a
//! rule about a command meets more texts rather than fewer, and only `run=*` meets all.

use super::Plan;
use super::compare::Widened;
use super::power::{Power, Powers, Region, is_within, narrower};
use glovebox_pipeline::nearest::nearest;
use glovebox_sandbox::proxy::rules::Rules;
use glovebox_sandbox::scope::Entry;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The words a rule begins with.
const WORDS: [&str; 8] = ["model", "network-full", "plugin", "reach", "read", "run", "widened", "write"];

/// Why a text is no rule.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DenyError {
    /// Another word.
    #[error(
        "`{0}` is no rule: `run=`, `reach=`, `read=`, `write=`, `plugin=`, `model`, `network-full` or `widened` is expected"
    )]
    Unknown(String),
    /// Nothing after `=`, or no `=`.
    #[error("the rule `{rule}` says nothing it is about: `{rule}=*` or {expected} is expected")]
    Bare {
        /// The word.
        rule: String,
        /// What may stand there.
        expected: &'static str,
    },
    /// Something after a word that stands alone.
    #[error("the rule `{0}` stands alone: nothing is expected after it")]
    Alone(String),
    /// A path or a host that is none.
    #[error("the rule `{rule}`: {problem}")]
    Value {
        /// The rule as written.
        rule: String,
        /// What is wrong.
        problem: String,
    },
}

impl DenyError {
    /// The nearest word that is one.
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

/// A rule that refuses powers.
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

    fn meets(&self, power: &Power) -> bool {
        match (&self.what, power) {
            (What::AnyCommand, Power::Shell(_) | Power::Argv(_) | Power::AnyCommand)
            | (What::Command(_), Power::AnyCommand)
            | (What::AnyHost, Power::Reach(_) | Power::FullNetwork)
            | (What::Host(_) | What::FullNetwork, Power::FullNetwork)
            | (What::AnyPlugin, Power::Plugin(_))
            | (What::Model, Power::Model) => true,
            (What::Command(words), Power::Shell(text)) => is_in_shell(words, text),
            (What::Command(words), Power::Argv(prefix)) => is_in_argv(words, prefix),
            (What::Host(denied), Power::Reach(host)) => is_same_host(denied, host),
            (What::Read(denied), Power::Read(region)) | (What::Write(denied), Power::Write(region)) => {
                has_any(region, denied)
            }
            (What::Write(denied), Power::Scratch(entry) | Power::Cache(entry)) => narrower(denied, entry).is_some(),
            (What::Machine(denied), Power::Machine(folder)) => is_within(folder, denied) || is_within(denied, folder),
            (What::Plugin(denied), Power::Plugin(name)) => denied == name,
            _ => false,
        }
    }
}

/// Every grant of a plan that a rule refuses, rule by rule. `widened` is what the plan has beyond another.
pub fn denied(plan: &Plan, powers: &Powers, rules: &[Deny], widened: &[Widened]) -> Vec<Denied> {
    let mut found: Vec<Denied> = Vec::new();
    let mut tell = |rule: &Deny, node: Option<&String>, power: &Power| {
        let from = node.map_or_else(|| of_run(power), |node| plan.origin(node, power));
        let denied = Denied { rule: rule.text.clone(), node: node.cloned(), grant: power.to_string(), from };
        if !found.contains(&denied) {
            found.push(denied);
        }
    };
    for rule in rules {
        if rule.needs_other() {
            widened.iter().for_each(|more| tell(rule, more.node.as_ref(), &more.power));
            continue;
        }
        for (node, powers) in &powers.nodes {
            powers.iter().filter(|power| rule.meets(power)).for_each(|power| tell(rule, Some(node), power));
        }
    }
    found
}

/// Who gives a run what no node has.
fn of_run(power: &Power) -> String {
    let from = match power {
        Power::Spend(..) => "`max_steps` or `max_wall_time` of the pipeline, or their flags",
        Power::Include(_) => "`include` under `[workspace]` of glovebox.toml",
        _ => "the run",
    };
    from.to_owned()
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
