//! The `[agents.NAME]` tables: where the file of an agent program is, and what it can read of the machine.
//!
//! The tables contain no key: a program asks its model through the gateway of its stage.

use super::field::{Field, Fields, Message};
use super::sandbox::folders;
use glovebox_pipeline::nearest::nearest;
use glovebox_record::program::AgentProgram;
use std::collections::BTreeMap;

/// One `[agents.NAME]` table. By default the program is found on the PATH of commands, and reads no additional folders of the
/// machine.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AgentEntry {
    /// The absolute path of the program's file. `None` if the program is found on the PATH of commands.
    pub path: Option<String>,
    /// Absolute folders of the machine that the program may read in addition to the folders of all commands.
    pub read: Vec<String>,
}

/// Reads all tables.
pub(super) fn parse(fields: &mut Fields<'_>, tables: &Field<'_, '_>) -> BTreeMap<AgentProgram, AgentEntry> {
    let mut found = BTreeMap::new();
    for table in fields.table(tables) {
        match table.name.parse::<AgentProgram>() {
            Ok(program) => {
                let entry = entry(fields, &table);
                found.insert(program, entry);
            }
            Err(error) => {
                let help = nearest(table.name, AgentProgram::ALL.map(AgentProgram::as_str));
                let help = help.map(|name| format!("did you mean `[agents.{name}]`?"));
                let message = Message::from(format!("`{table}` names no agent program, {error}"));
                fields.value_problem(table.at_key(), message.with_help(help));
            }
        }
    }
    found
}

fn entry(fields: &mut Fields<'_>, table: &Field<'_, '_>) -> AgentEntry {
    let mut entry = AgentEntry::default();
    for field in fields.table(table) {
        match field.name {
            "path" => entry.path = fields.text(&field).filter(|path| is_absolute(fields, &field, path)),
            "read" => entry.read = folders(fields, &field),
            _ => fields.unknown(&field, &["path", "read"]),
        }
    }
    entry
}

fn is_absolute(fields: &mut Fields<'_>, field: &Field<'_, '_>, path: &str) -> bool {
    let is_plain = path.starts_with('/') && !path.contains('\0') && path.split('/').all(|name| name != "..");
    if !is_plain {
        let message = format!("`{field}` is `{path}`, expected the absolute path of a program");
        fields.value_problem(field.at_value(), message);
    }
    is_plain
}
