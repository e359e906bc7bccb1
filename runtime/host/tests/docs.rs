//! Tests that the documentation of limits agrees with the table of limits.

use glovebox_record::limit::UNBOUNDED;
use glovebox_record::{LimitName, LimitUnit};

#[test]
fn the_page_lists_every_limit_with_its_default() {
    let page = include_str!("../../../docs/configuration.md");
    for limit in LimitName::ALL.iter().map(|name| name.row()) {
        let default = match (limit.unit, limit.default) {
            (_, UNBOUNDED) => "what is left of `wall_ms`".to_owned(),
            (LimitUnit::Bytes, bytes) if bytes >= 1 << 30 => format!("{} GiB", bytes >> 30),
            (LimitUnit::Bytes, bytes) => format!("{} MiB", bytes >> 20),
            (LimitUnit::Milliseconds, ms) => format!("{} s", ms / 1000),
            (LimitUnit::Count, count) if count >= 1000 => format!("{} {:03}", count / 1000, count % 1000),
            (LimitUnit::Count, count) => count.to_string(),
        };
        let row = format!("| `{}` | {default} | {} |", limit.name, limit.doc.trim());
        assert!(page.contains(&row), "docs/configuration.md lacks the row {row}");
    }
}
