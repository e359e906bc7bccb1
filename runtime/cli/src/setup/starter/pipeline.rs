//! The pipeline for a project: its commands as stages, the loop of the template around them, and comments that explain
//! it.

use super::template::Template;
use glovebox_pipeline::Source;
use glovebox_pipeline::diagnostic::Diagnostic;
use glovebox_pipeline::format::format as format_dot;
use glovebox_plan::prepare::survey::{Part, Purpose, Step, Survey};
use std::borrow::Cow;

/// Number of rounds of the loop that `max_steps` allows.
const ROUNDS_MAX: usize = 5;
/// Maximum duration of one build or test.
const STEP_TIMEOUT: &str = "15m";

/// The attributes of a stage that tests. With a goal gate, a run whose test failed cannot succeed, whatever edges are added later.
/// `receipt`: a command that ran no test does not satisfy the gate either.
const GATE: &str = ", goal_gate=true, gate_requires=\"receipt\"";

/// A stage with a command.
struct Stage<'s> {
    id: String,
    part: &'s Part,
    step: &'s Step,
}

/// Returns the content of `pipeline.dot`, formatted.
///
/// # Errors
/// Returns the diagnostics of a text that does not parse, which is a bug of this module.
pub fn pipeline(template: Template, survey: &Survey) -> Result<String, Vec<Diagnostic>> {
    let text = unformatted(template, survey);
    format_dot(Source::new(&text))
}

fn unformatted(template: Template, survey: &Survey) -> String {
    let stages = stages(survey);
    let steps_max = (stages.len() + 2) * ROUNDS_MAX + 2;
    let mut text = header(template, survey);
    text.push_str(&format!("digraph {} {{\n", template.name()));
    text.push_str(&graph(template, steps_max));
    text.push_str("start [shape=Mdiamond]\n");
    if template.begins_with_model() {
        text.push_str(&implement(survey));
    }
    for stage in &stages {
        text.push_str(&command(stage));
    }
    match template {
        Template::Default => text.push_str(&fix(survey)),
        Template::Review => text.push_str(REVIEW),
        Template::Implement | Template::Check => {}
    }
    text.push_str("done [shape=Msquare]\n\n");
    text.push_str(&edges(template, &stages));
    text + "}\n"
}

fn header(template: Template, survey: &Survey) -> String {
    let found: Vec<&str> = survey.parts.iter().map(|part| part.found.as_str()).collect();
    let mut text = format!(
        "// A pipeline for this project: {}.\n\
         // `glovebox init` wrote it, because it found: {}.\n\
         // Change it as you like. `glovebox check` finds mistakes, and `glovebox plan` shows what each stage could do.\n\
         //\n\
         // Every stage works on a private copy of the project. `allowed_write_paths` lists what it may change there:\n\
         // a folder ends with `/`, and \"\" means nothing. What tools leave behind is ignored by git, or named in glovebox.toml.\n\
         // `gate_requires=\"receipt\"`: the run fails if the test command passed but ran no test.\n",
        template.purpose(),
        found.join(", ")
    );
    if template.begins_with_model() {
        text.push_str("// A stage without a command asks a model: name one under `[models]` in glovebox.toml.\n");
    }
    text
}

fn graph(template: Template, steps_max: usize) -> String {
    match template {
        Template::Check => "graph [goal=\"The project builds, and its tests pass\"]\n\n".to_owned(),
        Template::Default => format!(
            "// `max_steps` ends a loop that gets nowhere, after {ROUNDS_MAX} rounds.\n\
             graph [goal=\"All tests pass\", retry_target=\"fix\", max_steps={steps_max}]\n\n"
        ),
        Template::Implement | Template::Review => format!(
            "// Write here what you want. `max_steps` ends a loop that gets nowhere, after {ROUNDS_MAX} rounds.\n\
             graph [goal=\"Describe the change that you want\", retry_target=\"implement\", max_steps={steps_max}]\n\n"
        ),
    }
}

fn implement(survey: &Survey) -> String {
    format!(
        "// A model. It may change these paths, and gets the output of a stage that failed after it.\n\
         implement [shape=box, label=\"Implement\", max_turns=30, allowed_write_paths={}, prompt=\"Goal: $goal. Change \
         the sources so that the goal is met and all tests pass. The tests are right as they are.\"]\n",
        quoted(&survey.scope.join(","))
    )
}

