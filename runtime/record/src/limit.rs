//! The table of the limits of a call: the name, unit, default and purpose of each limit.
//!
//! Pipeline attributes (`limits.<name>`), `glovebox.toml`, the host, the sandbox, `plan` and the docs use this table. It does not
//! contain the limits of a whole run. The amount of a limit is bounded only by its type: an operator can set any amount, and a
//! node can only lower it.

mod settings;
mod unit;

pub use settings::{LimitError, LimitSettings};
pub use unit::LimitUnit;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize, Serializer};
use std::borrow::Cow;
use std::cmp::Ordering;
use std::fmt;
use std::str::FromStr;

/// The default of `command_ms`: only the rest of `wall_ms` limits the command.
pub const UNBOUNDED: u64 = u64::MAX;

/// One row of the table.
#[derive(Debug, Clone, Copy)]
pub struct Limit {
    /// Name of the limit in files, attributes, records and messages.
    pub name: &'static str,
    /// Unit of the amount.
    pub unit: LimitUnit,
    /// Amount if none is set.
    pub default: u64,
    /// Purpose of the limit, in one line.
    pub doc: &'static str,
}

macro_rules! limits {
    ($($(#[doc = $doc:literal])+ $variant:ident $name:ident: $unit:ident = $default:expr;)+) => {
        /// The name of a limit. Names are ordered by their text.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum LimitName { $($(#[doc = $doc])+ $variant,)+ }

        /// The amounts of all limits of one call. The name of each limit implies its unit.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub struct Limits { $($(#[doc = $doc])+ pub $name: u64,)+ }

        impl LimitName {
            /// All limits, in the order of reports.
            pub const ALL: &[Self] = &[$(Self::$variant,)+];

            /// Returns the row of the limit in the table.
            pub const fn row(self) -> &'static Limit {
                match self {
                    $(Self::$variant => &Limit {
                        name: stringify!($name),
                        unit: LimitUnit::$unit,
                        default: $default,
                        doc: concat!($($doc),+),
                    },)+
                }
            }
        }

        impl Default for Limits {
            fn default() -> Self {
                Self { $($name: $default,)+ }
            }
        }

        impl Limits {
            /// Returns the amount of a limit.
            pub fn get(&self, name: LimitName) -> u64 {
                match name { $(LimitName::$variant => self.$name,)+ }
            }

            fn slot(&mut self, name: LimitName) -> &mut u64 {
                match name { $(LimitName::$variant => &mut self.$name,)+ }
            }
        }
    };
}

limits! {
    /// Wall time of the call.
    WallMs wall_ms: Milliseconds = 60_000;
    /// Linear memory, summed over all memories of the component.
    MemoryBytes memory_bytes: Bytes = 256 << 20;
    /// Table elements, summed over all tables.
    TableElements table_elements: Count = 20_000;
    /// Core instances, and as many memories and tables.
    Instances instances: Count = 64;
    /// Live handles: open files, streams, completions.
    Resources resources: Count = 1_024;
    /// Bytes a single host call may copy out of the component.
    HostcallBytes hostcall_bytes: Bytes = 16 << 20;
    /// Bytes kept of stdout and of stderr, each; the rest is cut with a marker.
    OutputBytes output_bytes: Bytes = 1 << 20;
    /// Bytes written to files.
    WriteBytes write_bytes: Bytes = 256 << 20;
    /// Files and directories created, renamed or removed.
    WriteEntries write_entries: Count = 10_000;
    /// Files and directories created or changed at paths that git ignores.
    IgnoredEntries ignored_entries: Count = 100_000;
    /// Size of the component itself, before anything is compiled.
    ComponentBytes component_bytes: Bytes = 64 << 20;
    /// Model turns.
    Turns turns: Count = 40;
    /// Model turns that ask for tools.
    ToolRounds tool_rounds: Count = 40;
    /// Bytes of kept artifacts.
    ArtifactBytes artifact_bytes: Bytes = 16 << 20;
    /// Log lines and events.
    LogLines log_lines: Count = 10_000;
    /// Wall time of one command; never more than the rest of the call's time.
    CommandMs command_ms: Milliseconds = UNBOUNDED;
    /// Bytes kept of each output stream of a command.
    CommandOutputBytes command_output_bytes: Bytes = 1 << 20;
    /// Commands run.
    Commands commands: Count = 1_000;
    /// Processor time of one process of a command.
    CpuMs cpu_ms: Milliseconds = 600_000;
    /// Memory of all processes of a command together; watched and soft where no cgroup holds it.
    CommandMemoryBytes command_memory_bytes: Bytes = 4 << 30;
    /// Processes and threads of a command at the same time.
    Processes processes: Count = 512;
    /// Open descriptors of one process of a command.
    Descriptors descriptors: Count = 16_384;
    /// Length of one file a command writes, holes included.
    FileBytes file_bytes: Bytes = 1 << 40;
    /// Size of a command's `/tmp`, and of its `/dev/shm`.
    TmpBytes tmp_bytes: Bytes = 512 << 20;
    /// Bytes that a stage's commands may keep in the workspace.
    DiskBytes disk_bytes: Bytes = 2 << 30;
    /// Bytes of a handler's answer: context updates, notes, hints, claims.
    OutcomeBytes outcome_bytes: Bytes = 1 << 20;
    /// Refusals kept in the record; more are only counted.
    Refusals refusals: Count = 1_000;
}

impl LimitName {
    /// Returns the name as text.
    pub const fn as_str(self) -> &'static str {
        self.row().name
    }

    /// Returns the unit of the amount.
    pub const fn unit(self) -> LimitUnit {
        self.row().unit
    }
}

