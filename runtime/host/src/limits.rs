//! Every bound of a call: its name, its unit, its default, and how much of it may be asked for.
//!
//! One table is the source of the names in `glovebox.toml`, in node attributes (`limits.<name>`) and in records. It refuses
//! to know who asks; the rule it keeps is that settings are merged by taking the lower value.

use glovebox_record::LimitUnit;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use std::collections::BTreeMap;
use std::fmt;

/// One row of the table of limits.
#[derive(Debug, Clone, Copy)]
pub struct Limit {
    /// Its name everywhere.
    pub name: &'static str,
    /// What it counts.
    pub unit: LimitUnit,
    /// What holds when nobody asks for less or more.
    pub default: u64,
    /// One line for people.
    pub doc: &'static str,
}

macro_rules! limits {
    ($($(#[doc = $doc:literal])+ $name:ident: $unit:ident = $default:expr;)+) => {
        /// The bounds of one call, each in the unit of its name.
        #[derive(Debug, Clone, PartialEq, Eq)]
        pub struct Limits { $($(#[doc = $doc])+ pub $name: u64,)+ }

        /// Every limit, in the order in which they are reported.
        pub const TABLE: &[Limit] = &[$(Limit {
            name: stringify!($name),
            unit: LimitUnit::$unit,
            default: $default,
            doc: concat!($($doc),+),
        },)+];

        impl Default for Limits {
            fn default() -> Self {
                Limits { $($name: $default,)+ }
            }
        }

        impl Limits {
            /// The bound with this name, if there is one.
            pub fn get(&self, name: &str) -> Option<u64> {
                match name { $(stringify!($name) => Some(self.$name),)+ _ => None }
            }

            fn slot(&mut self, name: &str) -> Option<&mut u64> {
                match name { $(stringify!($name) => Some(&mut self.$name),)+ _ => None }
            }
        }
    };
}

limits! {
    /// Wall time of the call.
    wall_ms: Milliseconds = 60_000;
    /// Linear memory, summed over all memories of the component.
    memory_bytes: Bytes = 256 << 20;
    /// Table elements, summed over all tables.
    table_elements: Count = 20_000;
    /// Core instances, and as many memories and tables.
    instances: Count = 64;
    /// Live handles: open files, streams, completions.
    resources: Count = 1_024;
    /// Bytes a single host call may copy out of the component.
    hostcall_bytes: Bytes = 16 << 20;
    /// Bytes kept of stdout and of stderr, each; the rest is cut with a marker.
    output_bytes: Bytes = 1 << 20;
    /// Bytes written to files.
    write_bytes: Bytes = 256 << 20;
    /// Files and directories created, renamed or removed.
    write_entries: Count = 10_000;
    /// Size of the component itself, before anything is compiled.
    component_bytes: Bytes = 64 << 20;
    /// Model turns.
    turns: Count = 40;
    /// Model turns that ask for tools.
    tool_rounds: Count = 40;
    /// Bytes of kept artifacts.
    artifact_bytes: Bytes = 16 << 20;
    /// Log lines and events.
    log_lines: Count = 10_000;
    /// Wall time of one command; never more than what is left of the call.
    command_ms: Milliseconds = UNBOUNDED;
    /// Bytes kept of each output stream of a command.
    command_output_bytes: Bytes = 1 << 20;
    /// Commands run.
    commands: Count = 1_000;
    /// Processor time of one process of a command.
    cpu_ms: Milliseconds = 600_000;
    /// Memory of all processes of a command together; watched and soft where no cgroup holds it.
    command_memory_bytes: Bytes = 4 << 30;
    /// Processes and threads of a command at the same time.
    processes: Count = 512;
    /// Open descriptors of one process of a command.
    descriptors: Count = 1_024;
    /// Size of one file a command writes.
    file_bytes: Bytes = 1 << 30;
    /// Size of a command's `/tmp`, and of its `/dev/shm`.
    tmp_bytes: Bytes = 512 << 20;
    /// Bytes that a stage's commands may keep in the workspace.
    disk_bytes: Bytes = 2 << 30;
    /// Bytes of a handler's answer: context updates, notes, hints, claims.
    outcome_bytes: Bytes = 1 << 20;
    /// Refusals kept in the record; more are only counted.
    refusals: Count = 1_000;
}

/// What a component mainly does, as far as the default wall time depends on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Work {
    /// Turns of a model.
    Agent,
    /// Commands that the pipeline's author or a verifier runs.
    Commands,
    /// Anything else.
    Other,
}

/// The value of a limit that another limit bounds: `command_ms` is what is left of `wall_ms`.
pub const UNBOUNDED: u64 = u64::MAX;

impl Limits {
    /// The defaults for a kind of work: agents and commands get more wall time.
    pub fn defaults_for(work: Work) -> Self {
        let wall_ms = match work {
            Work::Agent => 1_800_000,
            Work::Commands => 600_000,
            Work::Other => 60_000,
        };
        Limits { wall_ms, ..Limits::default() }
    }

    /// Replaces the bounds that are set; for the operator's `[limits]`, which stand in for the defaults.
    pub fn replace(&mut self, settings: &LimitSettings) {
        for (name, value) in settings.iter() {
            if let Some(slot) = self.slot(name) {
                *slot = value;
            }
        }
    }

    /// Lowers the bounds that are set; never raises one.
    pub fn lower(&mut self, settings: &LimitSettings) {
        for (name, value) in settings.iter() {
            if let Some(slot) = self.slot(name) {
                *slot = value.min(*slot);
            }
        }
    }

    /// Every bound by name, in the order of the table.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, u64)> + '_ {
        TABLE.iter().filter_map(|limit| Some((limit.name, self.get(limit.name)?)))
    }
}

/// Why a limit cannot be set.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LimitError {
    /// There is no limit of that name.
    #[error("unknown limit `{name}`, expected one of {}", names())]
    Unknown {
        /// As written.
        name: String,
    },
    /// The value is not an amount of its unit.
    #[error("limit `{name}` has the value `{value}`, expected {expected}")]
    Value {
        /// The limit.
        name: &'static str,
        /// As written.
        value: String,
        /// What would be accepted.
        expected: &'static str,
    },
}

fn names() -> String {
    let quoted: Vec<String> = TABLE.iter().map(|limit| format!("`{}`", limit.name)).collect();
    quoted.join(", ")
}

/// Some limits with values, as one source (a plugin, an operator, a node) wrote them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LimitSettings(BTreeMap<&'static str, u64>);

impl LimitSettings {
    /// Reads `(name, value)` pairs; all that is wrong is reported at once.
    pub fn from_pairs<'a>(pairs: impl IntoIterator<Item = (&'a str, &'a str)>) -> Result<Self, Vec<LimitError>> {
        let mut settings = LimitSettings::default();
        let wrong: Vec<LimitError> =
            pairs.into_iter().filter_map(|(name, value)| settings.set(name, value).err()).collect();
        if wrong.is_empty() { Ok(settings) } else { Err(wrong) }
    }

    /// Sets one limit from text.
    pub fn set(&mut self, name: &str, value: &str) -> Result<(), LimitError> {
        let limit = find(name)?;
        let amount = limit.unit.parse(value).ok_or_else(|| LimitError::Value {
            name: limit.name,
            value: value.to_owned(),
            expected: limit.unit.expected(),
        })?;
        self.0.insert(limit.name, amount);
        Ok(())
    }

    /// Both sources together; the lower value wins.
    pub fn merge(&self, other: &LimitSettings) -> LimitSettings {
        let mut merged = self.clone();
        for (name, value) in other.iter() {
            let slot = merged.0.entry(name).or_insert(value);
            *slot = value.min(*slot);
        }
        merged
    }

    /// The value of a limit, when set.
    pub fn get(&self, name: &str) -> Option<u64> {
        self.0.get(name).copied()
    }

    /// True when nothing is set.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Everything set, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, u64)> + '_ {
        self.0.iter().map(|(name, value)| (*name, *value))
    }
}

