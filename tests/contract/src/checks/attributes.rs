//! Checks of the attributes that the plugin declares for its nodes: the declaration itself, and calls with values that it allows, does not
//! allow, requires, and does not know.
//!
//! A run never starts with a wrong value or without a required attribute, because `glovebox check` refuses the pipeline. A plugin must end
//! such a call all the same: values can be set after the check, and other hosts may not check at all.

use super::contract::malformed;
use crate::bench::Bench;
use crate::error::TestError;
use crate::observed::Observed;
use crate::report::Finding;
use crate::sample::{right_values, wrong_value};
use crate::stage_file::StageFile;
use crate::text::quoted;
use glovebox_host::inspect::attribute_schema::AttributeSchema;
use glovebox_pipeline::attributes::is_reserved;
use glovebox_pipeline::key::Key;
use std::collections::BTreeMap;

/// An attribute that no plugin declares: its name has a prefix that is not the plugin's own.
const UNKNOWN: (&str, &str) = ("x.glovebox_plugin_test_unknown", "a value");

/// Returns the declared attributes, or why there is nothing to check.
fn declared<'b>(bench: &'b Bench<'_>) -> Result<&'b BTreeMap<String, AttributeSchema>, Finding> {
    let manifest = bench.inspection.manifest.as_ref();
    match manifest.and_then(|manifest| manifest.attributes.as_ref()).filter(|declared| !declared.is_empty()) {
        Some(declared) => Ok(declared),
        None => Err(Finding::NotApplicable("it declares no attributes".to_owned())),
    }
}

pub(super) fn names(bench: &Bench<'_>) -> Result<Finding, TestError> {
    let declared = match declared(bench) {
        Ok(declared) => declared,
        Err(finding) => return Ok(finding),
    };
    Ok(Finding::of(
        declared
            .keys()
            .find(|name| is_reserved(Key::new(name)))
            .map(|name| format!("it declares {}, which Glovebox itself reads: every project refuses it", quoted(name))),
    ))
}

pub(super) fn documented(bench: &Bench<'_>) -> Result<Finding, TestError> {
    let declared = match declared(bench) {
        Ok(declared) => declared,
        Err(finding) => return Ok(finding),
    };
    let without = declared.iter().find(|(_, schema)| schema.doc.trim().is_empty());
    Ok(Finding::of(without.map(|(name, _)| format!("{} has no `doc`", quoted(name)))))
}

/// Calls the component once for each of these values of an attribute, and returns the first problem.
fn each(
    bench: &Bench<'_>,
    values: impl Iterator<Item = (String, Option<String>)>,
    problem: impl Fn(&Observed) -> Option<String>,
) -> Result<Finding, TestError> {
    let mut count = 0;
    for (name, value) in values {
        let mut stage = bench.normal_stage();
        let title = match &value {
            Some(value) => format!("the attribute {} = {}", quoted(&name), quoted(value)),
            None => format!("no attribute {}", quoted(&name)),
        };
        match value {
            Some(value) => stage.input.attributes.insert(name, value),
            None => stage.input.attributes.remove(&name),
        };
        let observed = call(bench, &title, &stage)?;
        if let Some(problem) = problem(&observed) {
            return Ok(Finding::Failed(format!("with {title}: {problem}")));
        }
        count += 1;
    }
    Ok(match count {
        0 => Finding::NotApplicable("no declared attribute is of this kind".to_owned()),
        1 => Finding::Passed(Some("1 value".to_owned())),
        _ => Finding::Passed(Some(format!("{count} values"))),
    })
}

fn call(bench: &Bench<'_>, title: &str, stage: &StageFile) -> Result<Observed, TestError> {
    bench.call(title, &bench.plan(stage, bench.granted()))
}

pub(super) fn values(bench: &Bench<'_>) -> Result<Finding, TestError> {
    let declared = match declared(bench) {
        Ok(declared) => declared,
        Err(finding) => return Ok(finding),
    };
    let values = declared
        .iter()
        .flat_map(|(name, schema)| right_values(schema).into_iter().map(|value| (name.clone(), Some(value))));
    each(bench, values, malformed)
}

pub(super) fn wrong_values(bench: &Bench<'_>) -> Result<Finding, TestError> {
    let declared = match declared(bench) {
        Ok(declared) => declared,
        Err(finding) => return Ok(finding),
    };
    let values = declared.iter().filter_map(|(name, schema)| Some((name.clone(), Some(wrong_value(schema)?))));
    each(bench, values, malformed)
}

pub(super) fn required(bench: &Bench<'_>) -> Result<Finding, TestError> {
    let declared = match declared(bench) {
        Ok(declared) => declared,
        Err(finding) => return Ok(finding),
    };
    let required = declared.iter().filter(|(_, schema)| schema.required).map(|(name, _)| (name.clone(), None));
    each(bench, required, |observed| {
        let passes = observed.report.outcome.status.satisfies_gate();
        malformed(observed)
            .or_else(|| passes.then(|| format!("it answers `{}` without it", observed.report.outcome.status.as_str())))
    })
}

pub(super) fn unknown(bench: &Bench<'_>) -> Result<Finding, TestError> {
    if let Err(finding) = declared(bench) {
        return Ok(finding);
    }
    let (normal, again) = (bench.normal()?, bench.normal_again()?);
    let ends = |observed: &Observed| (observed.report.outcome.clone(), observed.calls.digest);
    if ends(normal) != ends(again) {
        return Ok(Finding::NotApplicable("two calls with the same input differ already".to_owned()));
    }
    let mut stage = bench.normal_stage();
    stage.input.attributes.insert(UNKNOWN.0.to_owned(), UNKNOWN.1.to_owned());
    let observed = call(bench, "an unknown attribute", &stage)?;
    let differs = ends(&observed) != ends(normal);
    Ok(Finding::of(differs.then(|| format!("it does something else if a node has {}", quoted(UNKNOWN.0)))))
}
