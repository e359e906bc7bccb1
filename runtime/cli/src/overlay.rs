//! A run as a picture of its pipeline shows it: how nodes stand, which edges were taken. A fold of the journal like everything else.

use glovebox_drawing::{NodeProgress, Overlay};
use glovebox_engine::event::{Event, Record};
use glovebox_engine::state::RunState;
use glovebox_pipeline::ir::{EdgeIndex, NodeId, Status};

/// What the records say.
pub fn of(records: &[Record]) -> Overlay {
    let mut state = RunState::default();
    let mut overlay = Overlay::default();
    for record in records {
        state.apply(record);
        if let Event::RouteTaken(route) = &record.event {
            let jump = (route.from.clone(), route.to.clone());
            *match route.edge {
                Some(edge) => overlay.edges.entry(EdgeIndex(edge)).or_default(),
                None => overlay.jumps.entry(jump).or_default(),
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
