//! Where a run begins or is restarted: at a node (`--from NODE`), or at a visit of a node (`NODE@VISIT`).

use crate::exit::{Exit, Stop};
use crate::runs::RunFolder;
use crate::terminal::visible;
use glovebox_engine::run::{NoVisit, VisitPoint, visits};
use glovebox_journal::event::Record;
use glovebox_pipeline::ir::{Handler, NodeId, Pipeline};
use glovebox_pipeline::nearest::nearest;

/// Maximum number of visits that a message lists.
const VISITS_SHOWN_MAX: usize = 20;

/// Returns an error for a node that does not exist, and for an exit, because no run can begin at an exit.
pub fn check(pipeline: &Pipeline, id: &NodeId) -> Result<(), Stop> {
    let Some(node) = pipeline.node(id) else {
        let known = pipeline.nodes.iter().map(|node| node.id.as_str());
        let help = match nearest(id.as_str(), known) {
            Some(meant) => format!("did you mean `--from {meant}`?"),
            None => "`glovebox graph FILE --format text` lists the nodes".to_owned(),
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

/// Finds a visit of a run, or the last visit of the node. Returns an error with the list of visits if there is none.
pub fn visit(run: &RunFolder, records: &[Record], node: NodeId, visit: Option<u32>) -> Result<VisitPoint, Stop> {
    VisitPoint::find(records, node, visit).map_err(|problem| {
        let stop = Stop::new(Exit::Usage, format!("run `{}`: {problem}", run.id));
        let known = visits(records);
        let of_node = match &problem {
            NoVisit::InBranch { .. } => return stop.with_help("name the parallel node at which the branch begins"),
            NoVisit::Fewer { node, .. } => Some(node),
            NoVisit::Never(_) => None,
        };
        let of_node = |visited: &&(&NodeId, u32)| of_node.is_none_or(|node| node == visited.0);
        let named: Vec<String> = known.iter().filter(of_node).map(|(node, visit)| format!("{node}@{visit}")).collect();
        let others = named.len().saturating_sub(VISITS_SHOWN_MAX);
        let more = if others > 0 { format!("{others} earlier ones, ") } else { String::new() };
        stop.with_help(format!("name one of these visits: {more}{}", visible::line(&named[others..].join(", "))))
    })
}
