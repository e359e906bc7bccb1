//! Finds the stages that may run after a node, up to the next question to a person.
//!
//! The result is shown to the person who answers a human gate, so it contains too many stages rather than too few. The search
//! follows every edge, whatever its condition, and every jump after a failure or an unsatisfied goal gate.

use crate::ir::{Handler, Node, NodeId, Pipeline};
use std::collections::BTreeSet;

/// The stages that may run before the next question to a person.
#[derive(Debug, Clone, Default)]
pub struct NextStages<'a> {
    /// All nodes that may be reached, except gates and exits, in file order.
    pub nodes: Vec<&'a Node>,
    /// The gates at which the next question may be asked, in file order.
    pub gates: Vec<&'a NodeId>,
    /// True if the run may end without another question.
    pub may_end: bool,
}

impl Pipeline {
    /// Returns the stages that may run, beginning with these nodes.
    pub fn next_stages<'a>(&'a self, from: impl IntoIterator<Item = &'a NodeId>) -> NextStages<'a> {
        let mut open: Vec<&NodeId> = from.into_iter().collect();
        let mut reached = BTreeSet::new();
        while let Some(id) = open.pop() {
            let Some(node) = self.node(id).filter(|_| reached.insert(id)) else { continue };
            match node.handler {
                Handler::Human => {}
                Handler::Exit => open.extend(self.after_unmet_gates()),
                _ => {
                    open.extend(self.outgoing(id).map(|(_, edge)| &edge.to));
                    open.extend(
                        [&node.routing.retry_target, &node.routing.fallback_retry_target].into_iter().flatten(),
                    );
                }
            }
        }
        let mut stages = NextStages::default();
        for node in self.nodes.iter().filter(|node| reached.contains(&node.id)) {
            match node.handler {
                Handler::Human => stages.gates.push(&node.id),
                Handler::Exit => stages.may_end = true,
                _ => stages.nodes.push(node),
            }
        }
        stages
    }

    /// Returns the retry targets to which an exit jumps if a goal gate is not satisfied.
    fn after_unmet_gates(&self) -> impl Iterator<Item = &NodeId> {
        let gates = self.nodes.iter().filter(|node| node.checks.goal_gate);
        let of_nodes = gates.flat_map(|node| [&node.routing.retry_target, &node.routing.fallback_retry_target]);
        let has_gates = self.nodes.iter().any(|node| node.checks.goal_gate);
        let of_graph = [&self.retry_target, &self.fallback_retry_target].into_iter().filter(move |_| has_gates);
        of_nodes.chain(of_graph).flatten()
    }
}

#[cfg(test)]
mod tests {
    use crate::ir::NodeId;
    use crate::{Inputs, Source};

    fn next_stages(text: &str, from: &str) -> String {
        let checked = crate::check(Source::new(text), &Inputs::default());
        let pipeline = checked.pipeline.unwrap();
        let from = NodeId::from(from);
        let stages = pipeline.next_stages([&from]);
        let nodes: Vec<&str> = stages.nodes.iter().map(|node| node.id.as_str()).collect();
        let gates: Vec<&str> = stages.gates.iter().map(|id| id.as_str()).collect();
        format!("{} | {} | {}", nodes.join(" "), gates.join(" "), stages.may_end)
    }

    #[test]
    fn a_choice_leads_to_all_that_may_run_before_the_next_question() {
        let text = "digraph g { graph [retry_target=mend]; start; exit
            build [prompt=b, goal_gate=true]; test [prompt=t, retry_target=fix]; fix [prompt=f]; mend [prompt=m]
            gate [shape=hexagon]; last [shape=hexagon]
            start -> build -> gate; gate -> test [label=Test]; gate -> exit [label=Ship]
            test -> last; last -> exit; fix -> last; mend -> gate }";
        assert_eq!(next_stages(text, "test"), "test fix | last | false");
        assert_eq!(next_stages(text, "exit"), "mend | gate | true", "an unmet goal gate leads on");
        assert_eq!(next_stages(text, "gate"), " | gate | false");
    }
}
