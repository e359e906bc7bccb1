//! Tests of the output as JSON and as canonical DOT.

use super::{accept, run, total, with};
use glovebox_pipeline::attributes::{ATTRIBUTES, Carrier};
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

/// Returns a file with a node of every kind, after a defaults block.
fn all_kinds(defaults: &str) -> String {
    format!(
        "digraph G {{ node [{defaults}] start; exit; agent [prompt=p] tool [shape=parallelogram, tool_command=true] check [shape=octagon, command=true]
        choice [shape=diamond] person [shape=hexagon] split [shape=component] one [prompt=p] two [prompt=p]
        join [shape=tripleoctagon] inner [shape=component] three [prompt=p] judge [shape=tripleoctagon, prompt=p]
        start -> agent -> tool -> check -> choice
        choice -> person [condition=\"outcome=success\"] choice -> agent [condition=\"outcome=fail\"]
        person -> split [label=Yes] person -> agent [label=No]
        split -> one -> join split -> two -> join join -> inner -> three -> judge -> exit
        subgraph {{ node [{defaults}] again [prompt=p] }} judge -> again -> exit }}"
    )
}

#[test]
fn canonical_dot_of_inherited_attributes_is_accepted() {
    let values = ["true", "1", "2", "5s", "standard", "agent", "check", "src/", "receipt", "0.5", "full", "none", "x"];
    let mut accepted = 0;
    for known in ATTRIBUTES.iter().filter(|known| known.on.contains(&Carrier::Node)) {
        for value in values {
            let source = all_kinds(&format!("\"{}\"=\"{value}\"", known.key));
            accepted += usize::from(run(&source).pipeline.is_some());
            total::check(&source);
        }
    }
    assert!(accepted > 400, "only {accepted} files were accepted");
    let together = "max_retries=2, retry_policy=patient, max_wall_time=5m, verify_command=true, verify_timeout=9s, gate_requires=receipt";
    let source = all_kinds(&format!("{together}, requires_tool_success=true, required_tool_node=tool"));
    let source = source.replace("tool [", "tool [requires_tool_success=false, required_tool_node=\"\", ");
    let source = source.replace("check [", "check [requires_tool_success=false, required_tool_node=\"\", ");
    let text = to_dot(&accept(&source));
    let line =
        |id: &str| text.lines().find(|line| line.trim_start().starts_with(&format!("\"{id}\""))).unwrap().to_owned();
    for id in ["start", "exit", "person", "split", "join"] {
        for key in ["max_retries", "max_wall_time", "verify_timeout", "gate_requires", "required_tool_node"] {
            let is_kept = matches!((id, key), ("start" | "exit" | "person", "max_retries"))
                || matches!((id, key), ("exit" | "join", "verify_timeout"));
            assert_eq!(line(id).contains(&format!("\"{key}\"")), is_kept, "{key} of {id}: {text}");
        }
    }
    assert!(line("agent").contains("\"max_wall_time\"=\"5m\""), "{text}");
    accept(&text);
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
