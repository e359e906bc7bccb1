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
    for (node, visits) in &state.visits {
        overlay.nodes.insert(node.clone(), (progress(&state, node), *visits));
    }
    let exit = state.verdict.as_ref().and_then(|verdict| verdict.exit_node.as_ref());
    if let Some(exit) = exit {
        let before = state.visits.get(exit).copied().unwrap_or(0);
        overlay.nodes.insert(exit.clone(), (NodeProgress::Ended(Status::Success), before.saturating_add(1)));
    }
    overlay
}

fn progress(state: &RunState, node: &NodeId) -> NodeProgress {
    let is_open = state.open.as_ref().is_some_and(|open| open.task.node == *node);
    match state.outcomes.get(node) {
        _ if is_open && state.verdict.is_none() => NodeProgress::Running,
        Some(outcome) => NodeProgress::Ended(outcome.status),
        // An exit that was left again, since a gate was not met.
        None => NodeProgress::Ended(Status::Retry),
    }
}
