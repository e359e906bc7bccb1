//! The `verification` handler (seed 2): checks that files of a plan exist and runs the plan's commands, without a shell.
//!
//! A model writes the plan, the pipeline's author the list of command prefixes that it may contain. This component reads both and gives
//! the documented messages; the host decides on its own what may run, from the same list. Nothing runs before everything was checked.
#![forbid(unsafe_code)]

mod plan;

use glovebox_plugin_sdk::exec::{self, Exit};
use glovebox_plugin_sdk::{Handler, Outcome, Stage, Value, artifact, export, files, json, log};
use plan::{AllowedCommands, Plan, PlannedCommand, Problem};

/// The context key of the plan, unless the node names another one.
const PLAN_KEY: &str = "verification.plan";
const PLAN_FILE: &str = "verification.plan.json";
const RESULTS_FILE: &str = "verification.results.json";
/// Bytes of each output in the results; the rest is cut from the beginning.
const OUTPUT_BYTES_MAX: usize = 16 << 10;
/// Bytes of output in a failure's notes.
const QUOTE_BYTES_MAX: usize = 2000;

struct Verification;

impl Handler for Verification {
    fn execute(stage: Stage) -> Outcome {
        verify(&stage).unwrap_or_else(Outcome::from)
    }
}

export!(
    Verification,
    manifest = concat!(
        r#"{"name":"verification","version":""#,
        env!("CARGO_PKG_VERSION"),
        r#"","description":"Runs the checks of a plan that a model wrote.","#,
        r#""wants":{"filesystem":"workspace","read":["./"],"write":["./"],"commands":["*"]}}"#
    )
);

/// The checks of the plan, in the order of seed 2.
fn verify(stage: &Stage) -> Result<Outcome, Problem> {
    let written = |name: &str| stage.attribute(name).map(str::trim).filter(|text| !text.is_empty());
    let key = written("verification.plan_context_key").unwrap_or(PLAN_KEY);
    let missing =
        || Problem::new("verification/plan-missing", format!("verification plan missing in context key: {key}"));
    let value = stage.context(key).filter(|value| !value.is_null()).ok_or_else(missing)?;
    let plan = Plan::read(value)?;
    keep(PLAN_FILE, &plan.to_json());
    let allowed = AllowedCommands::parse(written("verification.allowed_commands").unwrap_or_default())?;
    plan.files.iter().try_for_each(|file| required(file))?;
    let folder = written("verification.workdir").map(workdir).transpose()?;
    let commands = plan.commands.iter().map(|line| allowed.check(line)).collect::<Result<Vec<_>, _>>()?;
    run(&commands, folder.as_deref(), stage, &plan)
}

fn required(file: &str) -> Result<(), Problem> {
    let missing = |_| Problem::new("verification/file-missing", format!("required file missing: {file}"));
    files::stat(file).map(drop).map_err(missing)
}

/// A folder of the workspace, as the start of commands.
fn workdir(folder: &str) -> Result<String, Problem> {
    let problem = |what: String| Problem::new("verification/workdir", format!("verification.workdir {what}"));
    let inside = plan::relative(folder).map_err(|what| problem(what.to_owned()))?;
    match files::stat(&inside) {
        Ok(node) if node.kind == "directory" => Ok(inside),
        Ok(_) => Err(problem(format!("is not a directory: {folder}"))),
        Err(_) => Err(problem(format!("missing: {folder}"))),
    }
}

/// Runs the commands in order, up to the first that fails.
fn run(commands: &[PlannedCommand<'_>], folder: Option<&str>, stage: &Stage, plan: &Plan) -> Result<Outcome, Problem> {
    let mut results = Vec::new();
    let mut outcome = Outcome::success().notes(format!("verification passed: {} of {0} commands", commands.len()));
    for PlannedCommand { line, words } in commands {
        let described = exec::argv(words).set_up_by(stage);
        let described = described.map_err(|reason| Problem::new("verification/timeout-syntax", reason))?;
        let exit = match folder {
            Some(folder) => described.cwd(folder).run(),
            None => described.run(),
        };
        if let Ok(exit) = &exit {
            results.push(result(line, exit));
        }
        match exit {
            Ok(exit) if exit.passed() => outcome = outcome.claim_command(&exit.receipt),
            Ok(exit) => {
                keep_results(plan, results);
                keep_output(stage, &exit);
                return Ok(failed(line, &exit));
            }
            Err(error) => {
                keep_results(plan, results);
                return Ok(Outcome::from(error));
            }
        }
    }
    keep_results(plan, results);
    Ok(outcome)
}

fn failed(line: &str, exit: &Exit) -> Outcome {
    let quote = [&exit.stderr, &exit.stdout].map(|stream| stream.text());
    let quote =
        quote.iter().find(|text| !text.trim().is_empty()).map_or("", |text| end_of(text.trim(), QUOTE_BYTES_MAX));
    let outcome = match (exit.how.as_str(), exit.code) {
        ("exited", Some(code)) => {
            let reason = format!("verification command failed: {line} (exit={code})");
            Outcome::fail("verification_command_failed", reason)
        }
        ("timed-out", _) => {
            let reason = format!("verification command timed out: {line} (after {} ms)", exit.duration_ms);
            Outcome::fail("verification/timeout", reason).class("transient")
        }
        ("canceled", _) => Outcome::fail("verification/canceled", "the run was canceled").class("canceled"),
        (how, _) => {
            Outcome::fail("verification_command_failed", format!("verification command failed: {line} ({how})"))
        }
    };
    outcome.notes(quote)
}

fn result(line: &str, exit: &Exit) -> Value {
    let [stdout, stderr] = [&exit.stdout, &exit.stderr].map(|stream| stream.text());
    json!({
        "command": line,
        "exit_code": exit.code,
        "stdout": end_of(&stdout, OUTPUT_BYTES_MAX),
        "stderr": end_of(&stderr, OUTPUT_BYTES_MAX),
    })
}

fn keep_results(plan: &Plan, commands: Vec<Value>) {
    keep(RESULTS_FILE, &json!({ "checked_files": plan.files, "commands": commands }));
}

/// What the command printed, for the next stage's feedback.
fn keep_output(stage: &Stage, exit: &Exit) {
    let code = exit.code.map_or_else(|| exit.how.clone(), |code| code.to_string());
    let text = format!("exit_code={code}\nstdout:\n{}\nstderr:\n{}\n", exit.stdout.text(), exit.stderr.text());
    keep_text(&format!("{}.output", stage.node_id()), &text);
}

fn keep(name: &str, value: &Value) {
    keep_text(name, &format!("{value:#}\n"));
}

/// A stage does not fail if its record is cut short.
fn keep_text(name: &str, text: &str) {
    if let Err(reason) = artifact::put_text(name, text) {
        log::warn("artifact not kept", &[("name", name), ("reason", &reason)]);
    }
}

/// The last bytes of a text, from a character's border on.
fn end_of(text: &str, bytes_max: usize) -> &str {
    let mut from = text.len().saturating_sub(bytes_max);
    while !text.is_char_boundary(from) {
        from += 1;
    }
    &text[from..]
}
