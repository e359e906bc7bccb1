//! The rule about the limits of a `diff-limits` stage: the numbers, the files that are counted, and the stages whose changes are
//! counted.
//!
//! A limit that counts no files always passes. So a list that matches nothing and a missing stage are errors.

use super::{LintContext, Rule, RuleFindings};
use crate::diagnostic::Diagnostic;
use crate::diff_limits::{FILES_MAX, SINCE_RUN, listed};
use crate::ir::{Attribute, Handler, HandlerKind, Node};
use crate::key::{self, Key};
use crate::nearest::nearest;

const BOUNDS: [Key<'static>; 3] = [key::MAX_FILES, key::MAX_LINES, key::MAX_BINARIES];

/// The attribute with the mistake (`None` for the node itself), the message, and the help.
type Fault<'a> = (Option<&'a Attribute>, String, String);

pub(super) fn check(rule: &Rule, context: &LintContext<'_>) -> RuleFindings {
    let stages = context.pipeline.nodes.iter().filter(|node| node.handler.kind() == HandlerKind::DiffLimits);
    let found = |node: &Node, (at, message, help): Fault<'_>| -> Diagnostic {
        rule.found(message, at.map_or(node.span, |at| at.span)).with_node(node.id.as_str()).with_help(help)
    };
    let all = |node| bounds(node).into_iter().chain(lists(node)).chain(since(node, context));
    stages.flat_map(|node| all(node).map(move |fault| found(node, fault))).collect()
}

fn written<'a>(node: &'a Node, key: Key<'_>) -> Option<&'a Attribute> {
    node.attributes.get(key).filter(|attribute| !attribute.value.trim().is_empty())
}

fn bounds(node: &Node) -> Vec<Fault<'_>> {
    let given: Vec<_> = BOUNDS.into_iter().filter_map(|key| Some((key, written(node, key)?))).collect();
    if given.is_empty() {
        let message = format!("`{}` has no bound", node.id);
        return vec![(None, message, format!("add `{}=20`, `{}=500` or both", key::MAX_FILES, key::MAX_LINES))];
    }
    let wrong = given.into_iter().filter_map(|(key, attribute)| {
        // The stage gets at most `FILES_MAX` files, so it could not check a higher limit.
        let most = if key == key::MAX_LINES { u64::from(u32::MAX) } else { FILES_MAX };
        let is_number = attribute.value.trim().parse::<u64>().is_ok_and(|number| number <= most);
        let message = || format!("`{key}` is `{}`, expected a whole number from 0 to {most}", attribute.value);
        (!is_number).then(|| (Some(attribute), message(), format!("write a number, such as `{key}=20`")))
    });
    wrong.collect()
}

fn lists(node: &Node) -> Vec<Fault<'_>> {
    let lists = [key::PATHS, key::IGNORE].into_iter().filter_map(|key| Some((key, node.attributes.get(key)?)));
    let wrong = lists.flat_map(|(key, attribute)| {
        let fault = move |entry: &str, reason: &str| {
            let message = format!("`{key}` of `{}` has the entry `{entry}`: {reason}", node.id);
            let help = "write files, folders with a final `/`, and patterns with `*`, `?`, `[a-z]` and `**`";
            (Some(attribute), message, help.to_owned())
        };
        let none = listed(attribute).next().is_none() && key == key::PATHS;
        let entries = listed(attribute).filter_map(move |entry| Some((entry, refused(entry)?)));
        none.then(|| fault("", "it lists nothing, so no file would be counted"))
            .into_iter()
            .chain(entries.map(move |(e, why)| fault(e, why)))
    });
    wrong.collect()
}

/// Returns the reason why an entry matches no file of the workspace, or another file than the author means.
fn refused(entry: &str) -> Option<&'static str> {
    let mut names = entry.split('/');
    match entry {
        _ if entry.starts_with('/') => Some("a path is relative to the workspace and must not begin with `/`"),
        _ if names.any(|name| name == "..") => Some("a path must not contain `..`"),
        _ if entry.contains(['{', '}']) => Some("commas separate entries, so write an entry for each alternative"),
        _ => None,
    }
}

fn since<'a>(node: &'a Node, context: &LintContext<'_>) -> Vec<Fault<'a>> {
    let Some(attribute) = written(node, key::SINCE) else { return Vec::new() };
    let nodes = &context.pipeline.nodes;
    let named = |name: &str| nodes.iter().find(|node| node.id.as_str() == name);
    let wrong = listed(attribute).filter_map(|name| {
        let (message, help) = match named(name) {
            None if name == SINCE_RUN => return None,
            Some(_) if name == SINCE_RUN => (
                format!("`{SINCE_RUN}` in `since` is ambiguous: it means the whole run, and a stage has this id"),
                "rename the stage".to_owned(),
            ),
            Some(stage) if works(stage) => return None,
            Some(_) => (
                format!("`since` names `{name}`, which never changes a file"),
                "name a stage that can change files, \
                such as an agent or a tool stage"
                    .to_owned(),
            ),
            None => {
                let meant = nearest(name, nodes.iter().map(|node| node.id.as_str()));
                let help = meant.map_or_else(
                    || format!("name a stage, or `{SINCE_RUN}` for all stages"),
                    |meant| format!("did you mean `{meant}`?"),
                );
                (format!("`since` names `{name}`, which is not a stage of the pipeline"), help)
            }
        };
        Some((Some(attribute), message, help))
    });
    wrong.collect()
}

/// Returns true for a stage that may change files, either itself or through its verification.
fn works(node: &Node) -> bool {
    let is_component = matches!(node.handler, Handler::Component(_) | Handler::FanIn(_));
    is_component && !node.handler.kind().only_reads() || node.checks.verification.is_some()
}
