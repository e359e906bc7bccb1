//! The `[run]` table: bounds of a run as a whole. Those of a pipeline (steps, wall time) are its author's; this is the operator's.

use super::field::{Field, Fields};
use glovebox_record::LimitUnit;
use toml::de::DeValue;

/// The `[run]` table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunSetting {
    /// Most bytes that a run's folder may hold when a stage begins.
    pub disk_bytes_max: u64,
}

impl Default for RunSetting {
    fn default() -> Self {
        Self { disk_bytes_max: 10 << 30 }
    }
}

pub(super) fn parse(fields: &mut Fields<'_>, table: &Field<'_, '_>) -> RunSetting {
    let mut setting = RunSetting::default();
    for field in fields.table(table) {
        match field.name {
            "disk_bytes_max" => setting.disk_bytes_max = bytes(fields, &field, setting.disk_bytes_max),
            _ => fields.unknown(&field, &["disk_bytes_max"]),
        }
    }
    setting
}

/// A size as limits have it; none of zero, with which no stage could ever begin.
fn bytes(fields: &mut Fields<'_>, field: &Field<'_, '_>, otherwise: u64) -> u64 {
    let found = match field.value {
        DeValue::String(text) => LimitUnit::Bytes.parse(text),
        DeValue::Integer(number) => LimitUnit::Bytes.parse(number.as_str()),
        _ => None,
    };
    found.filter(|bytes| *bytes > 0).unwrap_or_else(|| {
        let message = format!("`{field}` is not a number of bytes above 0 such as `1048576` or `\"64MiB\"`");
        fields.value_problem(field.at_value(), message);
        otherwise
    })
}
