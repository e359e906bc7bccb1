//! Rules about single attributes: keys and values that have no effect, or another effect than the author means.

use super::Rule;
use crate::diagnostic::Severity::{Error, Info, Warning};
use crate::lint::{attributes, not_enforced, targets};

pub(super) const RULES: &[Rule] = &[
    Rule {
        id: "type_known",
        severity: Warning,
        check: Some(attributes::type_known),
        summary: "`type` should name a handler",
        help: "correct the name; a plugin's type has a dot, such as `acme.review`, and is bound in `glovebox.toml`",
        why: "`type` takes precedence over the shape (Attractor spec §2.6). With a misspelt type, the stage loses the handler of \
              its shape. The run stops before its first stage, because no component is bound to the name. Names with a dot \
              belong to plugins, and this rule does not check them.",
        bad: include_str!("../../../rules/type_known.bad.dot"),
        good: include_str!("../../../rules/type_known.good.dot"),
    },
    Rule {
        id: "shape_known",
        severity: Warning,
        check: Some(attributes::shape_known),
        summary: "`shape` should be a shape that has a handler",
        help: "set `type`, or use a shape that has a handler, such as `box` or `parallelogram`",
        why: "The shape decides the handler (Attractor spec §2.8). A shape without a handler runs as `box`: a stage that was \
              meant as a tool or a human gate asks a model instead.",
        bad: include_str!("../../../rules/shape_known.bad.dot"),
        good: include_str!("../../../rules/shape_known.good.dot"),
    },
    Rule {
        id: "fidelity_valid",
        severity: Error,
        check: Some(attributes::fidelity_valid),
        summary: "`fidelity` must be a known mode",
        help: "use `full`, `truncate`, `compact`, `summary:low`, `summary:medium` or `summary:high`",
        why: "Fidelity decides how much earlier context a stage's session gets (Attractor spec §5.4 and §7.2). With an \
              unknown mode the stage would work with more or less context than its author wanted.",
        bad: include_str!("../../../rules/fidelity_valid.bad.dot"),
        good: include_str!("../../../rules/fidelity_valid.good.dot"),
    },
    Rule {
        id: "retry_target_exists",
        severity: Warning,
        check: Some(attributes::retry_target_exists),
        summary: "`retry_target` should name a declared node",
        help: "correct the name; a target that does not exist has no effect",
        why: "A target that does not exist counts as absent (Attractor spec §2.5 and §7.2). The run then uses the fallback, or \
              stops at the failure that the target was written for.",
        bad: include_str!("../../../rules/retry_target_exists.bad.dot"),
        good: include_str!("../../../rules/retry_target_exists.good.dot"),
    },
    Rule {
        id: "unused_retry_target",
        severity: Warning,
        check: Some(targets::unused_retry_target),
        summary: "a `retry_target` should have an effect",
        help: "remove it, or remove the edge or attribute that takes precedence",
        why: "After a failure, the run follows a fail edge first, then `retry_target`, then `fallback_retry_target` (Attractor \
              spec §3.7). Targets on the graph serve only unmet goal gates (Attractor spec §3.4). If something else always takes \
              precedence, no run jumps to the target, but a reader of the file expects it.",
        bad: include_str!("../../../rules/unused_retry_target.bad.dot"),
        good: include_str!("../../../rules/unused_retry_target.good.dot"),
    },
    Rule {
        id: "goal_gate_has_retry",
        severity: Warning,
        check: Some(attributes::goal_gate_has_retry),
        summary: "a goal gate should have a `retry_target`",
        help: "set `retry_target`, on the node or on the graph, to the stage that can fix the failure; without it the run fails at the exit",
        why: "Glovebox checks goal gates when the run reaches an exit (Attractor spec §3.4 and §7.2). If a gate is unmet and has \
              no target, the run ends there with `GoalGateUnsatisfied` and tries nothing again. A pipeline in which only \
              commands run gets no warning, because none of its stages could fix anything.",
        bad: include_str!("../../../rules/goal_gate_has_retry.bad.dot"),
        good: include_str!("../../../rules/goal_gate_has_retry.good.dot"),
    },
    Rule {
        id: "prompt_on_llm_nodes",
        severity: Warning,
        check: Some(attributes::prompt_on_llm_nodes),
        summary: "an agent stage should have a prompt or a label",
        help: "set `prompt=\"…\"`; without it the node's name is the prompt",
        why: "Without a prompt, the label is the prompt; without a label, the node's name is (Attractor spec §2.6 and §7.2). A \
              model that receives only the word `review` still does something, and the stage succeeds.",
        bad: include_str!("../../../rules/prompt_on_llm_nodes.bad.dot"),
        good: include_str!("../../../rules/prompt_on_llm_nodes.good.dot"),
    },
    Rule {
        id: "provider_valid",
        severity: Warning,
        check: Some(attributes::provider_valid),
        summary: "`llm_provider` should be a known provider",
        help: "correct the name, or remove it: the model then decides the provider",
        why: "An unknown provider causes an error only at the first model call of the stage, after the stages before it have been paid \
              for. Without `llm_provider`, the provider follows from the model.",
        bad: include_str!("../../../rules/provider_valid.bad.dot"),
        good: include_str!("../../../rules/provider_valid.good.dot"),
    },
    Rule {
        id: "reasoning_effort_valid",
        severity: Warning,
        check: Some(attributes::reasoning_effort_valid),
        summary: "`reasoning_effort` should be `low`, `medium` or `high`",
        help: "use `low`, `medium` or `high`",
        why: "The Attractor specification defines three values (appendix A). A provider refuses any other value when the stage \
              runs, or ignores it, and the model reasons less than the author wanted.",
        bad: include_str!("../../../rules/reasoning_effort_valid.bad.dot"),
        good: include_str!("../../../rules/reasoning_effort_valid.good.dot"),
    },
    Rule {
        id: "attribute_known",
        severity: Warning,
        check: Some(attributes::attribute_known),
        summary: "an attribute's name should be spelled correctly and be in the right place",
        help: "correct the name; an attribute that nothing reads has no effect",
        why: "An attribute that nothing reads has no effect. A misspelt `allowed_write_paths` leaves the whole workspace \
              writable; a `timeout` on the graph limits no stage. This rule reports a name that is similar to a known one, and a \
              known name in the wrong place. The rule `attribute_unread` reports all other unknown names.",
        bad: include_str!("../../../rules/attribute_known.bad.dot"),
        good: include_str!("../../../rules/attribute_known.good.dot"),
    },
    Rule {
        id: "attribute_unread",
        severity: Info,
        check: Some(attributes::attribute_unread),
        summary: "every attribute should have a reader",
        help: "remove it, unless one of your plugins or tools reads it; Glovebox does not read it",
        why: "Glovebox keeps unknown attributes and hands them to plugins, so the name may be meant for a plugin. On a built-in \
              stage, on an edge or on the graph it has no effect, even if it had one in another engine. This rule does not \
              report attributes of a plugin's node, or graph attributes that a prompt uses as `$name`.",
        bad: include_str!("../../../rules/attribute_unread.bad.dot"),
        good: include_str!("../../../rules/attribute_unread.good.dot"),
    },
    Rule {
        id: "auto_status_no_effect",
        severity: Info,
        check: Some(attributes::auto_status_no_effect),
        summary: "a stage should not rely on `auto_status`",
        help: "remove it: a handler always returns an outcome, and a missing answer is a failure",
        why: "`auto_status` turns a stage that wrote no status into a success (Attractor spec appendix C). In Glovebox every \
              component returns an outcome or fails, so `auto_status` has no case to apply to. It never overrides a non-zero \
              exit, a trap or a timeout.",
        bad: include_str!("../../../rules/auto_status_no_effect.bad.dot"),
        good: include_str!("../../../rules/auto_status_no_effect.good.dot"),
    },
    Rule {
        id: "not_enforced",
        severity: Warning,
        check: Some(not_enforced::check),
        summary: "the file should not use attributes that this version does not enforce",
        help: "remove the attribute; this version does not support it",
        why: "If Glovebox read an attribute and did not enforce it, the author would rely on a limit or a guard that does not \
              exist. `glovebox check` and `glovebox run` refuse such a file. `glovebox check --for lint` only warns, and \
              `glovebox graph` draws it.",
        bad: include_str!("../../../rules/not_enforced.bad.dot"),
        good: include_str!("../../../rules/not_enforced.good.dot"),
    },
];