impl FromStr for LimitName {
    type Err = LimitError;

    fn from_str(text: &str) -> Result<Self, LimitError> {
        let found = Self::ALL.iter().find(|name| name.as_str() == text);
        found.copied().ok_or_else(|| LimitError::Unknown { name: text.to_owned() })
    }
}

impl Ord for LimitName {
    fn cmp(&self, other: &Self) -> Ordering {
        self.as_str().cmp(other.as_str())
    }
}

impl PartialOrd for LimitName {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl fmt::Display for LimitName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Serialize for LimitName {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for LimitName {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Cow::<str>::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

impl JsonSchema for LimitName {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "LimitName".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        String::json_schema(generator)
    }
}

/// The main activity of a stage, which decides its default wall time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StageKind {
    /// Calls of a model.
    Agent,
    /// Commands that the author of the pipeline or a verifier runs.
    Commands,
    /// Any other activity.
    Other,
}

impl Limits {
    /// Returns the default limits for a kind of stage. Agents and commands get more wall time than other stages.
    pub fn defaults_for(kind: StageKind) -> Self {
        let wall_ms = match kind {
            StageKind::Agent => 1_800_000,
            StageKind::Commands => 600_000,
            StageKind::Other => Self::default().wall_ms,
        };
        Self { wall_ms, ..Self::default() }
    }

    /// Returns the amount in force. For a command without a time limit of its own, that is the wall time of the stage.
    pub fn bound(&self, name: LimitName) -> u64 {
        match self.get(name) {
            UNBOUNDED if name == LimitName::CommandMs => self.wall_ms,
            amount => amount,
        }
    }

    /// Replaces the amounts that are set. The operator's `[limits]` replace the defaults in this way.
    pub fn replace(&mut self, settings: &LimitSettings) {
        for (name, amount) in settings.iter() {
            *self.slot(name) = amount;
        }
    }

    /// Lowers the amounts to those that are set. Never raises an amount.
    pub fn lower(&mut self, settings: &LimitSettings) {
        for (name, amount) in settings.iter() {
            let slot = self.slot(name);
            *slot = amount.min(*slot);
        }
    }

    /// Returns all names and amounts, in the order of the table.
    pub fn iter(&self) -> impl Iterator<Item = (LimitName, u64)> + '_ {
        LimitName::ALL.iter().map(|name| (*name, self.get(*name)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_bounded_by_default() {
        let check = |name: LimitName, written: &str| {
            assert_eq!(name.unit().parse(written), Some(Limits::default().get(name)), "{name}");
        };
        check(LimitName::CpuMs, "10m");
        check(LimitName::CommandMemoryBytes, "4GiB");
        check(LimitName::Processes, "512");
        check(LimitName::Descriptors, "16384");
        check(LimitName::FileBytes, "1024GiB");
        check(LimitName::TmpBytes, "512MiB");
        check(LimitName::DiskBytes, "2GiB");
    }

    #[test]
    fn a_name_ends_in_its_unit() {
        for name in LimitName::ALL {
            let unit = match name.as_str().rsplit('_').next() {
                Some("bytes") => LimitUnit::Bytes,
                Some("ms") => LimitUnit::Milliseconds,
                _ => LimitUnit::Count,
            };
            assert_eq!((name.unit(), name.as_str().parse()), (unit, Ok(*name)));
        }
    }

    #[test]
    fn a_command_has_the_wall_time_of_its_call() {
        let limits = Limits { wall_ms: 7, ..Limits::default() };
        assert_eq!((limits.bound(LimitName::CommandMs), limits.bound(LimitName::Turns)), (7, 40));
    }

    #[test]
    fn the_lower_wins_and_never_rises() {
        let wants = LimitSettings::from_iter([(LimitName::Turns, 50), (LimitName::MemoryBytes, 1 << 30)]);
        let grants = LimitSettings::from_iter([(LimitName::MemoryBytes, 64 << 20)]);
        let merged = wants.merge(&grants);
        let get = |name| merged.get(name);
        assert_eq!((get(LimitName::Turns), get(LimitName::MemoryBytes)), (Some(50), Some(64 << 20)));
        let mut limits = Limits::default();
        limits.lower(&merged);
        assert_eq!((limits.turns, limits.memory_bytes), (40, 64 << 20));
        limits.replace(&merged);
        assert_eq!(limits.turns, 50);
    }
}
