//! Writes a run as a test suite, with one case for each stage and one for the run itself.
//!
//! A case passes only with a receipt. A stage that passed without one, or that was simulated, is reported as skipped,
//! with the reason. If a loop visited a stage several times, the case reports the last visit.

use super::{Report, StageReport, Verdict};
use crate::exit::{Exit, Stop};
use crate::terminal::summary::{ending, title};
use crate::terminal::{duration, visible};
use glovebox_names::shell;
use glovebox_pipeline::source::Source;
use glovebox_state::evidence::ExitClass;
use quick_junit::{NonSuccessKind, TestCase, TestCaseStatus, TestSuite};
use std::time::Duration;

/// Returns the report as XML.
pub(super) fn render(report: &Report) -> Result<String, Stop> {
    let summary = &report.summary;
    let mut suite = TestSuite::new(&*summary.pipeline);
    suite.set_time(Duration::from_millis(summary.duration_ms));
    suite.add_property(("run_id", &*summary.run_id));
    suite.add_property(("journal_head", &*summary.head.hash.to_string()));
    for stage in &report.stages {
        suite.add_test_case(case(report, stage));
    }
    suite.add_test_case(of_run(report));
    let mut xml = quick_junit::Report::new("glovebox");
    xml.add_test_suite(suite);
    xml.to_string().map_err(|error| Stop::new(Exit::Internal, format!("write JUnit: {error}")))
}

fn case(report: &Report, stage: &StageReport) -> TestCase {
    let verdict = report.verdict(stage);
    let mut status = match verdict.reservation(stage) {
        Some(reason) => skipped(&reason),
        None if verdict == Verdict::Failed => failed(&stage.reason()),
        None => TestCaseStatus::success(),
    };
    if let Some(failure) = stage.failure.as_ref().filter(|_| verdict == Verdict::Failed) {
        status.set_type(failure.code.as_str());
    }
    let mut case = TestCase::new(stage.name(), status);
    case.set_classname(&*report.summary.pipeline).set_time(Duration::from_millis(stage.duration_ms));
    let lines: Vec<String> = report
        .commands(stage)
        .map(|command| {
            let (proof, receipt) = (title(command.proof()), &command.receipt);
            let how = ending(receipt);
            let (time, tier) = (duration(receipt.duration_ms), receipt.tier);
            format!("{proof}: {} {how} in {time} ({tier})", visible::line(&shell::line(&receipt.argv)))
        })
        .collect();
    if stage.visit > 1 {
        case.add_property(("visit", &*stage.visit.to_string()));
    }
    if !lines.is_empty() {
        case.set_system_out(lines.join("\n"));
    }
    if let Some(node) = report.pipeline.pipeline.node(&stage.node).filter(|node| node.child_of.is_none()) {
        let (line, _) =
            crate::terminal::diagnostics::line_and_column(Source::new(&report.pipeline.text), node.span.start);
        case.add_property(("line", &*line.to_string()));
    }
    case
}

/// Returns the case for the end of the run, whose cause may belong to no stage: a bound, a policy, an unmet gate.
fn of_run(report: &Report) -> TestCase {
    let summary = &report.summary;
    let status = match (&summary.end.failure, summary.end.exit) {
        (_, ExitClass::Ok) => TestCaseStatus::success(),
        (Some(failure), exit) => failed(&format!("exit {} ({}): {}", exit.code(), exit.name(), failure.reason)),
        (None, exit) => failed(&format!("exit {} ({})", exit.code(), exit.name())),
    };
    let mut case = TestCase::new("the run", status);
    case.set_classname(&*summary.pipeline).set_time(Duration::from_millis(summary.duration_ms));
    case
}

/// Returns the status of a failed case. The reason is escaped, because it contains texts of stages.
fn failed(reason: &str) -> TestCaseStatus {
    let mut status = TestCaseStatus::non_success(NonSuccessKind::Failure);
    status.set_message(visible::block(reason));
    status
}

fn skipped(reason: &str) -> TestCaseStatus {
    let mut status = TestCaseStatus::skipped();
    status.set_message(reason);
    status
}
