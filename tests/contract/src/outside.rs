//! The checks of components that are no stages: tool providers and policies.
//!
//! Each question gets a new instance, as in a run. The files are those of the kit's normal input.

mod policies;
mod providers;

use crate::TestRequest;
use crate::error::TestError;
use crate::report::{CheckResult, Finding, TestReport};
use crate::text;
use std::cell::Cell;
use std::time::Instant;

/// Group of the checks of a tool provider.
pub(crate) const TOOLS: &str = "tools";
/// Group of the checks of a policy.
pub(crate) const POLICY: &str = "policy";

/// One check of a component of the kind `T`.
struct Check<T> {
    name: &'static str,
    checks: &'static str,
    help: &'static str,
    run: fn(&T) -> Finding,
}

/// Tests a component of the world `tool-provider` or `policy`. `None` for any other world.
pub(crate) fn test(request: &TestRequest<'_>) -> Option<Result<TestReport, TestError>> {
    match request.inspection.world {
        "tool-provider" => Some(providers::test(request)),
        "policy" => Some(policies::test(request)),
        _ => None,
    }
}

/// Runs the checks of a component, or reports why it cannot be loaded. `calls` counts the questions.
fn report<T>(
    request: &TestRequest<'_>,
    table: &[Check<T>],
    loaded: Result<T, String>,
    calls: &Cell<u64>,
    begin: Instant,
) -> TestReport {
    let group = |name: &'static str| name.split('.').next().unwrap_or(name);
    let is_chosen = |check: &&Check<T>| request.only.as_ref().is_none_or(|only| only == group(check.name));
    let result = |check: &Check<T>, finding| {
        CheckResult::named(check.name.into(), check.checks.into(), check.help.into(), finding)
    };
    let imports = |finding| {
        let world = request.inspection.world;
        let checks = format!("it imports only what the world `{world}` allows, and exports its interface");
        let help = format!("build it for the world `{world}`, without the interfaces that are named");
        CheckResult::named("contract.imports".into(), checks.into(), help.into(), finding)
    };
    let mut results = Vec::new();
    match loaded {
        Ok(component) => {
            results.push(imports(Finding::passed()));
            results.extend(table.iter().filter(is_chosen).map(|check| result(check, (check.run)(&component))));
        }
        Err(problem) => {
            results.push(imports(Finding::Failed(text::lines(&problem))));
            let not_run = || Finding::NotRun("the component cannot be loaded".to_owned());
            results.extend(table.iter().filter(is_chosen).map(|check| result(check, not_run())));
        }
    }
    let of_stages =
        (!request.cases.is_empty()).then_some("cases").into_iter().chain(request.input.as_ref().map(|_| "input"));
    results.extend(of_stages.map(|name| {
        let finding = Finding::NotRun("a stage file is for a component that executes nodes".to_owned());
        CheckResult::named(format!("{name}.all").into(), "the stage files are called".into(), "".into(), finding)
    }));
    TestReport { calls: calls.get(), ..TestReport::new(request, results, None, begin.elapsed()) }
}
