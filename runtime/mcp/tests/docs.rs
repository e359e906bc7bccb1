//! The table of `docs/serve-mcp.md` is that of the code. `UPDATE_DOCS=1` writes it.

#![allow(clippy::unwrap_used, reason = "a test that is surprised stops there")]

use glovebox_mcp::tool::TOOLS;
use std::fmt::Write;
use std::path::Path;

const BEGIN: &str = "<!-- tools -->\n";
const END: &str = "<!-- end -->";

fn table() -> String {
    let mut text = "| tool | right | takes | does |\n|---|---|---|---|\n".to_owned();
    for tool in TOOLS {
        let named = |name: &str| match tool.required.contains(&name) {
            true => format!("`{name}`"),
            false => format!("[`{name}`]"),
        };
        let takes: Vec<String> = tool.fields.iter().map(|field| named(field.name)).collect();
        writeln!(text, "| `{}` | `{}` | {} | {} |", tool.name, tool.right, takes.join(", "), tool.about).unwrap();
    }
    text
}

#[test]
fn the_documentation_lists_every_tool() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/serve-mcp.md");
    let page = std::fs::read_to_string(&file).unwrap();
    let (before, rest) = page.split_once(BEGIN).unwrap();
    let (_, after) = rest.split_once(END).unwrap();
    let expected = format!("{before}{BEGIN}{}{END}{after}", table());
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&file, &expected).unwrap();
    } else {
        assert!(page == expected, "run `UPDATE_DOCS=1 cargo test --workspace --test docs`");
    }
}
