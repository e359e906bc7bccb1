//! JSON and canonical DOT.

use super::{accept, with};
use glovebox_pipeline::draw::draw;
use glovebox_pipeline::graph::{to_dot, to_json};
use insta::{assert_json_snapshot, assert_snapshot};

fn source() -> String {
    with(
        "graph [goal=\"say \\\"hi\\\"\"] node [timeout=5s] n [prompt=\"a\nb\\\\n\", id=other, codex.path=\"x\"] start -> n -> exit [weight=2]",
    )
}

#[test]
fn json_names_every_node_and_edge() {
    let pipeline = accept(&source());
    assert_json_snapshot!(to_json(&pipeline, &draw(&pipeline, None)), { ".layout" => "…" }, @r#"
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
      ],
      "layout": "…"
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
