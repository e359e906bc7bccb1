//! Rules about the permissions of stages: write scopes, required commands, and commands that stay in the workspace.
//!
//! These rules only report mistakes early. The sandbox enforces the permissions when a stage runs.

use super::holdout_reach::may_have;
use super::structure::names;
use super::unknown_keys::misspelt_command;
use super::{LintContext, Rule, RuleFindings};
use crate::hash::HashSet;
use crate::ir::{Attribute, HandlerKind, Node};
use crate::key::{self, Key};
use crate::nearest::certain;
use crate::span::Span;
use glovebox_names::protected;
use glovebox_record::scope::Entry;

fn text<'a>(node: &'a Node, key: Key<'_>) -> Option<&'a Attribute> {
    node.attributes.get(key).filter(|attribute| !attribute.value.trim().is_empty())
}

/// Explains in messages the two extreme write scopes, `./` and empty.
const SCOPE_ENDS: &str = "`\"./\"` allows the whole workspace, an empty value nothing";

/// Reports all stages without a write scope in one finding, because a list is easier to read than one message for each stage.
pub(super) fn write_scope_missing(rule: &Rule, context: &LintContext<'_>) -> RuleFindings {
    // A stage that only reads needs no write scope.
    let ours = |node: &Node| {
        let kind = node.handler.kind();
        kind.is_first_party() && !kind.only_reads()
    };
    // By default, a verifier with hold-outs in reach cannot change the workspace.
    let is_bound = |node: &Node| context.has_holdouts && node.is_verifier() && may_have(context, node);
    let open = |node: &&Node| ours(node) && node.access.allowed_write_paths.is_none() && !is_bound(node);
    let unbound: Vec<&Node> = context.pipeline.nodes.iter().filter(open).collect();
    let Some(first) = unbound.first() else { return RuleFindings::none() };
    let message = format!("{} may write every file in the workspace", names(&unbound));
    let found = rule.found(message, first.span).with_node(first.id.as_str());
    let sources: Vec<String> = context.pipeline.sources.iter().map(ToString::to_string).collect();
    if sources.is_empty() {
        return RuleFindings::one(found);
    }
    let line = format!("allowed_write_paths=\"{}\"", sources.join(","));
    RuleFindings::one(found.with_help(format!("add `{line}`, or the part of it that the stage needs; {SCOPE_ENDS}")))
}

pub(super) fn path_pattern(rule: &Rule, context: &LintContext<'_>) -> RuleFindings {
    let mut found = RuleFindings::none();
    for node in &context.pipeline.nodes {
        if found.is_full() {
            break;
        }
        for (key, paths) in path_lists(node) {
            let pattern = paths.and_then(|paths| {
                paths.iter().find(|entry| entry.path().as_str().bytes().any(|byte| matches!(byte, b'*' | b'?')))
            });
            if let (Some(pattern), Some(attribute)) = (pattern, node.attributes.get(key)) {
                let message = format!("`{pattern}` in `{key}` is a file name here, not a pattern");
                found.push(rule.found(message, attribute.span).with_node(node.id.as_str()));
            }
        }
    }
    found
}

/// Reports write scopes with a protected path. No grant allows such a path, so a stage that writes there fails.
pub(super) fn protected_write_path(rule: &Rule, context: &LintContext<'_>) -> RuleFindings {
    let mut found = RuleFindings::none();
    // Nodes often have the scope of the node before them.
    let mut last_allowed = None;
    for node in &context.pipeline.nodes {
        let Some(attribute) = text(node, key::ALLOWED_WRITE_PATHS) else { continue };
        let scope = node.access.allowed_write_paths.as_ref();
        if scope == last_allowed {
            continue;
        }
        let paths = scope.into_iter().flatten();
        let refused: Vec<String> = paths.filter_map(|entry| protected::reason(entry.path().as_str())).collect();
        let Some(first) = refused.first().filter(|_| !found.is_full()) else {
            last_allowed = scope;
            continue;
        };
        let more = match refused.len() {
            1 => String::new(),
            2 => " (and 1 more path)".to_owned(),
            count => format!(" (and {} more paths)", count - 1),
        };
        let message = format!("`{}` cannot write a path in `allowed_write_paths`: {first}{more}", node.id);
        found.push(rule.found(message, attribute.span).with_node(node.id.as_str()));
    }
    found
}

