//! The part of the preparation of a plan that belongs to the terminal and this process: the component host, the
//! question about what may be sent out, and warnings.

use crate::builtins::BUILTINS;
use crate::command_line;
use crate::compiler;
use crate::exit::{Exit, Stop};
use crate::terminal::diagnostics::{self, Findings};
use crate::terminal::{self, compiling, visible};
use glovebox_host::host::{Host, HostConfig};
use glovebox_pipeline::Inputs;
use glovebox_pipeline::diagnostic::Severity;
use glovebox_pipeline::transform::RuleRecord;
use glovebox_plan::plan::Plan;
use glovebox_plan::prepare::binding::{Bound, Request, bind_plan, dependency_warnings};
use glovebox_plan::prepare::component_host::ComponentHost;
use glovebox_plan::prepare::executor::Executor;
use glovebox_plan::prepare::folders::cache_dir;
use glovebox_plan::prepare::project::{self, Project};
use glovebox_plan::prepare::refusal::{Class, Refusal, Warning};
use glovebox_plan::prepare::rule_plugins;
use glovebox_plan::prepare::source::CheckedPipeline;
use glovebox_plan::prepare::trust::Wanted;
use std::io;
use std::path::Path;
use std::sync::OnceLock;

/// Maximum number of concurrent calls of components in one process.
const POOL_SLOTS: u32 = 4;

/// Returns the component host of this process. It is started when it is first needed.
pub fn component_host() -> ComponentHost {
    ComponentHost::new(&BUILTINS, start_host)
}

fn start_host() -> Result<Host, Refusal> {
    let config = HostConfig {
        cache_dir: cache_dir(),
        cache_bytes_max: compiler::cache_bytes_max()?,
        compiler: compiler::compiler()?,
        pool_slots: POOL_SLOTS,
        while_compiling: compiling::show,
    };
    tracing::debug!("starting the component host");
    Host::new(config).map_err(|error| Refusal::new(Class::Internal, error.to_string()))
}

impl From<Refusal> for Stop {
    fn from(refusal: Refusal) -> Self {
        let Refusal { class, message, help, findings, plugins } = refusal;
        let exit = match class {
            Class::Usage => Exit::Usage,
            Class::Invalid => Exit::Invalid,
            Class::Policy => Exit::Policy,
            Class::Plugin => Exit::Plugin,
            Class::Provider => Exit::Provider,
            Class::Mismatch => Exit::Mismatch,
            Class::Internal => Exit::Internal,
        };
        let mut details = findings.map(|findings| rendered(&findings, Severity::Warning)).unwrap_or_default();
        for problem in &plugins {
            details.push_str(&format!("error: {}\n", visible::block(&problem.message)));
            problem.help.iter().for_each(|help| details.push_str(&format!("help: {}\n", visible::block(help))));
        }
        Self { exit, message, help, details }
    }
}

fn rendered(findings: &Findings, at_least: Severity) -> String {
    diagnostics::render(findings, at_least, terminal::message_look())
}

/// Prints the findings with at least this severity.
pub fn report(findings: &Findings, at_least: Severity) {
    terminal::say(rendered(findings, at_least));
}

/// Reads the configuration for a pipeline, or for the workdir alone. Prints a note about which file was read if that is
/// not obvious.
pub fn read_project(workdir: &Path, pipeline: Option<&Path>) -> Result<Project, Stop> {
    let project = project::read_project(workdir, pipeline)?;
    say_note(project.note.as_deref());
    command_line::with_settings(project, pipeline)
}

/// Prints the note about the configuration, once per process.
pub fn say_note(note: Option<&str>) {
    static NOTED: OnceLock<()> = OnceLock::new();
    if let Some(note) = note.filter(|_| NOTED.set(()).is_ok()) {
        terminal::say(format_args!("note: {note}\n"));
    }
}

/// Reads a pipeline and its project, and applies the project's rules.
pub fn read_pipeline(
    host: &ComponentHost,
    file: &Path,
    inputs: &Inputs,
    workdir: &Path,
) -> Result<(CheckedPipeline, Project), Stop> {
    let (source, project) = rule_plugins::read_pipeline(host, file, inputs, workdir)?;
    say_note(project.note.as_deref());
    source.rule_report.rules.iter().for_each(say_changes);
    Ok((source, project))
}

