//! Builds the layers with their vertices: nodes, labels, and dummy vertices of the links that pass through.
//!
//! A link between neighbouring layers is one segment. A longer link gets a dummy vertex in every layer that it passes,
//! which reserves space for its path. Long links to the same target share these vertices, so many failure edges to one
//! node become one line with many sources. A back edge starts and ends at the sides of its nodes. At each end it has a
//! *turn*: a vertex next to the node, where the edge changes its direction. Invariant: every segment joins neighbouring
//! layers.

use super::borders::ClusterBorder;
use super::clusters::Clusters;
use super::cycles::EdgeDirection;
use super::{Gaps, Graph, Link};
use crate::geometry::Size;
use std::collections::{HashMap, HashSet};

/// Number of dummy vertices that are allowed for each node and link. Links that would need more are routed around the
/// outside.
const WAYS_PER_PART: usize = 6;
/// Number of dummy vertices that are allowed for every graph.
const WAYS_ANY: usize = 2_000;
/// Maximum number of layers that all links together may pass. Shared vertices are counted for each link.
const PASSED_MAX: usize = 1_000_000;
/// Weight of segments between shared dummy vertices. It is higher than the weight of every link.
const TRUNK_WEIGHT: u32 = 1_000;
/// Weight of segments between the dummy vertices of one link.
const WAY_WEIGHT: u32 = 100;
/// Weight of borders, which must be straight.
pub(super) const BORDER_WEIGHT: u32 = 10_000;

/// The kind of a vertex.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum VertexKind {
    /// A node.
    Item(usize),
    /// The label of a link. The link passes through it.
    Label(usize),
    /// A dummy vertex through which a link passes the layer.
    Dummy,
    /// The turn of a back edge, next to its node.
    Hook,
    /// The turn of a self-loop, next to its node.
    Loop,
    /// A placeholder of a cluster that has no other vertex in this layer.
    Blank,
    /// The border of a cluster.
    Border(Side),
}

/// A side of an item.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Side {
    Left,
    Right,
}

/// An element of a layer. The vertices of the nodes come first, in the order of the nodes.
#[derive(Debug, Clone)]
pub(crate) struct Vertex {
    pub(crate) kind: VertexKind,
    pub(crate) layer: usize,
    pub(crate) size: Size,
    /// The node that a turn is next to, and the side of that node; `None` for other vertices.
    pub(crate) beside: Option<(usize, Side)>,
    /// The innermost cluster around the vertex. For a border, the parent of the cluster with this border.
    pub(super) cluster: Option<usize>,
    /// The trunk that the vertex belongs to.
    trunk: Option<Trunk>,
}

/// The identity of a shared path: the target, the bundle, the number among the links with the same ends, and the link
/// itself if its path is not shared.
type Trunk = (usize, u32, usize, Option<usize>);

impl Vertex {
    /// Returns true for a part of a link's path, which should be straight.
    pub(super) fn is_path_part(&self) -> bool {
        !matches!(self.kind, VertexKind::Item(_) | VertexKind::Loop | VertexKind::Blank)
    }
}

/// A part of one or more links between neighbouring layers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Segment {
    pub(super) upper: usize,
    pub(super) lower: usize,
    /// Weight of the segment. A segment with a higher weight is straighter.
    pub(super) weight: u32,
}

/// The route of a link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Route {
    /// Through these vertices, from source to target.
    Over(Vec<usize>),
    /// A self-loop, around this vertex next to its node.
    Loop(usize),
    /// Through these vertices, then around the outside.
    Around(Vec<usize>),
}

/// The layers of a graph.
#[derive(Debug, Clone, Default)]
pub(crate) struct LayerGraph {
    pub(crate) vertices: Vec<Vertex>,
    /// The vertices of each layer in order.
    pub(crate) layers: Vec<Vec<usize>>,
    /// The segments of all links without duplicates. The part from a node to its turn is within one layer and is not a
    /// segment.
    pub(super) segments: Vec<Segment>,
    /// The route of each link.
    pub(crate) routes: Vec<Route>,
    /// True for layers that contain labels and no nodes.
    pub(crate) is_label_layer: Vec<bool>,
    /// The weight of each link. A link with a higher weight is straighter. Back edges have the lowest weight.
    weights: Vec<u32>,
    pub(super) clusters: Clusters,
    /// The borders of each cluster; `None` for a cluster without a box. They are added after the layers are ordered.
    pub(crate) borders: Vec<Option<ClusterBorder>>,
    /// Minimum width of each cluster.
    pub(super) across_min: Vec<f64>,
}

