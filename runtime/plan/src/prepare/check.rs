//! Checks pipeline files one by one, each with the rules of its own project, and follows child pipelines from file to file.
//!
//! Each file is reported once, even if several paths lead to it. Findings of a child are reported in its own file. A child
//! that cannot be read is reported where it is named.

use super::binding_check;
use super::children::{Children, DEPTH_MAX, FaultsOfChildren, remove_findings_of_children};
use super::component_host::ComponentHost;
use super::findings::{Findings, merged};
use super::project::{self, Project};
use super::references::Folder;
use super::refusal::Refusal;
use super::rule_plugins::load;
use super::source::{ParsedFile, TEXT_BYTES_MAX};
use crate::rules::{Linted, RuleSet, lint_builtin};
use glovebox_pipeline::diagnostic::Diagnostic;
use glovebox_pipeline::files::{Child, References, children_of};
use glovebox_pipeline::ir::Pipeline;
use glovebox_pipeline::{CheckResult, Inputs, LoweredFile};
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::rc::Rc;

/// Maximum number of stages in all files below one file that `check` reads. The stages of a file include those of its
/// children.
const STAGES_CHECKED_MAX: usize = 100_000;

/// Checks files, and keeps what several of them use: child pipelines, rule sets and the last project.
pub struct FileChecker<'h> {
    /// The child pipelines that were read so far.
    pub children: Children,
    is_for_run: bool,
    host: &'h ComponentHost,
    rule_sets: BTreeMap<PathBuf, Option<RuleSet>>,
    /// The folders of configurations whose `[workspace] include` was already checked.
    included: BTreeSet<PathBuf>,
    last: Option<LastProject>,
    refusals: Vec<Refusal>,
    /// Says which configuration is used. `None` if that is obvious.
    note: Option<String>,
}

/// The project of the last file. `None` if its configuration cannot be used.
struct LastProject {
    file: PathBuf,
    project: Option<Rc<Project>>,
}

impl<'h> FileChecker<'h> {
    /// Creates a checker that has read nothing. If `is_for_run` is true, everything that a run would refuse is a
    /// finding.
    pub fn new(host: &'h ComponentHost, is_for_run: bool) -> Self {
        Self {
            children: Children::new(FaultsOfChildren::ReportedInChild),
            is_for_run,
            host,
            rule_sets: BTreeMap::new(),
            included: BTreeSet::new(),
            last: None,
            refusals: Vec::new(),
            note: None,
        }
    }

    /// Returns everything that a run of the pipeline would refuse.
    fn refusals_of(&mut self, file: &Path, pipeline: &Pipeline) -> Vec<Diagnostic> {
        let Some(project) = self.project(file) else { return Vec::new() };
        let found = binding_check::refusals(file, pipeline, &project, self.host, &mut self.included);
        found.unwrap_or_else(|refusal| {
            self.refusals.push(refusal);
            Vec::new()
        })
    }

    /// Returns the first note, since the last call, on which configuration is used.
    pub fn take_note(&mut self) -> Option<String> {
        self.note.take()
    }

    /// Returns what could not be checked since the last call, and why.
    pub fn take_refusals(&mut self) -> Vec<Refusal> {
        std::mem::take(&mut self.refusals)
    }

    /// Reads the project of a file once. `None` if it cannot be used.
    fn project(&mut self, file: &Path) -> Option<Rc<Project>> {
        if let Some(last) = self.last.as_ref().filter(|last| last.file == file) {
            return last.project.as_ref().map(Rc::clone);
        }
        let read = project::read_project(Path::new("."), Some(file));
        let project = read.map(Rc::new).map_err(|refusal| self.refusals.push(refusal)).ok();
        self.note = self.note.take().or_else(|| project.as_ref()?.note.clone());
        self.last = Some(LastProject { file: file.to_owned(), project: project.as_ref().map(Rc::clone) });
        project
    }

    /// Lints a draft with the rules of the project and the built-in rules. Without usable custom rules it uses only the
    /// built-in rules, and [`FileChecker::take_refusals`] returns why.
    pub fn lint(&mut self, mut draft: LoweredFile, file: &Path) -> Linted {
        if draft.has_errors() {
            return lint_builtin(draft);
        }
        let Some(project) = self.project(file) else { return lint_builtin(draft) };
        draft.pipeline.set_verifiers(project.config.verifiers());
        match self.rules(&project) {
            Ok(Some(rules)) => rules.lint(draft),
            Ok(None) => lint_builtin(draft),
            Err(refusal) => {
                self.refusals.push(refusal);
                lint_builtin(draft)
            }
        }
    }

    /// Returns the rule set of a project. Only the first refusal contains the problems of a rule set.
    fn rules(&mut self, project: &Project) -> Result<Option<&RuleSet>, Refusal> {
        if project.config.rules.is_empty() {
            return Ok(None);
        }
        let rules = match self.rule_sets.entry(project.config_dir.clone()) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(new) => match load(project, self.host) {
                Ok(rules) => new.insert(Some(rules)),
                Err(refusal) => {
                    new.insert(None);
                    return Err(refusal);
                }
            },
        };
        rules.as_ref().map(Some).ok_or_else(|| Refusal::for_plugins(Vec::new()))
    }
}

