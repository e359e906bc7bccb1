//! Rules that need a pipeline together with its `glovebox.toml`.
//!
//! The binding of a plan reports them. This table only explains them.

/// Name and page of each rule. `check --for lint` does not check them.
pub(super) const BINDING: &[(&str, &str)] = &[
    (
        "type_unknown",
        "Error: the `type` of the node is unknown. Use a built-in handler, or add an entry under `[plugins]` in glovebox.toml.",
    ),
    (
        "verifier_needed",
        "Error: `verify_plugin` names a component that is not a verifier. Name a plugin of glovebox.toml, and give its entry \
         `role = \"verifier\"`. Only the operator can make a plugin a verifier.",
    ),
    (
        "model_unknown",
        "Error: the node matches no table under `[models]` in glovebox.toml, or more than one. Set `llm_model` to the name of a table, or \
         `default = true` in one of them. Glovebox never replaces the named model with another one.",
    ),
    (
        "agent_program",
        "Error: the agent program of the node (`agent.backend`) cannot be bound: its model has another wire format, or the node has \
         `allowed_commands`, tool hooks or access to the whole network. docs/agents.md describes what an agent program can use.",
    ),
    (
        "mcp_unknown",
        "Error: `mcp` names a tool server that glovebox.toml has no table for. Add `[mcp.NAME]` with `command` and `tools`, or correct the \
         name. See docs/mcp.md.",
    ),
    (
        "mcp_not_granted",
        "Error: `mcp` names a tool that the operator does not allow. Add it to `tools` under `[mcp.NAME]` in glovebox.toml, or remove it \
         from the node. A node that reads hold-outs cannot call tools of tool servers. See docs/mcp.md.",
    ),
    (
        "mcp_without_tools",
        "Error: the node has `mcp`, but its handler calls no tools of tool servers. Glovebox's own agent can call them; commands and agent \
         programs cannot. Remove `mcp` from the node. See docs/mcp.md.",
    ),
    (
        "tools_unknown",
        "Error: `tools` names a plugin that glovebox.toml has no table for. Add `[plugins.\"NAME\"]` with `path` and `tools`, or \
         correct the name. See docs/tool-providers.md.",
    ),
    (
        "tools_not_granted",
        "Error: `tools` names a tool that the operator does not allow, or two plugins whose tools have the same names for a model. Add \
         the tool to `tools` under `[plugins.\"NAME\"]` in glovebox.toml, or remove it from the node. See docs/tool-providers.md.",
    ),
    (
        "tools_not_callable",
        "Error: the node has `tools`, but it cannot call tools of plugins: its handler calls none, it has an agent program, or it reads \
         hold-outs. Remove `tools` from the node. See docs/tool-providers.md.",
    ),
    (
        "network_not_granted",
        "Error: the node asks for more network than the operator grants. Extend `network` under `[sandbox]` in glovebox.toml, \
         or narrow the node's `network`.",
    ),
    (
        "sandbox_folder",
        "Error: a folder in `scratch` or `cache` is not allowed. Name folders of the workspace, each in only one of the two, \
         and none that is hidden from the stage.",
    ),
    (
        "holdout_access",
        "Error: a plugin never gets hold-outs. Remove `codex.allow_read_scenarios`, or name the hold-outs in `codex.block_read_paths` too.",
    ),
    (
        "plugin_attribute_value",
        "Error: the value of an attribute does not have the type that the plugin of the node declares for it. \
         `glovebox plugin inspect FILE` lists the attributes of a plugin with their types.",
    ),
    (
        "plugin_attribute_required",
        "Error: the plugin of the node declares an attribute as required, and the node does not have it.",
    ),
    (
        "plugin_attribute_known",
        "Warning: neither Glovebox nor the plugin of the node knows the attribute, so that it has no effect. A plugin that declares \
         no attributes may read any, and its nodes get no such warning.",
    ),
    (
        "plugin_refused",
        "Error: a plugin of the node may not run: it is missing, revoked, not signed as `[trust]` requires, not locked, or differs \
         from glovebox.lock. Build it, review it with `glovebox plugin inspect`, and lock it with `glovebox plugin lock`.",
    ),
    (
        "verification_partial_route",
        "Warning: with `[verify]` a verification stage may skip commands, and then ends with `partial_success`. \
         If no edge of the stage matches this status, the run fails. Add an edge for it, or write `outcome!=fail`.",
    ),
    ("path_invalid", "Error: a path in the scope of the node is invalid. Use relative paths without `..`."),
    (
        "limit_unknown",
        "Error: `limits.<name>` has an invalid value. docs/configuration.md lists the limits and their units.",
    ),
    ("limit_not_raised", "Warning: a node can only lower a limit. Raise it under `[limits]` in glovebox.toml."),
    (
        "write_not_committed",
        "Warning: the node may write a path inside a `scratch` or `cache` folder. Such files are never committed.",
    ),
    ("script_node", "Error: the script has turns for a node that the pipeline does not have."),
    ("test_attribute", "Error: a `test.*` attribute of the node has an invalid value."),
    ("config_syntax", "Error: glovebox.toml is not valid TOML."),
    (
        "config_unknown_field",
        "Error: glovebox.toml has an unknown field. Glovebox does not ignore it, because a misspelled setting would protect nothing.",
    ),
    ("config_missing_field", "Error: an entry of glovebox.toml lacks a required field."),
    ("config_value", "Error: a field of glovebox.toml has an invalid value."),
    ("config_unenforceable", "Error: glovebox.toml has a setting that this version cannot enforce."),
];
