//! The `[fleet]` table: the fleet of machines that runs the project's pipelines, and on which machines its stages may run.

use super::field::{Field, Fields};
use glovebox_record::Need;
use glovebox_record::placement::{ENTRIES_MAX, NeedFault};
use glovebox_signing::key::PublicKey;

/// The `[fleet]` table. By default stages may run on every machine.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FleetSetting {
    /// The public key of the fleet's operator. A fleet of another operator is refused.
    pub operator: Option<PublicKey>,
    /// What the machine of each stage must have. Nodes and graphs add to it.
    pub runs_on: Need,
}

pub(super) fn parse(fields: &mut Fields<'_>, table: &Field<'_, '_>) -> FleetSetting {
    let mut setting = FleetSetting::default();
    for field in fields.table(table) {
        match field.name {
            "operator" => setting.operator = operator(fields, &field),
            "runs_on" => setting.runs_on = need(fields, &field),
            _ => fields.unknown(&field, &["operator", "runs_on"]),
        }
    }
    setting
}

fn operator(fields: &mut Fields<'_>, field: &Field<'_, '_>) -> Option<PublicKey> {
    let text = fields.text(field)?;
    text.parse().map_err(|error| fields.value_problem(field.at_value(), format!("`{field}`: {error}"))).ok()
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
