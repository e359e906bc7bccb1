//! The custom rules of `glovebox.toml`: reads the rule plugins and applies them to a pipeline.
//!
//! Without rules it starts no host. The engine checks every answer of a plugin. A resumed run is not linted again; its project must
//! still have the same rule plugins.

use crate::arguments::CheckFor;
use crate::binding_check;
use crate::children::{Children, FaultsOfChildren};
use crate::exit::{Exit, Stop};
use crate::prepare::{SharedHost, plugin_files};
use crate::project::{self, Project};
use crate::runs::RunFolder;
use crate::source::{self, CheckedPipeline, ParsedFile};
use crate::terminal::{self, visible};
use crate::widening;
use glovebox_pipeline::diagnostic::Diagnostic;
use glovebox_pipeline::ir::Pipeline;
use glovebox_pipeline::transform::RuleRecord;
use glovebox_pipeline::{Inputs, Lowered};
use glovebox_plan::components::{PluginFile, PluginProblem};
use glovebox_plan::config::TransformGrant;
use glovebox_plan::rules::{Linted, RuleFiles, RuleSet, digests, is_accepted, lint_builtin};
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::rc::Rc;

/// The rule sets of the projects so far, by the folder of the configuration, each loaded once. None for a rule set that may not run.
pub struct RuleSets {
    /// The child pipelines so far.
    pub children: Children,
    purpose: CheckFor,
    host: SharedHost,
    rule_sets: BTreeMap<PathBuf, Option<RuleSet>>,
    /// The folders of configurations whose `[workspace] include` was looked at.
    included: BTreeSet<PathBuf>,
    last: Option<LastProject>,
    refused: Option<Exit>,
}

/// The project of the last file; none if its configuration cannot be used, which was printed.
struct LastProject {
    file: PathBuf,
    project: Option<Rc<Project>>,
}

impl RuleSets {
    /// Starts without any rule set.
    pub fn new(purpose: CheckFor) -> Self {
        Self {
            children: Children::new(FaultsOfChildren::AreToldThere),
            purpose,
            host: SharedHost::default(),
            rule_sets: BTreeMap::new(),
            included: BTreeSet::new(),
            last: None,
            refused: None,
        }
    }

    /// True if findings of the binding are wanted.
    pub fn is_for_run(&self) -> bool {
        self.purpose == CheckFor::Run
    }

    /// What a run of the pipeline would refuse.
    pub fn refusals(&mut self, file: &Path, pipeline: &Pipeline) -> Vec<Diagnostic> {
        let Some(project) = self.project(file) else { return Vec::new() };
        let known = (&self.host, &mut self.included);
        binding_check::refusals(file, pipeline, &project, known).unwrap_or_else(|stop| {
            self.refuse(&stop);
            Vec::new()
        })
    }

    fn refuse(&mut self, stop: &Stop) {
        terminal::report_stop(stop);
        self.refused.get_or_insert(stop.exit);
    }

    /// Reads the project of a file once. None after its problems were printed.
    fn project(&mut self, file: &Path) -> Option<Rc<Project>> {
        if let Some(last) = self.last.as_ref().filter(|last| last.file == file) {
            return last.project.as_ref().map(Rc::clone);
        }
        let read = project::read_project(Path::new("."), Some(file));
        let project = read.map(Rc::new).map_err(|stop| self.refuse(&stop)).ok();
        self.last = Some(LastProject { file: file.to_owned(), project: project.as_ref().map(Rc::clone) });
        project
    }

    /// Lints a draft with the project's rules and the built-in ones. Without usable custom rules it prints why and uses the built-in
    /// rules only; [`RuleSets::refused`] then has the exit.
    pub fn lint(&mut self, mut draft: Lowered, file: &Path) -> Linted {
        if draft.has_errors() {
            return lint_builtin(draft);
        }
        let Some(project) = self.project(file) else { return lint_builtin(draft) };
        draft.pipeline.set_verifiers(project.config.verifiers());
        match self.rules(&project) {
            Ok(Some(rules)) => rules.lint(draft),
            Ok(None) => lint_builtin(draft),
            Err(stop) => {
                self.refuse(&stop);
                lint_builtin(draft)
            }
        }
    }

    /// The exit of the first project whose rules could not run.
    pub fn refused(&self) -> Option<Exit> {
        self.refused
    }

    /// The rule set of a project. Prints the problems of a rule set once.
    fn rules(&mut self, project: &Project) -> Result<Option<&RuleSet>, Stop> {
        if project.config.rules.is_empty() {
            return Ok(None);
        }
        let rules = match self.rule_sets.entry(project.config_dir.clone()) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(new) => new.insert(load(project, &self.host)?.map_err(|problems| print(&problems)).ok()),
        };
        rules.as_ref().map(Some).ok_or_else(|| Stop::silent(Exit::Plugin))
    }
}

