//! Clusters of items that get a box. Clusters can be nested.
//!
//! A cluster covers all layers from its first to its last item. In each layer, its vertices are next to each other, and
//! sibling clusters have the same order in all layers. So a box covers only its own cluster, and only nested boxes
//! overlap.

use super::Item;
use std::ops::RangeInclusive;

/// A cluster in the input of the layout.
#[derive(Debug, Clone, Default)]
pub(crate) struct Cluster {
    /// The parent cluster, which precedes this cluster in the list.
    pub(crate) parent: Option<usize>,
    /// The items that are directly in the cluster. An item is in at most one cluster.
    pub(crate) items: Vec<usize>,
    /// Space before the first layer and after the last layer of the cluster.
    pub(crate) before: f64,
    pub(crate) after: f64,
    /// Minimum size of the box, across and along.
    pub(crate) across_min: f64,
    pub(crate) along_min: f64,
}

/// Number of border vertices (two for each layer of a cluster) that are allowed for every graph.
const COVERED_ANY: usize = 2_000;
/// Number of further border vertices that are allowed for each item.
const COVERED_PER_ITEM: usize = 4;

/// The cluster of each item, and the layers of each cluster.
#[derive(Debug, Clone, Default)]
pub(crate) struct Clusters {
    parents: Vec<Option<usize>>,
    depths: Vec<usize>,
    of_item: Vec<Option<usize>>,
    /// The first and last layer of each cluster. `None` for an empty cluster, and for a cluster over the limit, which
    /// gets no box.
    covered: Vec<Option<(usize, usize)>>,
}

impl Clusters {
    /// Creates the clusters of a graph. `layers` contains the layer of each item.
    pub(super) fn new(clusters: &[Cluster], items: &[Item], layers: &[usize]) -> Clusters {
        if clusters.is_empty() {
            return Clusters::default();
        }
        let mut covered: Vec<Option<(usize, usize)>> = vec![None; clusters.len()];
        for (index, cluster) in clusters.iter().enumerate().rev() {
            for &item in &cluster.items {
                covered[index] = joined(covered[index], Some((layers[item], layers[item])));
            }
            if let Some(parent) = cluster.parent {
                covered[parent] = joined(covered[parent], covered[index]);
            }
        }
        let mut left = COVERED_ANY + COVERED_PER_ITEM * items.len();
        for covered in &mut covered {
            let count = covered.map_or(0, |(first, last)| last - first + 1);
            if count > left {
                *covered = None;
            } else {
                left -= count;
            }
        }
        let mut all = Clusters { of_item: vec![None; items.len()], covered, ..Clusters::default() };
        for cluster in clusters {
            let parent = cluster.parent.and_then(|parent| all.boxed(parent));
            all.parents.push(parent);
            all.depths.push(parent.map_or(0, |parent| all.depths[parent] + 1));
        }
        for (index, cluster) in clusters.iter().enumerate() {
            cluster.items.iter().for_each(|item| all.of_item[*item] = all.boxed(index));
        }
        all
    }

    /// Returns the cluster, or the innermost cluster around it that has a box.
    fn boxed(&self, cluster: usize) -> Option<usize> {
        if self.covered[cluster].is_some() { Some(cluster) } else { self.parents[cluster] }
    }

    /// Returns true if no cluster has a box.
    pub(super) fn is_empty(&self) -> bool {
        self.covered.iter().all(Option::is_none)
    }

    /// Returns the clusters that have a box, each with its layers, outer clusters before inner ones.
    pub(super) fn all(&self) -> impl DoubleEndedIterator<Item = (usize, RangeInclusive<usize>)> {
        let covered = self.covered.iter().enumerate();
        covered.filter_map(|(cluster, covered)| covered.map(|(first, last)| (cluster, first..=last)))
    }

    /// Returns the layers of a cluster that has a box.
    pub(super) fn layers(&self, cluster: usize) -> RangeInclusive<usize> {
        let (first, last) = self.covered[cluster].unwrap_or_default();
        first..=last
    }

    /// Returns the number of clusters, including those without a box.
    pub(super) fn count(&self) -> usize {
        self.parents.len()
    }

    /// Returns the innermost cluster of an item.
    pub(super) fn of_item(&self, item: usize) -> Option<usize> {
        self.of_item.get(item).copied().flatten()
    }

    /// Returns the parent of a cluster.
    pub(super) fn parent(&self, cluster: usize) -> Option<usize> {
        self.parents[cluster]
    }

