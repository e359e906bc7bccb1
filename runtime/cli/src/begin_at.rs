//! `--from NODE`: the node that a run begins at, or begins again at.

use crate::exit::{Exit, Stop};
use glovebox_pipeline::ir::{Handler, NodeId, Pipeline};
use glovebox_pipeline::nearest::nearest;

/// Refuses a node that does not exist, and an exit, at which nothing can begin.
pub fn check(pipeline: &Pipeline, id: &NodeId) -> Result<(), Stop> {
    let Some(node) = pipeline.node(id) else {
        let known = pipeline.nodes.iter().map(|node| node.id.as_str());
        let help = match nearest(id.as_str(), known) {
            Some(meant) => format!("did you mean `--from {meant}`?"),
            None => "`glovebox graph FILE --format unicode` shows the nodes".to_owned(),
        };
        let message = format!("`--from {id}`: the pipeline has no node `{id}`");
        return Err(Stop::new(Exit::Usage, message).with_help(help));
    };
    match node.handler {
        Handler::Exit => {
            let message = format!("`--from {id}`: `{id}` is an exit, and a run cannot begin where it ends");
            Err(Stop::new(Exit::Usage, message).with_help("name the stage before it"))
        }
        _ => Ok(()),
    }
}
