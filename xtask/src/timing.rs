//! The time that each test took, from what the test binaries print.
//!
//! A test binary prints a line when a test ends and none when it begins. Its threads take the tests in the order of
//! their names, so a test begins when as many tests before it have ended as there were no threads for.

use std::time::Duration;

/// Prefix of the line that a test binary prints first.
const BEGINS: &str = "running ";

/// A test that has ended, with the time since the start of the test binary.
#[derive(Debug, Clone, PartialEq, Eq)]
struct EndedTest {
    name: String,
    at: Duration,
}

/// Reads the lines of one test binary after the other.
#[derive(Debug)]
pub(crate) struct TestTimes {
    threads: usize,
    begun: Duration,
    ended: Vec<EndedTest>,
}

impl TestTimes {
    /// Creates a reader of test binaries that run this number of tests at the same time.
    pub(crate) fn new(threads: usize) -> Self {
        Self { threads, begun: Duration::ZERO, ended: Vec::new() }
    }

    /// Reads a line that was printed at this time, and returns the times of all tests when a binary has ended.
    pub(crate) fn read(&mut self, line: &str, at: Duration) -> Vec<(String, Duration)> {
        if line.starts_with(BEGINS) && line.ends_with(['t', 's']) {
            (self.begun, self.ended) = (at, Vec::new());
        } else if let Some((name, _)) = line.strip_prefix("test ").and_then(|rest| rest.rsplit_once(" ... ")) {
            self.ended.push(EndedTest { name: name.to_owned(), at: at.saturating_sub(self.begun) });
        } else if line.starts_with("test result: ") {
            return durations(std::mem::take(&mut self.ended), self.threads);
        }
        Vec::new()
    }
}

/// Computes how long each test took. `ended` is in the order in which the tests ended.
fn durations(ended: Vec<EndedTest>, threads: usize) -> Vec<(String, Duration)> {
    let ends: Vec<Duration> = ended.iter().map(|test| test.at).collect();
    let mut by_name = ended;
    by_name.sort_by(|a, b| a.name.cmp(&b.name));
    let begin = |index: usize| index.checked_sub(threads).map_or(Duration::ZERO, |before| ends[before]);
    let took = |(index, test): (usize, EndedTest)| (test.name, test.at.saturating_sub(begin(index)));
    by_name.into_iter().enumerate().map(took).collect()
}

/// Returns the tests that took longest, the longest first.
pub(crate) fn slowest(mut tests: Vec<(String, Duration)>, count: usize) -> Vec<(String, Duration)> {
    tests.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    tests.truncate(count);
    tests
}

#[cfg(test)]
mod tests {
    use super::*;

    fn times(lines: &[(&str, u64)]) -> Vec<(String, u64)> {
        let mut reader = TestTimes::new(2);
        let read = lines.iter().flat_map(|(line, seconds)| reader.read(line, Duration::from_secs(*seconds)));
        read.map(|(name, took)| (name, took.as_secs())).collect()
    }

    #[test]
    fn a_test_begins_when_a_thread_is_free() {
        let found = times(&[
            ("running 4 tests", 10),
            ("test b ... ok", 11),
            ("test a has been running for over 60 seconds", 12),
            ("test c - should panic ... ok", 15),
            ("test a ... FAILED", 16),
            ("test d ... ok", 18),
            ("test result: FAILED. 3 passed; 1 failed; 0 ignored", 18),
        ]);
        let expected = [("a", 6), ("b", 1), ("c - should panic", 4), ("d", 3)];
        assert_eq!(found, expected.map(|(name, took)| (name.to_owned(), took)));
    }

    #[test]
    fn each_binary_begins_anew() {
        let one = [("running 1 test", 1), ("test a ... ok", 3), ("test result: ok. 1 passed; 0 failed", 3)];
        let other = [("running 1 test", 7), ("test b ... ok", 8), ("test result: ok. 1 passed; 0 failed", 8)];
        assert_eq!(times(&[one, other].concat()), [("a".to_owned(), 2), ("b".to_owned(), 1)]);
        let all = [("a", 1), ("b", 3), ("c", 3)].map(|(name, took)| (name.to_owned(), Duration::from_secs(took)));
        assert_eq!(slowest(all.to_vec(), 2), all[1..]);
    }
}
