//! Checks what a stage claims against what the host recorded (decision receipts-prove-verdicts).
//!
//! A claim that the records do not support fails the stage, class contract: a stage that says "the tests passed" must name a receipt
//! that says so. Claims of unknown kinds are ignored.

use super::replace;
use cap_std::fs::Dir;
use glovebox_host::call::Claim;
use glovebox_journal::event::{ChangeOp, Ending, StageFinished};
use glovebox_record::path::ScopePath;
use glovebox_record::{Failure, FailureClass, FailureCode};

/// Checks every claim; the first that fails replaces the outcome. What the stage changed is in the fact by now.
pub(super) fn check(run: (&Dir, &str), fact: &mut StageFinished, stated: &[Claim]) {
    if fact.ending != Ending::Returned || fact.outcome.failure.is_some() {
        return;
    }
    let untrue = stated.iter().find_map(|claim| Some((claim, objection(run, fact, claim)?)));
    if let Some((Claim { kind, value }, objection)) = untrue {
        let shown = glovebox_workspace::refusal::escaped(value);
        let reason = format!("the stage claims `{kind}` for `{shown}`, but {objection}");
        replace(fact, Failure::new(FailureClass::Contract, FailureCode::CLAIM_UNPROVEN, reason));
    }
}

fn objection(run: (&Dir, &str), fact: &StageFinished, claim: &Claim) -> Option<String> {
    let Claim { kind, value } = claim;
    match kind.as_str() {
        "command-passed" => match fact.receipts.iter().find(|receipt| receipt.id == *value && receipt.hook.is_none()) {
            None => Some("there is no such receipt".to_owned()),
            Some(receipt) if receipt.passed() => None,
            Some(receipt) => Some(format!("its receipt says {} with code {:?}", receipt.how, receipt.code)),
        },
        "artifact" if fact.artifacts.iter().any(|artifact| artifact.name == *value) => None,
        "artifact" => Some("no such artifact was kept".to_owned()),
        "file-written" => {
            let is_there = ScopePath::parse(value).is_ok_and(|path| !path.is_root() && exists(run, fact, &path));
            (!is_there).then(|| "there is no such file".to_owned())
        }
        _ => None,
    }
}

/// True when the path exists for the stage at its end: in its changes, else in the workspace it began from.
fn exists((run, workspace): (&Dir, &str), fact: &StageFinished, path: &ScopePath) -> bool {
    let last = fact.changes.iter().rev().find(|change| change.path == *path);
    match last.map(|change| change.op) {
        Some(ChangeOp::Delete | ChangeOp::Rmdir) => false,
        Some(ChangeOp::Write | ChangeOp::Mkdir | ChangeOp::Symlink) => true,
        None => run.symlink_metadata(format!("{workspace}/{path}")).is_ok(),
    }
}

#[cfg(test)]
mod tests;
