//! The `[fleet]` table: the fleet of machines that runs the project's pipelines, and on which machines its stages may run.

use super::field::{Field, Fields};
use glovebox_pipeline::lower::duration;
use glovebox_record::Need;
use glovebox_record::placement::{ENTRIES_MAX, NeedFault};
use glovebox_signing::key::PublicKey;
use std::time::Duration;

/// The `[fleet]` table. By default stages may run on every machine.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FleetSetting {
    /// The public key of the fleet's operator. A fleet of another operator is refused.
    pub operator: Option<PublicKey>,
    /// What the machine of each stage must have. Nodes and graphs add to it.
    pub runs_on: Need,
    /// How long the next stage of a branch waits for the machine that made the last one. `None` for the default.
    pub wait_warm: Option<Duration>,
}

/// The longest time for which a stage may wait for the machine of its branch.
const WAIT_WARM_MAX: Duration = Duration::from_secs(3600);

pub(super) fn parse(fields: &mut Fields<'_>, table: &Field<'_, '_>) -> FleetSetting {
    let mut setting = FleetSetting::default();
    for field in fields.table(table) {
        match field.name {
            "operator" => setting.operator = operator(fields, &field),
            "runs_on" => setting.runs_on = need(fields, &field),
            "wait_warm" => setting.wait_warm = wait_warm(fields, &field),
            _ => fields.unknown(&field, &["operator", "runs_on", "wait_warm"]),
        }
    }
    setting
}

/// Reads a duration of at most an hour.
fn wait_warm(fields: &mut Fields<'_>, field: &Field<'_, '_>) -> Option<Duration> {
    let found = field.value.as_str().and_then(duration).filter(|wait| *wait <= WAIT_WARM_MAX);
    if found.is_none() {
        fields.value_problem(field.at_value(), format!("`{field}` is not a time of at most an hour such as `\"30s\"`"));
    }
    found
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
