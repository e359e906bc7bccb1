//! Child pipelines: `check` follows `stack.child_dotfile` of graphs and nodes from file to file.
//!
//! Each file is told of once, though several ways lead to it. A way ends at a file without a child, at one that stands on it already,
//! or at [`DEPTH_MAX`]. What is wrong with a child's file is told at its own place, that it cannot be had where it is named.

use crate::references::Folder;
use crate::rule_plugins::RuleSets;
use crate::source::{ParsedFile, TEXT_BYTES_MAX};
use crate::terminal::diagnostics::Findings;
use glovebox_pipeline::diagnostic::Diagnostic;
use glovebox_pipeline::files::{Child, References, children_of};
use glovebox_pipeline::ir::Pipeline;
use glovebox_pipeline::{Checked, Inputs};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// The most files in a row, the first not counted.
const DEPTH_MAX: usize = 16;

/// Checks the children of a file, their children, and so on, each by the rules of its own project and none of them with the first
/// file's inputs; adds to the findings of who names a child that cannot be had.
pub fn check(file: &Path, parent: &mut Findings, wanted: &References, rule_sets: &mut RuleSets) -> Vec<Findings> {
    if wanted.children.is_empty() {
        return Vec::new();
    }
    let way: Vec<PathBuf> = std::fs::canonicalize(file).into_iter().collect();
    Walk { met: way.iter().cloned().collect(), way, rule_sets }.below(file, parent, wanted)
}

/// What was found in one file.
pub struct CheckedFile {
    /// What was found.
    pub findings: Findings,
    /// The pipeline; none when it has errors of its own.
    pub pipeline: Option<Pipeline>,
    /// The files it refers to.
    pub wanted: References,
    /// True when there are more findings than were kept.
    pub is_cut: bool,
}

/// Checks one file by the project's own rules and the built-in ones.
pub fn check_file(opened: ParsedFile, rule_sets: &mut RuleSets) -> CheckedFile {
    let ParsedFile { file, text: source, draft, mut wanted, .. } = opened;
    let judged = rule_sets.lint(draft, &file);
    let Checked { pipeline, diagnostics, is_cut } = judged.checked;
    if let (Some(pipeline), Some(_)) = (&pipeline, &judged.report.transformed) {
        wanted.children = children_of(pipeline);
    }
    let findings = Findings { file: file.display().to_string(), source, diagnostics };
    CheckedFile { findings, pipeline, wanted, is_cut }
}

struct Walk<'a> {
    /// The files from the first to the current one.
    way: Vec<PathBuf>,
    /// Every file that was read.
    met: BTreeSet<PathBuf>,
    rule_sets: &'a mut RuleSets,
}

impl Walk<'_> {
    fn below(&mut self, file: &Path, named: &mut Findings, wanted: &References) -> Vec<Findings> {
        let mut found = Vec::new();
        for named_child in &wanted.children {
            match self.next(file, named_child, &wanted.sealed) {
                Ok(None) => {}
                Ok(Some((place, source))) => {
                    let child = file.with_file_name("").join(&named_child.path);
                    let opened = ParsedFile::of(&child, source, &Inputs::default());
                    let CheckedFile { mut findings, wanted, .. } = check_file(opened, self.rule_sets);
                    self.way.push(place);
                    let below = self.below(&child, &mut findings, &wanted);
                    self.way.pop();
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
        let place = folder.resolve(Path::new(&child.path)).map_err(unreadable)?;
        if self.way.contains(&place) {
            return Err(Box::new(child.leads_back()));
        }
        if self.way.len() > DEPTH_MAX {
            return Err(Box::new(child.is_too_deep(DEPTH_MAX)));
        }
        if self.met.contains(&place) {
            return Ok(None);
        }
        let source = folder.read(Path::new(&child.path), sealed, TEXT_BYTES_MAX).map_err(unreadable)?;
        self.met.insert(place.clone());
        Ok(Some((place, source)))
    }
}

/// A child's place and text.
type Read = (PathBuf, String);
