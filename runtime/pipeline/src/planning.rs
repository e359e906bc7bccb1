//! What a verification plan may contain, for the model that writes the plan (decision verification-plan): the allowed commands,
//! and the context keys from which stages read the plan.

use crate::hash::HashSet;
use crate::ir::{Handler, HandlerKind, Node, Pipeline};
use crate::key;

/// The context key of a plan, unless a verification stage names another key.
pub const PLAN_KEY: &str = "verification.plan";

/// What an agent must know to write a plan for the verification stages after it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlanRequirements<'a> {
    /// Prefixes of the allowed commands: the agent's own list, or else the lists of the stages, in file order.
    pub allowed: Vec<&'a str>,
    /// The context keys from which the stages read the plan, in file order.
    pub keys: Vec<&'a str>,
}

impl Pipeline {
    /// Returns the requirements for an agent's plan. `None` if no path leads from the agent to a verification stage. Linear in
    /// the length of the file.
    pub fn plan_requirements(&self, agent: &Node) -> Option<PlanRequirements<'_>> {
        let is_verification = |node: &Node| node.handler.kind() == HandlerKind::Verification;
        let is_agent = agent.handler.kind() == HandlerKind::Codergen && matches!(agent.handler, Handler::Component(_));
        if !is_agent || !self.index().has_verification {
            return None;
        }
        let (mut seen, mut open) = (HashSet::default(), vec![&agent.id]);
        while let Some(from) = open.pop() {
            open.extend(self.outgoing(from).map(|(_, edge)| &edge.to).filter(|to| seen.insert(*to)));
        }
        let readers = || self.nodes.iter().filter(|node| is_verification(node) && seen.contains(&node.id));
        readers().next()?;
        let own = self.node(&agent.id).and_then(|node| allow_list(node));
        let of_readers = || readers().filter_map(allow_list).flat_map(entries).collect();
        let mut planning = PlanRequirements {
            allowed: own.map_or_else(of_readers, |own| entries(own).collect()),
            keys: readers().map(plan_key).collect(),
        };
        for list in [&mut planning.allowed, &mut planning.keys] {
            let mut known = HashSet::default();
            list.retain(|text| known.insert(*text));
        }
        Some(planning)
    }
}

fn allow_list(node: &Node) -> Option<&str> {
    let list: &str = &node.attributes.get(key::VERIFICATION_ALLOWED_COMMANDS)?.value;
    Some(list).filter(|list| !list.trim().is_empty())
}

fn entries(list: &str) -> impl Iterator<Item = &str> {
    list.split(',').map(str::trim).filter(|entry| !entry.is_empty())
}

fn plan_key(node: &Node) -> &str {
    let named = node.attributes.get(key::VERIFICATION_PLAN_CONTEXT_KEY).map(|key| key.value.trim());
    named.filter(|key| !key.is_empty()).unwrap_or(PLAN_KEY)
}
