//! A node's folder: status, output, receipts and artifacts of its latest attempt; `artifacts/` keeps those of every attempt.
//!
//! What an earlier attempt left and the latest did not is removed, so that no answer is taken for another's.

use super::files::node_folder;
use super::status::{Owner, encode};
use super::{Content, ProjectError, Projector};
use crate::event::{Receipt, Record, StageFinished, StagePassed};
use crate::ports::BlobStore;
use glovebox_record::Outcome;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// Names in a node's folder that an artifact never gets.
const OWN_NAMES: [&str; 4] = ["status.json", "stdout.log", "stderr.log", "receipts.json"];

/// What `<node>/receipts.json` holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(title = "receipts.json")]
pub struct ReceiptsFile {
    /// Always 1.
    pub schema_version: u32,
    /// The node.
    pub node: String,
    /// The attempt that ran them.
    pub attempt_id: String,
    /// One per command, in order.
    pub receipts: Vec<Receipt>,
}

/// A line of `checkpoint.json`'s log.
pub(super) fn log_line(record: &Record, finished: &StageFinished) -> String {
    let status = finished.outcome.status.as_str();
    let reason = finished.outcome.failure.as_ref().map(|failure| format!(": {}", failure.reason)).unwrap_or_default();
    format!("{} {} attempt {} {status}{reason}", record.at, finished.task, finished.ordinal)
}

impl<B: BlobStore> Projector<B> {
    pub(super) fn stage(&mut self, finished: &StageFinished) -> Result<(), ProjectError> {
        let folder = node_folder(&finished.node);
        let run_generation = self.state.run.as_ref().map_or(0, |run| run.generation);
        let owner = Owner { node: &finished.node, attempt: &finished.attempt_id, run_generation };
        self.file(&format!("{folder}/status.json"), &encode(&finished.outcome, owner))?;
        for (name, captured) in [("stdout.log", &finished.stdout), ("stderr.log", &finished.stderr)] {
            let content = captured.as_ref().map_or(Content::Nothing, |captured| Content::Blob(captured.digest));
            self.waiting.insert(format!("{folder}/{name}"), content);
        }
        let receipts = ReceiptsFile {
            schema_version: 1,
            node: finished.node.clone(),
            attempt_id: finished.attempt_id.clone(),
            receipts: finished.receipts.clone(),
        };
        self.file(&format!("{folder}/receipts.json"), &receipts)?;
        self.artifacts(&folder, finished);
        Ok(())
    }

    pub(super) fn passed(&mut self, passed: &StagePassed) -> Result<(), ProjectError> {
        let run_generation = self.state.run.as_ref().map_or(0, |run| run.generation);
        let outcome = self.state.outcomes.get(&passed.node).cloned().unwrap_or_else(|| Outcome::of(passed.status));
        let owner = Owner { node: &passed.node, attempt: "", run_generation };
        self.file(&format!("{}/status.json", node_folder(&passed.node)), &encode(&outcome, owner))
    }

    fn artifacts(&mut self, folder: &str, finished: &StageFinished) {
        let history = format!("artifacts/{}.{}.{}", finished.node, finished.visit, finished.ordinal);
        let mut names = BTreeSet::new();
        for artifact in finished.artifacts.iter().filter(|artifact| is_artifact_name(&artifact.name)) {
            self.waiting.insert(format!("{folder}/{}", artifact.name), Content::Blob(artifact.digest));
            self.waiting.insert(format!("{history}/{}", artifact.name), Content::Blob(artifact.digest));
            names.insert(artifact.name.clone());
        }
        let earlier = self.artifacts.insert(finished.node.clone(), names.clone()).unwrap_or_default();
        for name in earlier.difference(&names) {
            self.waiting.insert(format!("{folder}/{name}"), Content::Nothing);
        }
    }
}

/// The host checked the name already; the run directory does not depend on that.
fn is_artifact_name(name: &str) -> bool {
    (1..=64).contains(&name.len())
        && !name.starts_with('.')
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte))
        && !OWN_NAMES.iter().any(|own| own.eq_ignore_ascii_case(name))
}

#[cfg(test)]
mod tests {
    use super::is_artifact_name;

    #[test]
    fn no_artifact_takes_a_name_of_the_engine_or_leads_elsewhere() {
        for name in ["prompt.md", "response.md", "tool.stdout.txt", "a-b_c"] {
            assert!(is_artifact_name(name), "{name}");
        }
        for name in ["", "..", ".status.json.new", "a/b", "status.json", "STATUS.json", "receipts.json", "x\0"] {
            assert!(!is_artifact_name(name), "{name}");
        }
        assert!(!is_artifact_name(&"a".repeat(65)));
    }
}
