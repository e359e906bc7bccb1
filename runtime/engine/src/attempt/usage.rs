//! Limits whose usage is known only after a stage's jail has ended and its changes were found. The host reports all others.

use glovebox_jail::jail::ResourceUsage;
use glovebox_journal::event::StageFinished;
use glovebox_record::LimitName;
use glovebox_workspace::change::{FoundChange, Op};
use glovebox_workspace::ignored::IgnoredChanges;

/// Adds the usage that only the jail measured.
pub(super) fn of_jail(spent: ResourceUsage, fact: &mut StageFinished) {
    used(fact, LimitName::DiskBytes, spent.disk_peak_bytes);
    used(fact, LimitName::FileBytes, spent.file_peak_bytes);
    if let Some(seen) = spent.traffic {
        // The stage chose the names in these refusals. They are for people, and no other stage sees them.
        fact.refusals.listed.extend(seen.refusals);
        fact.refusals.total = fact.refusals.total.saturating_add(seen.traffic.refused());
        fact.commands.network = Some(seen.traffic);
    }
}

/// Adds the size of the stage's changes. Commands may have written them, not only the component.
pub(super) fn of_changes(found: &[FoundChange], ignored: &IgnoredChanges, fact: &mut StageFinished) {
    let bytes = found.iter().filter_map(|found| match found.op {
        Op::Write { bytes, .. } => Some(bytes),
        _ => None,
    });
    used(fact, LimitName::WriteBytes, Some(bytes.fold(0, u64::saturating_add)));
    used(fact, LimitName::WriteEntries, Some(found.len() as u64));
    used(fact, LimitName::IgnoredEntries, Some(ignored.entries()));
}

fn used(fact: &mut StageFinished, limit: LimitName, bytes: Option<u64>) {
    if let Some(row) = fact.usage.iter_mut().find(|row| row.name == limit) {
        row.used = row.used.max(bytes);
    }
}
