//! What is known of limits only when a stage's jail has ended and its changes were found; the host reported the rest.

use crate::event::StageFinished;
use glovebox_sandbox::found::{Found, Op};
use glovebox_sandbox::jail::ResourceUsage;

/// Adds what only the jail saw to the limits the host reported.
pub(super) fn of_jail(spent: &ResourceUsage, fact: &mut StageFinished) {
    used(fact, "disk_bytes", spent.disk_peak_bytes);
    used(fact, "file_bytes", spent.file_peak_bytes);
    if let Some(seen) = &spent.traffic {
        // The stage chose the names: they are for people, and no stage gets any of them.
        fact.refusals.extend(seen.refusals.iter().cloned());
        fact.refusals_total = fact.refusals_total.saturating_add(seen.traffic.refused());
        fact.network = Some(seen.traffic.clone());
    }
}

/// Adds what the stage left; its component may have written none of it.
pub(super) fn of_changes(found: &[Found], fact: &mut StageFinished) {
    let bytes = found.iter().filter_map(|found| match found.op {
        Op::Write { bytes, .. } => Some(bytes),
        _ => None,
    });
    used(fact, "write_bytes", Some(bytes.fold(0, u64::saturating_add)));
    used(fact, "write_entries", Some(found.len() as u64));
}

fn used(fact: &mut StageFinished, limit: &str, bytes: Option<u64>) {
    if let Some(row) = fact.usage.iter_mut().find(|row| row.name == limit) {
        row.used = row.used.max(bytes);
    }
}
