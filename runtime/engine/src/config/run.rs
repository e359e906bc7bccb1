//! The `[run]` table: bounds of a run as a whole. Those of a pipeline (steps, wall time) are its author's; this is the operator's.

use super::field::{Fields, Value};
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

pub(super) fn parse(fields: &mut Fields<'_>, value: &Value<'_>) -> RunSetting {
    let mut setting = RunSetting::default();
    for (key, value) in fields.table("run", value) {
        let name = key.get_ref().as_ref();
        let field = format!("run.{name}");
        match name {
            "disk_bytes_max" => setting.disk_bytes_max = bytes(fields, &field, value, setting.disk_bytes_max),
            _ => fields.unknown(key, &field, &["disk_bytes_max"]),
        }
    }
    setting
}

/// A size as limits have it; none of zero, with which no stage could ever begin.
fn bytes(fields: &mut Fields<'_>, field: &str, value: &Value<'_>, otherwise: u64) -> u64 {
    let found = match value.get_ref() {
        DeValue::String(text) => LimitUnit::Bytes.parse(text),
        DeValue::Integer(number) => LimitUnit::Bytes.parse(number.as_str()),
        _ => None,
    };
    match found.filter(|bytes| *bytes > 0) {
        Some(bytes) => bytes,
        None => {
            let message = format!("`{field}` is not a number of bytes above 0 such as `1048576` or `\"64MiB\"`");
            fields.value_problem(field, value.span(), message, None);
            otherwise
        }
    }
}
