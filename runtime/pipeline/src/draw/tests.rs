//! What holds of every picture: boxes apart, lines from border to border and through no box, labels on nothing but their line, the same bytes twice.

use super::drawing::{Drawing, DrawnEdge, DrawnNode};
use super::geometry::{Point, Size, cut_vertically};
use super::{Letters, Theme, draw, to_image, to_svg, to_text};
use crate::Inputs;
use crate::ir::Pipeline;
use proptest::prelude::*;

/// The pipeline of a text, valid or not: a picture must not depend on what a lint says.
fn pipeline(source: &str) -> Pipeline {
    let (ast, _) = crate::dot::parse(source);
    crate::lower::lower(source, ast, &Inputs::default()).0
}

const SHAPES: [&str; 10] = [
    "Mdiamond",
    "Msquare",
    "box",
    "hexagon",
    "diamond",
    "component",
    "tripleoctagon",
    "parallelogram",
    "house",
    "octagon",
];

fn source(nodes: &[(usize, String)], edges: &[(usize, usize, u8)], rankdir: &str) -> String {
    let mut text = format!("digraph G {{ rankdir={rankdir}\n");
    for (index, (shape, label)) in nodes.iter().enumerate() {
        text.push_str(&format!(
            "n{index} [shape={}, label=\"{label}\", goal_gate={}]\n",
            SHAPES[*shape],
            shape % 3 == 0
        ));
    }
    for (from, to, kind) in edges {
        let attributes = match kind {
            0 => "",
            1 => " [condition=\"outcome=success\"]",
            2 => " [condition=\"outcome=fail\"]",
            3 => " [label=\"Try it once more\", condition=\"outcome=fail\"]",
            4 => " [label=\"other\"]",
            _ => " [loop_restart=true]",
        };
        text.push_str(&format!("n{from} -> n{to}{attributes}\n"));
    }
    text + "}\n"
}

fn any_graph() -> impl Strategy<Value = String> {
    let nodes = prop::collection::vec((0..SHAPES.len(), "[a-zA-Z ]{0,40}"), 1..22);
    (nodes, prop::sample::select(vec!["TB", "LR", "BT", "RL"])).prop_flat_map(|(nodes, rankdir)| {
        let count = nodes.len();
        let edges = prop::collection::vec((0..count, 0..count, 0..6_u8), 0..count * 2 + 3);
        edges.prop_map(move |edges| source(&nodes, &edges, rankdir))
    })
}

/// True when two boxes share more than `slack` in both directions.
fn overlap(one: (Point, Size), other: (Point, Size), slack: f64) -> bool {
    let near = |a: f64, b: f64, room: f64| (a - b).abs() < room - slack;
    near(one.0.x, other.0.x, (one.1.width + other.1.width) / 2.0)
        && near(one.0.y, other.0.y, (one.1.height + other.1.height) / 2.0)
}

fn boxes(drawing: &Drawing) -> Vec<(String, (Point, Size))> {
    drawing.nodes.iter().map(|node| (node.id.clone(), (node.centre, node.size))).collect()
}

/// How far a point lies inside a node's outline; 0 outside.
fn depth(node: &DrawnNode, point: Point) -> f64 {
    let outline = node.shape.outline(node.size);
    let (x, y) = (point.x - node.centre.x, point.y - node.centre.y);
    let is_inside = cut_vertically(&outline, x).is_some_and(|(top, bottom)| top < y && y < bottom);
    if is_inside { off_border(node, point) } else { 0.0 }
}

/// How far a point is from a node's border.
fn off_border(node: &DrawnNode, point: Point) -> f64 {
    let outline = node.shape.outline(node.size);
    let place = Point { x: point.x - node.centre.x, y: point.y - node.centre.y };
    let sides = outline.iter().zip(outline.iter().cycle().skip(1));
    sides.map(|(a, b)| off_line(place, *a, *b)).fold(f64::INFINITY, f64::min)
}

fn off_line(point: Point, a: Point, b: Point) -> f64 {
    let (x, y) = (b.x - a.x, b.y - a.y);
    let share = ((point.x - a.x) * x + (point.y - a.y) * y) / (x * x + y * y).max(1e-9);
    point.distance(a.towards(b, share.clamp(0.0, 1.0)))
}

fn node<'a>(drawing: &'a Drawing, id: &str) -> &'a DrawnNode {
    drawing.nodes.iter().find(|node| node.id == id).unwrap()
}