/// Checks the pipeline of a command line, and reads its project. `file` is its name in the project.
pub fn read_command_line(
    host: &ComponentHost,
    file: &Path,
    text: String,
    workdir: &Path,
) -> Result<(CheckedPipeline, Project), Stop> {
    let project = read_project(workdir, Some(file))?;
    let source = rule_plugins::check_text(host, file, text, &project)?;
    source.rule_report.rules.iter().for_each(say_changes);
    Ok((source, project))
}

/// Prints a note if a rule plugin changed the graph.
fn say_changes(rule: &RuleRecord) {
    if rule.changes_total > 0 {
        let changes = terminal::counted(usize::try_from(rule.changes_total).unwrap_or(usize::MAX), "change");
        let name = visible::line(&rule.name);
        terminal::say(format_args!(
            "note: `{name}` changed the graph ({changes}); to list them: `glovebox plan FILE`\n"
        ));
    }
}

/// Binds a pipeline, and prints the findings and warnings of its plan.
pub fn bind(
    host: &ComponentHost,
    source: &CheckedPipeline,
    project: &Project,
    request: Request<'_>,
) -> Result<Bound, Stop> {
    let bound = bind_plan(host, source, project, request)?;
    report(&bound.findings, Severity::Warning);
    bound.warnings.iter().for_each(say_warning);
    Ok(bound)
}

fn say_warning(warning: &Warning) {
    let Warning { problem, help } = warning;
    terminal::say(format_args!("warning: {}\nhelp: {}\n", visible::line(problem), visible::line(help)));
}

/// Prepares a bound plan for execution. With `asks`, a person at the terminal is asked about everything that would be
/// sent out.
pub fn ready(bound: Bound, project: &Project, pipeline: &Path, asks: bool) -> Result<Executor, Stop> {
    Ok(bound.ready(project, pipeline, &confirmation(project, asks))?)
}

/// Returns the function that asks a person at the terminal about everything that would be sent out. Without `asks`, nobody
/// is asked, and the answer is no.
pub fn confirmation(project: &Project, asks: bool) -> impl Fn(&[Wanted]) -> Result<bool, Refusal> {
    move |open| if asks && terminal::can_ask() { confirm(project, open) } else { Ok(false) }
}

/// Asks whether everything in the list may be sent out, and stores the confirmation if the answer is yes.
fn confirm(project: &Project, open: &[Wanted]) -> Result<bool, Refusal> {
    let place = project.config_dir.display().to_string();
    terminal::say(format_args!("the project in {} would send out data of yours:\n", visible::line(&place)));
    open.iter().for_each(|wanted| terminal::say(format_args!("  {}\n", wanted.words())));
    terminal::say("may all of it be sent out? [y/N] ");
    let mut answer = String::new();
    io::stdin().read_line(&mut answer).map_err(|error| Refusal::io("read the answer", &error))?;
    let is_yes = matches!(answer.trim(), "y" | "Y" | "yes");
    if is_yes {
        open.iter().try_for_each(|wanted| wanted.transfer.trust())?;
    }
    Ok(is_yes)
}

/// Prints warnings before the first stage about dependencies that are missing or that the sandbox cannot show.
pub fn warn_of_dependencies(plan: &Plan, project: &Project) {
    dependency_warnings(plan, project).iter().for_each(say_warning);
}

/// Warns of processes without a sandbox, and of commands, agent programs and tool servers with access to the whole network.
pub fn warn_of_open_access(executor: &Executor) {
    let plan = &executor.plan;
    if plan.commands.sandbox.is_unconfined() {
        let started = plan.bindings.iter().filter(|(_, binding)| binding.starts_processes());
        let nodes: Vec<String> = started.map(|(id, _)| format!("`{id}`")).collect();
        terminal::say(format_args!(
            "warning: --dangerously-no-sandbox: commands of {} can read, change and send everything that you can\n",
            nodes.join(", ")
        ));
        return;
    }
    let open = plan.with_full_network();
    if !open.is_empty() {
        terminal::say(format_args!(
            "warning: network `full`: {} can reach every host that this machine can reach, and the services of this machine\n",
            open.join(", ")
        ));
    }
}
