//! The conformance kit for plugins: calls a handler with ordinary, odd and hostile inputs in the host that runs every plugin, and
//! checks what it does. `glovebox plugin test` runs it. A project or a pipeline is not needed.
//!
//! Reading order: `stage_file` is what a call gets, written by the author; `sample` has the inputs of the kit; `bench` makes one call
//! and observes it; `checks` has the table of checks; `case` compares a call with the author's expectation; `outside` has the checks of components
//! that are no handlers; `report` is the result.
//!
//! The component under test is not trusted. It works on files of a temporary folder, its commands run in a sandbox or not at all, and
//! its model is scripted. All texts of a report that come from the component are escaped and cut.

#![forbid(unsafe_code)]
#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

mod bench;
mod case;
mod checks;
mod commands;
mod error;
mod observed;
mod outside;
pub mod report;
mod sample;
pub mod stage_file;
mod text;

pub use case::CaseCall;
pub use checks::{CHECKS, Check, groups};
pub use error::TestError;

use bench::Bench;
use glovebox_host::component::{Component, LoadError, check_handler};
use glovebox_host::host::Host;
use glovebox_host::inspect::Inspection;
use glovebox_record::Tier;
use report::{CheckResult, Finding, TestReport};
use stage_file::StageFile;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

/// Default of the wall time of one call, in milliseconds.
pub const WALL_MS: u64 = 10_000;

/// A component, and how it is tested.
pub struct TestRequest<'r> {
    /// The host that runs the component.
    pub host: &'r Host,
    /// The bytes of the component.
    pub bytes: &'r [u8],
    /// The result of inspecting them.
    pub inspection: &'r Inspection,
    /// An empty folder of the caller, who removes it. Its path contains no symbolic links.
    pub folder: PathBuf,
    /// Maximum wall time of one call, in milliseconds.
    pub wall_ms: u64,
    /// The sandbox of the component's commands. `None` if every command is refused.
    pub commands: Option<Tier>,
    /// The normal input, in place of the kit's.
    pub input: Option<StageFile>,
    /// The author's cases, with their names.
    pub cases: Vec<(String, StageFile)>,
    /// The only group of checks that is made. `None` for all.
    pub only: Option<String>,
}

/// Runs the checks. A component that cannot be loaded fails the first check, and the others are not run.
///
/// # Errors
/// Fails if the kit itself could not work. A component cannot cause that.
pub fn test(request: TestRequest<'_>) -> Result<TestReport, TestError> {
    let begin = Instant::now();
    if let Some(report) = outside::test(&request) {
        return report;
    }
    let loaded = load(&request);
    let is_chosen = |group: &str| request.only.as_ref().is_none_or(|only| only == group);
    let mut results = Vec::new();
    let imports = match &loaded {
        Ok(_) => Finding::passed(),
        Err(error) => Finding::Failed(text::lines(&error.to_string())),
    };
    let chosen = CHECKS.iter().filter(|check| is_chosen(check.group()));
    let Ok(component) = loaded else {
        results.push(CheckResult::new(&checks::IMPORTS, imports));
        let not_run = || Finding::NotRun("the component cannot be loaded".to_owned());
        results.extend(chosen.map(|check| CheckResult::new(check, not_run())));
        return Ok(TestReport::new(&request, results, None, begin.elapsed()));
    };
    if is_chosen(checks::IMPORTS.group()) {
        results.push(CheckResult::new(&checks::IMPORTS, imports));
    }
    let bench = Bench::new(&request, component)?;
    for check in chosen {
        results.push(CheckResult::new(check, check.run(&bench)?));
    }
    if is_chosen(case::GROUP) {
        for (name, file) in &request.cases {
            results.push(case::run(&bench, name, file)?.check);
        }
    }
    let input = request.input.as_ref().filter(|_| is_chosen(case::INPUT_GROUP));
    let input = input.map(|file| case::input(&bench, file, &mut results)).transpose()?;
    let mut report = TestReport::new(&request, results, Some(&bench), begin.elapsed());
    report.input = input;
    Ok(report)
}

/// Makes only the calls of the author's cases, in their order.
///
/// # Errors
/// Fails if the component cannot be loaded, or if the kit itself could not work.
pub fn cases(request: &TestRequest<'_>) -> Result<Vec<CaseCall>, TestError> {
    let component = load(request).map_err(|error| TestError::Host(text::lines(&error.to_string())))?;
    let bench = Bench::new(request, component)?;
    request.cases.iter().map(|(name, file)| case::run(&bench, name, file)).collect()
}

fn load(request: &TestRequest<'_>) -> Result<Arc<Component>, LoadError> {
    check_handler(request.inspection)?;
    request.host.load(request.bytes)
}
