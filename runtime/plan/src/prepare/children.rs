//! Child pipelines: puts the stages of `stack.child_dotfile` into the pipeline that names it, file by file.
//!
//! A path from file to file ends at a file without a child, at a file that is already on the path, or at the maximum length.

use super::references::Folder;
use super::source::{ParsedFile, TEXT_BYTES_MAX};
use glovebox_pipeline::child;
use glovebox_pipeline::diagnostic::Diagnostic;
use glovebox_pipeline::files::{Child, References, child_of};
use glovebox_pipeline::ir::{Node, Pipeline};
use glovebox_pipeline::span::Span;
use glovebox_pipeline::transform::TransformedGraph;
use glovebox_pipeline::{CheckResult, Inputs, validate};
use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Maximum number of files on one path, without the first.
pub(super) const DEPTH_MAX: usize = 16;

/// Removes warnings and remarks about the files of children. `check` reports them in those files.
pub fn remove_findings_of_children(diagnostics: &mut Vec<Diagnostic>, pipeline: &Pipeline) {
    let of_children = || pipeline.stages().filter(|stage| stage.child_of.is_some());
    let ids: HashSet<&str> = of_children().map(|stage| stage.id.as_str()).collect();
    let spans: HashSet<Span> = of_children().map(|stage| stage.span).collect();
    let is_of_child = |found: &Diagnostic| match &found.node {
        Some(named) => ids.contains(named.as_str()),
        // An edge of a child has the span of the node that runs the child.
        None => spans.contains(&found.span),
    };
    diagnostics.retain(|found| found.is_error() || !is_of_child(found));
}

/// The child pipelines of one command. Each is assembled once.
pub struct Children {
    faults: FaultsOfChildren,
    known: BTreeMap<PathBuf, Known>,
}

/// A child, with the stages of its own children.
#[derive(Clone)]
struct Known {
    /// The checked pipeline, or its first error. `Err(None)` if another file reports the error.
    pipeline: Result<Arc<Pipeline>, Option<Diagnostic>>,
    /// Number of files on the longest path below the child's file.
    files_below: usize,
}

impl Children {
    /// Creates an empty collection.
    pub fn new(faults: FaultsOfChildren) -> Self {
        Self { faults, known: BTreeMap::new() }
    }

    /// Puts the stages of a file's children, including their own children, into the file's pipeline.
    ///
    /// # Errors
    ///
    /// Returns the errors of the children, at the nodes that run them.
    pub fn splice(
        &mut self,
        file: &Path,
        pipeline: &Pipeline,
        wanted: &References,
    ) -> Result<TransformedGraph, Vec<Diagnostic>> {
        let path: Vec<PathBuf> = std::fs::canonicalize(file).into_iter().collect();
        let mut splice = Splice { path, children: self, is_too_deep: false };
        splice.children(file, pipeline, wanted).map(|(applied, _)| applied)
    }
}

/// Where errors in a child's file are reported.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum FaultsOfChildren {
    /// At the node that runs the child, because the child's file is not checked on its own.
    ReportedAtNode,
    /// In the child's file, which is also checked on its own.
    ReportedInChild,
}

impl FaultsOfChildren {
    fn reported(self, child: &Child, first: Option<&Diagnostic>) -> Vec<Diagnostic> {
        match self {
            Self::ReportedAtNode => vec![child.has_fault(first)],
            Self::ReportedInChild => Vec::new(),
        }
    }
}

struct Splice<'a> {
    /// The files from the first to the current one.
    path: Vec<PathBuf>,
    children: &'a mut Children,
    /// True if a child was refused because the path to it was too long. From another file the path may be shorter.
    is_too_deep: bool,
}

impl Splice<'_> {
    /// Returns the pipeline with its children, and the number of files on the longest path below the pipeline's file.
    fn children(
        &mut self,
        file: &Path,
        pipeline: &Pipeline,
        wanted: &References,
    ) -> Result<(TransformedGraph, usize), Vec<Diagnostic>> {
        let (mut children, mut files_below) = (BTreeMap::new(), 0);
        for node in pipeline.nodes.iter().filter(|node| node.wants_child()) {
            let named = child_of(pipeline, node).ok_or_else(|| vec![child::names_none(node)])?;
            let (child, below) = self.child(file, &named, wanted)?;
            files_below = files_below.max(below + 1);
            children.insert(node.id.clone(), child);
        }
        Ok((child::splice(pipeline, &children)?, files_below))
    }

    /// Returns the checked pipeline of a child that a file names, including its own children.
    fn child(
        &mut self,
        file: &Path,
        named: &Child,
        wanted: &References,
    ) -> Result<(Arc<Pipeline>, usize), Vec<Diagnostic>> {
        let unreadable = |reason: String| vec![named.unreadable(reason)];
        let folder = Folder::containing(file).map_err(unreadable)?;
        let target = folder.resolve(Path::new(&named.path)).map_err(unreadable)?;
        if self.path.contains(&target) {
            return Err(vec![named.leads_back()]);
        }
        let known = self.children.known.get(&target).cloned();
        if self.path.len() + known.as_ref().map_or(0, |known| known.files_below) > DEPTH_MAX {
            self.is_too_deep = true;
            return Err(vec![named.is_too_deep(DEPTH_MAX)]);
        }
        // The file is read even if the child is known, because the check that a file may name the child is made for
        // each file.
        let source = folder.read(Path::new(&named.path), &wanted.sealed, TEXT_BYTES_MAX).map_err(unreadable)?;
        let Known { pipeline, files_below } = match known {
            Some(known) => known,
            None => self.put_together(&file.with_file_name("").join(&named.path), source, target),
        };
        let told = |first: Option<Diagnostic>| self.children.faults.reported(named, first.as_ref());
        pipeline.map(|pipeline| (pipeline, files_below)).map_err(told)
    }

    fn put_together(&mut self, file: &Path, source: String, target: PathBuf) -> Known {
        let was_too_deep = std::mem::take(&mut self.is_too_deep);
        self.path.push(target);
        let ParsedFile { draft, wanted, .. } = ParsedFile::parse(file, source, &Inputs::default());
        let is_parent = draft.pipeline.nodes.iter().any(Node::wants_child);
        let spliced = match is_parent && !draft.has_errors() {
            true => {
                let spliced = self.children(file, &draft.pipeline, &wanted);
                spliced.map(|(applied, files_below)| (applied.lowered, files_below))
            }
            false => Ok((draft, 0)),
        };
        let first = |faults: &[Diagnostic]| faults.iter().find(|found| found.is_error()).cloned();
        let known = match spliced {
            Ok((draft, files_below)) => {
                let CheckResult { pipeline, diagnostics, .. } = validate(draft);
                Known { pipeline: pipeline.map(Arc::new).ok_or_else(|| first(&diagnostics)), files_below }
            }
            Err(faults) => Known { pipeline: Err(first(&faults)), files_below: 0 },
        };
        let target = self.path.pop().filter(|_| !self.is_too_deep);
        self.children.known.extend(target.map(|target| (target, known.clone())));
        self.is_too_deep |= was_too_deep;
        known
    }
}
