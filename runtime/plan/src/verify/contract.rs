//! The verify contract (decision verify-contract): a file of the project with the commands that verify a change, by role and
//! by what changed.

use super::{DirectCommand, Role, lines};
use globset::{GlobBuilder, GlobMatcher};
use glovebox_record::Digest;
use serde::de::{Error, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// Maximum size of a contract file, in bytes.
pub const CONTRACT_BYTES_MAX: u64 = 256 << 10;
/// Maximum number of rules of a contract, and of commands or patterns in one list.
const ENTRIES_MAX: usize = 200;
/// Maximum length of a pattern, in bytes.
const PATTERN_BYTES_MAX: usize = 512;
/// Maximum number of nested braces in a pattern, because the library that parses patterns is recursive.
const BRACES_MAX: usize = 8;

/// A parsed contract.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Contract {
    /// BLAKE3 of the file.
    pub digest: Digest,
    commands: Vec<DirectCommand>,
    by_role: BTreeMap<String, Vec<DirectCommand>>,
    rules: Vec<Rule>,
}

/// Commands that run for certain changes.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Rule {
    any: Vec<String>,
    all: Vec<String>,
    commands: Vec<DirectCommand>,
}

/// The first reason why a contract cannot be used.
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

/// The contents of the file. An unknown field is refused, because nothing that verifies may be ignored.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct File {
    #[serde(default)]
    commands: Vec<String>,
    #[serde(default)]
    by_role: Roles,
    #[serde(default)]
    rules: Vec<FileRule>,
    #[serde(default)]
    visual_probes: Option<Value>,
}

/// The commands of each role. A plain map would keep the last of two entries for one role and lose the commands of the first.
#[derive(Default)]
struct Roles(BTreeMap<String, Vec<String>>);

impl<'de> Deserialize<'de> for Roles {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(EachRole)
    }
}

struct EachRole;

impl<'de> Visitor<'de> for EachRole {
    type Value = Roles;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("roles with their commands")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Roles, A::Error> {
        let mut roles = BTreeMap::new();
        while let Some((role, commands)) = entries.next_entry::<String, Vec<String>>()? {
            if roles.contains_key(&role) {
                return Err(A::Error::custom(format!("`byRole` has the role `{role}` twice")));
            }
            roles.insert(role, commands);
        }
        Ok(Roles(roles))
    }
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
    /// Parses a contract.
    ///
    /// # Errors
    ///
    /// Returns the first problem, with its place.
    pub fn parse(text: &str) -> Result<Self, ContractProblem> {
        let file: File = serde_json::from_str(text).map_err(|error| {
            let form = r#"expected {"commands": ["…"], "byRole": {"tester": ["…"]}, "rules": [{"whenChangedAny": ["src/**"], "commands": ["…"]}]}"#;
            problem("", format!("{error}; {form}"))
        })?;
        if file.visual_probes.is_some() {
            return Err(problem("visualProbes", "this version makes no pictures of pages; remove the field"));
        }
        let by_role = file.by_role.0.into_iter().map(|(role, list)| {
            let commands = ContractList::new(format!("byRole.{role}"), list)?.commands()?;
            Ok((role, commands))
        });
        let rules =
            ContractList::new("rules", file.rules)?.entries.into_iter().enumerate().map(|(at, rule)| rule.read(at));
        Ok(Self {
            digest: Digest::hash(text.as_bytes()),
            commands: ContractList::new("commands", file.commands)?.commands()?,
            by_role: by_role.collect::<Result<_, _>>()?,
            rules: rules.collect::<Result<_, _>>()?,
        })
    }

    /// Returns every command that a stage with this role might get.
    pub(super) fn all(&self, role: Option<Role<'_>>) -> impl Iterator<Item = &DirectCommand> {
        let rules = self.rules.iter().flat_map(|rule| &rule.commands);
        self.commands.iter().chain(self.of_role(role)).chain(rules)
    }

    /// Returns the commands for these changes: the commands for all changes, those of the role, then those of each rule that
    /// matches.
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
            any: ContractList::new(place("whenChangedAny"), self.when_changed_any)?.patterns()?,
            all: ContractList::new(place("whenChangedAll"), self.when_changed_all)?.patterns()?,
            commands: ContractList::new(place("commands"), self.commands)?.commands()?,
        })
    }
}

impl Rule {
    /// Returns true if a changed path matches a pattern of `whenChangedAny`, and each pattern of `whenChangedAll` matches a
    /// changed path.
    fn holds(&self, changed: &BTreeSet<&str>) -> bool {
        let meets = |pattern: &String| {
            let matcher = Pattern(pattern).matcher().ok();
            matcher.is_some_and(|matcher| changed.iter().any(|path| matcher.is_match(path)))
        };
        (self.any.is_empty() || self.any.iter().any(meets)) && self.all.iter().all(meets)
    }
}

/// A pattern of changed paths.
struct Pattern<'a>(&'a str);

impl Pattern<'_> {
    fn matcher(&self) -> Result<GlobMatcher, String> {
        let glob = GlobBuilder::new(self.0).literal_separator(true).build();
        glob.map(|glob| glob.compile_matcher()).map_err(|error| error.kind().to_string())
    }

    /// Refuses a pattern that cannot match any changed path, because its commands would never run, and a pattern that is too
    /// expensive to parse.
    fn require_readable(&self) -> Result<(), String> {
        let Self(text) = self;
        let depth = text.bytes().scan(0_usize, |depth, byte| {
            *depth = if byte == b'{' { *depth + 1 } else { depth.saturating_sub(usize::from(byte == b'}')) };
            Some(*depth)
        });
        if text.len() > PATTERN_BYTES_MAX || depth.max() > Some(BRACES_MAX) {
            return Err(format!("expected at most {PATTERN_BYTES_MAX} bytes, and at most {BRACES_MAX} nested braces"));
        }
        if let Some(folder) = text.strip_suffix('/').filter(|folder| !folder.is_empty()) {
            return Err(format!("a pattern matches files, not folders: write `{folder}/**`"));
        }
        let is_path = text.trim() == *text && !text.starts_with(['!', '~']) && !text.contains('\\');
        match is_path && text.split('/').all(|name| !matches!(name, "" | "." | "..")) {
            true => Ok(()),
            false => Err("expected a pattern of paths below the project, such as `src/**`".to_owned()),
        }
    }
}

/// A list in the file, with its place.
struct ContractList<T> {
    place: String,
    entries: Vec<T>,
}

impl<T> ContractList<T> {
    /// # Errors
    ///
    /// Fails if there are too many entries.
    fn new(place: impl Into<String>, entries: Vec<T>) -> Result<Self, ContractProblem> {
        match entries.len() {
            0..=ENTRIES_MAX => Ok(Self { place: place.into(), entries }),
            many => Err(problem(place, format!("{many} entries, expected at most {ENTRIES_MAX}"))),
        }
    }
}

impl ContractList<String> {
    fn patterns(self) -> Result<Vec<String>, ContractProblem> {
        for (at, pattern) in self.entries.iter().enumerate() {
            let pattern = Pattern(pattern);
            let read = pattern.require_readable().and_then(|()| pattern.matcher().map(drop));
            read.map_err(|reason| problem(format!("{}[{at}]", self.place), reason))?;
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
