//! The `[verify]` table: which commands verification stages run in addition to a model's plan.

use super::field::{Field, Fields};
use crate::verify::Verify;
use crate::verify::settings::{Part, SETTINGS, Setting, contract_path};
use toml::de::DeValue;

/// The fields of the `[verify]` table.
const FIELDS: [&str; 4] = ["contract", "planner", "worker", "retry"];

pub(super) fn parse(fields: &mut Fields<'_>, table: &Field<'_, '_>) -> Verify {
    let mut verify = Verify::default();
    let rows = fields.table(table);
    // The path for one phase has precedence over the path for both phases, whatever the order of the fields is.
    for field in rows.iter().filter(|field| field.name == "contract") {
        let Some(path) = fields.text(field) else { continue };
        match contract_path(&path) {
            Ok(path) => {
                verify.planner.contract_path = Some(path.clone());
                verify.worker.contract_path = Some(path);
            }
            Err(refused) => fields.value_problem(field.at_value(), format!("`{field}`: {refused}")),
        }
    }
    for field in &rows {
        match field.name {
            "contract" => {}
            "planner" => part(fields, field, Part::Planner, &mut verify),
            "worker" => part(fields, field, Part::Worker, &mut verify),
            "retry" => part(fields, field, Part::Retry, &mut verify),
            _ => fields.unknown(field, &FIELDS),
        }
    }
    verify
}

fn part(fields: &mut Fields<'_>, table: &Field<'_, '_>, part: Part, verify: &mut Verify) {
    for field in fields.table(table) {
        let Some(setting) = Setting::of_field(part, field.name) else {
            let known: Vec<&str> = SETTINGS.iter().filter(|one| one.part == part).map(|one| one.field).collect();
            fields.unknown(&field, &known);
            continue;
        };
        let value = match field.value {
            DeValue::String(text) => text.as_ref(),
            DeValue::Integer(number) => number.as_str(),
            DeValue::Boolean(true) => "true",
            DeValue::Boolean(false) => "false",
            other => {
                let found = other.type_str();
                let message =
                    format!("`{field}` is of type {found}: a string, a number, `true` or `false` is expected");
                fields.value_problem(field.at_value(), message);
                continue;
            }
        };
        if let Err(refused) = setting.apply(verify, value) {
            fields.value_problem(field.at_value(), format!("`{field}`: {refused}"));
        }
    }
}
