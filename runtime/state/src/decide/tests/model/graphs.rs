//! Pipelines of the model: a chain of parts. Some parts are parallel nodes whose branches are chains.

use super::*;

/// An element of a chain.
#[derive(Debug, Clone)]
pub(super) enum Part {
    /// A stage with this many retries. With `goes_on`, a failure leads to the same node as a success.
    Stage { retries: u8, goes_on: bool, is_gate: bool },
    /// A stage with an edge for failures to an earlier node.
    Loop,
    /// A human gate: a person chooses whether the run continues or goes back.
    Human,
    /// A parallel node. Each branch is a chain.
    Split { join: usize, error: usize, parallel: u8, merges: bool, branches: Vec<Vec<Part>> },
}

pub(super) fn chain() -> impl Strategy<Value = Vec<Part>> {
    let stage = (0..3u8, any::<bool>(), any::<bool>());
    let stage = stage.prop_map(|(retries, goes_on, is_gate)| Part::Stage { retries, goes_on, is_gate });
    let leaf = prop_oneof![4 => stage, 1 => Just(Part::Loop), 1 => Just(Part::Human)];
    let part = leaf.prop_recursive(2, 12, 3, |inner| {
        let branches = prop::collection::vec(prop::collection::vec(inner, 1..3), 1..4);
        (0..4usize, 0..3usize, 1..4u8, any::<bool>(), branches).prop_map(|(join, error, parallel, merges, branches)| {
            Part::Split { join, error, parallel, merges, branches }
        })
    });
    prop::collection::vec(part, 1..5)
}

/// Returns the text of a pipeline. With `is_patient`, parallel nodes wait for all of their branches, so that the end
/// does not depend on speed.
pub(super) fn text(parts: &[Part], is_patient: bool) -> String {
    let mut writer = Writer { text: String::new(), count: 0, is_patient, is_inside: false };
    let last = writer.chain(parts, vec![("start".into(), "")]);
    writer.join(&last, "exit");
    format!("digraph g {{ start [shape=Mdiamond]; exit [shape=Msquare];\n{}}}", writer.text)
}

/// Nodes from which the chain continues, each with the condition of its edge.
type Tails = Vec<(String, &'static str)>;

struct Writer {
    text: String,
    count: usize,
    is_patient: bool,
    is_inside: bool,
}

impl Writer {
    fn chain(&mut self, parts: &[Part], before: Tails) -> Tails {
        parts.iter().fold(before, |before, part| self.part(part, before))
    }

    fn name(&mut self, kind: char) -> String {
        self.count += 1;
        format!("{kind}{}", self.count)
    }

    fn join(&mut self, from: &Tails, to: &str) {
        for (from, attributes) in from {
            self.text += &format!("{from} -> {to} [{attributes}];\n");
        }
    }

    fn part(&mut self, part: &Part, before: Tails) -> Tails {
        match part {
            Part::Stage { retries, goes_on, is_gate } => {
                let name = self.name('n');
                let gate = if *is_gate && !self.is_inside {
                    format!(", goal_gate=true, retry_target={name}")
                } else {
                    String::new()
                };
                self.text += &format!("{name} [max_retries={retries}, retry_policy=none{gate}];\n");
                self.join(&before, &name);
                let mut tails = vec![(name.clone(), "")];
                if *goes_on {
                    tails.push((name, "condition=\"outcome=fail\""));
                }
                tails
            }
            Part::Loop => {
                let name = self.name('l');
                self.text += &format!("{name} [max_visits=3];\n{name} -> {name} [condition=\"outcome=fail\"];\n");
                self.join(&before, &name);
                vec![(name, "")]
            }
            Part::Human => {
                let (stage, gate) = (self.name('n'), self.name('h'));
                self.text += &format!(
                    "{stage}; {gate} [shape=hexagon, max_visits=4];\n{stage} -> {gate};\n{stage} -> {gate} [condition=\"outcome=fail\"];\n"
                );
                self.text += &format!("{gate} -> {stage} [label=\"[B] Back\"];\n");
                self.join(&before, &stage);
                vec![(gate, "label=\"[A] Accept\"")]
            }
            Part::Split { join, error, parallel, merges, branches } => {
                let (split, fan_in) = (self.name('f'), self.name('j'));
                let (join, error) = if self.is_patient { (0, error % 2 * 2) } else { (*join, *error) };
                let join = ["wait_all", "first_success", "k_of_n", "quorum"][join];
                let error = ["continue", "fail_fast", "ignore"][error];
                self.text += &format!(
                    "{split} [shape=component, join_policy={join}, error_policy={error}, max_parallel={parallel}];\n"
                );
                self.text += &format!("{fan_in} [shape=tripleoctagon{}];\n", if *merges { ", merge=all" } else { "" });
                self.join(&before, &split);
                let was_inside = std::mem::replace(&mut self.is_inside, true);
                for branch in branches {
                    let last = self.chain(branch, vec![(split.clone(), "")]);
                    self.join(&last, &fan_in);
                }
                self.is_inside = was_inside;
                vec![(fan_in.clone(), ""), (fan_in, "condition=\"outcome=fail\"")]
            }
        }
    }
}