/// Reads a pipeline and its project, and applies the project's rules. Prints the findings. An error stops with exit 3; a rule plugin
/// that may not run stops with exit 7.
pub fn read_pipeline(
    host: &SharedHost,
    file: &Path,
    inputs: &Inputs,
    workdir: &Path,
) -> Result<(CheckedPipeline, Project), Stop> {
    let mut opened = ParsedFile::of(file, source::read_text(file)?, inputs);
    // Errors of the file come before errors of the project.
    if opened.draft.has_errors() {
        opened.finish(lint_builtin)?;
        return Err(Stop::silent(Exit::Invalid));
    }
    opened.put_children_in(&mut Children::new(FaultsOfChildren::AreToldHere));
    if opened.draft.has_errors() {
        opened.finish(lint_builtin)?;
        return Err(Stop::silent(Exit::Invalid));
    }
    let project = project::read_project(workdir, Some(file))?;
    opened.draft.pipeline.set_verifiers(project.config.verifiers());
    if project.config.rules.is_empty() {
        let source = opened.finish(lint_builtin)?;
        project::refuse_bad_include(&project)?;
        return Ok((source, project));
    }
    let rules = load(&project, host)?.map_err(|problems| refuse(&problems))?;
    let mut source = opened.finish(|draft| rules.lint(draft))?;
    report_changes(&source.rule_report.rules);
    widening::record(host, &mut source, &project)?;
    project::refuse_bad_include(&project)?;
    Ok((source, project))
}

/// Checks that the project has the same rule plugins as the run, byte for byte. If not: exit 11, or 7 for one that may not run.
pub fn check_unchanged(run: &RunFolder, project: &Project, recorded: &[RuleRecord]) -> Result<(), Stop> {
    if project.config.rules.is_empty() && recorded.is_empty() {
        return Ok(());
    }
    let now = digests(RuleFiles { config: &project.config, lock: &project.lock, files: &files(project) })
        .map_err(|problems| refuse(&problems))?;
    if now.iter().map(|(name, digest)| (name, digest)).eq(recorded.iter().map(|rule| (&rule.name, &rule.digest))) {
        return refuse_withdrawn(run, project, recorded);
    }
    let message = format!("run `{}` used other rules: a component of `[rules]` or the order has changed", run.id);
    Err(Stop::new(Exit::Mismatch, message).with_help("restore glovebox.toml and the components, or start a new run"))
}

/// Refuses to resume if a rule plugin no longer has the grant that it used.
fn refuse_withdrawn(run: &RunFolder, project: &Project, recorded: &[RuleRecord]) -> Result<(), Stop> {
    let allowed = |rule: &RuleRecord| {
        let grant = project.config.rules.get(&rule.name).map_or(TransformGrant::None, |entry| entry.transform);
        is_accepted(grant, rule) && (rule.changes_total == 0 || grant != TransformGrant::None)
    };
    let Some(rule) = recorded.iter().find(|rule| !allowed(rule)) else { return Ok(()) };
    let message =
        format!("`{1}` changed the graph of run `{0}` in a way that glovebox.toml no longer allows", run.id, rule.name);
    Err(Stop::new(Exit::Mismatch, message).with_help("restore `transform`, or start a new run"))
}

/// Prints a note for each rule plugin that changed the graph.
fn report_changes(rules: &[RuleRecord]) {
    for rule in rules.iter().filter(|rule| rule.changes_total > 0) {
        let changes = terminal::counted(usize::try_from(rule.changes_total).unwrap_or(usize::MAX), "change");
        let name = visible::line(&rule.name);
        terminal::say(format_args!(
            "note: `{name}` changed the graph ({changes}); to list them: `glovebox plan FILE`\n"
        ));
    }
}

fn load(project: &Project, host: &SharedHost) -> Result<Result<RuleSet, Vec<PluginProblem>>, Stop> {
    let rules = RuleFiles { config: &project.config, lock: &project.lock, files: &files(project) };
    Ok(RuleSet::load(rules, host.get()?))
}

fn files(project: &Project) -> BTreeMap<String, PluginFile> {
    plugin_files(project, project.config.rules.iter().map(|(name, entry)| (name, &*entry.path)))
}

fn refuse(problems: &[PluginProblem]) -> Stop {
    print(problems);
    Stop::silent(Exit::Plugin)
}

fn print(problems: &[PluginProblem]) {
    for problem in problems {
        terminal::say(format_args!("error: {}\n", visible::block(&problem.message)));
        problem.help.iter().for_each(|help| terminal::say(format_args!("help: {}\n", visible::block(help))));
    }
}
