//! The files that a pipeline file refers to: prompts (`prompt="@prompts/review.md"`), schemas (`output_schema`) and child
//! pipelines (`stack.child_dotfile`).
//!
//! A path is relative to the folder of the pipeline file. It must not lead out of that folder or into hold-outs
//! (decision references-and-read-paths). This module reads no files: [`crate::ParsedFile::references`] lists the files,
//! and the caller passes their texts in [`crate::Inputs::files`].

use crate::diagnostic::Diagnostic;
use crate::inputs::Inputs;
use crate::ir::holdouts::FOLDER_DEFAULT;
use crate::ir::{Attribute, Node, Pipeline};
use crate::key::{self, Key};
use crate::keyed::Attributes;
use crate::span::Span;
use glovebox_record::path::{ScopePath, ScopePathProblem};
use glovebox_record::scope::Entry;
use std::collections::BTreeSet;
use std::fmt;

/// The attribute that names a child pipeline.
pub const CHILD: Key<'static> = key::STACK_CHILD_DOTFILE;

/// The files that a pipeline file refers to. Every path is valid.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct References {
    /// Paths of files with prompts and schemas of answers.
    pub prompts: BTreeSet<String>,
    /// The child pipelines of the graph and of its nodes.
    pub children: Vec<Child>,
    /// Hold-out folders, each with a final slash. The caller must not read a file in them.
    pub sealed: Vec<String>,
}

/// A reference to a child pipeline, at the first place that names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Child {
    /// Path of the child's file, relative to the folder of the pipeline file.
    pub path: String,
    /// Span of the path in the pipeline file.
    pub span: Span,
}

impl Child {
    /// Reports a child pipeline whose file cannot be read.
    pub fn unreadable(&self, reason: impl fmt::Display) -> Diagnostic {
        let message = format!("cannot read the child pipeline `{}`: {reason}", self.path);
        let help = "write the path from the folder of this pipeline, such as `children/build.dot`";
        Diagnostic::error("child_pipeline", message, self.span).with_help(help)
    }

    /// Reports a child pipeline that refers to a pipeline that runs it.
    pub fn leads_back(&self) -> Diagnostic {
        self.endless(format!("the child pipeline `{}` leads back to itself", self.path))
    }

    /// Reports a child pipeline that is nested deeper than `depth_max`.
    pub fn is_too_deep(&self, depth_max: usize) -> Diagnostic {
        self.endless(format!("the child pipeline `{}` is nested more than {depth_max} files deep", self.path))
    }

    /// Reports a child pipeline that is not checked, because the files before it already have `stages_max` stages.
    pub fn too_many_stages(&self, stages_max: usize) -> Diagnostic {
        let message = format!(
            "the child pipeline `{}` is not checked: the files checked before it already have {stages_max} stages",
            self.path
        );
        Diagnostic::error("child_pipeline", message, self.span).with_help("run `glovebox check` with this file alone")
    }

    /// Reports a child pipeline whose file has errors.
    pub fn has_fault(&self, first: Option<&Diagnostic>) -> Diagnostic {
        let first = first.map(|first| format!(": {}", first.message)).unwrap_or_default();
        let message = format!("the child pipeline `{}` cannot run{first}", self.path);
        let help = format!("run `glovebox check` on `{}` to see all its problems", self.path);
        Diagnostic::error("child_pipeline", message, self.span).with_help(help)
    }

    fn endless(&self, message: impl Into<String>) -> Diagnostic {
        let help = "remove `stack.child_dotfile` from one of these pipelines";
        Diagnostic::error("child_pipeline", message, self.span).with_help(help)
    }
}

/// Returns each child once, at the first place that names it.
pub(crate) fn named<'a>(attributes: impl Iterator<Item = &'a Attribute>) -> Vec<Child> {
    let mut seen = BTreeSet::new();
    let paths =
        attributes.map(|attribute| (attribute.value.trim(), attribute.span)).filter(|(path, _)| !path.is_empty());
    paths.filter(|(path, _)| seen.insert(*path)).map(|(path, span)| Child { path: path.to_owned(), span }).collect()
}

