//! Properties of every picture: boxes do not overlap, edges run from border to border and through no box, labels cover
//! only their own edge, and the same file gives the same bytes.

use super::drawing::{Drawing, DrawnEdge, DrawnNode};
use super::geometry::{Point, Size, cut_vertically};
use super::{draw, to_list, to_svg};
use glovebox_pipeline::Inputs;
use glovebox_pipeline::Source;
use glovebox_pipeline::ir::Pipeline;
use proptest::prelude::*;

/// Lowers a text that may be invalid: a picture must not depend on the results of the lint.
fn pipeline(source: &str) -> Pipeline {
    let (ast, _) = glovebox_pipeline::dot::parse(Source::new(source));
    glovebox_pipeline::lower::lower(Source::new(source), ast, &Inputs::default()).0
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

/// Returns the body of a graph whose nodes are in nested subgraphs. Each number is the index of the parent among the
/// preceding subgraphs.
fn nested(homes: &[usize], parents: &[usize]) -> String {
    fn write(text: &mut String, homes: &[usize], parents: &[usize], group: usize) {
        text.push_str(&format!("subgraph cluster_{group} {{ label=\"Group {group}\"\n"));
        homes
            .iter()
            .enumerate()
            .filter(|(_, home)| **home == group)
            .for_each(|(node, _)| text.push_str(&format!("n{node}\n")));
        for inner in (group + 1..=parents.len()).filter(|inner| parents[inner - 1] % inner == group) {
            write(text, homes, parents, inner);
        }
        text.push_str("}\n");
    }
    let mut text = String::new();
    // Group 0 is the graph itself.
    for group in (1..=parents.len()).filter(|group| parents[group - 1].is_multiple_of(*group)) {
        write(&mut text, homes, parents, group);
    }
    text
}

fn any_nested_graph() -> impl Strategy<Value = String> {
    let groups = prop::collection::vec(0..100_usize, 0..7);
    (any_graph(), groups, prop::collection::vec(0..100_usize, 22)).prop_map(|(graph, parents, homes)| {
        let count = (0..22).take_while(|node| graph.contains(&format!("n{node} ["))).count();
        let homes: Vec<usize> = homes[..count].iter().map(|home| home % (parents.len() + 1)).collect();
        graph.trim_end().trim_end_matches('}').to_owned() + &nested(&homes, &parents) + "}\n"
    })
}

/// Returns true if one rectangle is within another.
fn is_inside(inner: (Point, Size), outer: (Point, Size)) -> bool {
    let fits = |a: f64, b: f64, room: f64, outer: f64| (a - b).abs() + room / 2.0 <= outer / 2.0 + 0.01;
    fits(inner.0.x, outer.0.x, inner.1.width, outer.1.width)
        && fits(inner.0.y, outer.0.y, inner.1.height, outer.1.height)
}

/// Returns a subgraph and all subgraphs around it.
fn around(pipeline: &Pipeline, subgraph: usize) -> Vec<usize> {
    std::iter::successors(Some(subgraph), |subgraph| pipeline.subgraphs[*subgraph].parent).collect()
}

fn check_boxes(pipeline: &Pipeline, drawing: &Drawing) -> Result<(), TestCaseError> {
    let homes: Vec<Option<usize>> = (0..pipeline.nodes.len())
        .map(|node| pipeline.subgraphs.iter().position(|subgraph| subgraph.members.contains(&node)))
        .collect();
    let is_empty = |index: usize| homes.iter().flatten().all(|home| !around(pipeline, *home).contains(&index));
    prop_assert_eq!(drawing.boxes.len(), (0..pipeline.subgraphs.len()).filter(|index| !is_empty(*index)).count());
    for drawn in &drawing.boxes {
        let place = (drawn.centre, drawn.size);
        for (node, home) in drawing.nodes.iter().zip(&homes) {
            let is_own = home.is_some_and(|home| around(pipeline, home).contains(&drawn.subgraph));
            let its = (node.centre, node.size);
            prop_assert!(!is_own || is_inside(its, place), "{} lies not in {}", node.id, drawn.title);
            prop_assert!(is_own || !overlap(its, place, 0.01), "{} lies in {}", node.id, drawn.title);
        }
        for label in drawing.edges.iter().filter_map(|edge| edge.label.as_ref()) {
            let its = (label.centre, label.size);
            prop_assert!(
                is_inside(its, place) || !overlap(its, place, 0.01),
                "a border of {} runs through a label",
                drawn.title
            );
        }
        for other in drawing.boxes.iter().filter(|other| other.subgraph != drawn.subgraph) {
            let its = (other.centre, other.size);
            if around(pipeline, other.subgraph).contains(&drawn.subgraph) {
                prop_assert!(is_inside(its, place), "{} lies not in {}", other.title, drawn.title);
            } else if !around(pipeline, drawn.subgraph).contains(&other.subgraph) {
                prop_assert!(!overlap(its, place, 0.01), "{} lies over {}", other.title, drawn.title);
            }
        }
        let text = drawn.lines.iter().map(|line| super::text::width(&line.text, line.role.size())).fold(0.0, f64::max);
        prop_assert!(
            drawn.lines.iter().all(|line| (line.at.x - drawn.centre.x).abs() + text / 2.0 < drawn.size.width / 2.0)
        );
        let sheet = Point { x: drawing.size.width / 2.0, y: drawing.size.height / 2.0 };
        prop_assert!(is_inside(place, (sheet, drawing.size)), "{} leaves the picture", drawn.title);
    }
    Ok(())
}

/// Returns true if two boxes overlap by more than `slack` in both directions.
fn overlap(one: (Point, Size), other: (Point, Size), slack: f64) -> bool {
    let near = |a: f64, b: f64, room: f64| (a - b).abs() < room - slack;
    near(one.0.x, other.0.x, (one.1.width + other.1.width) / 2.0)
        && near(one.0.y, other.0.y, (one.1.height + other.1.height) / 2.0)
}

fn boxes(drawing: &Drawing) -> Vec<(String, (Point, Size))> {
    drawing.nodes.iter().map(|node| (node.id.clone(), (node.centre, node.size))).collect()
}

/// Returns the depth of a point inside a node's outline; 0 outside.
fn depth(node: &DrawnNode, point: Point) -> f64 {
    let outline = node.shape.outline(node.size);
    let (x, y) = (point.x - node.centre.x, point.y - node.centre.y);
    let is_inside = cut_vertically(&outline, x).is_some_and(|(top, bottom)| top < y && y < bottom);
    if is_inside { off_border(node, point) } else { 0.0 }
}

/// Returns the distance of a point from a node's border.
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
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn nothing_lies_over_anything(source in any_graph()) {
        check_drawing(&draw(&pipeline(&source), None))?;
    }

    #[test]
    fn boxes_enclose_their_own_and_nothing_else(source in any_nested_graph()) {
        let pipeline = pipeline(&source);
        let drawing = draw(&pipeline, None);
        check_drawing(&drawing)?;
        check_boxes(&pipeline, &drawing)?;
    }

    #[test]
    fn the_same_file_gives_the_same_picture(source in any_nested_graph()) {
        let (one, other) = (pipeline(&source), pipeline(&source));
        prop_assert_eq!(to_svg(&draw(&one, None)), to_svg(&draw(&other, None)));
        prop_assert_eq!(to_list(&one, None), to_list(&other, None));
    }

    #[test]
    fn a_list_names_every_node_edge_and_box(source in any_nested_graph()) {
        let pipeline = pipeline(&source);
        let list = to_list(&pipeline, None);
        prop_assert!(list.is_ascii());
        for node in &pipeline.nodes {
            let label = node.label.split_whitespace().collect::<Vec<_>>().join(" ");
            let names = list.contains(&format!("{} \"{label}\" (", node.id)) || label == node.id.as_str() || label.is_empty();
            prop_assert!(names && list.contains(&format!("\n{} ", node.id)), "{} is missing in\n{list}", node.id);
        }
        prop_assert_eq!(list.matches("\n  -> ").count(), pipeline.edges.len(), "{}", list);
        let conditions = pipeline.edges.iter().filter(|edge| edge.condition.is_some()).count();
        prop_assert_eq!(list.matches("  if outcome=").count(), conditions, "{}", list);
        for drawn in &draw(&pipeline, None).boxes {
            prop_assert!(list.contains(&drawn.title), "{} is missing in\n{list}", drawn.title);
        }
    }
}

