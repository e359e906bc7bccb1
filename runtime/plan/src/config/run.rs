//! The `[run]` table: limits of a run as a whole. The author of a pipeline limits its steps and wall time; the operator
//! sets the limits in this table.

use super::field::{Field, Fields};
use glovebox_record::LimitUnit;
use glovebox_record::spend::{Money, SpendBounds};
use toml::de::DeValue;

/// The `[run]` table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunSetting {
    /// Maximum number of bytes in a run's folder when a stage begins.
    pub disk_bytes_max: u64,
    /// Maximum number of stages that run at the same time, of all branches together. Each has its own sandbox and model
    /// conversation.
    pub parallel_max: usize,
    /// The budget of a run's model calls.
    pub spend_max: SpendBounds,
    /// Number of the newest runs of the project that are kept when a run ends. `None` keeps all.
    pub keep_runs: Option<usize>,
}

/// Maximum value of `parallel_max`.
pub const PARALLEL_MAX: usize = 1024;

impl Default for RunSetting {
    fn default() -> Self {
        Self { disk_bytes_max: 10 << 30, parallel_max: 8, spend_max: SpendBounds::default(), keep_runs: Some(20) }
    }
}

pub(super) fn parse(fields: &mut Fields<'_>, table: &Field<'_, '_>) -> RunSetting {
    let mut setting = RunSetting::default();
    for field in fields.table(table) {
        match field.name {
            "disk_bytes_max" => setting.disk_bytes_max = bytes(fields, &field, setting.disk_bytes_max),
            "parallel_max" => setting.parallel_max = count(fields, &field, setting.parallel_max),
            "max_tokens" => setting.spend_max.tokens_max = tokens(fields, &field),
            "max_budget_usd" => setting.spend_max.cost_max = money(fields, &field),
            "keep_runs" => setting.keep_runs = kept(fields, &field, setting.keep_runs),
            _ => {
                let known = ["disk_bytes_max", "parallel_max", "max_tokens", "max_budget_usd", "keep_runs"];
                fields.unknown(&field, &known);
            }
        }
    }
    setting
}

/// Reads a size in the syntax of limits. Zero is refused, because no stage could ever begin.
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

/// Reads a number of tokens above 0.
fn tokens(fields: &mut Fields<'_>, field: &Field<'_, '_>) -> Option<u64> {
    let found = match field.value {
        DeValue::Integer(number) => number.as_str().parse().ok().filter(|most| *most > 0),
        _ => None,
    };
    if found.is_none() {
        fields.value_problem(field.at_value(), format!("`{field}` is not a number of tokens above 0"));
    }
    found
}

/// Reads an amount of money, as a number or a text.
pub(super) fn money(fields: &mut Fields<'_>, field: &Field<'_, '_>) -> Option<Money> {
    let text = match field.value {
        DeValue::String(text) => text.as_ref(),
        DeValue::Integer(number) => number.as_str(),
        DeValue::Float(number) => number.as_str(),
        _ => "",
    };
    let found = text.parse::<Money>();
    found.map_err(|error| fields.value_problem(field.at_value(), format!("`{field}`: {error}"))).ok()
}

/// Reads a number of runs, or `"all"`.
fn kept(fields: &mut Fields<'_>, field: &Field<'_, '_>, otherwise: Option<usize>) -> Option<usize> {
    let found = match field.value {
        DeValue::Integer(number) => number.as_str().parse().ok().filter(|count| *count > 0).map(Some),
        DeValue::String(text) if text.as_ref() == "all" => Some(None),
        _ => None,
    };
    found.unwrap_or_else(|| {
        fields.value_problem(field.at_value(), format!("`{field}` is not a number of runs above 0 or `\"all\"`"));
        otherwise
    })
}

/// Reads a number of stages that can run at the same time.
fn count(fields: &mut Fields<'_>, field: &Field<'_, '_>, otherwise: usize) -> usize {
    let found = match field.value {
        DeValue::Integer(number) => number.as_str().parse().ok(),
        _ => None,
    };
    found.filter(|count| (1..=PARALLEL_MAX).contains(count)).unwrap_or_else(|| {
        let message = format!("`{field}` is not a number of stages from 1 to {PARALLEL_MAX}");
        fields.value_problem(field.at_value(), message);
        otherwise
    })
}