impl LayerGraph {
    /// Puts nodes, labels and dummy vertices into layers. The layers are not ordered yet.
    pub(super) fn new(graph: &Graph<'_>, directions: &[EdgeDirection], ranks: &[usize], gaps: &Gaps) -> LayerGraph {
        let Graph { items, links, clusters, .. } = *graph;
        let outside = too_long(items.len(), links, directions, ranks);
        let weight = |(link, direction): (&Link, &EdgeDirection)| {
            if *direction == EdgeDirection::Back { 1 } else { link.weight + 1 }
        };
        let mut layered = LayerGraph {
            routes: vec![Route::Over(Vec::new()); links.len()],
            weights: links.iter().zip(directions).map(weight).collect(),
            ..LayerGraph::default()
        };
        let layer_of_rank = layered.reserve(links, directions, ranks, &outside);
        for (index, item) in items.iter().enumerate() {
            layered.add(VertexKind::Item(index), layer_of_rank[ranks[index]], item.size, None, None);
        }
        let layers: Vec<usize> = ranks.iter().map(|rank| layer_of_rank[*rank]).collect();
        layered.clusters = Clusters::new(clusters, items, &layers);
        layered.across_min = clusters.iter().map(|cluster| cluster.across_min).collect();
        (0..items.len()).for_each(|item| layered.vertices[item].cluster = layered.clusters.of_item(item));
        let mut builder = Builder {
            layered,
            links,
            ranks,
            gaps,
            shared: HashMap::new(),
            arrivals: HashMap::new(),
            known: HashMap::new(),
            pairs: HashMap::new(),
        };
        for wanted in [EdgeDirection::Forward, EdgeDirection::Back, EdgeDirection::Loop] {
            for index in (0..links.len()).filter(|index| directions[*index] == wanted) {
                builder.lead(index, outside.contains(&index));
            }
        }
        let mut layered = builder.layered;
        layered.fill();
        layered
    }

    /// Reserves a layer for labels between ranks where necessary, and returns the layer of each rank.
    fn reserve(
        &mut self,
        links: &[Link],
        directions: &[EdgeDirection],
        ranks: &[usize],
        outside: &HashSet<usize>,
    ) -> Vec<usize> {
        let count = ranks.iter().max().map_or(0, |last| last + 1);
        let mut labelled = vec![false; count];
        for (index, link) in links.iter().enumerate().filter(|(_, link)| link.label.is_some()) {
            match directions[index] {
                EdgeDirection::Loop => {}
                EdgeDirection::Back if !outside.contains(&index) => labelled[ranks[link.from] - 1] = true,
                EdgeDirection::Forward | EdgeDirection::Back => labelled[ranks[link.from]] = true,
            }
        }
        let mut layer_of_rank = Vec::with_capacity(count);
        for is_labelled in labelled {
            layer_of_rank.push(self.is_label_layer.len());
            self.is_label_layer.push(false);
            self.is_label_layer.extend(is_labelled.then_some(true));
        }
        self.layers = vec![Vec::new(); self.is_label_layer.len()];
        layer_of_rank
    }

    /// Adds a vertex at the end of its layer.
    pub(super) fn add(
        &mut self,
        kind: VertexKind,
        layer: usize,
        size: Size,
        trunk: Option<Trunk>,
        cluster: Option<usize>,
    ) -> usize {
        self.vertices.push(Vertex { kind, layer, size, beside: None, cluster, trunk });
        self.layers[layer].push(self.vertices.len() - 1);
        self.vertices.len() - 1
    }

    /// Adds a turn next to a node.
    fn add_beside(&mut self, kind: VertexKind, item: usize, size: Size, trunk: Option<Trunk>) -> usize {
        let vertex = self.add(kind, self.vertices[item].layer, size, trunk, self.vertices[item].cluster);
        self.vertices[vertex].beside = Some((item, Side::Right));
        vertex
    }

    /// Returns the weight of the segment between two vertices.
    fn weight(&self, one: &Vertex, other: &Vertex, link: usize) -> u32 {
        match (one.is_path_part(), other.is_path_part()) {
            (true, true) if one.trunk.is_some() && one.trunk == other.trunk => TRUNK_WEIGHT,
            (true, true) => WAY_WEIGHT,
            _ => self.weights[link],
        }
    }
}

/// Returns the links that are routed around the outside, because they would need too many dummy vertices. The longest
/// links are selected first.
fn too_long(nodes: usize, links: &[Link], directions: &[EdgeDirection], ranks: &[usize]) -> HashSet<usize> {
    let span = |link: usize| ranks[links[link].from].abs_diff(ranks[links[link].to]);
    let mut by_span: Vec<usize> = (0..links.len()).filter(|link| directions[*link] != EdgeDirection::Loop).collect();
    by_span.sort_by_key(|link| span(*link));
    let most = WAYS_ANY + WAYS_PER_PART * (nodes + links.len());
    let mut reaches: HashMap<(usize, u32, bool), usize> = HashMap::new();
    let (mut ways, mut passed) = (0, 0);
    let mut outside = HashSet::new();
    for link in by_span {
        let reach =
            reaches.entry((links[link].to, links[link].bundle, directions[link] == EdgeDirection::Back)).or_default();
        let more = span(link).saturating_sub(*reach);
        if ways + more > most || passed + span(link) > PASSED_MAX {
            outside.insert(link);
        } else {
            ways += more;
            passed += span(link);
            *reach = (*reach).max(span(link));
        }
    }
    outside
}

