//! What a stage claims, held against what the host saw (design §1, promise 3).
//!
//! A claim that the records do not bear out fails the stage, class contract: whoever says "the tests passed" must name a
//! receipt that says so. Kinds nobody here knows are neither believed nor held against it.

use super::outcome::replace;
use crate::event::{Ending, StageFinished};
use crate::outcome::{Failure, FailureClass};
use cap_std::fs::Dir;
use glovebox_sandbox::path::ScopePath;

/// Checks every claim; the first that fails replaces the outcome. `files` is the folder the stage worked in, below `run`.
pub(super) fn check(run: &Dir, files: &str, fact: &mut StageFinished, stated: &[(String, String)]) {
    if fact.ending != Ending::Returned || fact.outcome.failure.is_some() {
        return;
    }
    let untrue = stated.iter().find_map(|(kind, value)| Some((kind, value, objection(run, files, fact, kind, value)?)));
    if let Some((kind, value, objection)) = untrue {
        let shown = glovebox_sandbox::refusal::escaped(value);
        let reason = format!("the stage claims `{kind}` for `{shown}`, but {objection}");
        replace(fact, Failure::new(FailureClass::Contract, "claim/unproven", reason));
    }
}

fn objection(run: &Dir, files: &str, fact: &StageFinished, kind: &str, value: &str) -> Option<String> {
    match kind {
        "command-passed" => match fact.receipts.iter().find(|receipt| receipt.id == value) {
            None => Some("there is no such receipt".to_owned()),
            Some(receipt) if receipt.how == "exited" && receipt.code == Some(0) => None,
            Some(receipt) => Some(format!("its receipt says {} with code {:?}", receipt.how, receipt.code)),
        },
        "artifact" if fact.artifacts.iter().any(|artifact| artifact.name == value) => None,
        "artifact" => Some("no such artifact was kept".to_owned()),
        "file-written" => {
            let is_there = ScopePath::parse(value).is_ok_and(|path| {
                !path.is_root() && run.symlink_metadata(format!("{files}/{}", path.as_str())).is_ok()
            });
            (!is_there).then(|| "no such file is there".to_owned())
        }
        _ => None,
    }
}
