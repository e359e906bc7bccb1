//! A reviewer without a model: reads the Rust files that it may see, writes `REVIEW.md`, and rejects code that can panic.

use glovebox_plugin_sdk::{Handler, Outcome, Stage, export, log};
use std::{fs, io, path::Path};

const RULES: [(&str, &str); 3] = [(".unwrap()", "may panic"), ("dbg!(", "prints for debugging"), ("unsafe ", "is unsafe")];

struct Review;

impl Handler for Review {
    fn execute(stage: Stage) -> Outcome {
        let mut findings = Vec::new();
        if let Err(error) = review(Path::new("src"), &mut findings) {
            return Outcome::fail("review/read", format!("cannot read the sources: {error}"));
        }
        log::info("reviewed", &[("node", stage.node_id()), ("findings", &findings.len().to_string())]);
        let report = format!("# Review\n\nGoal: {}\n\n{}\n", stage.goal(), findings.join("\n"));
        if let Err(error) = fs::write("REVIEW.md", report) {
            return Outcome::fail("review/write", format!("cannot write `REVIEW.md`: {error}"));
        }
        match findings.first() {
            None => Outcome::success().notes("nothing to object to").set("review.findings", 0).claim_file("REVIEW.md"),
            Some(first) => Outcome::fail("review/finding", first).set("review.findings", findings.len()),
        }
    }
}

fn review(folder: &Path, findings: &mut Vec<String>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            review(&path, findings)?;
        } else {
            for (line, number) in fs::read_to_string(&path)?.lines().zip(1..) {
                let broken = RULES.iter().filter(|(text, _)| line.contains(text));
                findings.extend(broken.map(|(_, why)| format!("- {}:{number} {why}", path.display())));
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::Review;
    use glovebox_plugin_sdk::Status;
    use glovebox_plugin_sdk::testing::{Host, stage};

    #[test]
    fn code_that_can_panic_is_rejected_with_its_line() {
        let host = Host::new();
        host.write("src/lib.rs", "fn one() {\n    two().unwrap()\n}\n");
        let outcome = host.execute::<Review>(stage("review").goal("Be careful"));
        assert_eq!((outcome.status(), outcome.value("review.findings")), (Status::Fail, Some("1")));
        let report = host.read("REVIEW.md").unwrap_or_default();
        assert!(report.contains("Goal: Be careful") && report.contains("- src/lib.rs:2 may panic"), "{report}");
        assert_eq!(host.logged()[0].message, "reviewed");
    }

    #[test]
    fn good_code_passes_and_missing_sources_are_a_failure() {
        let host = Host::new();
        let failure = host.execute::<Review>(stage("review"));
        assert_eq!(failure.failure().map(|failure| failure.code.as_str()), Some("review/read"));
        host.write("src/deep/lib.rs", "fn one() {}\n");
        assert_eq!(host.execute::<Review>(stage("review")).status(), Status::Success);
    }
}

export!(
    Review,
    manifest = r#"{"name":"acme.review","version":"0.1.0","description":"Reviews Rust sources by rules.",
    "wants":{"filesystem":"posix","read":["src/"],"write":["REVIEW.md"]}}"#
);