    /// Returns a cluster and all clusters around it, outermost first.
    pub(super) fn around(&self, cluster: Option<usize>) -> Vec<usize> {
        let mut around: Vec<usize> = std::iter::successors(cluster, |cluster| self.parents[*cluster]).collect();
        around.reverse();
        around
    }

    /// Returns the cluster for a link's dummy vertex in a layer: the innermost cluster around the target that covers
    /// the layer. If that cluster also contains the source, returns the innermost cluster around the source that covers
    /// the layer.
    pub(super) fn passed(&self, from: usize, to: usize, layer: usize) -> Option<usize> {
        let (source, target) = (self.innermost(self.of_item(from), layer), self.innermost(self.of_item(to), layer));
        if self.is_in(self.of_item(from), target) { source } else { target }
    }

    /// Returns the innermost of a cluster and the clusters around it that covers a layer.
    fn innermost(&self, cluster: Option<usize>, layer: usize) -> Option<usize> {
        let covers =
            |cluster: &usize| self.covered[*cluster].is_some_and(|(first, last)| first <= layer && layer <= last);
        std::iter::successors(cluster, |cluster| self.parents[*cluster]).find(covers)
    }

    /// Returns true if a cluster equals `around` or is inside it. Every cluster is inside the whole graph, which is
    /// `None`.
    pub(super) fn is_in(&self, cluster: Option<usize>, around: Option<usize>) -> bool {
        around.is_none()
            || std::iter::successors(cluster, |cluster| self.parents[*cluster]).any(|cluster| Some(cluster) == around)
    }

    /// Returns the child of `around` that contains `cluster`, or `None` if `cluster` is `around`.
    pub(super) fn child(&self, around: Option<usize>, cluster: Option<usize>) -> Option<usize> {
        std::iter::successors(cluster, |cluster| self.parents[*cluster])
            .find(|cluster| self.parents[*cluster] == around)
    }

    /// Returns the innermost cluster around both.
    pub(super) fn around_both(&self, mut one: Option<usize>, mut other: Option<usize>) -> Option<usize> {
        let depth = |cluster: Option<usize>| cluster.map_or(0, |cluster| self.depths[cluster] + 1);
        while one != other {
            if depth(one) < depth(other) {
                std::mem::swap(&mut one, &mut other);
            }
            one = one.and_then(|cluster| self.parents[cluster]);
        }
        one
    }
}

fn joined(one: Option<(usize, usize)>, other: Option<(usize, usize)>) -> Option<(usize, usize)> {
    match (one, other) {
        (Some(one), Some(other)) => Some((one.0.min(other.0), one.1.max(other.1))),
        _ => one.or(other),
    }
}

/// The order of sibling clusters during the crossing reduction.
#[derive(Debug, Clone, Default)]
pub(super) struct ClusterOrder {
    clusters: Clusters,
    /// The innermost cluster of each vertex.
    of: Vec<Option<usize>>,
    /// The rank of each cluster. Siblings are in the order of their ranks in every layer.
    pub(super) ranks: Vec<usize>,
}

/// An element to be ordered: a vertex, or all vertices of a cluster in a layer.
enum Part {
    Vertex(usize),
    Cluster(usize, Vec<(f64, usize)>),
}

impl ClusterOrder {
    pub(super) fn new(clusters: &Clusters, of: Vec<Option<usize>>) -> ClusterOrder {
        ClusterOrder { clusters: clusters.clone(), of, ranks: (0..clusters.count()).collect() }
    }

    /// Returns true if there are no clusters.
    pub(super) fn is_empty(&self) -> bool {
        self.clusters.is_empty()
    }

    /// Ranks clusters by the positions of their vertices. `places` are fractions of the width.
    pub(super) fn rank(&mut self, places: impl Iterator<Item = (usize, f64)>) {
        let mut sums = vec![(0.0, 0_u32); self.ranks.len()];
        for (vertex, place) in places {
            for cluster in std::iter::successors(self.of[vertex], |cluster| self.clusters.parent(*cluster)) {
                sums[cluster] = (sums[cluster].0 + place, sums[cluster].1 + 1);
            }
        }
        let mean = |cluster: &usize| sums[*cluster].0 / f64::from(sums[*cluster].1.max(1));
        let mut order: Vec<usize> = (0..self.ranks.len()).collect();
        order.sort_by(|one, other| mean(one).total_cmp(&mean(other)));
        order.into_iter().enumerate().for_each(|(rank, cluster)| self.ranks[cluster] = rank);
    }

