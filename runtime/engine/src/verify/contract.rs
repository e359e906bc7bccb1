//! The verify contract (seed 4): a file of the project with the commands that verify a change, by role and by what changed.

use super::{DirectCommand, Role, lines};
use globset::{GlobBuilder, GlobMatcher};
use glovebox_record::Digest;
use serde::Deserialize;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// Bytes of a contract's file.
pub const CONTRACT_BYTES_MAX: u64 = 256 << 10;
/// Rules of a contract, and commands or patterns of one list.
const ENTRIES_MAX: usize = 200;

/// A contract as it was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Contract {
    /// BLAKE3 of the file.
    pub digest: Digest,
    commands: Vec<DirectCommand>,
    by_role: BTreeMap<String, Vec<DirectCommand>>,
    rules: Vec<Rule>,
}

/// Commands for certain changes.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Rule {
    any: Vec<String>,
    all: Vec<String>,
    commands: Vec<DirectCommand>,
}

/// Why a contract cannot be used: the first thing that is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContractProblem {
    /// The place in the file, such as `rules[1].commands[0]`.
    pub place: String,
    /// What is wrong, and what was expected.
    pub reason: String,
}

impl fmt::Display for ContractProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.place.as_str() {
            "" => f.write_str(&self.reason),
            place => write!(f, "`{place}`: {}", self.reason),
        }
    }
}

fn problem(place: impl Into<String>, reason: impl Into<String>) -> ContractProblem {
    ContractProblem { place: place.into(), reason: reason.into() }
}

/// The file. A field that this version does not follow is refused: nothing that verifies may be ignored.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct File {
    #[serde(default)]
    commands: Vec<String>,
    #[serde(default)]
    by_role: BTreeMap<String, Vec<String>>,
    #[serde(default)]
    rules: Vec<FileRule>,
    #[serde(default)]
    visual_probes: Option<Value>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct FileRule {
    #[serde(default)]
    when_changed_any: Vec<String>,
    #[serde(default)]
    when_changed_all: Vec<String>,
    commands: Vec<String>,
}

impl Contract {
    /// Reads a contract's text.
    ///
    /// # Errors
    /// The first thing that is wrong, with its place.
    pub fn parse(text: &str) -> Result<Self, ContractProblem> {
        let file: File = serde_json::from_str(text).map_err(|error| {
            let form = r#"expected {"commands": ["…"], "byRole": {"tester": ["…"]}, "rules": [{"whenChangedAny": ["src/**"], "commands": ["…"]}]}"#;
            problem("", format!("{error}; {form}"))
        })?;
        if file.visual_probes.is_some() {
            return Err(problem("visualProbes", "this version makes no pictures of pages; remove the field"));
        }
        let by_role = file.by_role.into_iter().map(|(role, list)| {
            let commands = Listed::new(format!("byRole.{role}"), list)?.commands()?;
            Ok((role, commands))
        });
        let rules = Listed::new("rules", file.rules)?.entries.into_iter().enumerate().map(|(at, rule)| rule.read(at));
        Ok(Self {
            digest: Digest::of(text.as_bytes()),
            commands: Listed::new("commands", file.commands)?.commands()?,
            by_role: by_role.collect::<Result<_, _>>()?,
            rules: rules.collect::<Result<_, _>>()?,
        })
    }

    /// Every command that a stage with this role might get.
    pub(super) fn all(&self, role: Option<Role<'_>>) -> impl Iterator<Item = &DirectCommand> {
        let rules = self.rules.iter().flat_map(|rule| &rule.commands);
        self.commands.iter().chain(self.of_role(role)).chain(rules)
    }

    /// The commands for these changes: those for all, those of the role, then those of each rule that holds.
    pub(super) fn select(&self, role: Option<Role<'_>>, changed: &BTreeSet<&str>) -> Vec<&str> {
        let rules = self.rules.iter().filter(|rule| rule.holds(changed)).flat_map(|rule| &rule.commands);
        let mut known = BTreeSet::new();
        let all = self.commands.iter().chain(self.of_role(role)).chain(rules);
        lines(all.filter(|command| known.insert(&command.words)))
    }

    fn of_role(&self, role: Option<Role<'_>>) -> &[DirectCommand] {
        role.and_then(|role| self.by_role.get(role.0)).map(Vec::as_slice).unwrap_or_default()
    }
}

impl FileRule {
    fn read(self, at: usize) -> Result<Rule, ContractProblem> {
        let place = |field: &str| format!("rules[{at}].{field}");
        if self.when_changed_any.is_empty() && self.when_changed_all.is_empty() {
            let help =
                "expected `whenChangedAny` or `whenChangedAll`; commands without a condition belong to `commands`";
            return Err(problem(format!("rules[{at}]"), help));
        }
        Ok(Rule {
            any: Listed::new(place("whenChangedAny"), self.when_changed_any)?.patterns()?,
            all: Listed::new(place("whenChangedAll"), self.when_changed_all)?.patterns()?,
            commands: Listed::new(place("commands"), self.commands)?.commands()?,
        })
    }
}

impl Rule {
    /// True if a changed path matches a pattern of `whenChangedAny`, and each pattern of `whenChangedAll` matches one.
    fn holds(&self, changed: &BTreeSet<&str>) -> bool {
        let meets = |pattern: &String| {
            let matcher = matcher(pattern).ok();
            matcher.is_some_and(|matcher| changed.iter().any(|path| matcher.is_match(path)))
        };
        (self.any.is_empty() || self.any.iter().any(meets)) && self.all.iter().all(meets)
    }
}

fn matcher(pattern: &str) -> Result<GlobMatcher, String> {
    let glob = GlobBuilder::new(pattern).literal_separator(true).build();
    glob.map(|glob| glob.compile_matcher()).map_err(|error| error.kind().to_string())
}

/// A list of the file, with its place there.
struct Listed<T> {
    place: String,
    entries: Vec<T>,
}

impl<T> Listed<T> {
    /// # Errors
    /// There are too many entries.
    fn new(place: impl Into<String>, entries: Vec<T>) -> Result<Self, ContractProblem> {
        match entries.len() {
            0..=ENTRIES_MAX => Ok(Self { place: place.into(), entries }),
            many => Err(problem(place, format!("{many} entries, expected at most {ENTRIES_MAX}"))),
        }
    }
}

impl Listed<String> {
    fn patterns(self) -> Result<Vec<String>, ContractProblem> {
        for (at, pattern) in self.entries.iter().enumerate() {
            let wrong = match matcher(pattern) {
                Err(reason) => reason,
                Ok(_) if pattern.starts_with(['/', '!', '~']) || pattern.split('/').any(|name| name == "..") => {
                    "expected a pattern of paths below the project, such as `src/**`".to_owned()
                }
                Ok(_) => continue,
            };
            return Err(problem(format!("{}[{at}]", self.place), wrong));
        }
        Ok(self.entries)
    }

    fn commands(self) -> Result<Vec<DirectCommand>, ContractProblem> {
        let read = |(at, line): (usize, &String)| {
            DirectCommand::parse(line).map_err(|reason| problem(format!("{}[{at}]", self.place), reason))
        };
        self.entries.iter().enumerate().map(read).collect()
    }
}
