//! Nests: items that a box is drawn around, and nests within nests.
//!
//! A nest covers all layers from its first to its last item. In each of them what belongs to it stands side by side, and nests in the same
//! surroundings stand in one order in all layers: so the box around a nest covers nothing foreign, and no two boxes overlap.

use super::Item;
use std::ops::RangeInclusive;

/// A nest as the layout sees it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Nest {
    /// The nest around it, which stands before it in the list.
    pub(crate) parent: Option<usize>,
    /// The items directly in it. An item is in one nest at most.
    pub(crate) items: Vec<usize>,
    /// Room along before its first layer and after its last.
    pub(crate) before: f64,
    pub(crate) after: f64,
    /// The least room across and along that its box takes.
    pub(crate) across_min: f64,
    pub(crate) along_min: f64,
}

/// Places on the borders of boxes, two for each layer of each nest, that any graph may have.
const COVERED_ANY: usize = 2_000;
/// The same for each item.
const COVERED_PER_ITEM: usize = 4;

/// What is in which nest, and which layers each nest covers.
#[derive(Debug, Clone, Default)]
pub(crate) struct Nests {
    parents: Vec<Option<usize>>,
    depths: Vec<usize>,
    of_item: Vec<Option<usize>>,
    /// Layers of each nest; none for an empty one, and for one that would be too much: that one has no box.
    covered: Vec<Option<(usize, usize)>>,
}

