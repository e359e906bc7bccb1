//! The pipeline of a trial: the commands of a project's pipeline, one after the other, without models and repairs.

use glovebox_pipeline::dot::quote;
use glovebox_pipeline::key::{
    ALLOWED_WRITE_PATHS, CACHE, GATE_REQUIRES, GOAL_GATE, Key, NETWORK, READ_PATHS, SCRATCH, TIMEOUT, TOOL_COMMAND,
};
use glovebox_pipeline::{Inputs, Source};

/// The attributes that decide how a command runs and whether it counts as a test.
const KEPT: [Key<'static>; 9] =
    [TOOL_COMMAND, ALLOWED_WRITE_PATHS, READ_PATHS, TIMEOUT, GOAL_GATE, GATE_REQUIRES, CACHE, SCRATCH, NETWORK];

/// Returns a pipeline with the tool stages of another one, in the order of its file. `None` if it has none, or does not
/// parse.
pub fn pipeline(text: &str) -> Option<String> {
    let parsed = glovebox_pipeline::check(Source::new(text), &Inputs::default()).pipeline?;
    let mut nodes: Vec<_> = parsed
        .nodes
        .iter()
        .filter(|node| node.attributes.get(TOOL_COMMAND).is_some() && node.child_of.is_none())
        .collect();
    nodes.sort_by_key(|node| node.span.start);
    if nodes.is_empty() {
        return None;
    }
    let mut trial =
        "digraph trial {\n  graph [goal=\"The commands of the pipeline succeed in the sandbox\"]\n  start [shape=Mdiamond]\n"
            .to_owned();
    for node in &nodes {
        let written = |key: &Key<'static>| {
            let value = node.attributes.get(*key)?.value.to_string();
            Some(format!(", {}={}", quote(key.as_str()), quote(&value)))
        };
        let attributes: String = KEPT.iter().filter_map(written).collect();
        trial.push_str(&format!("  {} [shape=parallelogram{attributes}]\n", quote(node.id.as_str())));
    }
    let chain: String = nodes.iter().map(|node| format!("{} -> ", quote(node.id.as_str()))).collect();
    trial.push_str(&format!("  done [shape=Msquare]\n  start -> {chain}done\n}}\n"));
    Some(trial)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_commands_are_tried_with_what_they_may_do() {
        let text = "digraph d { graph [retry_target=fix]; start [shape=Mdiamond]; done [shape=Msquare]\n\
            build [shape=parallelogram, timeout=\"2m\", allowed_write_paths=\"out/\", tool_command=\"make \\\"x\\\"\"]\n\
            test [shape=parallelogram, goal_gate=true, gate_requires=\"receipt\", retry_target=fix, allowed_write_paths=\"\", \
            tool_command=\"make test\"]\n\
            fix [shape=box, prompt=\"repair\", allowed_write_paths=\"src/\"]\n\
            start -> build; build -> test; test -> done [condition=\"outcome=success\"]; test -> fix; fix -> build }";
        let trial = pipeline(text).unwrap();
        let checked = glovebox_pipeline::check(Source::new(&trial), &Inputs::default());
        assert_eq!(checked.diagnostics, []);
        let nodes = checked.pipeline.unwrap().nodes;
        let ids: Vec<_> = nodes.iter().map(|node| node.id.as_str()).collect();
        assert_eq!(ids, ["start", "build", "test", "done"], "{trial}");
        assert!(trial.contains("gate_requires") && trial.contains("2m") && !trial.contains("fix"), "{trial}");
    }

    #[test]
    fn a_pipeline_without_commands_has_no_trial() {
        assert_eq!(pipeline("digraph d { start [shape=Mdiamond]; done [shape=Msquare]; start -> done }"), None);
        assert_eq!(pipeline("digraph"), None);
    }
}
