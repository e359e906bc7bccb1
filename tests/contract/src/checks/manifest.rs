//! Checks of the manifest: it is there, and its wants agree with the imports. The component is not called.

use crate::bench::Bench;
use crate::error::TestError;
use crate::report::Finding;
use glovebox_host::inspect::{UnusableWant, UnwantedImport};
pub(super) fn present(bench: &Bench<'_>) -> Result<Finding, TestError> {
    Ok(match &bench.inspection.manifest {
        Some(_) => Finding::passed(),
        None => {
            Finding::Failed("there is no section `glovebox:manifest`, so it wants nothing and gets nothing".to_owned())
        }
    })
}

fn without_manifest() -> Finding {
    Finding::NotApplicable("it has no manifest".to_owned())
}

pub(super) fn usable(bench: &Bench<'_>) -> Result<Finding, TestError> {
    if bench.inspection.manifest.is_none() {
        return Ok(without_manifest());
    }
    Ok(Finding::of(bench.inspection.unusable_want().map(|UnusableWant { want, import }| {
        let instead = if import.starts_with("wasi:") { ": without it, `workspace` is enough" } else { "" };
        format!("it wants `{want}`, but imports no `{import}`{instead}")
    })))
}

pub(super) fn complete(bench: &Bench<'_>) -> Result<Finding, TestError> {
    if bench.inspection.manifest.is_none() {
        return Ok(without_manifest());
    }
    Ok(Finding::of(bench.inspection.unwanted_imports().first().map(|UnwantedImport { import, want }| {
        format!("it imports `{import}`, but does not want `{want}`: every call of that interface is refused")
    })))
}
