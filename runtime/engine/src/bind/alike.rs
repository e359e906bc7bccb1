//! Nodes that the binder cannot tell apart, so that `check` looks at the first of them only.
//!
//! Two builders that are alike get the same findings but for names and places, so after one without a finding the others have none.
//! This holds for no verifier: the text of its command decides which hold-outs it has in reach.

use glovebox_pipeline::ir::Node;

/// Beginning of the attributes that answer in a model's place; each node's own are looked at.
const TEST_ATTRIBUTES: &str = "test.";

/// True if the binder reads the same of both nodes, which are builders. A new field of a node must be sorted in here: the pattern names them all.
pub(super) fn are_alike(one: &Node, other: &Node) -> bool {
    let Node {
        handler,
        timeout,
        max_turns,
        allowed_write_paths,
        read_paths,
        confinement,
        allowed_commands,
        holdouts,
        subject,
        limits,
        id: _,
        role: _,
        label: _,
        shape: _,
        prompt: _,
        max_retries: _,
        backoff: _,
        goal_gate: _,
        retry_target: _,
        fallback_retry_target: _,
        visits_max: _,
        auto_status: _,
        allow_partial: _,
        classes: _,
        attributes: _,
        span: _,
    } = one;
    *handler == other.handler
        && *allowed_write_paths == other.allowed_write_paths
        && *read_paths == other.read_paths
        && *confinement == other.confinement
        && *allowed_commands == other.allowed_commands
        && *holdouts == other.holdouts
        && *subject == other.subject
        && *limits == other.limits
        && *timeout == other.timeout
        && *max_turns == other.max_turns
        && !has_test_attributes(other)
}

/// True if the node answers in a model's place.
pub(super) fn has_test_attributes(node: &Node) -> bool {
    node.attributes.iter().any(|(key, _)| key.as_str().starts_with(TEST_ATTRIBUTES))
}
