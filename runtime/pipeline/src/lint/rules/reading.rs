//! Rules that the parser and the lowering report: syntax, and the types of values.

use super::Rule;
use crate::diagnostic::Severity::{Error, Info, Warning};

pub(super) const RULES: &[Rule] = &[
    Rule {
        id: "dot_syntax",
        severity: Error,
        check: None,
        summary: "the file must contain one `digraph`, in the supported subset of DOT",
        help: "correct the syntax at the marked place",
        why: "Glovebox reads a strict subset of DOT (Attractor spec §2.1 and §2.3). It refuses other graphs, because it could \
              only guess their meaning. An undirected edge names no next stage, a second graph has no place in the run, and a \
              port has no meaning. `glovebox check` reports all mistakes of the file at once. `glovebox check --fix` makes the \
              corrections that are certain.",
        bad: include_str!("../../../rules/dot_syntax.bad.dot"),
        good: include_str!("../../../rules/dot_syntax.good.dot"),
    },
    Rule {
        id: "not_graphviz",
        severity: Info,
        check: None,
        summary: "Graphviz should be able to read the file",
        help: "write the form that Graphviz reads too: `glovebox fmt` does this",
        why: "Pipelines for other engines contain bare durations, dotted keys and `#` comments, so Glovebox accepts them. \
              Graphviz does not: `dot` draws nothing, and editors with a preview show an error. `glovebox fmt` writes all of \
              them in a spelling that both programs read.",
        bad: include_str!("../../../rules/not_graphviz.bad.dot"),
        good: include_str!("../../../rules/not_graphviz.good.dot"),
    },
    Rule {
        id: "other_spelling",
        severity: Info,
        check: None,
        summary: "names should have the spelling that Glovebox uses",
        help: "run `glovebox check --fix`, which writes the spelling of Glovebox",
        why: "Engines of this language have different names for the same thing: `script` for `tool_command` on a tool stage, \
              `outcome=succeeded` and `outcome=failed`, and `model`, `provider` and `effort` in a style sheet. Glovebox accepts \
              these names. It does not accept a name that has no exact equivalent; other rules report such a name.",
        bad: include_str!("../../../rules/other_spelling.bad.dot"),
        good: include_str!("../../../rules/other_spelling.good.dot"),
    },
    Rule {
        id: "attribute_value",
        severity: Error,
        check: None,
        summary: "an attribute's value must have the attribute's type",
        help: "write a value of the type that the message names",
        why: "Each attribute has a type (Attractor spec §2.4 and appendix A). For a value of another type, Glovebox would have \
              to guess, and a guessed limit or gate is not what the author set. So it refuses the file before anything runs.",
        bad: include_str!("../../../rules/attribute_value.bad.dot"),
        good: include_str!("../../../rules/attribute_value.good.dot"),
    },
    Rule {
        id: "subgraph_attribute",
        severity: Error,
        check: None,
        summary: "an attribute of a subgraph must have an effect there",
        help: "write it in a `node [...]` block of the subgraph, or on the graph",
        why: "Only `label` of a subgraph has an effect: it becomes a class of its nodes (Attractor spec §2.10). Any other \
            attribute there, such as a limit or a hook, looks as if it applied to these nodes, but has no effect.",
        bad: include_str!("../../../rules/subgraph_attribute.bad.dot"),
        good: include_str!("../../../rules/subgraph_attribute.good.dot"),
    },
    Rule {
        id: "duration_unit",
        severity: Warning,
        check: None,
        summary: "a duration should have a unit",
        help: "write `900s`",
        why: "A duration is an integer with a unit (Attractor spec §2.2). Some engines read a bare number as seconds, others as \
              milliseconds; Glovebox reads seconds. With a unit, a timeout means the same everywhere.",
        bad: include_str!("../../../rules/duration_unit.bad.dot"),
        good: include_str!("../../../rules/duration_unit.good.dot"),
    },
    Rule {
        id: "duplicate_attribute",
        severity: Warning,
        check: None,
        summary: "an attribute should be set only once",
        help: "keep one of the two values",
        why: "The later value wins, as in Graphviz, and nothing shows at run time that there was an earlier one. If you edit a \
              prompt or a write scope at the first of the two places, the edit has no effect.",
        bad: include_str!("../../../rules/duplicate_attribute.bad.dot"),
        good: include_str!("../../../rules/duplicate_attribute.good.dot"),
    },
    Rule {
        id: "path_list",
        severity: Error,
        check: None,
        summary: "a path list must contain relative paths without `..`",
        help: "write paths relative to the workspace, such as `src/,Cargo.toml`",
        why: "Paths are relative to the workspace. An absolute path or a `..` segment names something outside the workspace, and \
              no stage may reach that, whatever the file says. An empty entry is a typing mistake that could mean everything or \
              nothing.",
        bad: include_str!("../../../rules/path_list.bad.dot"),
        good: include_str!("../../../rules/path_list.good.dot"),
    },
    Rule {
        id: "limit_known",
        severity: Error,
        check: None,
        summary: "`limits.<name>` must name an existing limit",
        help: "use a limit that exists; docs/attributes.md lists them",
        why: "A misspelt limit limits nothing. An attribute that promises a limit and has no effect is worse than none, so \
              Glovebox refuses the file. The names are those of `[limits]` in `glovebox.toml`; a name ends in its unit.",
        bad: include_str!("../../../rules/limit_known.bad.dot"),
        good: include_str!("../../../rules/limit_known.good.dot"),
    },
    Rule {
        id: "input_declared",
        severity: Error,
        check: None,
        summary: "every `--set` key must occur in the file",
        help: "use `$key` in the goal or in a prompt, or declare a graph attribute `key`",
        why: "`--set key=value` replaces `$key` in the goal and in prompts, and the value of the graph attribute `key`. If the \
              file has neither, the value has no effect, and the run would do its work without this input.",
        bad: include_str!("../../../rules/input_declared.bad.dot"),
        good: include_str!("../../../rules/input_declared.good.dot"),
    },
    Rule {
        id: "condition_syntax",
        severity: Error,
        check: None,
        summary: "an edge condition must be valid",
        help: "compare with `=` or `!=`, and join comparisons with `&&`",
        why: "A condition is a list of text comparisons that are joined by `&&` (Attractor spec §10.2). The language has no `==`, `||` or \
              `<`. If Glovebox accepted `outcome==success`, it would compare with the text `=success`. That never holds, and the \
              run would take another edge without a warning. A condition has at most 256 comparisons.",
        bad: include_str!("../../../rules/condition_syntax.bad.dot"),
        good: include_str!("../../../rules/condition_syntax.good.dot"),
    },
    Rule {
        id: "stylesheet_syntax",
        severity: Error,
        check: None,
        summary: "`model_stylesheet` must be valid",
        help: "write `selector { property: value; }`",
        why: "The style sheet decides which model a stage uses (Attractor spec §8). If Glovebox dropped a rule that it cannot \
              parse, some stages would use another model. Only the bill and the quality of the work would show it.",
        bad: include_str!("../../../rules/stylesheet_syntax.bad.dot"),
        good: include_str!("../../../rules/stylesheet_syntax.good.dot"),
    },
    Rule {
        id: "prompt_file",
        severity: Error,
        check: None,
        summary: "a prompt of the form `@path` must name a readable file",
        help: "write the path from the folder of the pipeline file, such as `@prompts/review.md`",
        why: "A prompt may be in a file of its own. Its path starts at the folder of the pipeline file. It must not leave that \
              folder, not even through a link. It must not lead into the hold-outs, because they test the stage that reads the \
              prompt. A run stores the texts of its prompts, and `glovebox resume` reads the stored texts.",
        bad: include_str!("../../../rules/prompt_file.bad.dot"),
        good: include_str!("../../../rules/prompt_file.good.dot"),
    },
    Rule {
        id: "output_schema",
        severity: Error,
        check: None,
        summary: "`output_schema` must be a JSON Schema that Glovebox enforces, on an agent stage of its own",
        help: "write the JSON Schema of an object, or the path of its file, such as `@schemas/review.json`",
        why: "The answer of an agent stage with `output_schema` is checked against this schema, whatever the model's \
            provider checks. A keyword that is not enforced would promise more than is checked, so it is an error. The \
            schema may be in a file of its own, with a path from the folder of the pipeline file. The path must not leave \
            that folder or lead into the hold-outs. Agent programs (`agent.backend`) write what they like, so the attribute \
            is an error on a stage with an agent program.",
        bad: include_str!("../../../rules/output_schema.bad.dot"),
        good: include_str!("../../../rules/output_schema.good.dot"),
    },
    Rule {
        id: "json_schema",
        severity: Error,
        check: None,
        summary: "a `json-schema` stage must have a file and one JSON Schema that Glovebox enforces",
        help: "write the JSON Schema, or the path of its file, such as `@schemas/config.json`",
        why: "A `json-schema` stage checks `json_file` with one of two schemas. `json_schema` is JSON, or the `@path` of a file \
              in the folder of the pipeline file; `json_schema_holdout` is a file of the hold-outs. Both are fixed when the run \
              starts, so no stage can change what it is checked with. A keyword that is not enforced is an error.",
        bad: include_str!("../../../rules/json_schema.bad.dot"),
        good: include_str!("../../../rules/json_schema.good.dot"),
    },
    Rule {
        id: "child_pipeline",
        severity: Error,
        check: None,
        summary: "a child pipeline must be a readable file, and must not lead back to a pipeline above it",
        help: "write the path from the folder of this pipeline, such as `children/build.dot`",
        why: "A node can run another pipeline, which may have children of its own. `glovebox check` checks each of these \
            files. A child is part of a run, so a setting in it that can apply only to a whole run is an error at the node \
            that runs the child. A pipeline that leads back to itself would never end. A chain of more than 16 pipelines is \
            an error too, because it is most likely a mistake.",
        bad: include_str!("../../../rules/child_pipeline.bad.dot"),
        good: include_str!("../../../rules/child_pipeline.good.dot"),
    },
];
