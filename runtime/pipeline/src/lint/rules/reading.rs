//! Rules whose findings the reader and the lowering make: what is text and what is a value.

use super::Rule;
use crate::diagnostic::Severity::{Error, Info, Warning};

pub(super) const RULES: &[Rule] = &[
    Rule {
        id: "dot_syntax",
        severity: Error,
        check: None,
        summary: "the file is one `digraph` of the supported subset",
        help: "see the message",
        why: "What cannot be read cannot be run, and a graph of another kind would be run as something it is not: an undirected \
              edge has no next stage, a second graph no place in the run, a port no meaning (spec §2.1 and §2.3). Every mistake \
              of a file is told at once, with the edit where it is certain.",
        bad: r#"digraph ship {
  review [prompt="Review the code", allowed_write_paths=""]
  start; exit
  start -- review -> exit
}"#,
        good: r#"digraph ship {
  review [prompt="Review the code", allowed_write_paths=""]
  start; exit
  start -> review -> exit
}"#,
    },
    Rule {
        id: "not_graphviz",
        severity: Info,
        check: None,
        summary: "Graphviz reads the file too",
        help: "put the spelling in quotes",
        why: "Pipelines of other systems write bare durations, dotted keys and `#` comments, so they are read here (design §9 #8). \
              Graphviz stops at them: `dot` draws nothing, and editors with a preview show an error. `glovebox fmt` writes all of \
              them in the spelling that both read.",
        bad: r#"digraph ship {
  review [prompt="Review the code", allowed_write_paths="", timeout=15m]
  start; exit
  start -> review -> exit
}"#,
        good: r#"digraph ship {
  review [prompt="Review the code", allowed_write_paths="", timeout="15m"]
  start; exit
  start -> review -> exit
}"#,
    },
    Rule {
        id: "other_spelling",
        severity: Info,
        check: None,
        summary: "names and words are spelled as this runtime spells them",
        help: "`glovebox check --fix` writes the spelling of this runtime",
        why: "Engines of this language differ in a few names that mean the same: `script` for `tool_command` on a tool stage, \
              `outcome=succeeded` and `outcome=failed`, and `model`, `provider` and `effort` in a style sheet. They are read as \
              what they mean. What has no exact equivalent is not read at all: other rules report it by name.",
        bad: r#"digraph ship {
  build [prompt="Build it", allowed_write_paths="src/"]
  test  [shape=parallelogram, script="cargo test", allowed_write_paths=""]
  start; exit
  start -> build -> test -> exit
}"#,
        good: r#"digraph ship {
  build [prompt="Build it", allowed_write_paths="src/"]
  test  [shape=parallelogram, tool_command="cargo test", allowed_write_paths=""]
  start; exit
  start -> build -> test -> exit
}"#,
    },
    Rule {
        id: "attribute_value",
        severity: Error,
        check: None,
        summary: "an attribute's value has the attribute's type",
        help: "see the message",
        why: "Attributes are typed (spec §2.4 and appendix A). A number that is none or a boolean that is neither would have to be \
              guessed, and a guessed bound or gate is one that nobody set. So the file is refused before anything runs.",
        bad: r#"digraph ship {
  review [prompt="Review the code", allowed_write_paths="", allow_partial=yes]
  start; exit
  start -> review -> exit
}"#,
        good: r#"digraph ship {
  review [prompt="Review the code", allowed_write_paths="", allow_partial=true]
  start; exit
  start -> review -> exit
}"#,
    },
    Rule {
        id: "duration_unit",
        severity: Warning,
        check: None,
        summary: "a duration says its unit",
        help: "write `900s`",
        why: "A duration is an integer with a unit (spec §2.2). Some systems read a bare number as seconds and others as \
              milliseconds; here it is seconds. The unit makes a timeout mean the same everywhere.",
        bad: r#"digraph ship {
  review [prompt="Review the code", allowed_write_paths="", timeout=900]
  start; exit
  start -> review -> exit
}"#,
        good: r#"digraph ship {
  review [prompt="Review the code", allowed_write_paths="", timeout="900s"]
  start; exit
  start -> review -> exit
}"#,
    },
    Rule {
        id: "duplicate_attribute",
        severity: Warning,
        check: None,
        summary: "an attribute is set once",
        help: "keep one of the two values",
        why: "The later value holds, as in Graphviz, and nothing at run time shows that there was another. A prompt or a write \
              scope that was edited in one of two places keeps its old meaning.",
        bad: r#"digraph ship {
  review [prompt="Review the code", allowed_write_paths="", prompt="Review the tests"]
  start; exit
  start -> review -> exit
}"#,
        good: r#"digraph ship {
  review [prompt="Review the tests", allowed_write_paths=""]
  start; exit
  start -> review -> exit
}"#,
    },
    Rule {
        id: "path_list",
        severity: Error,
        check: None,
        summary: "path lists hold relative paths without `..`",
        help: "write `src/,Cargo.toml`",
        why: "Scopes are relative to the workspace: an absolute path or a `..` segment names something outside it, which no stage \
              may reach whatever the file says (seed 2). An empty entry is a slip that could be read as everything or as nothing.",
        bad: r#"digraph ship {
  review [prompt="Review the code", allowed_write_paths="../notes/"]
  start; exit
  start -> review -> exit
}"#,
        good: r#"digraph ship {
  review [prompt="Review the code", allowed_write_paths=""]
  start; exit
  start -> review -> exit
}"#,
    },
    Rule {
        id: "limit_known",
        severity: Error,
        check: None,
        summary: "`limits.<name>` names a limit that exists",
        help: "see the list in the message",
        why: "A misspelt limit limits nothing. An attribute that promises a bound and is silently ignored is worse than none, so \
              the file is refused. The names are those of `[limits]` in `glovebox.toml`, each with its unit at the end.",
        bad: r#"digraph ship {
  review [prompt="Review the code", allowed_write_paths="", "limits.cpu"="10s"]
  start; exit
  start -> review -> exit
}"#,
        good: r#"digraph ship {
  review [prompt="Review the code", allowed_write_paths="", "limits.cpu_ms"="10s"]
  start; exit
  start -> review -> exit
}"#,
    },
    Rule {
        id: "input_declared",
        severity: Error,
        check: None,
        summary: "every `--set` key occurs in the file",
        help: "use `$key`, or declare a graph attribute",
        why: "`--set key=value` replaces `$key` in the goal and in prompts, and the graph attribute of that name. A key that the \
              file knows in neither way goes nowhere: the run would do the work without the input it was given.",
        bad: r#"// --set ticket=GB-42
digraph ship {
  review [prompt="Review the code", allowed_write_paths=""]
  start; exit
  start -> review -> exit
}"#,
        good: r#"// --set ticket=GB-42
digraph ship {
  review [prompt="Review the code for $ticket", allowed_write_paths=""]
  start; exit
  start -> review -> exit
}"#,
    },
    Rule {
        id: "condition_syntax",
        severity: Error,
        check: None,
        summary: "edge conditions parse",
        help: "compare with `=` or `!=`, join with `&&`",
        why: "A condition is a conjunction of comparisons of text and nothing else (spec §10.2): no `==`, no `||`, no `<`. Read \
              generously, `outcome==success` would compare with `=success` and never hold, and the run would take another way \
              without a word.",
        bad: r#"digraph ship {
  review [prompt="Review the code", allowed_write_paths=""]
  start; exit
  start -> review
  review -> exit [condition="outcome==success"]
}"#,
        good: r#"digraph ship {
  review [prompt="Review the code", allowed_write_paths=""]
  start; exit
  start -> review
  review -> exit [condition="outcome=success"]
}"#,
    },
    Rule {
        id: "stylesheet_syntax",
        severity: Error,
        check: None,
        summary: "`model_stylesheet` parses",
        help: "`selector { property: value; }`",
        why: "The style sheet decides which model a stage asks (spec §8). A rule that is dropped because it does not parse leaves \
              its stages on another model, which shows in the bill and in the work, and nowhere else.",
        bad: r#"digraph ship {
  graph [model_stylesheet="* { llm_model = claude-opus-4-6; }"]
  review [prompt="Review the code", allowed_write_paths=""]
  start; exit
  start -> review -> exit
}"#,
        good: r#"digraph ship {
  graph [model_stylesheet="* { llm_model: claude-opus-4-6; }"]
  review [prompt="Review the code", allowed_write_paths=""]
  start; exit
  start -> review -> exit
}"#,
    },
    Rule {
        id: "prompt_file",
        severity: Error,
        check: None,
        summary: "a prompt of one word after an `@` names a file that can be read",
        help: "name a file by its path from the folder of the pipeline, such as `@prompts/review.md`",
        why: "A prompt may stand in a file of its own (design §9 #25). The path starts at the folder of the pipeline's file and \
              leads neither out of it, be it by a link, nor into hold-outs: a prompt is read by the builder that they judge. A \
              run keeps the texts, and a resume reads those.",
        bad: r#"digraph ship {
  review [prompt="@../notes/review.md", allowed_write_paths=""]
  start; exit
  start -> review -> exit
}"#,
        good: r#"digraph ship {
  review [prompt="Review the code as notes/review.md says", allowed_write_paths=""]
  start; exit
  start -> review -> exit
}"#,
    },
    Rule {
        id: "child_pipeline",
        severity: Error,
        check: None,
        summary: "a child pipeline is a file that can be read, and leads back to none above it",
        help: "name a file by its path from the folder of this pipeline, such as `children/build.dot`",
        why: "A supervisor has another pipeline executed, which may have children of its own. `check` follows them, file by file, and \
              tells what is wrong in each. One that leads back to itself would never end; more than 16 in a row are taken for a \
              mistake.",
        bad: r#"digraph ship {
  graph ["stack.child_dotfile"="/srv/pipelines/build.dot"]
  review [prompt="Review the code", allowed_write_paths=""]
  start; exit
  start -> review -> exit
}"#,
        good: r#"digraph ship {
  graph ["stack.child_dotfile"="children/build.dot"]
  review [prompt="Review the code", allowed_write_paths=""]
  start; exit
  start -> review -> exit
}"#,
    },
];
