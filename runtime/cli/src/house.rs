//! The rules of `glovebox.toml` over a pipeline: reads their components, and lets them change and judge what was read of a file.
//!
//! Costs nothing where there are none: no host is started. What a component says is judged by the engine, which believes none of it.
//! A run that is resumed has been judged; here it is only seen to that the project still has the rules that did.

use crate::bound::start_host;
use crate::exit::{Exit, Stop};
use crate::project::{self, Project};
use crate::source::{self, Opened, Source};
use crate::terminal::{self, visible};
use crate::widening;
use glovebox_engine::components::{PluginFile, PluginProblem};
use glovebox_engine::config::TransformGrant;
use glovebox_engine::event::RuleRecord;
use glovebox_engine::rules::{House, Judged, digests, is_accepted, unjudged};
use glovebox_pipeline::{Inputs, Lowered};
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The rules of the projects that were met, by the folder of their configuration; each is loaded once. None for rules that may not judge.
#[derive(Default)]
pub struct Houses {
    houses: BTreeMap<PathBuf, Option<House>>,
    refused: Option<Exit>,
}

impl Houses {
    /// What the project's rules and the built-in lint make of a file's draft. A configuration that is wrong and components that may not
    /// judge are printed and left out, so that they hide no finding; then [`Houses::refused`] says so.
    pub fn judge(&mut self, draft: Lowered, file: &Path) -> Judged {
        if draft.has_errors() {
            return unjudged(draft);
        }
        match self.of(file) {
            Ok(Some(house)) => house.judge(draft),
            Ok(None) => unjudged(draft),
            Err(stop) => {
                terminal::report_stop(&stop);
                self.refused.get_or_insert(stop.exit);
                unjudged(draft)
            }
        }
    }

    /// The exit of the first project whose rules could not judge.
    pub fn refused(&self) -> Option<Exit> {
        self.refused
    }

    /// The rules that go with a file. Those that may not judge are printed when they are met first.
    fn of(&mut self, file: &Path) -> Result<Option<&House>, Stop> {
        let project = project::read_project(Path::new("."), Some(file))?;
        if project.config.rules.is_empty() {
            return Ok(None);
        }
        let house = match self.houses.entry(project.config_dir.clone()) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(new) => new.insert(admit(&project)?.map_err(|problems| print(&problems)).ok()),
        };
        house.as_ref().map(Some).ok_or_else(|| Stop::silent(Exit::Plugin))
    }
}

/// Reads a pipeline that is to be run or planned as the project's rules make it, with the project that goes with it. Findings are
/// printed; an error among them stops with exit 3, rules that may not judge with exit 7.
pub fn read_pipeline(file: &Path, inputs: &Inputs, workdir: &Path) -> Result<(Source, Project), Stop> {
    let opened = Opened::of(file, source::read_text(file)?, inputs);
    // A file that cannot be read is told before anything about the project is.
    if opened.draft.has_errors() {
        opened.concluded(unjudged)?;
        return Err(Stop::silent(Exit::Invalid));
    }
    let project = project::read_project(workdir, Some(file))?;
    if project.config.rules.is_empty() {
        return Ok((opened.concluded(unjudged)?, project));
    }
    let house = admit(&project)?.map_err(|problems| refuse(&problems))?;
    let mut source = opened.concluded(|draft| house.judge(draft))?;
    tell_changes(&source.rule_report.rules);
    widening::record(&mut source, &project)?;
    Ok((source, project))
}

/// Sees to it that the project has the rules that a run was judged by, byte for byte: else exit 11, or 7 for some that may not judge.
pub fn honour(project: &Project, recorded: &[RuleRecord], run: &str) -> Result<(), Stop> {
    if project.config.rules.is_empty() && recorded.is_empty() {
        return Ok(());
    }
    let lock = project.lock.clone().unwrap_or_default();
    let now = digests(&project.config, &lock, &files(project)).map_err(|problems| refuse(&problems))?;
    if now.iter().map(|(name, digest)| (name, digest)).eq(recorded.iter().map(|rule| (&rule.name, &rule.digest))) {
        return refuse_withdrawn(project, recorded, run);
    }
    let message =
        format!("run `{run}` was judged by other rules: a component of `[rules]` or their order has changed since");
    Err(Stop::new(Exit::Mismatch, message).with_help("put glovebox.toml and the components back, or run again"))
}

/// What a component was allowed when the run began, it must be allowed now.
fn refuse_withdrawn(project: &Project, recorded: &[RuleRecord], run: &str) -> Result<(), Stop> {
    let allowed = |rule: &RuleRecord| {
        let grant = project.config.rules.get(&rule.name).map_or(TransformGrant::None, |entry| entry.transform);
        is_accepted(grant, &rule.widened) && (rule.changes_total == 0 || grant != TransformGrant::None)
    };
    let Some(rule) = recorded.iter().find(|rule| !allowed(rule)) else { return Ok(()) };
    let message = format!("run `{run}` has a graph that `{}` changed as glovebox.toml allows it no more", rule.name);
    Err(Stop::new(Exit::Mismatch, message).with_help("put `transform` back, or run again"))
}

/// Says in one line for each component that the graph is not what the file says.
fn tell_changes(rules: &[RuleRecord]) {
    for rule in rules.iter().filter(|rule| rule.changes_total > 0) {
        let changes = terminal::counted(usize::try_from(rule.changes_total).unwrap_or(usize::MAX), "change");
        let name = visible::line(&rule.name);
        terminal::say(&format!("note: `{name}` changed the graph: {changes}, which `glovebox plan` lists\n"));
    }
}

fn admit(project: &Project) -> Result<Result<House, Vec<PluginProblem>>, Stop> {
    let lock = project.lock.clone().unwrap_or_default();
    Ok(House::admit(&project.config, &lock, &files(project), &*start_host()?))
}

fn files(project: &Project) -> BTreeMap<String, PluginFile> {
    let rules = project.config.rules.iter().map(|(name, entry)| {
        let path = project.config_dir.join(&entry.path);
        let bytes = source::read_component(&path, project.config.component_bytes(name)).map(Arc::from);
        (name.clone(), PluginFile { path: entry.path.clone(), bytes })
    });
    rules.collect()
}

fn refuse(problems: &[PluginProblem]) -> Stop {
    print(problems);
    Stop::silent(Exit::Plugin)
}

fn print(problems: &[PluginProblem]) {
    for problem in problems {
        terminal::say(&format!("error: {}\n", visible::block(&problem.message)));
        problem.help.iter().for_each(|help| terminal::say(&format!("help: {}\n", visible::block(help))));
    }
}
