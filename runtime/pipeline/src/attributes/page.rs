//! Prints the documentation page of all attributes from the table. This file contains no text about a single attribute.

use super::Carrier::{Edge, Graph, Node};
use super::{ATTRIBUTES, DRAWING, KnownAttribute};
use glovebox_record::LimitName;
use std::fmt::Write;

/// Returns the page of all attributes, as Markdown.
pub fn reference() -> String {
    let mut text = String::from(
        "# Attributes of a pipeline\n\n\
         Generated from the table of attributes in the source.\n\n\
         - *Source*: *spec* is the Attractor specification, *spec A* its appendix A. *glovebox* means that this runtime defines the \
           attribute, *other engines* that other engines for Attractor pipelines use it.\n\
         - *Enforced*: `glovebox run` and `glovebox check` refuse a file with an attribute that is not enforced. `check` \
           says what to do instead ([`not_enforced`](rules.md#not_enforced)).\n\
         - Glovebox keeps all other attributes for plugins. `glovebox check` reports such an attribute, and suggests a known name \
           that is similar ([`attribute_known`](rules.md#attribute_known)).\n",
    );
    for (carrier, title) in [(Graph, "The graph"), (Node, "Nodes"), (Edge, "Edges")] {
        write!(
            text,
            "\n## {title}\n\n| attribute | value | default | what it does | enforced | source |\n|---|---|---|---|---|---|\n"
        )
        .expect("writing to a string does not fail");
        let mut rows: Vec<&KnownAttribute> = ATTRIBUTES.iter().filter(|known| known.on.contains(&carrier)).collect();
        rows.sort_by_key(|known| known.key);
        for KnownAttribute { key, value, default, summary, source, instead, .. } in rows {
            let enforced = if instead.is_none() { "yes" } else { "no" };
            writeln!(text, "| `{key}` | {value} | {default} | {summary} | {enforced} | {source} |")
                .expect("writing to a string does not fail");
        }
    }
    text.push_str(VALUES);
    text.push_str(
        "\n## Limits\n\nNames of `limits.<name>`. A name ends in its unit; a name without a unit is a count.\n\n",
    );
    text.push_str(&listed(LimitName::ALL.iter().map(|name| name.as_str())));
    text.push_str(
        "\n## Drawing\n\nNames for programs that draw the graph. Glovebox ignores them when it runs a pipeline.\n\n",
    );
    text.push_str(&listed(DRAWING.iter().copied()));
    text
}

const VALUES: &str = "
## Values

| value | what it is |
|---|---|
| text, integer, number, boolean | `\"two words\"`, `-1`, `0.5`, `true` |
| duration | an integer with the unit `ms`, `s`, `m`, `h` or `d`: `900s` |
| amount | a number; a limit in milliseconds or bytes also accepts a unit: `10s`, `64MiB` |
| path, paths | relative to the workspace, without `..`; a folder ends in `/`; separated by commas: `src/,Cargo.toml` |
| commands | prefixes of commands, in whole words, separated by commas: `cargo test,git status` |
| need | labels of the machine, `arch=` (`x86_64` or `aarch64`) and `tier=` (`full`, `bwrap` or `landlock`), separated by commas: `gpu, arch=arm64`; at most 16 entries ([placement](placement.md)) |
| network | `none`, `full` or `proxy:api.example.com,*.crates.io` |
| node | the id of a declared node |
| condition | `key=value` or `key!=value`, joined by `&&` |
| outcome | `success`, `partial_success`, `retry`, `fail` or `skipped` |
| fidelity | `full`, `truncate`, `compact`, `summary:low`, `summary:medium` or `summary:high` |
| policy | `none`, `standard`, `aggressive`, `linear` or `patient` |
| stylesheet | `selector { property: value; }`, selectors `*`, `shape`, `.class` and `#id` |
| shape, effort | see `shape_known` and `reasoning_effort_valid` in [rules.md](rules.md) |
";

fn listed<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let names: Vec<String> = names.map(|name| format!("`{name}`")).collect();
    names.join(", ") + "\n"
}
