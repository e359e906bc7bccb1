//! Assigns a rank to every node: its depth below the root.
//!
//! Longest-path ranking gives the minimum height. Then each node moves to the rank with the minimum total length of its
//! links. A sweep is linear, and the number of sweeps is fixed.

use super::Link;
use super::cycles::EdgeDirection;

const SWEEPS: usize = 8;

/// Returns ranks from 0, such that every forward link leads down at least one rank.
pub(super) fn ranks(nodes: usize, links: &[Link], directions: &[EdgeDirection]) -> Vec<usize> {
    let mut graph = Graph { above: vec![Vec::new(); nodes], below: vec![Vec::new(); nodes] };
    for (link, direction) in links.iter().zip(directions) {
        if *direction == EdgeDirection::Forward {
            graph.above[link.to].push((link.from, link.weight));
            graph.below[link.from].push((link.to, link.weight));
        }
    }
    let order = graph.topological();
    let mut ranks = vec![0; nodes];
    for &node in &order {
        ranks[node] = graph.lowest_above(node, &ranks).map_or(0, |rank| rank + 1);
    }
    for _ in 0..SWEEPS {
        if !graph.shorten(&order, &mut ranks) {
            break;
        }
    }
    let first = ranks.iter().min().copied().unwrap_or(0);
    ranks.iter().map(|rank| rank - first).collect()
}

/// The forward links of each node, as the other end and the weight.
struct Graph {
    above: Vec<Vec<(usize, u32)>>,
    below: Vec<Vec<(usize, u32)>>,
}

impl Graph {
    fn topological(&self) -> Vec<usize> {
        let mut waiting: Vec<usize> = self.above.iter().map(Vec::len).collect();
        let mut order: Vec<usize> = (0..waiting.len()).filter(|node| waiting[*node] == 0).collect();
        let mut next = 0;
        while let Some(&node) = order.get(next) {
            next += 1;
            for &(below, _) in &self.below[node] {
                waiting[below] -= 1;
                if waiting[below] == 0 {
                    order.push(below);
                }
            }
        }
        order
    }

    fn lowest_above(&self, node: usize, ranks: &[usize]) -> Option<usize> {
        self.above[node].iter().map(|(above, _)| ranks[*above]).max()
    }

    fn highest_below(&self, node: usize, ranks: &[usize]) -> Option<usize> {
        self.below[node].iter().map(|(below, _)| ranks[*below]).min()
    }

    /// Performs one sweep up and one sweep down. Returns false if no node moved.
    fn shorten(&self, order: &[usize], ranks: &mut [usize]) -> bool {
        let weight = |links: &[(usize, u32)]| links.iter().map(|(_, weight)| *weight).sum::<u32>();
        let mut moved = false;
        for &node in order.iter().rev() {
            let Some(below) = self.highest_below(node, ranks) else { continue };
            if weight(&self.below[node]) > weight(&self.above[node]) && below > ranks[node] + 1 {
                ranks[node] = below - 1;
                moved = true;
            }
        }
        for &node in order {
            let Some(above) = self.lowest_above(node, ranks) else { continue };
            if weight(&self.above[node]) > weight(&self.below[node]) && ranks[node] > above + 1 {
                ranks[node] = above + 1;
                moved = true;
            }
        }
        moved
    }
}