#[test]
fn a_graph_of_nothing_is_a_picture_of_nothing() {
    let nothing = pipeline("digraph G { }");
    assert!(to_svg(&draw(&nothing, None)).contains("0 nodes, 0 edges"));
    assert_eq!(to_list(&nothing, None), "G: 0 nodes, 0 edges\n");
}

#[test]
fn the_outermost_lines_of_a_huge_graph_go_round_the_outside() {
    // Every node leads to the last three nodes by several kinds of links, which need more dummy vertices than are
    // allowed.
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
fn a_node_stands_in_the_innermost_box_of_the_first_subgraph_that_declares_it() {
    let pipeline = pipeline(
        "digraph G { b subgraph cluster_one { a subgraph two { label=Two a b } } subgraph cluster_three { a c } subgraph same { c d } }",
    );
    let drawing = draw(&pipeline, None);
    let boxes: Vec<usize> = drawing.boxes.iter().map(|drawn| drawn.subgraph).collect();
    // The last subgraph has neither a name that begins with `cluster` nor a label.
    assert_eq!(boxes, [0, 1, 2]);
    let within = |id: &str| -> Vec<usize> {
        let node = node(&drawing, id);
        let holds = |drawn: &&super::DrawnBox| is_inside((node.centre, node.size), (drawn.centre, drawn.size));
        drawing.boxes.iter().filter(holds).map(|drawn| drawn.subgraph).collect()
    };
    assert_eq!(["a", "b", "c", "d"].map(within), [vec![0, 1], vec![0, 1], vec![2], vec![]]);
}

#[test]
fn boxes_with_too_much_border_are_left_out_and_the_rest_still_holds() {
    let count = 700;
    let mut source = "digraph G {\n".to_owned();
    for group in 0..40 {
        let last = count - 40 + group;
        source.push_str(&format!("subgraph cluster_{group} {{ label=\"Group {group}\" n{group} n{last} }}\n"));
    }
    (1..count).for_each(|index| source.push_str(&format!("n{index}\nn{} -> n{index}\n", index - 1)));
    let pipeline = pipeline(&(source + "}"));
    let drawing = draw(&pipeline, None);
    assert!((1..40).contains(&drawing.boxes.len()), "{}", drawing.boxes.len());
    assert_eq!(drawing.boxes.len() + drawing.boxes_left_out, 40);
    assert!(to_svg(&drawing).contains(&format!("{} subgraphs left without a box", drawing.boxes_left_out)));
    for (index, one) in drawing.boxes.iter().enumerate() {
        let place = (one.centre, one.size);
        assert!(drawing.boxes[index + 1..].iter().all(|other| !overlap(place, (other.centre, other.size), 0.01)));
        for (number, node) in drawing.nodes.iter().enumerate() {
            let is_own = pipeline.subgraphs[one.subgraph].members.contains(&number);
            assert_eq!(overlap((node.centre, node.size), place, 0.01), is_own, "{} and {}", node.id, one.title);
        }
    }
}

#[test]
fn a_label_as_long_as_a_file_costs_no_more_than_a_label() {
    let label = "x".repeat(3 << 20);
    let pipeline = pipeline(&format!("digraph G {{ a [label=\"{label}\"] b a -> b [label=\"{label}\"] }}"));
    assert!(to_svg(&draw(&pipeline, None)).len() < 20_000);
    assert!(to_list(&pipeline, None).len() < 2_000);
}

#[test]
fn a_list_keeps_words_whole() {
    let long = (0..90).map(|n| format!("n{n} start -> n{n} -> exit\n")).collect::<String>();
    let text = format!(
        "digraph g {{ start [shape=Mdiamond] exit [shape=Msquare] {long} n0 [label=\"interview_until_there_are_no_more_questions\"] }}"
    );
    let list = to_list(&pipeline(&text), None);
    assert!(list.contains("\"interview_until_there_are_no_more_questions\""), "{list}");
    assert!(list.starts_with("g: 92 nodes, 180 edges\n"), "{list}");
}