fn path_lists(node: &Node) -> [(Key<'static>, Option<&Vec<Entry>>); 5] {
    let confinement = &node.access.confinement;
    [
        (key::ALLOWED_WRITE_PATHS, node.access.allowed_write_paths.as_ref()),
        (key::READ_PATHS, node.access.read_paths.as_ref()),
        (key::CODEX_ADD_DIRS, Some(&confinement.add_dirs)),
        (key::SCRATCH, Some(&confinement.scratch)),
        (key::CACHE, Some(&confinement.cache)),
    ]
}

/// Reports a strict read scope without a working directory, which contains only the write scope and `codex.add_dirs`.
pub(super) fn read_scope_workdir(rule: &Rule, context: &LintContext<'_>) -> RuleFindings {
    let strict = |node: &&Node| node.access.confinement.strict_read_scope && node.access.confinement.workdir.is_none();
    let found = |node: &Node| {
        let span = node.attributes.get(key::CODEX_STRICT_READ_SCOPE).map_or(node.span, |attribute| attribute.span);
        let message = format!("`{}` sees only `codex.add_dirs` and its write scope", node.id);
        rule.found(message, span).with_node(node.id.as_str())
    };
    context.pipeline.nodes.iter().filter(strict).map(found).collect()
}

pub(super) fn tool_command_required(rule: &Rule, context: &LintContext<'_>) -> RuleFindings {
    required(rule, context, HandlerKind::Tool)
}

pub(super) fn command_required(rule: &Rule, context: &LintContext<'_>) -> RuleFindings {
    required(rule, context, HandlerKind::Verify)
}

fn required(rule: &Rule, context: &LintContext<'_>, kind: HandlerKind) -> RuleFindings {
    let Some(key) = kind.command() else { return RuleFindings::none() };
    // Attributes of other handlers or other engines in which the author may have written the command.
    const KEYS: [Key<'static>; 3] = [key::TOOL_COMMAND, key::COMMAND, key::SCRIPT];
    let empty = |node: &&Node| node.handler.kind() == kind && text(node, key).is_none();
    let found = |node: &Node| {
        let message = format!("the {} stage `{}` has no `{key}`", node.handler.name(), node.id);
        let found = rule.found(message.clone(), node.span).with_node(node.id.as_str());
        let other = KEYS.into_iter().find_map(|own| Some((own, text(node, own)?)));
        match other.filter(|_| !node.attributes.contains_key(key)) {
            Some((own, written)) => {
                let help = format!("rename `{own}` to `{key}`");
                found.with_help(help).with_fix(written.key_span, key.as_str())
            }
            None => match misspelt_command(node) {
                Some((own, written)) => {
                    let message = format!("unknown attribute `{own}`: {message}");
                    let found = rule.found(message, written.key_span).with_node(node.id.as_str());
                    let found = found.with_help(format!("did you mean `{key}`?"));
                    match certain(own.as_str(), [key.as_str()]) {
                        Some(meant) => found.with_fix(written.key_span, meant),
                        None => found,
                    }
                }
                None if text(node, key::PROMPT).is_some() => found.with_help(format!(
                    "a stage of the type `{}` runs a command and never reads a prompt: set `{key}`, or make the stage an agent \
                     with `shape=box`",
                    node.handler.name()
                )),
                None => found,
            },
        }
    };
    context.pipeline.nodes.iter().filter(empty).map(found).collect()
}

/// Reports stages that run a model's plan and have no list of allowed commands. Commands that the author wrote need no such list.
pub(super) fn allow_list_missing(rule: &Rule, context: &LintContext<'_>) -> RuleFindings {
    const KEY: Key<'static> = key::VERIFICATION_ALLOWED_COMMANDS;
    // An empty list means that a plan may contain no command.
    let open = |node: &&Node| node.handler.kind() == HandlerKind::Verification && !node.attributes.contains_key(KEY);
    let found = |node: &Node| {
        let span = node.attributes.get(KEY).map_or(node.span, |attribute| attribute.span);
        rule.found(format!("{KEY} is required: `{}` fails without it", node.id), span).with_node(node.id.as_str())
    };
    context.pipeline.nodes.iter().filter(open).map(found).collect()
}

pub(super) fn working_dir_inside(rule: &Rule, context: &LintContext<'_>) -> RuleFindings {
    let leaves = |path: &str| path.starts_with(['/', '~']) || path.split('/').any(|name| name == "..");
    let found = |node: &Node| {
        let attribute = text(node, key::WORKING_DIR).filter(|attribute| leaves(&attribute.value))?;
        let message = format!("the working directory `{}` is outside the workspace", attribute.value);
        Some(rule.found(message, attribute.span).with_node(node.id.as_str()))
    };
    let runs_commands = |node: &&Node| node.handler.kind().command().is_some();
    context.pipeline.stages().filter(runs_commands).filter_map(found).collect()
}

/// Reports tool hooks on nodes that make no tool calls, where a hook would look like a protection. A hook from a
/// defaults block is reported only if no node that inherits the hook makes tool calls, and only once.
pub(super) fn tool_hooks_without_tools(rule: &Rule, context: &LintContext<'_>) -> RuleFindings {
    let (with_tools, without): (Vec<&Node>, Vec<&Node>) =
        context.pipeline.nodes.iter().partition(|node| node.handler.may_ask_model());
    let mut known: HashSet<Span> = with_tools.into_iter().flat_map(written_hooks).map(|(_, span)| span).collect();
    let mut found = RuleFindings::none();
    for node in without {
        for (key, span) in written_hooks(node).filter(|(_, span)| known.insert(*span)) {
            let (id, handler) = (&node.id, node.handler.name());
            let message = format!("`{key}` is set on `{id}`, but a `{handler}` node makes no tool calls");
            found.push(rule.found(message, span).with_node(id.as_str()));
        }
    }
    found
}

fn written_hooks(node: &Node) -> impl Iterator<Item = (Key<'static>, Span)> {
    let keys = [key::TOOL_HOOKS_PRE, key::TOOL_HOOKS_POST];
    keys.into_iter().filter_map(|key| Some((key, text(node, key)?.span)))
}
