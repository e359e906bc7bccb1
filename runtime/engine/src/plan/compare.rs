//! Two plans side by side: what the new one could do that the old one could not, and the other way round.
//!
//! Pure. A power that lies within one of the old plan is no news however it is written; one that reaches further is told as
//! far as it does. Nodes are the same when their ids are: a node that was renamed is one that is new.

use super::power::{Power, Powers};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// What changed for whoever may do things.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Change {
    /// What could not be done before, such as `write src/`.
    pub more: Vec<String>,
    /// What cannot be done any more.
    pub less: Vec<String>,
}

impl Change {
    /// True when nothing changed.
    pub fn is_empty(&self) -> bool {
        self.more.is_empty() && self.less.is_empty()
    }
}

/// A plan compared with another.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Against {
    /// The pipeline's file or the run.
    pub target: String,
    /// True for a run: its pipeline as it began, with the configuration as it is now.
    pub is_run: bool,
    /// All nodes together.
    pub could: Change,
    /// Nodes with a change, by id.
    pub nodes: Vec<NodeChange>,
}

/// What changed for a node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NodeChange {
    /// The node.
    pub id: String,
    /// `kept`, `new` or `gone`.
    pub presence: String,
    /// What changed.
    #[serde(flatten)]
    pub change: Change,
}

/// Powers that the new plan has beyond the old one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Widened {
    /// The node; none for what no single node has.
    pub node: Option<String>,
    /// What it could not do before.
    pub power: Power,
}

/// Everything the new plan could do that the old one could not, node by node, then what only all together have.
pub fn widened(old: &Powers, new: &Powers) -> Vec<Widened> {
    let nothing = BTreeSet::new();
    let mut found = Vec::new();
    for (id, powers) in &new.nodes {
        let more = beyond(powers, old.nodes.get(id).unwrap_or(&nothing));
        found.extend(more.into_iter().map(|power| Widened { node: Some(id.clone()), power }));
    }
    // What a node has beyond its old self may be nothing new for all together; what all have beyond some node has told.
    let whole: BTreeSet<Power> =
        new.all.difference(&new.nodes.values().flatten().cloned().collect()).cloned().collect();
    found.extend(beyond(&whole, &old.all).into_iter().map(|power| Widened { node: None, power }));
    found
}

/// Compares two plans.
pub fn compare(old: &Powers, new: &Powers, target: String, is_run: bool) -> Against {
    let nothing = BTreeSet::new();
    let ids: BTreeSet<&String> = old.nodes.keys().chain(new.nodes.keys()).collect();
    let node = |id: &String| {
        let (before, now) = (old.nodes.get(id), new.nodes.get(id));
        let presence = match (before, now) {
            (Some(_), Some(_)) => "kept",
            (None, _) => "new",
            (_, None) => "gone",
        };
        let change = change(before.unwrap_or(&nothing), now.unwrap_or(&nothing));
        let is_news = presence != "kept" || !change.is_empty();
        is_news.then(|| NodeChange { id: id.clone(), presence: presence.to_owned(), change })
    };
    let nodes = ids.into_iter().filter_map(node).collect();
    Against { target, is_run, could: change(&old.all, &new.all), nodes }
}

fn change(old: &BTreeSet<Power>, new: &BTreeSet<Power>) -> Change {
    let texts = |powers: Vec<Power>| {
        let mut texts: Vec<String> = powers.iter().map(ToString::to_string).collect();
        texts.dedup();
        texts
    };
    Change { more: texts(beyond(new, old)), less: texts(beyond(old, new)) }
}

fn beyond(powers: &BTreeSet<Power>, others: &BTreeSet<Power>) -> Vec<Power> {
    let found: BTreeSet<Power> = powers.difference(others).flat_map(|power| power.beyond(others.iter())).collect();
    // Of several that say the same or less, the largest says it all.
    let is_least = |power: &Power| {
        let rest = found.iter().filter(|other| *other != power);
        !matches!(power, Power::Spend(..) | Power::Walls(_)) || !power.beyond(rest).is_empty()
    };
    found.iter().filter(|power| is_least(power)).cloned().collect()
}
