//! The overlay on the picture of a pipeline: the progress of each node in a run, and the edges that the run took.
//!
//! The progress comes from the state that the journal folds to. This file only counts the routes.

use glovebox_drawing::{NodeProgress, Overlay};
use glovebox_journal::event::{Event, Record};
use glovebox_journal::rewind;
use glovebox_pipeline::ir::{EdgeIndex, NodeId, Status};
use glovebox_state::run_state::{Branch, RunState};

/// Returns the overlay of a run with these records.
pub fn from_records(records: &[Record]) -> Overlay {
    let mut state = RunState::default();
    let mut overlay = Overlay::default();
    // Records that a resume has undone are skipped.
    for record in rewind::in_force(records) {
        state.apply(record);
        match &record.event {
            // The edges of the branches already lead to the fan-in.
            Event::RouteTaken(route) if route.how == "join" => {}
            Event::RouteTaken(route) => {
                *match route.edge {
                    Some(edge) => overlay.edges.entry(EdgeIndex(edge)).or_default(),
                    None => overlay.jumps.entry((route.from.clone(), route.to.clone())).or_default(),
                } += 1;
            }
            Event::BranchStarted(started) => *overlay.edges.entry(EdgeIndex(started.edge)).or_default() += 1,
            _ => {}
        }
    }
    let branch = state.main();
    for branch in branches(&state) {
        for (node, history) in branch.nodes.iter().filter(|(_, history)| history.counted > 0) {
            let known = overlay.nodes.get(node).map_or(0, |(_, visits)| *visits);
            if known < history.counted {
                overlay.nodes.insert(node.clone(), (progress(&state, branch, node), history.counted));
            }
        }
    }
    let exit = state.verdict.as_ref().and_then(|verdict| verdict.exit_node.as_ref());
    if let Some(exit) = exit {
        overlay.nodes.insert(exit.clone(), (NodeProgress::Ended(Status::Success), branch.next_visit(exit)));
    }
    overlay
}

/// Returns the branches that have not been joined, and the ended branches of their parallel nodes.
fn branches(state: &RunState) -> impl Iterator<Item = &Branch> {
    state.branches.values().flat_map(|branch| std::iter::once(&**branch).chain(ended(branch)))
}

fn ended(branch: &Branch) -> impl Iterator<Item = &Branch> {
    let forks = [branch.parallel(), branch.joined.as_ref()].into_iter().flatten();
    forks.flat_map(|fork| &fork.ended).map(|one| &*one.branch)
}

fn progress(state: &RunState, branch: &Branch, node: &NodeId) -> NodeProgress {
    let is_at = |branch: &Branch| {
        branch.open().is_some_and(|open| open.task.node == *node)
            || branch.parallel().is_some_and(|fork| fork.node == *node)
    };
    let is_open = state.branches.values().any(|branch| is_at(branch));
    match branch.status(node) {
        _ if is_open && state.verdict.is_none() => NodeProgress::Running,
        Some(status) => NodeProgress::Ended(status),
        // The run left this exit again, because a goal gate was not met.
        None => NodeProgress::Ended(Status::Retry),
    }
}