/// Checks the children of a file, their children, and so on, each with the rules of its own project and without the inputs of
/// the first file. Adds a finding to `parent` for a child that cannot be read.
pub fn check_children(
    file: &Path,
    parent: &mut Findings,
    wanted: &References,
    rule_sets: &mut FileChecker<'_>,
) -> Vec<Findings> {
    if wanted.children.is_empty() {
        return Vec::new();
    }
    let path: Vec<PathBuf> = std::fs::canonicalize(file).into_iter().collect();
    Walk { visited: path.iter().cloned().collect(), path, rule_sets, stages: 0 }.below(file, parent, wanted)
}

/// A checked file.
pub struct CheckedFile {
    /// The findings of the file.
    pub findings: Findings,
    /// The pipeline. `None` if the file has errors of its own.
    pub pipeline: Option<Pipeline>,
    /// The files that this file refers to.
    pub wanted: References,
    /// True if there are more findings than `findings` contains.
    pub is_cut: bool,
}

/// Checks one file with the rules of the project, the built-in rules, and for what a run would refuse.
pub fn check_file(mut opened: ParsedFile, rule_sets: &mut FileChecker<'_>) -> CheckedFile {
    let children = children_of(&opened.draft.pipeline);
    let is_whole = opened.put_children_in(&mut rule_sets.children);
    let ParsedFile { file, text, draft, mut wanted, .. } = opened;
    let linted = rule_sets.lint(draft, &file);
    let CheckResult { pipeline, mut diagnostics, is_cut } = linted.checked;
    if is_whole && rule_sets.is_for_run {
        let refused = pipeline.as_ref().map(|pipeline| rule_sets.refusals_of(&file, pipeline)).unwrap_or_default();
        diagnostics = merged(diagnostics, refused);
    }
    // Lowering also knows the attribute names of other engines, and a rule plugin may have added children.
    let of_rules = pipeline.as_ref().map(children_of).unwrap_or_default();
    for child in children.into_iter().chain(of_rules).filter(|_| pipeline.is_some()) {
        if !wanted.children.iter().any(|known| known.path == child.path) {
            wanted.children.push(child);
        }
    }
    if let Some(pipeline) = &pipeline {
        remove_findings_of_children(&mut diagnostics, pipeline);
    }
    let findings = Findings { file: file.display().to_string(), source: text, diagnostics };
    CheckedFile { findings, pipeline, wanted, is_cut }
}

struct Walk<'a, 'h> {
    /// The files from the first to the current one.
    path: Vec<PathBuf>,
    /// Every file that was read.
    visited: BTreeSet<PathBuf>,
    rule_sets: &'a mut FileChecker<'h>,
    /// Number of stages of the files that were read so far.
    stages: usize,
}

impl Walk<'_, '_> {
    fn below(&mut self, file: &Path, named: &mut Findings, wanted: &References) -> Vec<Findings> {
        let mut found = Vec::new();
        for named_child in &wanted.children {
            match self.next(file, named_child, &wanted.sealed) {
                Ok(None) => {}
                Ok(Some((target, source))) => {
                    let child = file.with_file_name("").join(&named_child.path);
                    let opened = ParsedFile::parse(&child, source, &Inputs::default());
                    let CheckedFile { mut findings, wanted, pipeline, .. } = check_file(opened, self.rule_sets);
                    self.stages += pipeline.map_or(0, |pipeline| pipeline.nodes.len());
                    self.path.push(target);
                    let below = self.below(&child, &mut findings, &wanted);
                    self.path.pop();
                    found.push(findings);
                    found.extend(below);
                }
                Err(fault) => named.diagnostics.push(*fault),
            }
        }
        named.diagnostics.sort_by_key(|diagnostic| (diagnostic.span.start, diagnostic.severity));
        found
    }

    /// Reads a child of a file. `None` if it was read before.
    fn next(&mut self, file: &Path, child: &Child, sealed: &[String]) -> Result<Option<Read>, Box<Diagnostic>> {
        let unreadable = |reason: String| Box::new(child.unreadable(reason));
        let folder = Folder::containing(file).map_err(unreadable)?;
        let target = folder.resolve(Path::new(&child.path)).map_err(unreadable)?;
        if self.path.contains(&target) {
            return Err(Box::new(child.leads_back()));
        }
        if self.path.len() > DEPTH_MAX {
            return Err(Box::new(child.is_too_deep(DEPTH_MAX)));
        }
        if self.visited.contains(&target) {
            return Ok(None);
        }
        if self.stages > STAGES_CHECKED_MAX {
            return Err(Box::new(child.too_many_stages(STAGES_CHECKED_MAX)));
        }
        let source = folder.read(Path::new(&child.path), sealed, TEXT_BYTES_MAX).map_err(unreadable)?;
        self.visited.insert(target.clone());
        Ok(Some((target, source)))
    }
}

/// The path of a child's file, with symbolic links resolved, and its text.
type Read = (PathBuf, String);
