//! Checks the scripted answers of nodes: the file of `--script` and the attributes `test.*`.

use glovebox_host::llm::{Model, Script, TEST_PREFIX};
use glovebox_pipeline::diagnostic::Diagnostic;
use glovebox_pipeline::ir::{Node, NodeId, Pipeline};
use glovebox_workspace::refusal::escaped;

/// Returns an error for each script entry of a node that does not exist: with a misspelt name, the intended node would be
/// simulated.
pub(super) fn unknown_in_script(pipeline: &Pipeline, script: &Script) -> Vec<Diagnostic> {
    let unknown = script.node_ids().filter(|id| pipeline.node(id).is_none());
    let found = |id: &NodeId| {
        let shown = escaped(id.as_str());
        let message = format!("the script has turns for node `{shown}`, but the pipeline has no such node");
        let diagnostic = Diagnostic::error("script_node", message, pipeline.span);
        match glovebox_pipeline::nearest::nearest(id.as_str(), pipeline.nodes.iter().map(|node| node.id.as_str())) {
            Some(nearest) => diagnostic.with_note(format!("did you mean `{nearest}`?")),
            None => diagnostic,
        }
    };
    let unasked = pipeline.nodes.iter().filter(|node| script.mentions(&node.id) && !node.asks_model());
    let unasked = unasked.map(|node| {
        let message =
            format!("the script has turns for `{}`, but a `{}` node asks no model", node.id, node.handler.name());
        let diagnostic = Diagnostic::error("script_node", message, node.span).with_node(node.id.as_str());
        diagnostic.with_help("remove its turns from the script: such a node runs what the pipeline says")
    });
    unknown.map(found).chain(unasked).collect()
}

/// Returns an error if the `test.*` attributes of a node are no answer.
pub(super) fn wrong_test_answers(node: &Node) -> Option<Diagnostic> {
    let tested = node.attributes.iter().filter(|(key, _)| key.as_str().starts_with(TEST_PREFIX));
    let attributes: Vec<(String, String)> =
        tested.map(|(key, attribute)| (key.to_string(), attribute.value.to_string())).collect();
    if attributes.is_empty() {
        return None;
    }
    let error = Model::bind(&node.id, &attributes, None, 0, 0).err()?;
    Some(
        Diagnostic::error("test_attribute", format!("node `{}`: {error}", node.id), node.span)
            .with_node(node.id.as_str()),
    )
}
