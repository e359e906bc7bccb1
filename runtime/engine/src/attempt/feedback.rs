//! What a stage learns about the one that failed before it, beyond the reason: the ends of its output.
//!
//! Sizes are those of seed 2's runtime. A stage that had hold-outs in reach passes on only its notes, which are the verdict and
//! public hints: a builder would learn from more what it is judged by (design §7).

use crate::ports::{BlobStore, PortError};
use crate::state::FailedStage;

/// Characters kept of what the handler said.
const SUMMARY_CHARS_MAX: usize = 2200;
/// Endings of artifact names, what they are called in the feedback, and the characters kept of their ends.
const TAILS: [(&str, &str, usize); 3] =
    [(".stderr.txt", "stderr", 600), (".stdout.txt", "stdout", 300), (".output", "verification", 600)];
/// Most bytes of an artifact that are looked at.
const ARTIFACT_BYTES_MAX: u64 = 64 << 20;

/// The pairs a stage finds in its input's `extra`: `failed-node` and `failure-details`.
pub(super) fn feedback(
    failed: &FailedStage,
    blobs: &impl BlobStore,
    is_withheld: bool,
) -> Result<Vec<(String, String)>, PortError> {
    let mut pairs = vec![("failed-node".to_owned(), failed.node.to_string())];
    let details = match is_withheld {
        true => summary(failed, usize::MAX),
        false => summary(failed, SUMMARY_CHARS_MAX) + &tails(failed, blobs)?,
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

fn tails(failed: &FailedStage, blobs: &impl BlobStore) -> Result<String, PortError> {
    let mut text = String::new();
    for (end, title, chars_max) in TAILS {
        let Some((_, digest)) = failed.printed.iter().find(|(name, _)| name.ends_with(end)) else { continue };
        let bytes = blobs.read_all(digest, ARTIFACT_BYTES_MAX)?;
        let tail = tail(&bytes, chars_max);
        if !tail.is_empty() {
            text.push_str(&format!("{title} (its end):\n{tail}\n"));
        }
    }
    Ok(text)
}

/// The last characters of what may not be text at all.
fn tail(bytes: &[u8], chars_max: usize) -> String {
    // No character is longer than four bytes; the first one may be cut and is dropped with the rest.
    let bytes = &bytes[bytes.len().saturating_sub(4 * (chars_max + 1))..];
    let text = String::from_utf8_lossy(bytes);
    let text = text.trim_end();
    let skipped = text.chars().count().saturating_sub(chars_max);
    text.chars().skip(skipped).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::blobs::DirBlobs;
    use cap_std::ambient_authority;
    use cap_std::fs::Dir;

    #[test]
    fn the_end_of_each_output_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let blobs = DirBlobs::open_in(&Dir::open_ambient_dir(folder.path(), ambient_authority()).unwrap()).unwrap();
        let stderr = blobs.put_bytes(format!("{}the end\n", "ä".repeat(5000)).as_bytes()).unwrap();
        let stdout = blobs.put_bytes(b"\xff bytes").unwrap();
        let printed = vec![("tool.stdout.txt".to_owned(), stdout), ("tool.stderr.txt".to_owned(), stderr)];
        let failed = FailedStage { node: "test".into(), notes: "n".repeat(3000), printed };
        let pairs = feedback(&failed, &blobs, false).unwrap();
        assert_eq!(pairs[0], ("failed-node".to_owned(), "test".to_owned()));
        let details = &pairs[1].1;
        assert_eq!(details.matches('n').count(), SUMMARY_CHARS_MAX + "(its end): then the end".matches('n').count());
        assert!(details.contains(&format!("stderr (its end):\n{}the end\nstdout", "ä".repeat(593))), "{details}");
        assert!(details.ends_with("\u{fffd} bytes\n"), "{details}");
        let withheld = feedback(&failed, &blobs, true).unwrap();
        assert_eq!(withheld[1].1, format!("summary: {}\n", "n".repeat(3000)), "no output, and every hint");
    }
}