fn check_edge(drawing: &Drawing, edge: &DrawnEdge) -> Result<(), TestCaseError> {
    let (from, to) = (node(drawing, &edge.from), node(drawing, &edge.to));
    let name = format!("{} -> {}", edge.from, edge.to);
    prop_assert!(off_border(from, edge.path.start) < 0.2, "{name} begins off the border at {:?}", edge.path.start);
    prop_assert!(off_border(to, edge.path.end()) < 0.2, "{name} ends off the border at {:?}", edge.path.end());
    for point in edge.path.flat() {
        for node in &drawing.nodes {
            prop_assert!(depth(node, point) < 1.0, "{name} runs through {} at {point:?}", node.id);
        }
        let inside =
            point.x >= 0.0 && point.y >= 0.0 && point.x <= drawing.size.width && point.y <= drawing.size.height;
        prop_assert!(inside, "{name} leaves the picture at {point:?}");
    }
    Ok(())
}

fn check_drawing(drawing: &Drawing) -> Result<(), TestCaseError> {
    let mut taken = boxes(drawing);
    for edge in &drawing.edges {
        check_edge(drawing, edge)?;
        let name = format!("label of {} -> {}", edge.from, edge.to);
        taken.extend(edge.label.as_ref().map(|label| (name, (label.centre, label.size))));
    }
    for (index, (name, place)) in taken.iter().enumerate() {
        for (other, its) in &taken[index + 1..] {
            prop_assert!(!overlap(*place, *its, 0.5), "{name} lies over {other}: {place:?}, {its:?}");
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn nothing_lies_over_anything(source in any_graph()) {
        check_drawing(&draw(&pipeline(&source), None))?;
    }

    #[test]
    fn the_same_file_gives_the_same_picture(source in any_graph()) {
        let (one, other) = (pipeline(&source), pipeline(&source));
        prop_assert_eq!(to_svg(&draw(&one, None)), to_svg(&draw(&other, None)));
        prop_assert_eq!(to_text(&one, None, Letters::Ascii), to_text(&other, None, Letters::Ascii));
    }

    #[test]
    fn letters_say_every_node(source in any_graph()) {
        let pipeline = pipeline(&source);
        let text = to_text(&pipeline, None, Letters::Ascii);
        prop_assert!(text.is_ascii());
        for node in &draw(&pipeline, None).nodes {
            let said = node.lines.first().map(|line| line.text.split_whitespace().next().unwrap_or_default().to_owned());
            let said = said.unwrap_or_default();
            prop_assert!(text.contains(&said) || said.ends_with('…') || said.len() > 20, "{said} is missing in\n{text}");
        }
    }
}

#[test]
fn a_graph_of_nothing_is_a_picture_of_nothing() {
    let nothing = pipeline("digraph G { }");
    assert!(to_svg(&draw(&nothing, None)).contains("0 nodes, 0 edges"));
    assert_eq!(to_text(&nothing, None, Letters::Ascii).trim(), "");
    assert!(to_image(&draw(&nothing, None), Theme::Dark).is_some());
}

#[test]
fn the_outermost_lines_of_a_huge_graph_go_round_the_outside() {
    // Every node leads to the last three by several kinds of links: more ways than are kept free.
    let count = 700;
    let nodes: Vec<(usize, String)> = (0..count).map(|index| (2, format!("n{index}"))).collect();
    let mut edges: Vec<(usize, usize, u8)> = (1..count).map(|index| (index - 1, index, 0)).collect();
    edges.extend((0..count - 60).map(|index| (index, index + 50, 1)));
    edges.extend((60..count).map(|index| (index, index - 55, 2)));
    let drawing = draw(&pipeline(&source(&nodes, &edges, "TB")), None);
    assert_eq!(drawing.edges.len(), edges.len());
    for edge in &drawing.edges {
        let (from, to) = (node(&drawing, &edge.from), node(&drawing, &edge.to));
        assert!(off_border(from, edge.path.start) < 0.2 && off_border(to, edge.path.end()) < 0.2);
    }
    let places = boxes(&drawing);
    for (index, (_, place)) in places.iter().enumerate() {
        assert!(places[index + 1..].iter().all(|(_, other)| !overlap(*place, *other, 0.5)));
    }
}

#[test]
fn a_label_as_long_as_a_file_costs_no_more_than_a_label() {
    let label = "x".repeat(3 << 20);
    let pipeline = pipeline(&format!("digraph G {{ a [label=\"{label}\"] b a -> b [label=\"{label}\"] }}"));
    assert!(to_svg(&draw(&pipeline, None)).len() < 20_000);
    assert!(to_text(&pipeline, None, Letters::Unicode).len() < 2_000);
}

#[test]
fn a_picture_with_too_many_pixels_is_refused() {
    let drawing = Drawing {
        title: String::new(),
        size: Size { width: 1e5, height: 1e5 },
        nodes: Vec::new(),
        edges: Vec::new(),
        is_run: false,
    };
    assert_eq!(to_image(&drawing, Theme::Light), None);
}
