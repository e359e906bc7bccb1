//! The `[fleet]` table: the fleet of machines that runs the project's pipelines.

use super::field::{Field, Fields};
use glovebox_signing::key::PublicKey;

/// The `[fleet]` table.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FleetSetting {
    /// The public key of the fleet's operator. A fleet of another operator is refused.
    pub operator: Option<PublicKey>,
}

pub(super) fn parse(fields: &mut Fields<'_>, table: &Field<'_, '_>) -> FleetSetting {
    let mut setting = FleetSetting::default();
    for field in fields.table(table) {
        match field.name {
            "operator" => setting.operator = operator(fields, &field),
            _ => fields.unknown(&field, &["operator"]),
        }
    }
    setting
}

fn operator(fields: &mut Fields<'_>, field: &Field<'_, '_>) -> Option<PublicKey> {
    let text = fields.text(field)?;
    text.parse().map_err(|error| fields.value_problem(field.at_value(), format!("`{field}`: {error}"))).ok()
}
