//! Lines and rows about status files: which file a stage answered by, and which files nothing reads.

use super::visible;
use glovebox_journal::event::{
    SearchedStatus, StatusEffect, StatusFound, StatusIngested, StatusOwnership, StatusPlace,
};
use glovebox_state::evidence::{RunProof, UnreadReason, UnreadStatus};

/// The title of the rows.
pub const TITLE: &str = "status file";
/// Maximum number of rows.
const ROWS_MAX: usize = 10;

/// Returns the line about the decision. `None` if the stage left no file.
pub fn line(ingested: &StatusIngested) -> Option<String> {
    let shown = ingested.source.map_or("", StatusPlace::shown);
    match ingested.effect {
        StatusEffect::Accepted => Some(format!("answers by {shown}")),
        StatusEffect::Overruled => Some(format!("{shown} is not followed, because the stage failed")),
        StatusEffect::Refused => Some(format!("{shown} is refused: {}", ingested.searched.last().map_or("", why))),
        StatusEffect::None => {
            let passed_over = ingested.searched.iter().filter(|one| one.found != StatusFound::Missing);
            let passed_over: Vec<String> =
                passed_over.map(|one| format!("{} is not its answer: {}", one.place.shown(), why(one))).collect();
            (!passed_over.is_empty()).then(|| passed_over.join("; "))
        }
    }
}

fn why(searched: &SearchedStatus) -> &'static str {
    match searched.found {
        _ if searched.owner == Some(StatusOwnership::Foreign) => "it belongs to another attempt",
        StatusFound::Missing => "there is none",
        StatusFound::Parsed => "another file decides",
        StatusFound::NotAFile => "it is not a regular file",
        StatusFound::TooLong => "it is too long",
        StatusFound::Unreadable => "it cannot be read",
        StatusFound::NotJson => "it is not a JSON object",
        StatusFound::NoOutcome => "it has no outcome",
        StatusFound::DuplicateKey => "a key occurs twice",
        StatusFound::Contradiction => "a field has different values under its two names",
        StatusFound::UnknownOutcome => "its outcome does not exist",
        StatusFound::WrongType => "a field has the wrong type",
        StatusFound::OutOfBounds => "a name or a value is outside of the bounds of an outcome",
    }
}

/// Returns a row for each status file that a stage left and that decided nothing.
pub fn rows(proof: &RunProof) -> Vec<(&'static str, String)> {
    let mut rows: Vec<String> = proof.unread_status.iter().take(ROWS_MAX).map(row).collect();
    let more = proof.unread_status.len().saturating_sub(ROWS_MAX);
    rows.extend((more > 0).then(|| format!("{more} more")));
    rows.into_iter().map(|row| (TITLE, row)).collect()
}

fn row(UnreadStatus { node, path, reason }: &UnreadStatus) -> String {
    let (node, path) = (visible::line(node.as_str()), visible::line(path));
    match reason {
        UnreadReason::NotAsked => {
            format!(
                "`{path}` of `{node}` was ignored. If it is the answer of the stage, add `status_file=true` to the node"
            )
        }
        UnreadReason::Unusable => format!("`{path}` of `{node}` was ignored, because it is no status"),
        UnreadReason::Foreign => format!("`{path}` of `{node}` was ignored, because it belongs to another attempt"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_says_which_file_of_which_stage_and_why() {
        let row = |reason| row(&UnreadStatus { node: "t\u{1b}".into(), path: "status.json".to_owned(), reason });
        assert_eq!(
            row(UnreadReason::NotAsked),
            "`status.json` of `t\\x1b` was ignored. If it is the answer of the stage, add `status_file=true` to the node"
        );
        assert!(row(UnreadReason::Unusable).ends_with("it is no status"));
        assert!(row(UnreadReason::Foreign).ends_with("it belongs to another attempt"));
    }
}
