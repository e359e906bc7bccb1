//! The `verification` handler (decision verification-plan): checks that the files of a plan exist and runs the plan's commands without
//! a shell.
//!
//! A model writes the plan, and the pipeline's author the list of allowed command prefixes. The operator's `[verify]` adds commands of
//! the project's verify contract. This component checks all of them and reports the documented messages. The host decides
//! independently, from the same lists, what may run. No command runs before everything was checked.
#![forbid(unsafe_code)]

mod commands;
mod failure;
mod project;
mod recovery;
mod report;
mod run;
mod settings;

use commands::{Command, Commands};
use glovebox_plugin_sdk::plan::{self, AllowedCommands, Plan, Problem};
use glovebox_plugin_sdk::{Handler, Outcome, Stage, export, files};
use report::{Report, keep};
use run::Bounds;
use settings::Settings;

/// Context key of the plan, unless the node names another one.
const PLAN_KEY: &str = "verification.plan";
const PLAN_FILE: &str = "verification.plan.json";

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

/// Runs the checks of the plan in a fixed order (decision verification-plan).
fn verify(stage: &Stage) -> Result<Outcome, Problem> {
    let written = |name: &str| stage.attribute(name).map(str::trim).filter(|text| !text.is_empty());
    let settings = Settings::for_stage(stage);
    let may_lack_plan = settings.as_ref().is_some_and(|settings| !settings.needs_plan);
    let key = written("verification.plan_context_key").unwrap_or(PLAN_KEY);
    let plan = match stage.context(key).filter(|value| !value.is_null()) {
        Some(value) => Plan::read(&value, may_lack_plan)?,
        None if may_lack_plan => Plan::default(),
        None => {
            let reason = format!("verification plan missing in context key: {key}");
            return Err(Problem::new("verification/plan-missing", reason));
        }
    };
    keep(PLAN_FILE, &plan.to_json());
    let is_checked = !plan.commands.is_empty() || settings.is_none();
    let list = written("verification.allowed_commands").unwrap_or_default();
    let allowed = if is_checked { Some(AllowedCommands::parse(list)?) } else { None };
    plan.files.iter().try_for_each(|file| required(file))?;
    let folder = written("verification.workdir").map(workdir).transpose()?;
    let adjusts = settings.as_ref().is_some_and(|settings| settings.recovers_explicit);
    let planned = |line: &String| match allowed.as_ref().map(|allowed| allowed.check(line)) {
        // The command cannot be started and will be dropped from the list.
        Some(Err(problem)) if problem.is_of_form() && adjusts => Ok(Command::planned(line, Vec::new())),
        Some(checked) => checked.map(|words| Command::planned(line, words)),
        None => Ok(Command::planned(line, Vec::new())),
    };
    let planned = plan.commands.iter().map(planned).collect::<Result<Vec<_>, _>>()?;
    let commands = Commands::complete(planned, settings.as_ref(), written("verification.role"))?;
    let report = Report::new(plan.files, &commands);
    run::run(commands, report, Bounds { stage, folder: folder.as_deref(), settings: settings.as_ref() })
}

fn required(file: &str) -> Result<(), Problem> {
    let missing = |_| Problem::new("verification/file-missing", format!("required file missing: {file}"));
    files::stat(file).map(drop).map_err(missing)
}

/// Checks that a folder of the workspace exists, and returns it as the working directory of the commands.
fn workdir(folder: &str) -> Result<String, Problem> {
    let problem = |what: String| Problem::new("verification/workdir", format!("verification.workdir {what}"));
    let inside = plan::relative(folder).map_err(|what| problem(what.to_owned()))?;
    match files::stat(&inside) {
        Ok(node) if node.kind == "directory" => Ok(inside),
        Ok(_) => Err(problem(format!("is not a directory: {folder}"))),
        Err(_) => Err(problem(format!("missing: {folder}"))),
    }
}

#[cfg(test)]
mod tests;
