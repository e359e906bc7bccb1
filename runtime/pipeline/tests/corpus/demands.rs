//! Requirements that every file must meet, whatever is wrong with the file.
//!
//! Faults are collected, so that one run shows the faults of all files. Files with prompts and schemas are not read: a
//! fixed text takes the place of each.

use crate::table::{Counts, counts};
use glovebox_pipeline::Source;
use glovebox_pipeline::diagnostic::{Diagnostic, fixed};
use glovebox_pipeline::format::format;
use glovebox_pipeline::graph::{to_dot, to_json};
use glovebox_pipeline::ir::{Handler, Pipeline};
use glovebox_pipeline::{Inputs, check, dot, lower, parse};

/// The findings of one file, and the requirements that it does not meet.
pub(crate) struct FileFindings {
    pub(crate) counts: Counts,
    pub(crate) faults: Vec<String>,
}

fn inputs(source: &str) -> Inputs {
    let mut inputs = Inputs::default();
    let prompts = parse(Source::new(source)).references(&inputs).prompts;
    inputs.files = prompts.into_iter().map(|path| (path, Ok("The text of a file.".to_owned()))).collect();
    inputs
}

/// Checks one file: its findings, its format and its canonical form.
pub(crate) fn hold(source: &str) -> FileFindings {
    let inputs = inputs(source);
    let checked = check(Source::new(source), &inputs);
    let mut faults = Vec::new();
    if checked.pipeline.is_none() != checked.diagnostics.iter().any(Diagnostic::is_error) {
        faults.push("a pipeline if and only if no error".to_owned());
    }
    faults.extend(formatting(source, &inputs));
    faults.extend(mending(source, &inputs));
    faults.extend(checked.pipeline.iter().flat_map(|pipeline| canonical(pipeline, &inputs)));
    FileFindings { counts: counts(&checked.diagnostics), faults }
}

/// Returns the number of findings by rule, without `not_graphviz`, which formatting fixes.
fn lasting(source: &str, inputs: &Inputs) -> Counts {
    let mut counts = counts(&check(Source::new(source), inputs).diagnostics);
    counts.retain(|(_, rule), _| rule != "not_graphviz");
    counts
}

fn formatting(source: &str, inputs: &Inputs) -> Vec<String> {
    let once = match format(Source::new(source)) {
        Ok(once) => once,
        Err(found) if found.iter().any(Diagnostic::is_error) => return Vec::new(),
        Err(found) => return vec![format!("formatting is refused without an error: {found:?}")],
    };
    let graph = |text: &str| to_dot(&lower::lower(Source::new(text), dot::parse(Source::new(text)).0, inputs).0);
    let comments = |text: &str| dot::parse(Source::new(text)).0.comments.len();
    let mut faults = Vec::new();
    let mut demand = |holds: bool, fault: &str| {
        if !holds {
            faults.push(fault.to_owned())
        }
    };
    demand(format(Source::new(&once)).is_ok_and(|twice| twice == once), "formatting twice changes something");
    demand(graph(source) == graph(&once), "formatting changes the meaning");
    demand(lasting(source, inputs) == lasting(&once, inputs), "formatting changes the findings");
    demand(comments(source) == comments(&once), "formatting loses comments");
    demand(counts(&dot::parse(Source::new(&once)).1).is_empty(), "what was formatted is not Graphviz");
    faults
}

/// Checks that repeatedly applying fixes ends, and adds no findings of any rule. It must not change the handler of a
/// stage, unless a finding was about handlers.
fn mending(source: &str, inputs: &Inputs) -> Vec<String> {
    const ROUNDS_MAX: usize = 50;
    let before = check(Source::new(source), inputs);
    let Some(pipeline) = &before.pipeline else { return Vec::new() };
    let limit = counts(&before.diagnostics);
    let mut now = before.clone();
    let mut text = source.to_owned();
    for _ in 0..ROUNDS_MAX {
        let Some(next) = fixed(Source::new(&text), &now.diagnostics) else {
            let more = counts(&now.diagnostics)
                .into_iter()
                .filter(|(rule, times)| limit.get(rule).is_none_or(|at| times > at));
            // If the list of findings was cut, fixing the first ones reveals others.
            let more = more.filter(|_| !before.is_cut).map(|((_, rule), _)| format!("mending brings `{rule}`"));
            let says_so = limit.keys().any(|(_, rule)| matches!(rule.as_str(), "type_known" | "shape_known"));
            let other = !says_so && now.pipeline.as_ref().map(handlers) != Some(handlers(pipeline));
            return more.chain(other.then(|| "mending gives a stage another handler".to_owned())).collect();
        };
        text = next;
        now = check(Source::new(&text), inputs);
    }
    vec!["mending comes to no end".to_owned()]
}

fn handlers(pipeline: &Pipeline) -> Vec<&Handler> {
    pipeline.nodes.iter().map(|node| &node.handler).collect()
}

/// Checks that the canonical text parses to the same graph, and that this graph has the same canonical text.
fn canonical(pipeline: &Pipeline, inputs: &Inputs) -> Vec<String> {
    let text = to_dot(pipeline);
    let Some(again) = check(Source::new(&text), inputs).pipeline else {
        return vec![format!("the canonical text is refused: {:?}", check(Source::new(&text), inputs).diagnostics)];
    };
    let mut faults = Vec::new();
    if to_json(pipeline) != to_json(&again) {
        faults.push("the canonical text reads back to another graph".to_owned());
    }
    if to_dot(&again) != text {
        faults.push("the canonical text has another canonical text".to_owned());
    }
    faults
}