impl Nests {
    /// Takes nests down; `layers` is the layer of each item.
    pub(super) fn new(nests: &[Nest], items: &[Item], layers: &[usize]) -> Nests {
        if nests.is_empty() {
            return Nests::default();
        }
        let mut covered: Vec<Option<(usize, usize)>> = vec![None; nests.len()];
        for (index, nest) in nests.iter().enumerate().rev() {
            for &item in &nest.items {
                covered[index] = joined(covered[index], Some((layers[item], layers[item])));
            }
            if let Some(parent) = nest.parent {
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
        let mut all = Nests { of_item: vec![None; items.len()], covered, ..Nests::default() };
        for nest in nests {
            let parent = nest.parent.and_then(|parent| all.boxed(parent));
            all.parents.push(parent);
            all.depths.push(parent.map_or(0, |parent| all.depths[parent] + 1));
        }
        for (index, nest) in nests.iter().enumerate() {
            nest.items.iter().for_each(|item| all.of_item[*item] = all.boxed(index));
        }
        all
    }

    /// The nest, or the innermost around it that has a box.
    fn boxed(&self, nest: usize) -> Option<usize> {
        if self.covered[nest].is_some() { Some(nest) } else { self.parents[nest] }
    }

    /// True when nothing has a box.
    pub(super) fn is_empty(&self) -> bool {
        self.covered.iter().all(Option::is_none)
    }

    /// The nests that have a box, each with its layers; what is around comes before what is in it.
    pub(super) fn all(&self) -> impl DoubleEndedIterator<Item = (usize, RangeInclusive<usize>)> {
        let covered = self.covered.iter().enumerate();
        covered.filter_map(|(nest, covered)| covered.map(|(first, last)| (nest, first..=last)))
    }

    /// The layers of a nest that has a box.
    pub(super) fn layers(&self, nest: usize) -> RangeInclusive<usize> {
        let (first, last) = self.covered[nest].unwrap_or_default();
        first..=last
    }

    /// How many nests there are, those without a box counted.
    pub(super) fn count(&self) -> usize {
        self.parents.len()
    }

    /// The innermost nest of an item.
    pub(super) fn of_item(&self, item: usize) -> Option<usize> {
        self.of_item.get(item).copied().flatten()
    }

    /// The nest around a nest.
    pub(super) fn parent(&self, nest: usize) -> Option<usize> {
        self.parents[nest]
    }

    /// The nests around something in a nest, from the outside in, that nest included.
    pub(super) fn around(&self, nest: Option<usize>) -> Vec<usize> {
        let mut around: Vec<usize> = std::iter::successors(nest, |nest| self.parents[*nest]).collect();
        around.reverse();
        around
    }

    /// The nest through which a link between two items passes a layer: what encloses both, else as far as its target's nests reach, else
    /// as far as its source's do.
    pub(super) fn passed(&self, from: usize, to: usize, layer: usize) -> Option<usize> {
        let (source, target) = (self.innermost(self.of_item(from), layer), self.innermost(self.of_item(to), layer));
        if self.is_in(self.of_item(from), target) { source } else { target }
    }

    /// The innermost of the nests around something that covers a layer.
    fn innermost(&self, nest: Option<usize>, layer: usize) -> Option<usize> {
        let covers = |nest: &usize| self.covered[*nest].is_some_and(|(first, last)| first <= layer && layer <= last);
        std::iter::successors(nest, |nest| self.parents[*nest]).find(covers)
    }

    /// True when a nest is another or in it; everything is in the whole.
    pub(super) fn is_in(&self, nest: Option<usize>, around: Option<usize>) -> bool {
        around.is_none() || std::iter::successors(nest, |nest| self.parents[*nest]).any(|nest| Some(nest) == around)
    }

    /// The nest directly in `around` that encloses what is in `nest`; none when that is directly in `around`.
    pub(super) fn child(&self, around: Option<usize>, nest: Option<usize>) -> Option<usize> {
        std::iter::successors(nest, |nest| self.parents[*nest]).find(|nest| self.parents[*nest] == around)
    }

    /// The innermost nest around both.
    pub(super) fn around_both(&self, mut one: Option<usize>, mut other: Option<usize>) -> Option<usize> {
        let depth = |nest: Option<usize>| nest.map_or(0, |nest| self.depths[nest] + 1);
        while one != other {
            if depth(one) < depth(other) {
                std::mem::swap(&mut one, &mut other);
            }
            one = one.and_then(|nest| self.parents[nest]);
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

/// Where nests stand beside each other while an order is sought.
#[derive(Debug, Clone, Default)]
pub(super) struct Nesting {
    nests: Nests,
    /// The innermost nest of each vertex.
    of: Vec<Option<usize>>,
    /// The place of each nest among all: those in the same surroundings stand in this order in every layer.
    pub(super) ranks: Vec<usize>,
}

/// Something to be put in order: a vertex, or all that a layer has of a nest.
enum Part {
    Vertex(usize),
    Nest(usize, Vec<(f64, usize)>),
}

impl Nesting {
    pub(super) fn new(nests: &Nests, of: Vec<Option<usize>>) -> Nesting {
        Nesting { nests: nests.clone(), of, ranks: (0..nests.count()).collect() }
    }

    /// True when there is nothing to keep together.
    pub(super) fn is_empty(&self) -> bool {
        self.nests.is_empty()
    }

    /// Ranks nests by where their vertices stand; `places` are shares of the width.
    pub(super) fn rank(&mut self, places: impl Iterator<Item = (usize, f64)>) {
        let mut sums = vec![(0.0, 0_u32); self.ranks.len()];
        for (vertex, place) in places {
            for nest in std::iter::successors(self.of[vertex], |nest| self.nests.parent(*nest)) {
                sums[nest] = (sums[nest].0 + place, sums[nest].1 + 1);
            }
        }
        let mean = |nest: &usize| sums[*nest].0 / f64::from(sums[*nest].1.max(1));
        let mut order: Vec<usize> = (0..self.ranks.len()).collect();
        order.sort_by(|one, other| mean(one).total_cmp(&mean(other)));
        order.into_iter().enumerate().for_each(|(rank, nest)| self.ranks[nest] = rank);
    }

    /// Puts the vertices of a layer in the order of their keys, as far as nests stay together and in their order.
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
            let Some(nest) = self.nests.child(around, self.of[vertex]) else {
                parts.push((key, Part::Vertex(vertex)));
                continue;
            };
            let at = *known.entry(nest).or_insert_with(|| {
                parts.push((0.0, Part::Nest(nest, Vec::new())));
                parts.len() - 1
            });
            if let (_, Part::Nest(_, inner)) = &mut parts[at] {
                inner.push((key, vertex));
            }
        }
        for (mean, part) in &mut parts {
            if let Part::Nest(_, inner) = part {
                *mean = inner.iter().map(|(key, _)| key).sum::<f64>() / inner.len() as f64;
            }
        }
        parts.sort_by(|one, other| one.0.total_cmp(&other.0));
        let mut nests: Vec<(usize, Vec<(f64, usize)>)> = Vec::new();
        for (_, part) in &mut parts {
            if let Part::Nest(nest, inner) = part {
                nests.push((*nest, std::mem::take(inner)));
            }
        }
        nests.sort_by_key(|(nest, _)| self.ranks[*nest]);
        let mut nests = nests.into_iter();
        for (_, part) in parts {
            match part {
                Part::Vertex(vertex) => arranged.push(vertex),
                // The places that nests have are filled in the order of all layers.
                Part::Nest(..) => {
                    if let Some((nest, inner)) = nests.next() {
                        self.arrange(Some(nest), inner, arranged);
                    }
                }
            }
        }
    }

    /// The bounds of what may be exchanged around a place of a layer: a vertex with a vertex, or with all of a nest. None between two nests.
    pub(super) fn exchange(&self, layer: &[usize], place: usize) -> Option<(usize, usize)> {
        let (left, right) = (self.of[layer[place - 1]], self.of[layer[place]]);
        if left == right {
            return Some((place - 1, place + 1));
        }
        let both = self.nests.around_both(left, right);
        let (left, right) = (self.nests.child(both, left), self.nests.child(both, right));
        let is_of = |vertex: &usize, nest: usize| self.nests.is_in(self.of[*vertex], Some(nest));
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

    /// Neighbours in the order of nests that have the same surroundings.
    pub(super) fn neighbours(&self) -> Vec<(usize, usize)> {
        let mut order: Vec<usize> = self.nests.all().map(|(nest, _)| nest).collect();
        order.sort_by_key(|nest| (self.nests.parent(*nest), self.ranks[*nest]));
        let is_beside = |pair: &&[usize]| self.nests.parent(pair[0]) == self.nests.parent(pair[1]);
        order.windows(2).filter(is_beside).map(|pair| (pair[0], pair[1])).collect()
    }
}
