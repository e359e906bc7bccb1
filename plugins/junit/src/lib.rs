//! The `junit` verifier: reads a test report in JUnit XML, and passes if enough tests ran and none of them failed.
//!
//! A report alone is not a proof, because any earlier stage may have written it. With `command`, the node runs the tests itself, the
//! host records a receipt, and a report from before the command is ignored.
#![forbid(unsafe_code)]
#![expect(clippy::result_large_err, reason = "a stage makes one outcome and ends")]

mod report;

use glovebox_plugin_sdk::exec::{self, Exit};
use glovebox_plugin_sdk::{Handler, Outcome, Stage, artifact, export, files, log};
use report::Report;

/// Maximum length of a report that is read, in bytes.
const REPORT_BYTES_MAX: usize = 16 << 20;

struct Junit;

impl Handler for Junit {
    fn execute(stage: Stage) -> Outcome {
        match Check::from_stage(&stage) {
            Ok(check) => check.run(&stage).unwrap_or_else(|failed| failed),
            Err(reason) => Outcome::fail("junit/syntax", reason),
        }
    }
}

export!(
    Junit,
    manifest = concat!(
        r#"{"name":"junit","version":""#,
        env!("CARGO_PKG_VERSION"),
        r#"","description":"Checks a test report in JUnit XML.","#,
        r#""wants":{"filesystem":"workspace","read":["./"],"write":["./"],"commands":["*"]}}"#
    )
);

/// The attributes of the node.
struct Check<'a> {
    report: &'a str,
    tests_min: u64,
    command: Option<&'a str>,
}

impl<'a> Check<'a> {
    fn from_stage(stage: &'a Stage) -> Result<Self, String> {
        let text = |name| stage.attribute(name).map(str::trim).filter(|text| !text.is_empty());
        let report =
            text("report").ok_or("no `report`, expected the path of a JUnit report such as `target/junit.xml`")?;
        let tests_min = match text("min_tests") {
            None => 1,
            Some(text) => match text.parse() {
                Ok(count) if count > 0 => count,
                _ => return Err(format!("`min_tests` is `{text}`, expected a number of at least 1")),
            },
        };
        Ok(Self { report, tests_min, command: text("command") })
    }

    /// Checks the report. Returns the outcome of a failed check as an `Err`.
    fn run(&self, stage: &Stage) -> Result<Outcome, Outcome> {
        let Some(command) = self.command else { return self.judge(&self.read()?) };
        let before = files::read_text(self.report, REPORT_BYTES_MAX);
        let described = exec::shell(command).set_up_by(stage);
        let exit = described.map_err(|reason| Outcome::fail("junit/timeout-syntax", reason))?.run()?;
        keep(stage, &exit);
        if exit.how != "exited" {
            let class = if exit.how == "canceled" { "canceled" } else { "transient" };
            return Err(Outcome::fail("junit/command", format!("`{command}` ended: {}", exit.how)).class(class));
        }
        let text = self.read()?;
        if before.is_ok_and(|before| before == text) {
            let reason = format!("`{command}` did not write `{}`: its content is the same as before", self.report);
            return Err(Outcome::fail("junit/old-report", reason));
        }
        let outcome = self.judge(&text)?;
        match exit.code {
            Some(0) => Ok(outcome.claim_command(&exit.receipt)),
            code => {
                let code = code.map_or_else(|| "none".to_owned(), |code| code.to_string());
                let reason = format!("no test failed in `{}`, but `{command}` exited with {code}", self.report);
                Err(Outcome::fail("junit/exit-code", reason))
            }
        }
    }

    fn read(&self) -> Result<String, Outcome> {
        files::read_text(self.report, REPORT_BYTES_MAX).map_err(|error| {
            Outcome::fail(format!("junit/{}", error.code), format!("the report cannot be read: {}", error.message))
        })
    }

