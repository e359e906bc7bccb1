//! A JUnit XML report: how many tests ran, and which of them failed.
//!
//! A pull parser reads a text of bounded length. Document types are refused, so that no entity is defined or expanded. Deep nesting
//! and malformed XML are refused too. Only `testcase` elements are counted. The totals that a report states are ignored.

use quick_xml::Reader;
use quick_xml::events::{BytesStart, Event};

/// Maximum nesting depth of elements.
const DEPTH_MAX: usize = 64;
/// Maximum number of failed tests whose names are kept.
const NAMED_MAX: usize = 10;
/// Maximum length of a test's name, in characters.
const NAME_CHARS_MAX: usize = 200;

/// Counts of a report.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Report {
    /// Number of tests that ran: neither skipped nor disabled.
    pub(crate) ran: u64,
    pub(crate) skipped: u64,
    pub(crate) failed: u64,
    /// Names of the first failed tests.
    pub(crate) named: Vec<String>,
}

/// A test whose element is not closed yet.
#[derive(Default)]
struct Case {
    name: String,
    depth: usize,
    has_failed: bool,
    is_skipped: bool,
}

impl Report {
    /// Parses a report, or returns a description of the problem.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let mut reader = Reader::from_str(text);
        let (mut report, mut case, mut depth) = (Report::default(), None, 0);
        let mut has_root = false;
        loop {
            let event = reader.read_event().map_err(|error| format!("is not well-formed XML: {error}"))?;
            match event {
                Event::Start(element) => {
                    depth += 1;
                    if depth > DEPTH_MAX {
                        return Err(format!("nests its elements deeper than {DEPTH_MAX} levels"));
                    }
                    begin(&element, &mut has_root, depth)?;
                    report.open(&element, &mut case, depth)?;
                }
                Event::Empty(element) => {
                    begin(&element, &mut has_root, depth + 1)?;
                    report.open(&element, &mut case, depth + 1)?;
                    report.close(&mut case, depth + 1);
                }
                Event::End(_) => {
                    report.close(&mut case, depth);
                    depth = depth.saturating_sub(1);
                }
                Event::DocType(_) => return Err("has a document type, which is refused".to_owned()),
                Event::Eof if depth > 0 => return Err("ends inside an element".to_owned()),
                Event::Eof if !has_root => return Err("has no element".to_owned()),
                Event::Eof => return Ok(report),
                _ => {}
            }
        }
    }

    fn open(&mut self, element: &BytesStart<'_>, case: &mut Option<Case>, depth: usize) -> Result<(), String> {
        match (element.local_name().as_ref(), case.as_mut()) {
            (b"testcase", Some(_)) => return Err("has a `testcase` inside a `testcase`".to_owned()),
            (b"testcase", None) => *case = Some(Case { name: name(element)?, depth, ..Case::default() }),
            (b"failure" | b"error", Some(case)) => case.has_failed = true,
            (b"skipped" | b"disabled", Some(case)) => case.is_skipped = true,
            // The set-up of a whole test suite failed.
            (b"failure" | b"error", None) => self.fail("a test suite".to_owned()),
            _ => {}
        }
        Ok(())
    }

    /// Counts the test whose element ends at this depth. A failed test is never counted as skipped.
    fn close(&mut self, case: &mut Option<Case>, depth: usize) {
        let Some(case) = case.take_if(|case| case.depth == depth) else { return };
        match case {
            Case { has_failed: true, name, .. } => {
                self.ran += 1;
                self.fail(name);
            }
            Case { is_skipped: true, .. } => self.skipped += 1,
            Case { .. } => self.ran += 1,
        }
    }

    fn fail(&mut self, name: String) {
        self.failed += 1;
        if self.named.len() < NAMED_MAX {
            self.named.push(name);
        }
    }
}

