//! Rules over a lowered pipeline (spec §7): one table, each rule a pure function from a [`Subject`] to diagnostics.
//!
//! The table is the only home of a rule's name and severity. Rules of the reader and the lowering stand in it without a
//! function, so that every name in a diagnostic can be looked up here.

mod attributes;
mod found;
mod guardrails;
mod holdouts;
mod mending;
mod not_enforced;
mod routes;
mod structure;
mod subject;

use crate::diagnostic::Severity::{Error, Info, Warning};
use crate::diagnostic::{Diagnostic, Severity};
use crate::ir::Pipeline;
use crate::span::Span;
use found::Found;
pub use subject::Subject;

/// One rule of the table.
#[derive(Debug, Clone, Copy)]
pub struct Rule {
    /// Stable name, as in a diagnostic's `rule`.
    pub id: &'static str,
    /// How bad its findings are.
    pub severity: Severity,
    /// What it demands, one line.
    pub summary: &'static str,
    /// How its findings are mended, in general.
    pub help: &'static str,
    check: Option<Check>,
}

type Check = fn(&Rule, &Subject<'_>) -> Found;

impl Rule {
    /// The rule of that name.
    pub fn named(id: &str) -> Option<&'static Rule> {
        RULES.iter().find(|rule| rule.id == id)
    }

    /// The page that explains the rule: what it demands, how bad a breach is, how it is mended.
    pub fn page(&self) -> String {
        format!("{} ({})\n\n{}\n\nTo mend it: {}\n", self.id, self.severity.as_str(), self.summary, self.help)
    }

    /// Starts a finding of this rule, with the rule's help.
    fn found(&self, message: impl Into<String>, span: Span) -> Diagnostic {
        Diagnostic::new(self.id, self.severity, message, span).with_help(self.help)
    }
}

const fn rule(id: &'static str, severity: Severity, check: Check, summary: &'static str, help: &'static str) -> Rule {
    Rule { id, severity, summary, help, check: Some(check) }
}

/// A rule whose findings the reader or the lowering makes.
const fn early(id: &'static str, severity: Severity, summary: &'static str, help: &'static str) -> Rule {
    Rule { id, severity, summary, help, check: None }
}