fn find(name: &str) -> Result<&'static Limit, LimitError> {
    TABLE.iter().find(|limit| limit.name == name).ok_or_else(|| LimitError::Unknown { name: name.to_owned() })
}

impl Serialize for LimitSettings {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Written {
    Number(i64),
    Text(String),
}

impl fmt::Display for Written {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Written::Number(number) => number.fmt(f),
            Written::Text(text) => text.fmt(f),
        }
    }
}

impl<'de> Deserialize<'de> for LimitSettings {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let written = BTreeMap::<String, Written>::deserialize(deserializer)?;
        let mut settings = LimitSettings::default();
        for (name, value) in written {
            settings.set(&name, &value.to_string()).map_err(de::Error::custom)?;
        }
        Ok(settings)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_bounded_by_default() {
        let limits = Limits::default();
        let check = |name: &str, written: &str| {
            let setting = LimitSettings::from_pairs([(name, written)]).unwrap();
            assert_eq!(limits.get(name), setting.get(name), "{name}");
        };
        check("cpu_ms", "10m");
        check("command_memory_bytes", "4GiB");
        check("processes", "512");
        check("descriptors", "1024");
        check("file_bytes", "1GiB");
        check("tmp_bytes", "512MiB");
        check("disk_bytes", "2GiB");
    }

    #[test]
    fn the_lower_wins_and_never_rises() {
        let wants = LimitSettings::from_pairs([("turns", "50"), ("memory_bytes", "1GiB")]).unwrap();
        let grants = LimitSettings::from_pairs([("memory_bytes", "64MiB")]).unwrap();
        let merged = wants.merge(&grants);
        assert_eq!((merged.get("turns"), merged.get("memory_bytes")), (Some(50), Some(64 << 20)));
        let mut limits = Limits::default();
        limits.lower(&merged);
        assert_eq!((limits.turns, limits.memory_bytes), (40, 64 << 20));
        limits.replace(&merged);
        assert_eq!(limits.turns, 50);
    }

    #[test]
    fn all_that_is_wrong_is_told() {
        let wrong = LimitSettings::from_pairs([("memory", "1"), ("turns", "many")]).unwrap_err();
        assert!(wrong[0].to_string().starts_with("unknown limit `memory`, expected one of `wall_ms`"), "{}", wrong[0]);
        assert_eq!(wrong[1].to_string(), "limit `turns` has the value `many`, expected a whole number");
    }

    #[test]
    fn numbers_and_texts_are_read_alike() {
        let read: LimitSettings = toml::from_str("memory_bytes = \"64MiB\"\nturns = 3").unwrap();
        assert_eq!((read.get("memory_bytes"), read.get("turns")), (Some(64 << 20), Some(3)));
        let wrong = toml::from_str::<LimitSettings>("fuel = 3").unwrap_err();
        assert!(wrong.to_string().contains("unknown limit `fuel`"), "{wrong}");
    }

    #[test]
    fn the_table_and_the_struct_agree() {
        let limits = Limits::default();
        assert_eq!(limits.iter().count(), TABLE.len());
        assert!(TABLE.iter().all(|limit| limits.get(limit.name) == Some(limit.default) && !limit.doc.is_empty()));
    }
}