    /// Orders the vertices of a layer by their keys, but keeps the vertices of a cluster together and clusters in their
    /// order.
    pub(super) fn arranged(&self, keyed: Vec<(f64, usize)>) -> Vec<usize> {
        if self.is_empty() || keyed.iter().all(|(_, vertex)| self.of[*vertex].is_none()) {
            let mut keyed = keyed;
            keyed.sort_by(|one, other| one.0.total_cmp(&other.0));
            return keyed.into_iter().map(|(_, vertex)| vertex).collect();
        }
        let mut arranged = Vec::with_capacity(keyed.len());
        self.arrange(None, keyed, &mut arranged);
        arranged
    }

    fn arrange(&self, around: Option<usize>, keyed: Vec<(f64, usize)>, arranged: &mut Vec<usize>) {
        let mut parts: Vec<(f64, Part)> = Vec::new();
        let mut known: std::collections::HashMap<usize, usize> = std::collections::HashMap::new();
        for (key, vertex) in keyed {
            let Some(cluster) = self.clusters.child(around, self.of[vertex]) else {
                parts.push((key, Part::Vertex(vertex)));
                continue;
            };
            let at = *known.entry(cluster).or_insert_with(|| {
                parts.push((0.0, Part::Cluster(cluster, Vec::new())));
                parts.len() - 1
            });
            if let (_, Part::Cluster(_, inner)) = &mut parts[at] {
                inner.push((key, vertex));
            }
        }
        for (mean, part) in &mut parts {
            if let Part::Cluster(_, inner) = part {
                *mean = inner.iter().map(|(key, _)| key).sum::<f64>() / inner.len() as f64;
            }
        }
        parts.sort_by(|one, other| one.0.total_cmp(&other.0));
        let mut clusters: Vec<(usize, Vec<(f64, usize)>)> = Vec::new();
        for (_, part) in &mut parts {
            if let Part::Cluster(cluster, inner) = part {
                clusters.push((*cluster, std::mem::take(inner)));
            }
        }
        clusters.sort_by_key(|(cluster, _)| self.ranks[*cluster]);
        let mut clusters = clusters.into_iter();
        for (_, part) in parts {
            match part {
                Part::Vertex(vertex) => arranged.push(vertex),
                // The positions of clusters in this layer are filled in the order that all layers have.
                Part::Cluster(..) => {
                    if let Some((cluster, inner)) = clusters.next() {
                        self.arrange(Some(cluster), inner, arranged);
                    }
                }
            }
        }
    }

    /// Returns the range to exchange around a position: a vertex with a vertex, or a vertex with a whole cluster.
    /// Returns `None` between two clusters.
    pub(super) fn exchange(&self, layer: &[usize], place: usize) -> Option<(usize, usize)> {
        let (left, right) = (self.of[layer[place - 1]], self.of[layer[place]]);
        if left == right {
            return Some((place - 1, place + 1));
        }
        let both = self.clusters.around_both(left, right);
        let (left, right) = (self.clusters.child(both, left), self.clusters.child(both, right));
        let is_of = |vertex: &usize, cluster: usize| self.clusters.is_in(self.of[*vertex], Some(cluster));
        match (left, right) {
            (Some(_), Some(_)) => None,
            (Some(left), None) => {
                let start = layer[..place].iter().rev().take_while(|vertex| is_of(vertex, left)).count();
                Some((place - start, place + 1))
            }
            (None, Some(right)) => {
                let end = layer[place..].iter().take_while(|vertex| is_of(vertex, right)).count();
                Some((place - 1, place + end))
            }
            (None, None) => Some((place - 1, place + 1)),
        }
    }

    /// Returns pairs of neighbours in the order of sibling clusters.
    pub(super) fn neighbours(&self) -> Vec<(usize, usize)> {
        let mut order: Vec<usize> = self.clusters.all().map(|(cluster, _)| cluster).collect();
        order.sort_by_key(|cluster| (self.clusters.parent(*cluster), self.ranks[*cluster]));
        let is_beside = |pair: &&[usize]| self.clusters.parent(pair[0]) == self.clusters.parent(pair[1]);
        order.windows(2).filter(is_beside).map(|pair| (pair[0], pair[1])).collect()
    }
}
