//! Describes the branches of a running run: what each executes, what it waits for, and its last sign of life.

use crate::terminal::lines::quota_wait;
use crate::terminal::{duration, visible};
use glovebox_state::evidence::{BranchNow, BranchPhase};
use jiff::Timestamp;

/// Maximum number of branches that one line names.
const NAMED_MAX: usize = 4;

/// Describes a branch: its node, the attempt, what it waits for, and its last sign of life.
pub fn described(branch: &BranchNow, now: Timestamp) -> String {
    let mut text = short(branch);
    if branch.attempt > 1 {
        text.push_str(&format!(", attempt {}", branch.attempt));
    }
    text.push_str(&format!(", for {}", since(branch.since, now)));
    if branch.phase == BranchPhase::Running {
        text.push_str(&format!(", last sign of life {} ago", since(branch.last_sign, now)));
    }
    text
}

/// Describes the branches of a run in one line.
pub fn in_one_line(branches: &[BranchNow]) -> String {
    let is_shown = |branch: &&BranchNow| branches.len() == 1 || branch.parent.is_some();
    let shown: Vec<String> = branches.iter().filter(is_shown).take(NAMED_MAX).map(short).collect();
    let more = branches.iter().filter(is_shown).count() - shown.len();
    let more = if more > 0 {
        format!(
            " and {}",
            match more {
                1 => "1 more branch".to_owned(),
                more => format!("{more} more branches"),
            }
        )
    } else {
        String::new()
    };
    format!("{}{more}", shown.join(", "))
}

fn short(branch: &BranchNow) -> String {
    let name = visible::line(branch.branch.as_str());
    let node = branch.node.as_ref().map(|node| format!(" at {}", visible::line(node.as_str()))).unwrap_or_default();
    let waits = match (&branch.provider, branch.due_at) {
        (Some(provider), Some(until)) => Some(format!(" {}", quota_wait(provider, until))),
        _ => branch.waits_for.map(|wait| format!(" waits for {}", wait.described())),
    };
    let waits = waits.unwrap_or_else(|| match branch.phase {
        BranchPhase::Canceled => " is asked to stop".to_owned(),
        BranchPhase::Running | BranchPhase::Waiting => String::new(),
    });
    format!("{name}{node}{waits}")
}

fn since(at: Timestamp, now: Timestamp) -> String {
    let passed = now.duration_since(at).as_millis();
    duration(u64::try_from(passed).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use glovebox_journal::event::BranchId;
    use glovebox_state::evidence::BranchWait;

    fn branch(name: &str, waits_for: Option<BranchWait>) -> BranchNow {
        BranchNow {
            branch: BranchId::new(name),
            parent: (name != "main").then(BranchId::main),
            node: Some("bu\u{1b}ild".into()),
            visit: 1,
            attempt: 2,
            attempt_id: Some("a".into()),
            phase: BranchPhase::Running,
            since: Timestamp::UNIX_EPOCH,
            waits_for,
            due_at: None,
            provider: None,
            last_sign: Timestamp::from_second(9).unwrap(),
        }
    }

    #[test]
    fn a_branch_reads_as_one_line_and_obeys_nothing() {
        let now = Timestamp::from_second(12).unwrap();
        let model = branch("f-a", Some(BranchWait::Model));
        assert_eq!(
            described(&model, now),
            "f-a at bu\\x1bild waits for the model, attempt 2, for 12.0s, last sign of life 3.0s ago"
        );
        let quota = BranchNow {
            phase: BranchPhase::Waiting,
            due_at: Timestamp::from_second(60).ok(),
            provider: Some("anth\u{7}ropic".to_owned()),
            ..branch("f-a", Some(BranchWait::Quota))
        };
        let shown = in_one_line(&[quota]);
        assert!(shown.starts_with("f-a at bu\\x1bild waits for the quota of anth\\x07ropic until 19"), "{shown}");
        let canceled = BranchNow { phase: BranchPhase::Canceled, attempt: 1, ..branch("f-a", None) };
        assert_eq!(described(&canceled, now), "f-a at bu\\x1bild is asked to stop, for 12.0s");
    }

    #[test]
    fn a_line_names_the_branches_of_a_fork_up_to_a_bound() {
        let main = branch("main", Some(BranchWait::Branches));
        assert_eq!(in_one_line(&[branch("main", None)]), "main at bu\\x1bild");
        let mut all = vec![main];
        all.extend((0..6).map(|number| branch(&format!("f-{number}"), None)));
        let line = in_one_line(&all);
        assert!(line.starts_with("f-0 at bu\\x1bild, f-1 at") && line.ends_with("and 2 more branches"), "{line}");
    }
}
