//! Rules about edges that restart a run.

use super::Rule;
use crate::diagnostic::Severity::{Error, Warning};
use crate::lint::restarts;

pub(super) const RULES: &[Rule] = &[
    Rule {
        id: "loop_restart_in_branch",
        severity: Error,
        check: Some(restarts::in_branch),
        summary: "a branch of a fork must not restart the run",
        help: "put `loop_restart` on an edge after the fan-in",
        why: "A restart begins a new generation of the whole run (Attractor spec §2.6). The other branches of the fork are still \
              under way, and none of them may end what the others do.",
        bad: r#"digraph ship {
  graph [max_steps=50]
  start; exit
  fork [shape=component]
  left [prompt="Try one way", allowed_write_paths=""]
  right [prompt="Try the other", allowed_write_paths=""]
  join [shape=tripleoctagon]
  start -> fork
  fork -> left
  fork -> right
  left -> join
  left -> right [condition="context.again=true", loop_restart=true]
  right -> join
  join -> exit
}"#,
        good: r#"digraph ship {
  graph [max_steps=50]
  start; exit
  fork [shape=component]
  left [prompt="Try one way", allowed_write_paths=""]
  right [prompt="Try the other", allowed_write_paths=""]
  join [shape=tripleoctagon]
  start -> fork
  fork -> left
  fork -> right
  left -> join
  right -> join
  join -> exit
  join -> fork [condition="context.again=true", loop_restart=true]
}"#,
    },
    Rule {
        id: "loop_restart_failure_class_guard",
        severity: Warning,
        check: Some(restarts::class_guard),
        summary: "an edge that restarts the run after a failure should ask for a transient one",
        help: "add `context.failure_class=transient` to the condition, and another edge for the other failures",
        why: "Only a transient failure can go away by itself, so only such a failure may restart a run. Any other failure that \
              takes this edge ends the run with the stage's reason.",
        bad: r#"digraph ship {
  graph [max_steps=50]
  start; exit
  build [prompt="Do it", allowed_write_paths=""]
  start -> build
  build -> exit [condition="outcome=success"]
  build -> build [condition="outcome=fail", loop_restart=true]
}"#,
        good: r#"digraph ship {
  graph [max_steps=50]
  start; exit
  build [prompt="Do it", allowed_write_paths=""]
  start -> build
  build -> exit [condition="outcome=success"]
  build -> build [condition="outcome=fail && context.failure_class=transient", loop_restart=true]
}"#,
    },
];