fn fix(survey: &Survey) -> String {
    let stages = stages(survey);
    let output = match stages.as_slice() {
        [only] => format!("`glovebox show latest {}` has its output", only.id),
        _ => "`glovebox show latest` names it".to_owned(),
    };
    format!(
        "// A model, asked only if a stage above fails. It gets that stage's output, and may change these paths.\n\
         // Without a model under `[models]` in glovebox.toml `test.outcome` answers for it, and the run fails.\n\
         fix [shape=box, label=\"Fix\", max_turns=30, allowed_write_paths={}, prompt=\"Goal: $goal. The stage before failed; \
         its output says why. Change the sources so that it passes. The tests are right as they are.\", \
         test.outcome=\"fail\", test.notes=\"a stage failed, and no model was asked to fix it; {output}\"]\n",
        quoted(&survey.scope.join(","))
    )
}

/// The stage of the reviewer, which may write no files.
const REVIEW: &str = "// A second model. It changes nothing: its last line decides where the run goes.\n\
    review [shape=box, label=\"Review\", max_turns=15, allowed_write_paths=\"\", prompt=\"Goal: $goal. Review the sources: \
    is the goal met, and is the code correct and readable? End with a line OUTCOME: SUCCESS, or with a line OUTCOME: FAIL \
    and the reasons.\"]\n";

fn stages(survey: &Survey) -> Vec<Stage<'_>> {
    let is_single = survey.parts.len() == 1;
    let mut stages: Vec<Stage<'_>> = Vec::new();
    for (part, step) in survey.parts.iter().flat_map(|part| part.steps.iter().map(move |step| (part, step))) {
        let mut id = step.purpose.as_str().to_owned();
        if !is_single {
            id = format!("{id}_{}{}", part.kind.to_lowercase(), word(part));
        }
        while stages.iter().any(|known| known.id == id) {
            id.push('_');
        }
        stages.push(Stage { id, part, step });
    }
    stages
}

/// Returns the folder of a part as the end of an id.
fn word(part: &Part) -> String {
    let plain = |character: char| if character.is_ascii_alphanumeric() { character } else { '_' };
    let folder: String = part.folder.trim_end_matches('/').chars().map(plain).collect();
    if folder.is_empty() { folder } else { format!("_{folder}") }
}

fn command(stage: &Stage<'_>) -> String {
    let Stage { id, part, step } = stage;
    let command = match part.folder.trim_end_matches('/') {
        "" => Cow::Borrowed(step.command.as_str()),
        folder => format!("cd {folder} && {}", step.command).into(),
    };
    let writes: Vec<String> = step.writes.iter().map(|file| format!("{}{file}", part.folder)).collect();
    let (label, gate) = match step.purpose {
        Purpose::Build => ("Build", ""),
        Purpose::Test => ("Test", GATE),
    };
    format!(
        "// {}\n{id} [shape=parallelogram, label={}{gate}, timeout=\"{STEP_TIMEOUT}\", allowed_write_paths={}, tool_command={}]\n",
        step.why,
        quoted(&if id == step.purpose.as_str() { label.to_owned() } else { format!("{label} {}", part.kind) }),
        quoted(&writes.join(",")),
        quoted(&command)
    )
}

fn edges(template: Template, stages: &[Stage<'_>]) -> String {
    let ids: Vec<&str> = stages.iter().map(|stage| stage.id.as_str()).collect();
    let first = ids.first().copied().unwrap_or("done");
    let (last, repair) = match template {
        // A stage that fails ends the run, because no other edge leaves it.
        Template::Check => return format!("start -> {} -> done\n", ids.join(" -> ")),
        Template::Default => ("done", "fix"),
        Template::Implement => ("done", "implement"),
        Template::Review => ("review", "implement"),
    };
    let mut text = match template.begins_with_model() {
        true => format!("start -> implement -> {first}\n"),
        false => format!("start -> {first}\n"),
    };
    let next = ids.iter().skip(1).copied().chain([last]);
    for (id, next) in ids.iter().zip(next) {
        text.push_str(&format!("{id} -> {next} [condition=\"outcome=success\"]\n"));
        text.push_str(&format!("{id} -> {repair} [condition=\"outcome=fail\", label=\"Fix\"]\n"));
    }
    match template {
        Template::Default => text + &format!("fix -> {first}\n"),
        Template::Review => {
            text + "review -> done [condition=\"outcome=success\"]\n\
                    review -> implement [condition=\"outcome=fail\", label=\"Rework\"]\n"
        }
        Template::Implement | Template::Check => text,
    }
}

/// Returns a text as a quoted value of DOT.
fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}
