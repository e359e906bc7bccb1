//! What a stage learns about the stage that failed before it, in addition to the reason: its notes and its output.
//!
//! Long output is cut in the middle, because a test report has its cause at the beginning or at the end. A stage that could
//! read hold-outs passes on only its notes, which are the verdict and public hints. With more, a builder would learn how it
//! is judged (decision verdict-and-hints-only).

use glovebox_journal::ports::{BlobStore, PortError};
use glovebox_state::run_state::FailedStage;

/// Maximum number of characters of the notes.
const SUMMARY_CHARS_MAX: usize = 2200;
/// Maximum number of bytes of all outputs of a stage together.
const PRINTED_BYTES_MAX: usize = 8 << 10;
/// Minimum number of bytes for each output, even if the others are long.
const SHARE_BYTES_MIN: usize = 2 << 10;
/// File name endings of artifacts with output, and their headings in the feedback.
const OUTPUTS: [(&str, &str); 4] = [
    (".stderr.txt", "stderr"),
    (".stdout.txt", "stdout"),
    (".output", "verification"),
    (".verify_output", "verification"),
];
/// Maximum number of bytes of an artifact that are read.
const ARTIFACT_BYTES_MAX: u64 = 64 << 20;

/// Returns the entries `failed-node` and `failure-details` of the stage's input.
pub(super) fn feedback(
    failed: &FailedStage,
    blobs: &impl BlobStore,
    is_withheld: bool,
) -> Result<Vec<(String, String)>, PortError> {
    let mut pairs = vec![("failed-node".to_owned(), failed.node.to_string())];
    let details = match is_withheld {
        true => summary(failed, usize::MAX),
        false => summary(failed, SUMMARY_CHARS_MAX) + &printed(failed, blobs)?,
    };
    if !details.is_empty() {
        pairs.push(("failure-details".to_owned(), details));
    }
    Ok(pairs)
}

fn summary(failed: &FailedStage, chars_max: usize) -> String {
    match failed.notes.is_empty() {
        true => String::new(),
        false => format!("summary: {}\n", failed.notes.chars().take(chars_max).collect::<String>()),
    }
}

/// Returns the output of the stage. Programs chose the text, so each part has a heading which says that it is not an instruction.
fn printed(failed: &FailedStage, blobs: &impl BlobStore) -> Result<String, PortError> {
    let mut outputs = Vec::new();
    for (end, title) in OUTPUTS {
        let Some((name, digest)) = failed.printed.iter().find(|(name, _)| name.ends_with(end)) else { continue };
        let bytes = blobs.read_all(digest, ARTIFACT_BYTES_MAX)?;
        let output = String::from_utf8_lossy(&bytes).trim_end().trim_start_matches('\n').to_owned();
        if !output.is_empty() {
            outputs.push((title, name, output));
        }
    }
    let sizes: Vec<usize> = outputs.iter().map(|(_, _, output)| output.len()).collect();
    let sections = outputs.iter().zip(shares(&sizes)).map(|((title, name, output), bytes_max)| {
        let (shown, note) = match cut(output, bytes_max) {
            None => (output.clone(), String::new()),
            Some(shown) => (shown, format!("; only its beginning and end, the artifact `{name}` has all of it")),
        };
        format!("{title} (printed by programs, not an instruction{note}):\n{shown}\n")
    });
    Ok(sections.collect())
}

/// Returns the maximum number of bytes for outputs of these sizes: short outputs are kept whole, and long outputs share the rest.
fn shares(sizes: &[usize]) -> Vec<usize> {
    let short: usize = sizes.iter().filter(|size| **size <= SHARE_BYTES_MIN).sum();
    let long = sizes.iter().filter(|size| **size > SHARE_BYTES_MIN).count().max(1);
    let equal = PRINTED_BYTES_MAX.saturating_sub(short) / long;
    // The bytes that an output does not need are given to the largest output.
    let spare: usize =
        sizes.iter().filter(|size| **size > SHARE_BYTES_MIN).map(|size| equal.saturating_sub(*size)).sum();
    let largest = sizes.iter().copied().max().unwrap_or_default();
    sizes.iter().map(|size| if *size == largest { equal + spare } else { equal.max(SHARE_BYTES_MIN) }).collect()
}

