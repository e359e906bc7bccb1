//! The edges that were considered for a route, as `show` and `why` print them.

use super::rows::Rows;
use glovebox_state::why::EdgeWhy;

/// Adds a row for each edge, with `+` if the edge matched, and a row with the values that its condition read.
pub fn edges<'e>(rows: &mut Rows, edges: impl IntoIterator<Item = &'e EdgeWhy>) {
    for edge in edges {
        let mark = if edge.matched { "+" } else { "-" };
        let line = edge.line.map(|line| format!(" (line {line})")).unwrap_or_default();
        rows.row("", format_args!("{mark} {}{line}: {}", edge.to, edge.reason));
        if !edge.values.is_empty() {
            let values = edge.values.iter().map(|read| {
                let holds = if read.holds { "holds" } else { "does not hold" };
                let stored =
                    read.stored_bytes.map(|bytes| format!(" ({bytes} bytes, stored: conditions compare its digest)"));
                format!("`{}` is `{}`{}: {holds}", read.key, read.value, stored.unwrap_or_default())
            });
            rows.row("", format_args!("  {}: {}", edge.condition, values.collect::<Vec<_>>().join(", ")));
        }
    }
}