/// Routes links through the layers.
struct Builder<'a> {
    layered: LayerGraph,
    links: &'a [Link],
    ranks: &'a [usize],
    gaps: &'a Gaps,
    /// Shared dummy vertices by trunk, layer and cluster.
    shared: HashMap<(Trunk, usize, Option<usize>), usize>,
    /// The turn at the target, by the last dummy vertex before it. Links that share the dummy vertex also share the
    /// turn.
    arrivals: HashMap<usize, usize>,
    /// Index of each segment by its ends.
    known: HashMap<(usize, usize), usize>,
    /// Number of links so far between each pair of nodes.
    pairs: HashMap<(usize, usize), usize>,
}

impl Builder<'_> {
    fn lead(&mut self, index: usize, is_outside: bool) {
        let link = &self.links[index];
        let layered = &mut self.layered;
        let (start, end) = (layered.vertices[link.from].layer, layered.vertices[link.to].layer);
        if link.from == link.to {
            let room = link
                .label
                .map_or_else(Size::default, |label| Size { width: label.width + self.gaps.loop_width, ..label });
            layered.routes[index] = Route::Loop(layered.add_beside(VertexKind::Loop, link.from, room, None));
        } else if is_outside {
            let cluster = layered.clusters.passed(link.from, link.to, start + 1);
            let label = link.label.map(|size| layered.add(VertexKind::Label(index), start + 1, size, None, cluster));
            let chain: Vec<usize> = std::iter::once(link.from).chain(label).collect();
            self.join(index, &chain);
            self.layered.routes[index] = Route::Around(chain);
        } else {
            let chain = if start < end { self.down(index, start, end) } else { self.up(index, start, end) };
            self.join(index, &chain);
            self.layered.routes[index] = Route::Over(chain);
        }
    }

    /// Adds the segments of a link, except for a shared path that an earlier link has added.
    fn join(&mut self, link: usize, chain: &[usize]) {
        let layered = &mut self.layered;
        for pair in chain.windows(2) {
            let (one, other) = (&layered.vertices[pair[0]], &layered.vertices[pair[1]]);
            if one.layer == other.layer {
                continue;
            }
            let (upper, lower) = if one.layer < other.layer { (pair[0], pair[1]) } else { (pair[1], pair[0]) };
            let weight = layered.weight(one, other, link);
            match self.known.get(&(upper, lower)) {
                // The rest of this shared path was already added for another link.
                Some(_) if weight == TRUNK_WEIGHT => return,
                Some(index) => layered.segments[*index].weight = layered.segments[*index].weight.max(weight),
                None => {
                    self.known.insert((upper, lower), layered.segments.len());
                    layered.segments.push(Segment { upper, lower, weight });
                }
            }
        }
    }

    fn down(&mut self, index: usize, start: usize, end: usize) -> Vec<usize> {
        let link = &self.links[index];
        let passed = self.pass(index, start + 1..end);
        std::iter::once(link.from).chain(passed).chain([link.to]).collect()
    }

    fn up(&mut self, index: usize, start: usize, end: usize) -> Vec<usize> {
        let link = &self.links[index];
        let leave = self.layered.add_beside(VertexKind::Hook, link.from, Size::default(), None);
        let passed = self.pass(index, (end + 1..start).rev());
        let last = passed.last().copied().unwrap_or(leave);
        let layered = &mut self.layered;
        let trunk = layered.vertices[last].trunk;
        let arrive = *self
            .arrivals
            .entry(last)
            .or_insert_with(|| layered.add_beside(VertexKind::Hook, link.to, Size::default(), trunk));
        [link.from, leave].into_iter().chain(passed).chain([arrive, link.to]).collect()
    }

    /// Returns the vertices of a link in the layers between its ends, in order. Its label comes first.
    fn pass(&mut self, index: usize, layers: impl Iterator<Item = usize>) -> Vec<usize> {
        let link = &self.links[index];
        let alone = self.is_short(link).then_some(index);
        let ordinal = self.pairs.entry((link.from, link.to)).or_default();
        let trunk = (link.to, link.bundle, *ordinal, alone);
        *ordinal += 1;
        let place = |(position, layer)| {
            let cluster = self.layered.clusters.passed(link.from, link.to, layer);
            match link.label {
                Some(size) if position == 0 => self.layered.add(VertexKind::Label(index), layer, size, None, cluster),
                _ => self.dummy(trunk, layer, cluster),
            }
        };
        layers.enumerate().map(place).collect()
    }

    /// Returns true for a link between neighbouring ranks, whose path is not shared.
    fn is_short(&self, link: &Link) -> bool {
        self.ranks[link.from].abs_diff(self.ranks[link.to]) == 1
    }

    fn dummy(&mut self, trunk: Trunk, layer: usize, cluster: Option<usize>) -> usize {
        let layered = &mut self.layered;
        let add = || layered.add(VertexKind::Dummy, layer, Size::default(), Some(trunk), cluster);
        *self.shared.entry((trunk, layer, cluster)).or_insert_with(add)
    }
}
