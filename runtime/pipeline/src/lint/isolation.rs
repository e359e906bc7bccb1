//! Rules about the program under test: the nodes that may have its attributes, and its isolation from the stage that tests it.
//!
//! These rules only warn. Only the host knows which command ran in which sandbox, and it records that.

use super::execution::{CommandSite, Execution, SUBJECT, calls_subject, executions};
use super::holdout_reach::may_have;
use super::structure::names;
use super::words::{Language, Script, words};
use super::{LintContext, Rule, RuleFindings};
use crate::diagnostic::Diagnostic;
use crate::dot::quote;
use crate::fixability::workdir;
use crate::hash::HashSet;
use crate::ir::holdouts::covers;
use crate::ir::{Attribute, Node, Pipeline};
use crate::key::{self, Key};
use crate::reach::{HoldoutReach, may_have_contract};
use crate::source::Source;
use crate::span::Span;
use glovebox_record::scope::Entry;
use std::ops::Range;

/// The port on which the host's proxy listens inside a sandbox.
const PROXY_PORT: u16 = 3128;

/// Creates a finding at an attribute of a node.
fn at(rule: &Rule, node: &Node, attribute: &Attribute, message: impl Into<String>) -> Diagnostic {
    rule.found(message, attribute.key_span.to(attribute.span)).with_node(node.id.as_str())
}

fn written<'a>(node: &'a Node, key: Key<'_>) -> Option<&'a Attribute> {
    node.attributes.get(key).filter(|attribute| !attribute.value.trim().is_empty())
}

/// Reports attributes for verifiers on nodes where they have no effect and would look like a protection. A value from a
/// defaults block is reported once.
pub(super) fn verifier_attribute(rule: &Rule, context: &LintContext<'_>) -> RuleFindings {
    let mut reported = HashSet::default();
    let reaches = |stage: &Node| may_have(context, stage) || may_have_contract(stage);
    let mut found = RuleFindings::none();
    for node in &context.pipeline.nodes {
        for key in [key::VERIFY_SUBJECT, key::VERIFY_SUBJECT_PORT, key::HOLDOUTS, key::SCENARIO_WRITES] {
            let Some(attribute) = written(node, key) else { continue };
            let (belongs, what) = match key {
                key::SCENARIO_WRITES => (node.stages().any(reaches), "has no hold-outs in reach"),
                _ => (node.stages().any(Node::is_verifier), "is not a verifying stage"),
            };
            if !belongs && reported.insert(attribute.span) {
                found.push(at(rule, node, attribute, format!("`{key}` is set on `{}`, which {what}", node.id)));
            }
        }
    }
    found
}

/// Reports a port without a program that the host starts, and the port of the host's proxy.
pub(super) fn subject_port(rule: &Rule, context: &LintContext<'_>) -> RuleFindings {
    let found = |node: &Node| {
        let (port, attribute) = (node.access.subject.port?, written(node, key::VERIFY_SUBJECT_PORT)?);
        if port == PROXY_PORT {
            let message = format!("`verify_subject_port` of `{}` is {PROXY_PORT}, the port of the proxy", node.id);
            return Some(at(rule, node, attribute, message).with_help("choose another port, such as 8080"));
        }
        let message = format!("`{}` has `verify_subject_port`, but no `verify_subject`", node.id);
        node.access.subject.command.is_none().then(|| at(rule, node, attribute, message))
    };
    context.pipeline.stages().filter(|node| node.is_verifier()).filter_map(found).collect()
}

/// Reports `cache_from` without `cache`, because there is no folder to fill.
pub(super) fn cache_from(rule: &Rule, context: &LintContext<'_>) -> RuleFindings {
    let empty = |node: &&Node| node.access.confinement.cache_from.is_some() && node.access.confinement.cache.is_empty();
    let found = |node: &Node| {
        let attribute = written(node, key::CACHE_FROM)?;
        Some(at(rule, node, attribute, format!("`{}` has `cache_from`, but no `cache`", node.id)))
    };
    context.pipeline.nodes.iter().filter(empty).filter_map(found).collect()
}

/// Returns the command of a verifying stage, with the key of its attribute.
fn command(node: &Node) -> Option<(Key<'static>, &Attribute)> {
    let key = node.handler.kind().command()?;
    Some((key, written(node, key)?))
}

/// Returns true for a stage that has hold-outs in reach and whose own commands can also see files of the project.
fn sees_both(reach: &HoldoutReach, node: &Node) -> bool {
    node.is_verifier() && reach.reaches(node) && sees_project(reach.folders(), node)
}

/// Returns true if the node's own commands can see files other than hold-outs. They can also see their write scope.
fn sees_project(folders: &[Entry], node: &Node) -> bool {
    let is_open = |path: &Entry| !covers(folders, path);
    let confinement = &node.access.confinement;
    let strict = confinement.strict_read_scope.then(|| {
        let named = confinement.workdir.iter().chain(&confinement.add_dirs).chain(&confinement.program);
        named.into_iter().any(is_open)
    });
    let reads = node.access.read_paths.as_ref().is_none_or(|paths| paths.iter().any(is_open));
    let writes = node.access.allowed_write_paths.as_ref().is_some_and(|paths| paths.iter().any(is_open));
    (reads && strict.unwrap_or(true)) || writes
}