/// Checks the first element, and that there is only one root element.
fn begin(element: &BytesStart<'_>, has_root: &mut bool, depth: usize) -> Result<(), String> {
    if depth > 1 {
        return Ok(());
    }
    if *has_root || !matches!(element.local_name().as_ref(), b"testsuites" | b"testsuite") {
        return Err("is not a JUnit report, expected one element `testsuites` or `testsuite`".to_owned());
    }
    *has_root = true;
    Ok(())
}

/// Returns the names of a test and its class as one line of limited length.
fn name(element: &BytesStart<'_>) -> Result<String, String> {
    let (mut class, mut name) = (String::new(), String::new());
    for attribute in element.attributes() {
        let attribute = attribute.map_err(|error| format!("is not well-formed XML: {error}"))?;
        let place = match attribute.key.local_name().as_ref() {
            b"classname" => &mut class,
            b"name" => &mut name,
            _ => continue,
        };
        // A name with an entity that XML does not define is kept as written.
        let written = || String::from_utf8_lossy(&attribute.value).into_owned();
        *place = quick_xml::escape::unescape(&String::from_utf8_lossy(&attribute.value))
            .map_or_else(|_| written(), std::borrow::Cow::into_owned);
    }
    let whole = if class.is_empty() { name } else { format!("{class}.{name}") };
    Ok(whole.chars().map(|one| if one.is_control() { ' ' } else { one }).take(NAME_CHARS_MAX).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted(cases: &str) -> Result<(u64, u64, u64, String), String> {
        let report = Report::parse(&format!(
            "<?xml version=\"1.0\"?>\n<testsuites><testsuite>{cases}</testsuite></testsuites>"
        ))?;
        Ok((report.ran, report.skipped, report.failed, report.named.join(",")))
    }

    #[test]
    fn tests_are_counted_by_their_elements() {
        let check = |cases: &str, ran, skipped, failed, named: &str| {
            assert_eq!(counted(cases), Ok((ran, skipped, failed, named.to_owned())), "{cases}");
        };
        check("", 0, 0, 0, "");
        check("<testcase name='a'/><testcase name='b'></testcase>", 2, 0, 0, "");
        check("<testcase classname='m' name='a&lt;b'><failure>x</failure></testcase>", 1, 0, 1, "m.a<b");
        check("<testcase name='a'><error/><skipped/></testcase>", 1, 0, 1, "a");
        check("<testcase name='a'><skipped/></testcase><testcase name='b'/>", 1, 1, 0, "");
        check("<error/><testcase name='a'/>", 1, 0, 1, "a test suite");
        check(
            "<testcase name='a\nb'><system-out><![CDATA[<failure/>]]></system-out><failure/></testcase>",
            1,
            0,
            1,
            "a b",
        );
        check(&"<testcase name='a'><failure/></testcase>".repeat(30), 30, 0, 30, &["a"; 10].join(","));
    }

    #[test]
    fn totals_of_the_report_are_not_believed() {
        let report =
            Report::parse("<testsuite tests='900' failures='0'><testcase name='a'><failure/></testcase></testsuite>");
        assert_eq!(report.map(|report| (report.ran, report.failed)), Ok((1, 1)));
    }

    #[test]
    fn hostile_documents_are_refused() {
        let check = |text: &str, expected: &str| {
            let reason = Report::parse(text).expect_err(text);
            assert!(reason.contains(expected), "{reason}");
        };
        let bomb = "<!DOCTYPE a [<!ENTITY a \"aaaa\"><!ENTITY b \"&a;&a;&a;\">]><testsuite><testcase name=\"&b;\"/></testsuite>";
        check(bomb, "document type");
        check(&"<testsuite>".repeat(100_000), "deeper than 64");
        check("", "no element");
        check("nothing", "no element");
        check("<html/>", "not a JUnit report");
        check("<testsuite/><testsuite/>", "not a JUnit report");
        check("<testsuite><testcase name='a'>", "ends inside");
        check("<testsuite><testcase></testsuite>", "not well-formed");
        check("<testsuite><testcase><testcase/></testcase></testsuite>", "inside a `testcase`");
    }
}
