//! The names of failed tests in the output of test runners.
//!
//! Each runner has a line of a fixed form for a failed test. A line of another form is ignored. The names are text of
//! the project's programs: they help a person, and no decision depends on them.

use super::colours;

/// Maximum number of names that are collected.
const NAMES_MAX: usize = 1000;

/// Returns the names of the failed tests in an output, in order.
pub fn names(output: &str) -> Vec<String> {
    let lines = output.lines().map(colours::dropped);
    let named = lines.filter_map(|line| name(&line).map(|name| name.trim().to_owned()));
    named.filter(|name| !name.is_empty()).take(NAMES_MAX).collect()
}

/// Returns the name of the failed test that a line reports.
fn name(line: &str) -> Option<&str> {
    let text = line.trim();
    let readers: [fn(&str) -> Option<&str>; 9] = [cargo, nextest, pytest, unittest, go, tap, mark, gradle, surefire];
    readers.into_iter().find_map(|read| read(text)).or_else(|| ctest(text))
}

/// `test module::name ... FAILED`
fn cargo(text: &str) -> Option<&str> {
    text.strip_prefix("test ")?.strip_suffix(" ... FAILED")
}

/// `FAIL [   0.004s] crate module::name`
fn nextest(text: &str) -> Option<&str> {
    Some(text.strip_prefix("FAIL [")?.split_once("] ")?.1)
}

/// `FAILED tests/test_a.py::test_b - AssertionError`, or `ERROR` for a test that could not be set up.
fn pytest(text: &str) -> Option<&str> {
    let rest = text.strip_prefix("FAILED ").or_else(|| text.strip_prefix("ERROR "))?;
    let name = rest.split(" - ").next()?;
    name.contains("::").then_some(name)
}

/// `FAIL: test_a (module.Class.test_a)`
fn unittest(text: &str) -> Option<&str> {
    let rest = text.strip_prefix("FAIL: ").or_else(|| text.strip_prefix("ERROR: "))?;
    let (name, place) = rest.split_once(" (")?;
    let is_name = name.chars().all(|character| character.is_alphanumeric() || character == '_');
    (is_name && place.contains(')')).then_some(name)
}

/// `--- FAIL: TestName (0.00s)`
fn go(text: &str) -> Option<&str> {
    text.strip_prefix("--- FAIL: ")?.split(" (").next()
}

/// `not ok 2 - name`, also with a comment. A test that is expected to fail is not reported.
fn tap(text: &str) -> Option<&str> {
    let rest = text.strip_prefix("not ok ")?.trim_start_matches(|character: char| character.is_ascii_digit());
    let (name, comment) = rest.split_once(" # ").unwrap_or((rest, ""));
    let is_expected = ["TODO", "SKIP"].iter().any(|word| comment.to_ascii_uppercase().starts_with(word));
    (!is_expected).then(|| name.trim_start().trim_start_matches("- "))
}

/// `✖ name (1.2ms)` of Node, `✕ name (5 ms)` of Jest, `× file > name 3ms` of Vitest, `✗ name` of Bats.
fn mark(text: &str) -> Option<&str> {
    let rest = text.strip_prefix(['✖', '✕', '×', '✗'])?.strip_prefix(' ')?;
    let is_header = rest.trim_end_matches(':') == "failing tests";
    (!is_header).then(|| rest.rsplit_once(" (").filter(|(_, time)| time.ends_with("s)")).map_or(rest, |(name, _)| name))
}

/// `CalcTest > adds() FAILED`
fn gradle(text: &str) -> Option<&str> {
    text.strip_suffix(" FAILED").filter(|name| name.contains(" > ") && !name.starts_with('>'))
}

/// `[ERROR] CalcTest.adds -- Time elapsed: 0.01 s <<< FAILURE!`
fn surefire(text: &str) -> Option<&str> {
    let rest = text.strip_suffix("<<< FAILURE!").or_else(|| text.strip_suffix("<<< ERROR!"))?;
    let name = rest.strip_prefix("[ERROR] ")?.split(" -- ").next()?.split("  Time elapsed").next()?;
    (!name.starts_with("Tests run")).then_some(name)
}

/// `3 - name (Failed)`
fn ctest(text: &str) -> Option<&str> {
    let name = [" (Failed)", " (Timeout)", " (SEGFAULT)"].iter().find_map(|end| text.strip_suffix(end))?;
    let (number, name) = name.split_once(" - ")?;
    number.trim().parse::<u32>().ok().map(|_| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lines_of_each_runner_name_their_tests() {
        for (line, expected) in [
            ("test text::tests::cuts ... FAILED", "text::tests::cuts"),
            ("        FAIL [   0.004s] shop tests::price", "shop tests::price"),
            ("FAILED tests/test_a.py::test_b[x - y] - assert 1 == 2", "tests/test_a.py::test_b[x"),
            ("ERROR tests/test_a.py::test_b", "tests/test_a.py::test_b"),
            ("FAIL: test_price (tests.test_price.Price.test_price)", "test_price"),
            ("    --- FAIL: TestPrice/cents (0.00s)", "TestPrice/cents"),
            ("not ok 12 - a price has cents", "a price has cents"),
            ("not ok 3 name # time=1ms", "name"),
            ("\u{1b}[31m✖ adds (1.25ms)\u{1b}[39m", "adds"),
            ("  ✕ adds (5 ms)", "adds"),
            (" × src/a.test.ts > sum > adds 3ms", "src/a.test.ts > sum > adds 3ms"),
            (" ✗ prints its version", "prints its version"),
            ("CalcTest > adds() FAILED", "CalcTest > adds()"),
            ("[ERROR] CalcTest.adds -- Time elapsed: 0.01 s <<< FAILURE!", "CalcTest.adds"),
            ("\t  3 - parse_hex_tests (Failed)", "parse_hex_tests"),
        ] {
            assert_eq!(names(line), [expected], "{line}");
        }
    }

    #[test]
    fn other_lines_name_no_test() {
        for line in [
            "test a ... ok",
            "FAILED (failures=1)",
            "ERROR: could not install",
            "error: test failed",
            "FAIL",
            "--- PASS: TestA (0.00s)",
            "ok 1 - a",
            "not ok 4 - later # TODO write it",
            "✖ failing tests:",
            "[ERROR] Tests run: 1, Failures: 1 <<< FAILURE!",
            "> Task :test FAILED",
            "BUILD FAILED",
            "× ",
        ] {
            assert_eq!(names(line), [] as [&str; 0], "{line}");
        }
    }
}