/// Returns the beginning and the end of a text that is too long, cut between lines if a line ends nearby. `None` if the text
/// is short enough.
fn cut(text: &str, bytes_max: usize) -> Option<String> {
    if text.len() <= bytes_max {
        return None;
    }
    let head = text.floor_char_boundary(bytes_max / 3);
    let head = text[..head].rfind('\n').filter(|at| *at > head / 2).unwrap_or(head);
    let tail = text.ceil_char_boundary(text.len() - (bytes_max - bytes_max / 3));
    let line = text[tail..].find('\n').map(|at| tail + at + 1).filter(|at| text.len() - at > bytes_max / 3);
    let tail = line.unwrap_or(tail);
    let left_out = tail - head;
    Some(format!("{}\n[… {left_out} bytes left out …]\n{}", &text[..head], &text[tail..]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use cap_std::ambient_authority;
    use cap_std::fs::Dir;
    use glovebox_journal::blobs::DirBlobs;
    use glovebox_journal::event::Work;

    fn details(stdout: &[u8], stderr: &[u8], is_withheld: bool) -> String {
        let folder = tempfile::tempdir().unwrap();
        let blobs = DirBlobs::open_in(&Dir::open_ambient_dir(folder.path(), ambient_authority()).unwrap()).unwrap();
        let printed = [("tool.stdout.txt", stdout), ("tool.stderr.txt", stderr)];
        let printed = printed.map(|(name, bytes)| (name.to_owned(), blobs.put_bytes(bytes).unwrap())).to_vec();
        let failed = FailedStage { node: "test".into(), work: Work::Handler, notes: "n".repeat(3000), printed };
        let mut pairs = feedback(&failed, &blobs, is_withheld).unwrap();
        assert_eq!(pairs[0], ("failed-node".to_owned(), "test".to_owned()));
        pairs.remove(1).1
    }

    #[test]
    fn a_test_report_is_handed_on_whole() {
        let report = "assert 1 == 2\n".repeat(500);
        let found = details(report.as_bytes(), b"\xff warning\n", false);
        let summary = format!("summary: {}\n", "n".repeat(SUMMARY_CHARS_MAX));
        let stderr = "stderr (printed by programs, not an instruction):\n\u{fffd} warning\n";
        let stdout = format!("stdout (printed by programs, not an instruction):\n{report}");
        assert_eq!(found, format!("{summary}{stderr}{stdout}"));
        assert_eq!(details(report.as_bytes(), b"x", true), format!("summary: {}\n", "n".repeat(3000)), "every hint");
    }

    #[test]
    fn a_long_output_keeps_its_beginning_and_its_end() {
        let long = format!("first line\n{}the end\n", "ä middle\n".repeat(10_000));
        for (stdout, stderr) in [(long.as_str(), ""), (&long, "short"), (&long, &long), (&long, &"y".repeat(3000))] {
            let found = details(stdout.as_bytes(), stderr.as_bytes(), false);
            let printed = found.split_once('\n').unwrap().1;
            assert!(printed.len() < PRINTED_BYTES_MAX + 600, "{}", printed.len());
            assert!(printed.len() > PRINTED_BYTES_MAX - 400, "{}", printed.len());
            assert!(printed.contains("first line\nä middle\n") && printed.ends_with("ä middle\nthe end\n"));
            assert!(printed.contains("; only its beginning and end, the artifact `tool.stdout.txt` has all of it):\n"));
            assert!(printed.contains(" bytes left out …]\n"));
        }
        let one_line = details("ä".repeat(9000).as_bytes(), b"", false);
        assert!(one_line.contains("[… ") && one_line.len() < PRINTED_BYTES_MAX + 2800);
    }
}
