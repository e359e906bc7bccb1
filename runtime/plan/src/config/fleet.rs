//! The `[fleet]` table: on which machines the stages of a project may run.

use super::field::{Field, Fields};
use glovebox_record::Need;
use glovebox_record::placement::{ENTRIES_MAX, NeedFault};

/// The `[fleet]` table. By default stages may run on every machine.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FleetSetting {
    /// What the machine of each stage must have. Nodes and graphs add to it.
    pub runs_on: Need,
}

pub(super) fn parse(fields: &mut Fields<'_>, table: &Field<'_, '_>) -> FleetSetting {
    let mut setting = FleetSetting::default();
    for field in fields.table(table) {
        match field.name {
            "runs_on" => setting.runs_on = need(fields, &field),
            _ => fields.unknown(&field, &["runs_on"]),
        }
    }
    setting
}

/// Reads a list of entries in the syntax of the attribute `runs_on`.
fn need(fields: &mut Fields<'_>, field: &Field<'_, '_>) -> Need {
    let mut need = Need::default();
    for (index, (entry, place)) in fields.texts(field).into_iter().enumerate() {
        let added = if index < ENTRIES_MAX { need.add(entry.trim()) } else { Err(NeedFault::TooMany) };
        if let Err(fault) = added {
            fields.value_problem(place, format!("`{field}`: {fault}"));
        }
    }
    need
}
