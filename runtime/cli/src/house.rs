//! The rules of `glovebox.toml` over a pipeline: reads their components and brings what they found together with the built-in lint's.
//!
//! Costs nothing where there are none: no host is started. What a component says is judged by the engine, which believes none of it.

use crate::bound::start_host;
use crate::exit::{Exit, Stop};
use crate::project::Project;
use crate::source::{self, Source};
use crate::terminal::diagnostics::Findings;
use crate::terminal::{self, visible};
use glovebox_engine::bind::{PluginFile, PluginProblem};
use glovebox_engine::rules::House;
use glovebox_pipeline::diagnostic::{Diagnostic, Severity};
use glovebox_pipeline::draw;
use glovebox_pipeline::graph::to_json;
use glovebox_pipeline::ir::Pipeline;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::path::PathBuf;
use std::sync::Arc;

/// The rules of the projects that were met, by the folder of their configuration; each is loaded once.
#[derive(Default)]
pub struct Houses(BTreeMap<PathBuf, House>);

impl Houses {
    /// What the project's rules say to a valid pipeline. Components that may not judge are printed, and end this with exit 7.
    pub fn judge(&mut self, pipeline: &Pipeline, project: &Project) -> Result<Vec<Diagnostic>, Stop> {
        if project.config.rules.is_empty() {
            return Ok(Vec::new());
        }
        let house = match self.0.entry(project.config_dir.clone()) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(new) => new.insert(admit(project)?),
        };
        let graph = terminal::json(&to_json(pipeline, &draw::draw(pipeline, None)))?;
        Ok(house.judge(pipeline, &graph))
    }
}

fn admit(project: &Project) -> Result<House, Stop> {
    let lock = project.lock.clone().unwrap_or_default();
    let admitted = House::admit(&project.config, &lock, &files(project), &*start_host()?);
    admitted.map_err(|problems| refuse(&problems))
}

/// Prints what the project's rules say to a pipeline that is to be run or planned, and stops with exit 3 at an error among it.
pub fn hold(source: &Source, project: &Project) -> Result<(), Stop> {
    let diagnostics = Houses::default().judge(&source.pipeline, project)?;
    let findings = Findings { file: source.file.display().to_string(), source: source.text.clone(), diagnostics };
    source::report(&findings, Severity::Warning);
    match findings.count(Severity::Error) {
        0 => Ok(()),
        _ => Err(source::invalid(&findings)),
    }
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
    for problem in problems {
        terminal::say(&format!("error: {}\n", visible::block(&problem.message)));
        problem.help.iter().for_each(|help| terminal::say(&format!("help: {}\n", visible::block(help))));
    }
    Stop::silent(Exit::Plugin)
}
