//! What runs now, with what it may do: the lines that the key `t` prints above the view.

use super::{Board, Phase, clock};
use crate::terminal::visible;
use glovebox_pipeline::ir::Node;
use glovebox_record::scope::Entry;
use std::time::Instant;

/// Returns what the pipeline lets a node read and write.
pub(super) fn scope(node: &Node) -> String {
    let reads = node.access.read_paths.as_deref().map_or_else(|| "the workspace".to_owned(), listed);
    let writes = match node.access.allowed_write_paths.as_deref() {
        None => "what its plugin may by default".to_owned(),
        Some([]) => "nothing".to_owned(),
        Some(entries) => listed(entries),
    };
    format!("reads {reads}; writes {writes}")
}

fn listed(entries: &[Entry]) -> String {
    let entries: Vec<String> = entries.iter().map(|entry| visible::line(&entry.to_string()).into_owned()).collect();
    if entries.is_empty() { "nothing".to_owned() } else { entries.join(", ") }
}

impl Board {
    /// Returns a line for each running node, with what it does and its scope.
    pub fn running(&self, now: Instant) -> Vec<String> {
        let lines: Vec<String> = self
            .rows
            .iter()
            .filter_map(|row| {
                let Phase::Running(since) = row.phase else { return None };
                let elapsed = clock(now.saturating_duration_since(since).as_secs());
                let visit = if row.visit > 1 { format!(" visit {}", row.visit) } else { String::new() };
                let what = format!("{}{}", row.text, row.circumstances(now));
                Some(format!(" {}{visit}  {elapsed}  {what}\n   {}", row.title, row.scope))
            })
            .flat_map(|text| text.lines().map(str::to_owned).collect::<Vec<_>>())
            .collect();
        if lines.is_empty() { vec![" nothing runs now".to_owned()] } else { lines }
    }
}