/// Reports commands that execute the builder's code in the sandbox with the hold-outs. Such code can read the hold-outs
/// and forge the verdict.
pub(super) fn subject_not_isolated(rule: &Rule, context: &LintContext<'_>) -> RuleFindings {
    let pipeline = context.pipeline;
    let folders = pipeline.scenario_folders();
    let found = |node: &Node| {
        let (key, attribute) = command(node)?;
        let words = words(Source::new(&attribute.value), Language::Shell);
        let site = CommandSite { sealed: &folders, workdir: workdir(node) };
        let execution = executions(&words, site).into_iter().next()?;
        let help = match execution.is_over_holdouts {
            true => narrow(&folders),
            false => format!(
                "start it in its own sandbox: `{key}={}`",
                quote(&with_subject(Source::new(&attribute.value), &execution.at))
            ),
        };
        Some(at(rule, node, attribute, format!("`{}` runs {}", node.id, beside(&execution))).with_help(help))
    };
    if !context.has_holdouts {
        return RuleFindings::none();
    }
    pipeline.stages().filter(|node| sees_both(&context.reach, node)).filter_map(found).collect()
}

/// Reports stages that can see both hold-outs and files of the project, because the host then cannot know which code
/// ran next to the hold-outs.
pub(super) fn project_beside_holdouts(rule: &Rule, context: &LintContext<'_>) -> RuleFindings {
    let pipeline = context.pipeline;
    let uses = |node: &Node| {
        let called =
            |(_, attribute): (_, &Attribute)| calls_subject(&words(Source::new(&attribute.value), Language::Shell));
        node.access.subject.command.is_some() || command(node).is_some_and(called)
    };
    let found = |node: &Node| {
        let attribute =
            [key::READ_PATHS, key::ALLOWED_WRITE_PATHS].into_iter().find_map(|key| node.attributes.get(key));
        let span = attribute.map_or(node.span, |attribute| attribute.key_span.to(attribute.span));
        let message = format!("`{}` sees files of the project in addition to the hold-outs", node.id);
        rule.found(message, span).with_help(narrow(&pipeline.scenario_folders())).with_node(node.id.as_str())
    };
    if !context.has_holdouts {
        return RuleFindings::none();
    }
    pipeline.stages().filter(|node| sees_both(&context.reach, node) && uses(node)).map(found).collect()
}

/// Reports code of the project that a script in a hold-out folder executes in the sandbox of the script.
pub(super) fn check_script(
    rule: &Rule,
    pipeline: &Pipeline,
    reach: &HoldoutReach,
    script: &Script<'_>,
) -> Vec<Diagnostic> {
    let stages = stages_of(pipeline, reach, script);
    if stages.is_empty() {
        return Vec::new();
    }
    let folders = pipeline.scenario_folders();
    let words = script.words();
    let found = |execution: Execution| {
        let message = format!("this script of {} runs {}", names(&stages), beside(&execution));
        let help = match execution.is_over_holdouts {
            true => narrow(&folders),
            false => format!("start it in its own sandbox: `{}`", script_line_with_subject(script, &execution)),
        };
        rule.found(message, Span::new(execution.at.start, execution.at.end)).with_help(help)
    };
    executions(&words, CommandSite { sealed: &folders, workdir: "" }).into_iter().map(found).collect()
}

/// Returns the stages that can see the project and have the script in reach. If a command names the script, returns only the
/// stages with such a command.
fn stages_of<'a>(pipeline: &'a Pipeline, reach: &HoldoutReach, script: &Script<'_>) -> Vec<&'a Node> {
    let path = script.path;
    let folders = pipeline.scenario_folders();
    let inside = folders.iter().find_map(|folder| path.find(folder.as_str()).map(|at| &path[at..])).unwrap_or(path);
    let runs = |node: &Node| command(node).is_some_and(|(_, attribute)| attribute.value.contains(inside));
    let verifiers = || pipeline.stages().filter(|node| node.is_verifier());
    let is_named = verifiers().any(runs);
    verifiers().filter(|node| sees_both(reach, node) && (!is_named || runs(node))).collect()
}

fn beside(Execution { what, is_over_holdouts, .. }: &Execution) -> String {
    match is_over_holdouts {
        true => {
            format!("`{what}` on the hold-outs with the project in view: files of the project can make it run code")
        }
        false => format!("`{what}` with the hold-outs in view: it can read them and forge the verdict"),
    }
}

fn narrow(folders: &[String]) -> String {
    format!("show the stage's own commands only the hold-outs: `read_paths=\"{}\"`", folders.join(","))
}

/// Returns the command with `subject` inserted before the program under test.
fn with_subject(command: Source<'_>, at: &Range<usize>) -> String {
    let text = command.text();
    let (before, after) = text.split_at(at.start);
    if let Some(list) = after.strip_prefix('[') {
        return format!("{before}[\"{SUBJECT}\", {list}");
    }
    let mark = before.chars().next_back().filter(|mark| matches!(mark, '"' | '\''));
    let mark = mark.filter(|mark| text[at.end..].starts_with(*mark));
    let outside = mark.map_or("", |_| &before[..before.len() - 1]);
    match mark {
        Some(mark) if outside.ends_with('[') => format!("{before}{SUBJECT}{mark}, {mark}{after}"),
        // Move `subject` before the quote in `"bin/prog" x`, but not in `sh -c "make"`.
        Some(mark) if !outside.trim_end().ends_with('c') => format!("{outside}{SUBJECT} {mark}{after}"),
        _ => format!("{before}{SUBJECT} {after}"),
    }
}

/// Returns the line of a script with `subject` inserted before the program under test.
fn script_line_with_subject(script: &Script<'_>, execution: &Execution) -> String {
    let text = script.text;
    let start = text[..execution.at.start].rfind('\n').map_or(0, |at| at + 1);
    let end = text[execution.at.end..].find('\n').map_or(text.len(), |at| execution.at.end + at);
    with_subject(Source::new(&text[start..end]), &(execution.at.start - start..execution.at.end - start))
        .trim()
        .to_owned()
}
