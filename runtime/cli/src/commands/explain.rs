//! `glovebox explain`: what a rule of `check` demands, and why; and what is told only where a pipeline meets its configuration.

use crate::arguments::ExplainArguments;
use crate::exit::{Ended, Exit, Stop};
use crate::terminal;
use glovebox_pipeline::lint::{RULES, Rule};
use glovebox_pipeline::nearest::nearest;

/// What `plan` and `run` tell of a pipeline together with its `glovebox.toml`: no rule of `check`, which knows no operator.
const BINDING: &[(&str, &str)] = &[
    (
        "type_unknown",
        "Error: a node's `type` is the name of a built-in handler or of an entry under `[plugins]` in glovebox.toml.",
    ),
    (
        "network_not_granted",
        "Error: a node asks for no more network than `network` under `[sandbox]` in glovebox.toml grants.",
    ),
    (
        "sandbox_folder",
        "Error: `scratch` and `cache` name folders of the workspace, none of them in both, and none that is kept from stages.",
    ),
    (
        "holdout_access",
        "Error: a node's way to hold-outs (`codex.allow_read_scenarios`, `codex.block_read_paths`) is one it may take.",
    ),
    ("path_invalid", "Error: the paths of a node's scope are relative, without `.` and `..`."),
    ("limit_unknown", "Error: the value of a node's `limits.<name>` is one that the limit takes."),
    (
        "limit_not_raised",
        "Warning: a node only lowers a bound. To raise it is the operator's: `[limits]` in glovebox.toml.",
    ),
    (
        "write_not_committed",
        "Warning: what a node may write is not in a folder that is dropped after the stage (`scratch`, `cache`).",
    ),
    ("script_node", "Error: every node that `--script` has turns for is a node of the pipeline."),
    ("test_attribute", "Error: the `test.*` attributes of a node can be played."),
    ("config_syntax", "Error: glovebox.toml is TOML."),
    ("config_unknown_field", "Error: every field of glovebox.toml is known: one that is ignored guards nothing."),
    ("config_missing_field", "Error: an entry of glovebox.toml has the fields it needs."),
    ("config_value", "Error: a field of glovebox.toml has a value that the field takes."),
    ("config_unenforceable", "Error: glovebox.toml grants or forbids nothing that this version would not enforce."),
];

/// Prints the page of a rule, or the list of all.
pub fn explain(arguments: &ExplainArguments) -> Ended {
    let Some(name) = &arguments.rule else {
        let width = RULES.iter().map(|rule| rule.id.len()).max().unwrap_or_default();
        let lines =
            RULES.iter().map(|rule| format!("{:width$}  {:7}  {}\n", rule.id, rule.severity.as_str(), rule.summary));
        terminal::print(&lines.collect::<String>());
        return Ok(Exit::Ok);
    };
    if let Some((_, page)) = BINDING.iter().find(|(id, _)| id == name) {
        terminal::print(&format!(
            "{name}\n\n{page}\n\nTold by `glovebox plan` and `glovebox run`; see docs/configuration.md.\n"
        ));
        return Ok(Exit::Ok);
    }
    let rule = Rule::named(name).ok_or_else(|| {
        let stop = Stop::new(Exit::Usage, format!("there is no rule `{name}`"));
        match nearest(name, RULES.iter().map(|rule| rule.id).chain(BINDING.iter().map(|(id, _)| *id))) {
            Some(meant) => stop.with_help(format!("did you mean `glovebox explain {meant}`?")),
            None => stop.with_help("`glovebox explain` lists the rules"),
        }
    })?;
    terminal::print(&rule.page());
    Ok(Exit::Ok)
}
