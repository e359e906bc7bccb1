//! JSON and canonical DOT.

use super::{accept, with};
use glovebox_pipeline::graph::{to_dot, to_json};
use glovebox_pipeline::ir::{Node, Pipeline};
use insta::{assert_json_snapshot, assert_snapshot};

fn source() -> String {
    with(
        "graph [goal=\"say \\\"hi\\\"\"] node [timeout=5s] n [prompt=\"a\nb\\\\n\", id=other, codex.path=\"x\"] start -> n -> exit [weight=2]",
    )
}

#[test]
fn json_names_every_node_and_edge() {
    let pipeline = accept(&source());
    assert_json_snapshot!(to_json(&pipeline), @r#"
    {
      "schema_version": 1,
      "name": "G",
      "attributes": {
        "goal": "say \"hi\""
      },
      "nodes": [
        {
          "handler": "start",
          "id": "start",
          "shape": "Mdiamond"
        },
        {
          "handler": "exit",
          "id": "exit",
          "shape": "Msquare"
        },
        {
          "codex.path": "x",
          "handler": "codergen",
          "id": "n",
          "prompt": "a\nb\\n",
          "shape": "box",
          "timeout": "5s"
        }
      ],
      "edges": [
        {
          "from": "start",
          "to": "n",
          "weight": "2"
        },
        {
          "from": "n",
          "to": "exit",
          "weight": "2"
        }
      ]
    }
    "#);
}

#[test]
fn dot_is_canonical() {
    assert_snapshot!(to_dot(&accept(&source())), @r#"
    digraph "G" {
      graph ["goal"="say \"hi\""];
      "start" ["shape"="Mdiamond"];
      "exit" ["shape"="Msquare"];
      "n" ["codex.path"="x", "id"="other", "prompt"="a\nb\\n", "timeout"="5s"];
      "start" -> "n" ["weight"="2"];
      "n" -> "exit" ["weight"="2"];
    }
    "#);
}

const NESTED: &str =
    "subgraph cluster_a { label=\"Loop A\" node [timeout=5s] x subgraph { y graph [label=\"in \\\"here\\\"\"] } }
    subgraph cluster_b { x z } w start -> x -> y -> z -> w -> exit";

#[test]
fn subgraphs_and_their_classes_stay_in_dot() {
    let pipeline = accept(&with(NESTED));
    let text = to_dot(&pipeline);
    assert_snapshot!(text, @r#"
    digraph "G" {
      "start" ["shape"="Mdiamond"];
      "exit" ["shape"="Msquare"];
      "x" ["class"="loop-a", "timeout"="5s"];
      "y" ["class"="loop-a,in-here", "timeout"="5s"];
      "z";
      "w";
      "start" -> "x";
      "x" -> "y";
      "y" -> "z";
      "z" -> "w";
      "w" -> "exit";
      subgraph "cluster_a" {
        graph ["label"="Loop A"];
        "x";
        subgraph {
          graph ["label"="in \"here\""];
          "y";
        }
      }
      subgraph "cluster_b" {
        graph ["label"=""];
        "x";
        "z";
      }
    }
    "#);
    let again = accept(&text);
    assert_eq!(again.subgraphs, pipeline.subgraphs);
    let said = |pipeline: &Pipeline| -> Vec<String> {
        let attributes = |node: &Node| -> Vec<String> {
            node.attributes.iter().map(|(key, attribute)| format!("{key}={}", attribute.value)).collect()
        };
        pipeline.nodes.iter().map(|node| format!("{} {:?} {:?}", node.id, node.classes, attributes(node))).collect()
    };
    assert_eq!(said(&again), said(&pipeline));
    assert_eq!(pipeline.nodes[3].classes, ["loop-a", "in-here"]);
    assert_eq!(to_dot(&again), text);
}

#[test]
fn json_lists_subgraphs() {
    let pipeline = accept(&with(NESTED));
    let file = to_json(&pipeline);
    assert_json_snapshot!(file.subgraphs, @r#"
    [
      {
        "name": "cluster_a",
        "label": "Loop A",
        "nodes": [
          "x"
        ]
      },
      {
        "label": "in \"here\"",
        "parent": 0,
        "nodes": [
          "y"
        ]
      },
      {
        "name": "cluster_b",
        "nodes": [
          "x",
          "z"
        ]
      }
    ]
    "#);
}
