//! Writes the checks of a component as a JUnit report: one suite, and one case for each check.
//!
//! A check that does not apply or was not made is a skipped case. The component's own texts are escaped in the report already.

use crate::exit::{Exit, Stop};
use glovebox_contract::report::{CheckResult, TestReport, Verdict};
use glovebox_names::visible;
use quick_junit::{NonSuccessKind, TestCase, TestCaseStatus, TestSuite};
use std::time::Duration;

/// Returns the report as XML.
pub(super) fn render(report: &TestReport) -> Result<String, Stop> {
    let mut suite = TestSuite::new(report.name.as_deref().unwrap_or("plugin"));
    suite.set_time(Duration::from_millis(report.duration_ms));
    suite.add_property(("digest", &*report.digest.to_string()));
    for check in &report.checks {
        suite.add_test_case(case(check));
    }
    let mut xml = quick_junit::Report::new("glovebox plugin test");
    xml.add_test_suite(suite);
    xml.to_string().map_err(|error| Stop::new(Exit::Internal, format!("write JUnit: {error}")))
}

fn case(check: &CheckResult) -> TestCase {
    let detail = check.detail.as_deref().unwrap_or_default();
    let status = match check.verdict {
        Verdict::Passed => TestCaseStatus::success(),
        Verdict::Failed => {
            let mut status = TestCaseStatus::non_success(NonSuccessKind::Failure);
            let help = check.help.as_deref().unwrap_or_default();
            status.set_message(visible::block(&format!("{detail}\nhelp: {help}")));
            status
        }
        Verdict::NotApplicable | Verdict::NotRun => {
            let mut status = TestCaseStatus::skipped();
            status.set_message(visible::block(detail));
            status
        }
    };
    let (group, name) = check.name.split_once('.').unwrap_or(("", &*check.name));
    let mut case = TestCase::new(visible::line(name), status);
    case.set_classname(group);
    case.add_property(("checks", &*check.checks));
    case
}
