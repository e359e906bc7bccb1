//! What a picture of a pipeline shows of a run: the progress of each node, and the edges that the run took.
//!
//! The progress of nodes comes from the engine's fold of the journal. This file only counts the routes.

use glovebox_drawing::{NodeProgress, Overlay};
use glovebox_engine::event::{Event, Record};
use glovebox_engine::state::RunState;
use glovebox_pipeline::ir::{EdgeIndex, NodeId, Status};

/// The overlay of a run with these records.
pub fn of(records: Vec<Record>) -> Overlay {
    let mut state = RunState::default();
    let mut overlay = Overlay::default();
    for record in records {
        state.apply(&record);
        if let Event::RouteTaken(route) = record.event {
            *match route.edge {
                Some(edge) => overlay.edges.entry(EdgeIndex(edge)).or_default(),
                None => overlay.jumps.entry((route.from, route.to)).or_default(),
            } += 1;
        }
    }
    let branch = state.main();
    for (node, history) in branch.nodes.iter().filter(|(_, history)| history.visits > 0) {
        overlay.nodes.insert(node.clone(), (progress(&state, node), history.visits));
    }
    let exit = state.verdict.as_ref().and_then(|verdict| verdict.exit_node.as_ref());
    if let Some(exit) = exit {
        overlay.nodes.insert(exit.clone(), (NodeProgress::Ended(Status::Success), branch.next_visit(exit)));
    }
    overlay
}

fn progress(state: &RunState, node: &NodeId) -> NodeProgress {
    let is_open = state.main().open().is_some_and(|open| open.task.node == *node);
    match state.main().status(node) {
        _ if is_open && state.verdict.is_none() => NodeProgress::Running,
        Some(status) => NodeProgress::Ended(status),
        // An exit that was left again, since a gate was not met.
        None => NodeProgress::Ended(Status::Retry),
    }
}
