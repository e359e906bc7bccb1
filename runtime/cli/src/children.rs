//! Child pipelines: `check` follows `stack.child_dotfile` of graphs and nodes from file to file.
//!
//! Each file is reported once, even if several paths lead to it. A path ends at a file without a child, at a file that it already
//! contains, or at [`DEPTH_MAX`]. Findings of a child are reported in its own file; a child that cannot be read is reported where it is
//! named.

use crate::references::Folder;
use crate::rule_plugins::RuleSets;
use crate::source::{self, ParsedFile, TEXT_BYTES_MAX};
use crate::terminal::diagnostics::Findings;
use glovebox_pipeline::diagnostic::Diagnostic;
use glovebox_pipeline::files::{Child, References, children_of};
use glovebox_pipeline::ir::Pipeline;
use glovebox_pipeline::{Checked, Inputs};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// The most files on one path, without the first.
const DEPTH_MAX: usize = 16;

/// Checks the children of a file, their children, and so on, each with the rules of its own project and without the inputs of the
/// first file. Adds a finding to `parent` for a child that cannot be read.
pub fn check(file: &Path, parent: &mut Findings, wanted: &References, rule_sets: &mut RuleSets) -> Vec<Findings> {
    if wanted.children.is_empty() {
        return Vec::new();
    }
    let path: Vec<PathBuf> = std::fs::canonicalize(file).into_iter().collect();
    Walk { visited: path.iter().cloned().collect(), path, rule_sets }.below(file, parent, wanted)
}

/// A checked file.
pub struct CheckedFile {
    /// Its findings.
    pub findings: Findings,
    /// The pipeline; none when it has errors of its own.
    pub pipeline: Option<Pipeline>,
    /// The files that it refers to.
    pub wanted: References,
    /// True when there are more findings than were kept.
    pub is_cut: bool,
}

/// Checks one file by the project's own rules and the built-in ones, and for what a run would refuse.
pub fn check_file(opened: ParsedFile, rule_sets: &mut RuleSets) -> CheckedFile {
    let ParsedFile { file, text, draft, mut wanted, .. } = opened;
    let linted = rule_sets.lint(draft, &file);
    let Checked { pipeline, mut diagnostics, is_cut } = linted.checked;
    if rule_sets.is_for_run() {
        let refused = pipeline.as_ref().map(|pipeline| rule_sets.refusals(&file, pipeline)).unwrap_or_default();
        diagnostics = source::merged(diagnostics, refused);
    }
    if let (Some(pipeline), Some(_)) = (&pipeline, &linted.report.transformed) {
        wanted.children = children_of(pipeline);
    }
    let findings = Findings { file: file.display().to_string(), source: text, diagnostics };
    CheckedFile { findings, pipeline, wanted, is_cut }
}

struct Walk<'a> {
    /// The files from the first to the current one.
    path: Vec<PathBuf>,
    /// Every file that was read.
    visited: BTreeSet<PathBuf>,
    rule_sets: &'a mut RuleSets,
}

impl Walk<'_> {
    fn below(&mut self, file: &Path, named: &mut Findings, wanted: &References) -> Vec<Findings> {
        let mut found = Vec::new();
        for named_child in &wanted.children {
            match self.next(file, named_child, &wanted.sealed) {
                Ok(None) => {}
                Ok(Some((target, source))) => {
                    let child = file.with_file_name("").join(&named_child.path);
                    let opened = ParsedFile::of(&child, source, &Inputs::default());
                    let CheckedFile { mut findings, wanted, .. } = check_file(opened, self.rule_sets);
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

    /// Reads a child of a file; none when it was read before.
    fn next(&mut self, file: &Path, child: &Child, sealed: &[String]) -> Result<Option<Read>, Box<Diagnostic>> {
        let unreadable = |reason: String| Box::new(child.unreadable(reason));
        let folder = Folder::of(file).map_err(unreadable)?;
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
        let source = folder.read(Path::new(&child.path), sealed, TEXT_BYTES_MAX).map_err(unreadable)?;
        self.visited.insert(target.clone());
        Ok(Some((target, source)))
    }
}

/// A child's file, with links resolved, and its text.
type Read = (PathBuf, String);