/// Returns the path in a prompt of the form `@path`. `None` for any other prompt, which is plain text.
pub(crate) fn reference(prompt: &Attribute) -> Option<&str> {
    prompt.value.trim().strip_prefix('@').filter(|path| !path.contains(char::is_whitespace))
}

/// Returns the child pipeline of a node: the one that the node names, or else the one that the graph names.
pub fn child_of(pipeline: &Pipeline, node: &Node) -> Option<Child> {
    named(child(&node.attributes).or_else(|| child(&pipeline.attributes)).into_iter()).pop()
}

/// Returns the child pipelines of a valid pipeline.
pub fn children_of(pipeline: &Pipeline) -> Vec<Child> {
    named(
        child(&pipeline.attributes).into_iter().chain(pipeline.nodes.iter().filter_map(|node| child(&node.attributes))),
    )
}

pub(crate) fn child(of: &Attributes) -> Option<&Attribute> {
    of.get(CHILD).filter(|child| !child.value.trim().is_empty())
}

/// Returns the reason why a path is not allowed. `None` if it is allowed.
pub(crate) fn fault(path: &str, sealed: &[String]) -> Option<String> {
    let plain = path.strip_suffix('/').filter(|plain| !plain.is_empty()).unwrap_or(path);
    match ScopePath::parse(plain) {
        Err(ScopePathProblem::Absolute) => Some("the path is absolute".to_owned()),
        Err(ScopePathProblem::ParentSegment) => Some("the path contains `..`".to_owned()),
        Err(ScopePathProblem::DotSegment) => Some("the path contains a `.` segment".to_owned()),
        Err(problem) => Some(format!("the path contains {}", problem.fault())),
        Ok(plain) if plain.is_root() => Some("the path is empty".to_owned()),
        Ok(_) if path.ends_with('/') => Some("it is a folder".to_owned()),
        Ok(_) => sealed
            .iter()
            .find(|folder| path.starts_with(*folder))
            .map(|folder| format!("`{folder}` contains hold-outs")),
    }
}

/// Returns the folders from which no file may be read.
pub(crate) fn sealed(scenarios: Option<&[Entry]>) -> Vec<String> {
    scenarios.map_or_else(|| vec![FOLDER_DEFAULT.to_owned()], |named| named.iter().map(ToString::to_string).collect())
}

/// Returns the prompt in an attribute: the attribute's own text, or the text of the file that it names.
pub(crate) fn prompt<'a>(
    attribute: &'a Attribute,
    inputs: &'a Inputs,
    sealed: &[String],
    report: impl FnOnce(Diagnostic),
) -> &'a str {
    text(attribute, inputs, sealed).unwrap_or_else(|(path, reason)| {
        let message = format!("cannot read the prompt file `{path}`: {reason}");
        let help = "write the path from the folder of the pipeline file, such as `@prompts/review.md`";
        report(Diagnostic::error("prompt_file", message, attribute.span).with_help(help));
        ""
    })
}

/// Returns the text of an attribute: its value, or the text of the file that the value names. If the file cannot be
/// read, the error is the file's path and the reason.
pub(crate) fn text<'a>(
    attribute: &'a Attribute,
    inputs: &'a Inputs,
    sealed: &[String],
) -> Result<&'a str, (&'a str, String)> {
    let Some(path) = reference(attribute) else { return Ok(&attribute.value) };
    match (fault(path, sealed), inputs.files.get(path)) {
        (Some(reason), _) => Err((path, reason)),
        (None, Some(Err(reason))) => Err((path, reason.to_owned())),
        (None, Some(Ok(text))) => Ok(text),
        (None, None) => Err((path, "its text was not loaded".to_owned())),
    }
}

/// Returns a diagnostic if the graph or node names a child pipeline with an invalid path.
pub(crate) fn child_fault(of: &Attributes, sealed: &[String]) -> Option<Diagnostic> {
    let attribute = child(of)?;
    let child = Child { path: attribute.value.trim().to_owned(), span: attribute.span };
    Some(child.unreadable(fault(&child.path, sealed)?))
}
