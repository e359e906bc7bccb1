//! Checks that two calls with the same input do the same. The answers of the model are scripted or simulated, and so the same.

use crate::bench::Bench;
use crate::error::TestError;
use crate::observed::{Observed, ObservedChange};
use crate::report::Finding;
use crate::text::quoted;
use glovebox_host::call::{Claim, HostCall};
use glovebox_record::Ending;
use serde_json::Value;
use std::collections::BTreeMap;

pub(super) fn outcome(bench: &Bench<'_>) -> Result<Finding, TestError> {
    let (one, two) = (bench.normal()?, bench.normal_again()?);
    let kind = |ending: &Ending| std::mem::discriminant(ending);
    if kind(&one.report.ending) != kind(&two.report.ending) {
        return Ok(Finding::Failed(format!("in the first call {}, in the second {}", one.ended(), two.ended())));
    }
    let (first, second) = (parts(one), parts(two));
    let mut names = first.keys().chain(second.keys());
    let different = names.find(|name| first.get(*name) != second.get(*name));
    Ok(Finding::of(different.map(|name| {
        let shown =
            |parts: &BTreeMap<String, String>| parts.get(name).map_or_else(|| "absent".to_owned(), |text| quoted(text));
        format!("{} is {} and then {}", quoted(name), shown(&first), shown(&second))
    })))
}

/// Returns the parts of an outcome as texts. Each value of the context is a part.
fn parts(observed: &Observed) -> BTreeMap<String, String> {
    let mut parts = BTreeMap::new();
    let outcome = serde_json::to_value(&observed.report.outcome).unwrap_or_default();
    for (name, value) in outcome.as_object().into_iter().flatten() {
        match value {
            Value::Object(fields) => {
                parts.extend(fields.iter().map(|(field, value)| (format!("{name}.{field}"), text(value))));
            }
            value => drop(parts.insert(name.clone(), text(value))),
        }
    }
    for (at, Claim { kind, value }) in observed.report.claims.iter().enumerate() {
        parts.insert(format!("claims.{at}"), format!("{kind} {value}"));
    }
    parts
}

fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

pub(super) fn host_calls(bench: &Bench<'_>) -> Result<Finding, TestError> {
    let (one, two) = (&bench.normal()?.calls, &bench.normal_again()?.calls);
    if one.digest == two.digest {
        return Ok(Finding::Passed(Some(format!("{} host calls", one.total))));
    }
    let shown = |call: Option<&HostCall>| match call {
        Some(call) => format!("`{}` ({})", call.function, call.shown),
        None => "absent".to_owned(),
    };
    let longest = one.kept.len().max(two.kept.len());
    let different = (0..longest).find(|at| one.kept.get(*at) != two.kept.get(*at));
    Ok(Finding::Failed(match different {
        Some(at) => {
            format!("host call {} is {} and then {}", at + 1, shown(one.kept.get(at)), shown(two.kept.get(at)))
        }
        None => format!("they differ after the first {longest} host calls: {} and then {} calls", one.total, two.total),
    }))
}

pub(super) fn files(bench: &Bench<'_>) -> Result<Finding, TestError> {
    let (one, two) = (bench.normal()?, bench.normal_again()?);
    let key = |change: &ObservedChange| (change.op, change.digest);
    let changes = |observed: &Observed| -> BTreeMap<String, _> {
        observed.changes.iter().map(|change| (change.path.clone(), key(change))).collect()
    };
    let (first, second) = (changes(one), changes(two));
    if let Some(path) = first.keys().chain(second.keys()).find(|path| first.get(*path) != second.get(*path)) {
        return Ok(Finding::Failed(format!("{} is changed in two ways", quoted(path))));
    }
    let artifacts = |observed: &Observed| -> BTreeMap<String, (String, Vec<u8>)> {
        let kept = observed.report.artifacts.iter();
        kept.map(|one| (one.name.clone(), (one.media_type.clone(), one.data.clone()))).collect()
    };
    let (first, second) = (artifacts(one), artifacts(two));
    let different = first.keys().chain(second.keys()).find(|name| first.get(*name) != second.get(*name));
    Ok(match different {
        Some(name) => Finding::Failed(format!("the artifact {} has two contents", quoted(name))),
        None if one.changes.is_empty() && first.is_empty() => {
            Finding::NotApplicable("with this input it changes no file and stores no artifact".to_owned())
        }
        None => Finding::passed(),
    })
}
