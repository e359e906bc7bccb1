//! Tests of which reports of test runners say that no test ran.

use super::{TestReport, only_lists, runs_tests, simple_commands};
use glovebox_jail::exec::Program;

fn count(text: &str) -> Option<u64> {
    TestReport { text: super::without_colours(text), has_gap: false }.tests_run()
}

fn is_test_command(line: &str) -> bool {
    let program = Program::Shell(line.to_owned());
    simple_commands(&program).iter().any(|words| runs_tests(words))
}

#[test]
fn knows_commands_that_run_tests() {
    for line in [
        "cargo test --lib",
        "node --test",
        "npm run test:unit",
        "make unit-tests",
        "python3 -m unittest discover",
        "cd api && CI=1 npx jest",
        "sh scripts/test.sh",
        "./node_modules/.bin/vitest run",
        "cargo nextest run",
        "mvn -q verify",
    ] {
        assert!(is_test_command(line), "{line}");
    }
    for line in ["make check", "npm run lint", "sh tests/check.sh", "cargo clippy", "cat latest.txt", ""] {
        assert!(!is_test_command(line), "{line}");
    }
}

#[test]
fn knows_options_that_run_nothing() {
    let lists = |line: &str| only_lists(&line.split(' ').collect::<Vec<_>>());
    for line in ["cargo test --no-run", "cargo test -- --list", "go test -list=.", "npx jest --listTests"] {
        assert!(lists(line), "{line}");
    }
    for line in ["cargo test -- --exact", "go test ./...", "make test -n", "python -m pytest -c a.ini"] {
        assert!(!lists(line), "{line}");
    }
}

#[test]
fn reports_without_a_test_say_so() {
    for text in [
        "TAP version 13\n1..0\n# tests 0\n# suites 0\n# pass 0\n# fail 0\n",
        "ℹ tests 0\nℹ suites 0\nℹ pass 0\n",
        "# tests 2\n# pass 0\n# fail 0\n# skipped 2\n",
        "TAP version 13\n1..0 # skip nothing to do\n",
        "1..1\nok 1 - later # SKIP not now\n",
        "----\nRan 0 tests in 0.000s\n\nOK\n",
        "----\nRan 0 tests in 0.000s\n\nNO TESTS RAN\n",
        "Ran 2 tests in 0.001s\n\nOK (skipped=2)\n",
        "===== 3 skipped in 0.01s =====\n",
        "no tests ran in 0.00s\n",
        "3 tests collected in 0.01s\n",
        "\u{1b}[33m1 deselected\u{1b}[0m in 0.02s\n",
        "Running unittests src/lib.rs (a)\nrunning 0 tests\n\ntest result: ok. 0 passed; 0 failed; 0 ignored; 0 measured; \
         0 filtered out\nDoc-tests a\ntest result: ok. 0 passed; 0 failed; 2 ignored; 0 measured; 0 filtered out\n",
        "     Summary [   0.002s] 0 tests run: 0 passed, 4 skipped\n",
        "?   \texample.com/a\t[no test files]\nok  \texample.com/b\t0.002s [no tests to run]\n",
        "No tests found, exiting with code 0\n",
        "Tests:       3 skipped, 3 total\n",
        "No test files found, exiting with code 0\n",
        "      Tests  2 skipped (2)\n",
        "  0 passing (1ms)\n  2 pending\n",
        "0 runs, 0 assertions, 0 failures, 0 errors, 0 skips\n",
        "2 examples, 0 failures, 2 pending\n",
        "No tests executed!\n",
        "ok | 0 passed | 0 failed (1ms)\n",
        "[INFO] Tests run: 2, Failures: 0, Errors: 0, Skipped: 2\n",
        "[INFO] No tests to run.\n",
        "Passed!  - Failed:     0, Passed:     0, Skipped:     1, Total:     1\n",
        "Files=0, Tests=0,  0 wallclock secs\nResult: NOTESTS\n",
        "No tests were found!!!\n",
        "> Task :compileJava\n> Task :test NO-SOURCE\n",
        " 0 pass\n 0 fail\nRan 0 tests across 1 files. [3.00ms]\n",
    ] {
        assert_eq!(count(text), Some(0), "{text}");
    }
}

#[test]
fn one_test_is_enough() {
    for (text, tests) in [
        ("# tests 0\n# tests 3\n# skipped 1\n", 2),
        ("TAP version 13\nok 1 - a\nnot ok 2 - b\n1..2\n", 2),
        ("Ran 1 test in 0.000s\n\nOK\n", 1),
        ("== 1 passed, 2 skipped, 1 warning in 0.01s ==\n", 1),
        ("== 5 passed in 61.00s (0:01:01) ==\n", 5),
        ("test result: ok. 0 passed; 0 failed\ntest result: ok. 2 passed; 0 failed\n", 2),
        ("?   \ta\t[no test files]\nok  \tb\t(cached)\n", 1),
        ("Tests:       1 failed, 2 passed, 3 total\n", 3),
        ("  4 passing (1ms)\n", 4),
        ("3 tests, 0 failures\n", 3),
        ("OK (3 tests, 4 assertions)\n", 3),
        ("> Task :a:test\n> Task :b:test NO-SOURCE\n", 1),
        ("     Summary [   0.002s] 1 test run: 1 passed, 4 skipped\n", 1),
    ] {
        assert_eq!(count(text), Some(tests), "{text}");
    }
}

#[test]
fn what_is_no_report_takes_nothing_away() {
    for text in [
        "",
        "checked\n",
        "0 errors, 0 warnings\n",
        "Tests are fun\n",
        "I ran in 3 seconds\n",
        // The output of a custom test harness is not recognized.
        "Running unittests src/lib.rs\ntest result: ok. 0 passed; 0 failed\nRunning tests/own.rs\nall scenarios passed\n",
    ] {
        assert_eq!(count(text), None, "{text}");
    }
    let cut = |text: &str| TestReport { text: text.to_owned(), has_gap: true }.tests_run();
    assert_eq!(cut("test result: ok. 0 passed; 0 failed\n"), None);
    assert_eq!(cut("test result: ok. 1 passed; 0 failed\n"), Some(1));
    assert_eq!(cut("# tests 0\n"), Some(0));
}
