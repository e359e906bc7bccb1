//! Write recovery of one attempt: whether a person may decide about its writes outside of the scope, and what is stored for that.
//!
//! Only the plan decides which paths are proposed, never what the stage wrote or answered. If one path is neither proposed
//! nor discardable, no person is asked. The bytes are stored before the question, so later changes of a file have no effect.

use super::AttemptError;
use glovebox_journal::event::{BranchId, ProposedWrite, Recoverable, StageFinished};
use glovebox_journal::ports::PortError;
use glovebox_pipeline::ir::NodeId;
use glovebox_plan::plan::{NodeRecovery, Plan};
use glovebox_record::path::ScopePath;
use glovebox_record::{Digest, FailureCode, Outcome, Status};
use glovebox_workspace::change::Op;
use glovebox_workspace::commit;
use glovebox_workspace::stage::{FoundChange, WorkspaceView};
use std::io::{self, Read};
use std::sync::Arc;

/// Maximum number of files that a question proposes.
const PROPOSED_FILES_MAX: usize = 32;
/// Maximum number of bytes of these files together.
const PROPOSED_BYTES_MAX: u64 = 16 << 20;

/// Decides about the disallowed writes of an attempt.
pub(super) struct Recovery {
    plan: Arc<Plan>,
    node: NodeId,
    is_main: bool,
}

impl Recovery {
    /// Returns the write recovery of an attempt's stage. `None` if the plan has none for it.
    pub(super) fn for_stage(plan: &Arc<Plan>, node: &NodeId, branch: &BranchId) -> Option<Self> {
        plan.checks.recovery.as_ref().filter(|recovery| recovery.nodes.contains_key(node))?;
        Some(Self { plan: Arc::clone(plan), node: node.clone(), is_main: *branch == BranchId::main() })
    }

    /// Returns what a person may decide about these changes, or why no person is asked. Calls `keep` to store the bytes that
    /// would be committed.
    pub(super) fn judge(
        &self,
        found: &[FoundChange],
        view: &WorkspaceView,
        keep: &mut dyn FnMut(&mut dyn Read) -> io::Result<Digest>,
    ) -> Result<Result<Recoverable, String>, AttemptError> {
        let proposed = match self.proposed(found) {
            Ok(proposed) => proposed,
            Err(reason) => return Ok(Err(reason)),
        };
        let mut writes = Vec::new();
        for (change, why) in proposed {
            let stored = commit::store(&[change], view, keep)?;
            writes.extend(stored.into_iter().map(|change| ProposedWrite { change, why: why.to_owned() }));
        }
        let timeout = self.plan.checks.recovery.as_ref().and_then(|recovery| recovery.timeout);
        let timeout_ms = timeout.map(|timeout| u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX));
        // `guardrail::fail` replaces this outcome with the stage's own.
        let outcome = Outcome::new(Status::Fail);
        Ok(Ok(Recoverable { outcome, verifying: false, proposed: writes, signature: None, timeout_ms }))
    }

    fn proposed(&self, found: &[FoundChange]) -> Result<Vec<(FoundChange, &str)>, String> {
        if !self.is_main {
            return Err("a branch of a parallel node cannot ask".to_owned());
        }
        let (mut proposed, mut bytes) = (Vec::new(), 0_u64);
        let recovery =
            self.plan.checks.recovery.as_ref().and_then(|recovery| Some((recovery, recovery.nodes.get(&self.node)?)));
        let (recovery, NodeRecovery { proposals }) = recovery.ok_or("the plan has no write recovery for this node")?;
        for change in found.iter().filter(|change| change.is_violation()) {
            let path = ScopePath::parse(&change.path).map_err(|problem| format!("`{}`: {problem}", change.path))?;
            if recovery.deny.iter().any(|entry| entry.contains(&path)) {
                return Err(format!("`{path}` is in `deny` under `[recovery]`"));
            }
            match (proposals.get(&path), change.granted()) {
                (Some(why), Some(change)) => {
                    bytes = bytes.saturating_add(if let Op::Write { bytes, .. } = change.op { bytes } else { 0 });
                    proposed.push((change, why.as_str()));
                }
                _ if change.is_only_out_of_scope && recovery.discards(&path) => {}
                (Some(_), None) => return Err(format!("`{path}` could not be committed even with a write grant")),
                (None, _) => {
                    return Err(format!("`[recovery]` in glovebox.toml neither proposes nor discards `{path}`"));
                }
            }
        }
        match (proposed.len() > PROPOSED_FILES_MAX, bytes > PROPOSED_BYTES_MAX) {
            (true, _) => Err(format!("more than {PROPOSED_FILES_MAX} files are proposed")),
            (_, true) => Err(format!("the proposed files have {bytes} bytes, more than {PROPOSED_BYTES_MAX}")),
            _ => Ok(proposed),
        }
    }
}

/// Runs the check for the outcome and the changes that would apply if a person allowed the writes. If it finds a leak, no
/// person is asked.
pub(super) fn check_own(
    fact: &mut StageFinished,
    check: impl FnOnce(&mut StageFinished) -> Result<(), PortError>,
) -> Result<(), PortError> {
    let Some(mut recoverable) = fact.files.recoverable.take() else { return Ok(()) };
    std::mem::swap(&mut fact.outcome, &mut recoverable.outcome);
    let proposed = recoverable.proposed.iter().map(|write| write.change.clone()).collect();
    let changes = std::mem::replace(&mut fact.files.changes, proposed);
    check(fact)?;
    if fact.outcome.failure.as_ref().is_none_or(|failure| failure.code != FailureCode::HOLDOUT_LEAK) {
        std::mem::swap(&mut fact.outcome, &mut recoverable.outcome);
        fact.files.changes = changes;
        fact.files.recoverable = Some(recoverable);
    }
    Ok(())
}