    fn judge(&self, text: &str) -> Result<Outcome, Outcome> {
        let path = self.report;
        let report =
            Report::parse(text).map_err(|reason| Outcome::fail("junit/report", format!("`{path}` {reason}")))?;
        let Report { ran, skipped, failed, named } = report;
        if failed > 0 {
            let named = named.join(", ");
            return Err(Outcome::fail("junit/failed", format!("{failed} of {ran} tests failed in `{path}`: {named}")));
        }
        if ran < self.tests_min {
            let least = self.tests_min;
            let reason = format!("`{path}` has {ran} tests that ran and {skipped} skipped, expected at least {least}");
            return Err(Outcome::fail("junit/too-few-tests", reason));
        }
        Ok(Outcome::success().notes(format!("{ran} tests passed, {skipped} skipped")).set("junit.tests", ran))
    }
}

/// Stores the output of the command. If it is refused, the stage does not fail.
fn keep(stage: &Stage, exit: &Exit) {
    let code = exit.code.map_or_else(|| format!("exit_code={}", exit.how), |code| format!("exit_code={code}"));
    let text = format!("{code}\nstdout:\n{}\nstderr:\n{}\n", exit.stdout.text(), exit.stderr.text());
    let name = format!("{}.output", stage.node_id());
    if let Err(reason) = artifact::put_text(&name, &text) {
        log::warn("artifact not kept", &[("name", &name), ("reason", &reason)]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use glovebox_plugin_sdk::testing::{Host, StageBuilder, exited, stage};

    const PASSED: &str = "<testsuite><testcase name='a'/></testsuite>";

    fn reason(host: &Host, node: StageBuilder) -> String {
        let outcome = host.execute::<Junit>(node);
        outcome.failure().map(|failure| format!("{}: {}", failure.code, failure.reason)).unwrap_or_default()
    }

    #[test]
    fn a_report_is_judged() {
        let check = |text: &str, min_tests: &str, expected: &str| {
            let host = Host::new();
            host.write("r.xml", text);
            let node = stage("n").attribute("report", "r.xml").attribute("min_tests", min_tests);
            let found = reason(&host, node);
            assert!(found.starts_with(expected) && expected.is_empty() == found.is_empty(), "{text}: {found}");
        };
        check(PASSED, "", "");
        check(PASSED, "2", "junit/too-few-tests: `r.xml` has 1 tests that ran and 0 skipped, expected at least 2");
        check(PASSED, "0", "junit/syntax: `min_tests` is `0`");
        check("<testsuite/>", "", "junit/too-few-tests");
        check("<testsuite><testcase name='a'><skipped/></testcase></testsuite>", "", "junit/too-few-tests");
        check(
            "<testsuite><testcase name='a'><failure/></testcase></testsuite>",
            "",
            "junit/failed: 1 of 1 tests failed in `r.xml`: a",
        );
        check("<html/>", "", "junit/report: `r.xml` is not a JUnit report");
    }

    #[test]
    fn unreadable_reports_fail() {
        let host = Host::new();
        host.write("long.xml", vec![b' '; REPORT_BYTES_MAX + 1]);
        host.write("raw.xml", [0xff]);
        let check = |path: &str, expected: &str| {
            let found = reason(&host, stage("n").attribute("report", path));
            assert!(found.starts_with(expected), "{found}");
        };
        check("none.xml", "junit/not-found");
        check("../r.xml", "junit/invalid");
        check("long.xml", "junit/too-large");
        check("raw.xml", "junit/invalid");
        check("", "junit/syntax: no `report`");
    }

    #[test]
    fn a_report_from_before_the_command_does_not_count() {
        let host = Host::new();
        host.write("r.xml", PASSED);
        host.answer_command("true", Ok(exited(0, "")));
        let node = stage("n").attribute("report", "r.xml").attribute("command", "true");
        assert_eq!(
            reason(&host, node),
            "junit/old-report: `true` did not write `r.xml`: its content is the same as before"
        );
        assert_eq!(host.commands(), ["true"]);
    }
}