/// Every rule there is.
pub const RULES: &[Rule] = &[
    early("dot_syntax", Error, "the file is one `digraph` of the supported subset", "see the message"),
    early("not_graphviz", Info, "Graphviz reads the file too", "put the spelling in quotes"),
    early("attribute_value", Error, "an attribute's value has the attribute's type", "see the message"),
    early("duration_unit", Warning, "a duration says its unit", "write `900s`"),
    early("duplicate_attribute", Warning, "an attribute is set once", "keep one of the two values"),
    early("path_list", Error, "path lists hold relative paths without `..`", "write `src/,Cargo.toml`"),
    early("limit_known", Error, "`limits.<name>` names a limit that exists", "see the list in the message"),
    early("input_declared", Error, "every `--set` key occurs in the file", "use `$key`, or declare a graph attribute"),
    early("condition_syntax", Error, "edge conditions parse", "compare with `=` or `!=`, join with `&&`"),
    early("stylesheet_syntax", Error, "`model_stylesheet` parses", "`selector { property: value; }`"),
    rule(
        "start_node",
        Error,
        structure::start_node,
        "there is exactly one start node",
        "declare one: `start [shape=Mdiamond]`",
    ),
    rule(
        "terminal_node",
        Error,
        structure::terminal_node,
        "there is an exit node",
        "declare one: `exit [shape=Msquare]`",
    ),
    rule(
        "reachability",
        Error,
        structure::reachability,
        "every node can be reached from the start",
        "draw an edge to it, or remove it",
    ),
    rule(
        "edge_target_exists",
        Error,
        structure::edge_target_exists,
        "edges join declared nodes",
        "declare the node, or correct its name",
    ),
    rule(
        "start_no_incoming",
        Error,
        structure::start_no_incoming,
        "no edge leads into the start node",
        "lead it to the first stage instead",
    ),
    rule(
        "exit_no_outgoing",
        Error,
        structure::exit_no_outgoing,
        "no edge leaves an exit node",
        "remove the edge; a node called `exit`, `end` or `done` is an exit unless it has a shape, such as `shape=box`",
    ),
    rule(
        "orphan_node",
        Warning,
        structure::orphan_node,
        "the graph is one piece",
        "join the nodes with the rest, or remove them",
    ),
    rule(
        "exit_reachable",
        Warning,
        structure::exit_reachable,
        "an exit can be reached from every node",
        "draw an edge towards an exit",
    ),
    rule(
        "loop_without_bound",
        Info,
        structure::loop_without_bound,
        "a graph with a loop says when to stop",
        "set `graph [max_steps=50]` or `graph [max_wall_time=\"2h\"]`",
    ),
    rule(
        "type_known",
        Warning,
        attributes::type_known,
        "`type` names a handler",
        "a plugin's type has a dot: `acme.review`; it is bound in `glovebox.toml`",
    ),
    rule(
        "shape_known",
        Warning,
        attributes::shape_known,
        "`shape` stands for a handler",
        "give the node a `type`, or one of the shapes that have a handler",
    ),
    rule(
        "fidelity_valid",
        Warning,
        attributes::fidelity_valid,
        "`fidelity` is a known mode",
        "modes are `full`, `truncate`, `compact`, `summary:low`, `summary:medium`, `summary:high`",
    ),
    rule(
        "retry_target_exists",
        Warning,
        attributes::retry_target_exists,
        "`retry_target` names a declared node",
        "correct the name; as it stands it is ignored",
    ),
    rule(
        "goal_gate_has_retry",
        Warning,
        attributes::goal_gate_has_retry,
        "a goal gate says where to go when it is unmet",
        "set `retry_target` on the node or on the graph; without it the run fails at the exit",
    ),
    rule(
        "prompt_on_llm_nodes",
        Warning,
        attributes::prompt_on_llm_nodes,
        "an agent stage has a prompt or a label",
        "set `prompt=\"…\"`; as it stands the node's name is the prompt",
    ),
    rule(
        "provider_valid",
        Warning,
        attributes::provider_valid,
        "`llm_provider` is a known provider",
        "correct the name, or leave it out",
    ),
    rule(
        "reasoning_effort_valid",
        Warning,
        attributes::reasoning_effort_valid,
        "`reasoning_effort` is `low`, `medium` or `high`",
        "use one of the three",
    ),
    rule(
        "attribute_known",
        Warning,
        attributes::attribute_known,
        "attributes are spelled right and stand where they are read",
        "correct the name; as it stands the attribute does nothing",
    ),
    rule(
        "write_scope_missing",
        Warning,
        guardrails::write_scope_missing,
        "every working stage says what it may write",
        "set `allowed_write_paths=\"src/,Cargo.toml\"`; an empty value allows nothing",
    ),
    rule(
        "path_pattern",
        Warning,
        guardrails::path_pattern,
        "path lists hold paths, not patterns",
        "name the folder with a trailing `/`, or each file",
    ),
    rule(
        "read_scope_workdir",
        Warning,
        guardrails::read_scope_workdir,
        "a strict read scope has a working directory",
        "set `codex.workdir=\"agent\"`, or `codex.workdir=\".\"` where all of the workspace may be read",
    ),
    rule(
        "tool_command_required",
        Error,
        guardrails::tool_command_required,
        "a tool stage has a `tool_command`",
        "set `tool_command=\"cargo test\"`",
    ),
    rule(
        "command_required",
        Error,
        guardrails::command_required,
        "a verify stage has a `command`",
        "set `command=\"cargo test\"`",
    ),
    rule(
        "tool_command_guard",
        Error,
        guardrails::tool_command_guard,
        "a `tool_command` stays in the workspace",
        "use paths relative to the workspace",
    ),
    rule(
        "unfixable_failure_source",
        Warning,
        mending::unfixable_failure_source,
        "a stage that follows a failed tool may write the scripts that the tool runs",
        "add the scripts to `allowed_write_paths`, or keep them in `scenarios`; as it stands a failure ends the run there",
    ),
    rule(
        "working_dir_inside",
        Error,
        guardrails::working_dir_inside,
        "a `working_dir` is a folder of the workspace",
        "write it relative to the workspace, such as `crates/app`",
    ),
    rule(
        "scenario_opt_out",
        Warning,
        holdouts::scenario_opt_out,
        "hold-outs are kept from the stages they judge",
        "remove the attribute unless it is meant: a run records it",
    ),
    rule(
        "prompt_mentions_scenarios",
        Warning,
        holdouts::prompt_mentions_scenarios,
        "no prompt names the hold-outs",
        "describe what is wanted instead; the folder does not exist for the stage",
    ),
    rule(
        "no_failure_route",
        Warning,
        routes::no_failure_route,
        "a stage whose edges ask for its outcome also says where a failure leads",
        "add an edge with `condition=\"outcome=fail\"`, or `retry_target`",
    ),
    rule(
        "all_conditional_edges",
        Warning,
        routes::all_conditional_edges,
        "conditions leave no outcome without an edge",
        "add an edge without a condition, or with the missing one; a run that finds no edge fails",
    ),
    rule(
        "edge_to_exit_on_failure",
        Warning,
        routes::edge_to_exit_on_failure,
        "a failed stage does not lead to a successful exit",
        "lead it to a stage that mends it, or make the stage a goal gate",
    ),
    rule(
        "condition_outcome",
        Warning,
        routes::condition_outcome,
        "`outcome` is compared with an outcome there is",
        "outcomes are `success`, `partial_success`, `retry`, `fail`, `skipped`",
    ),
    rule(
        "condition_key",
        Warning,
        routes::condition_key,
        "a condition's bare key is no misspelt `outcome` or `preferred_label`",
        "correct it, or write `context.` before a context key",
    ),
    rule(
        "default_ignored",
        Warning,
        routes::default_ignored,
        "`default=true` stands on an edge without a condition",
        "remove the condition or the `default`",
    ),
    rule(
        "auto_status_no_effect",
        Info,
        attributes::auto_status_no_effect,
        "a stage does not rely on `auto_status`",
        "remove it: a handler always answers with an outcome of its own here, and no answer is a failure",
    ),
    rule(
        "not_enforced",
        Warning,
        not_enforced::check,
        "the file asks for nothing that this version would not enforce",
        "`glovebox run` refuses it in this version",
    ),
];

/// Runs every rule; of each the first findings, as many as a file may show.
pub fn run(pipeline: &Pipeline) -> Vec<Diagnostic> {
    let subject = Subject::new(pipeline);
    RULES.iter().filter_map(|rule| rule.check.map(|check| check(rule, &subject))).flatten().collect()
}

/// What `glovebox run` refuses in this version because it would not enforce it: warnings here, made errors by whoever binds a plan.
pub fn not_enforced(pipeline: &Pipeline) -> Vec<Diagnostic> {
    let subject = Subject::new(pipeline);
    let rule = Rule::named("not_enforced").expect("the table holds it: a test looks");
    not_enforced::check(rule, &subject).into_iter().collect()
}
