//! Files that a pipeline refers to: prompts (`prompt="@prompts/review.md"`) and the child pipeline (`stack.child_dotfile`).
//!
//! A path is relative to the folder of the pipeline's file, and leads neither out of it nor into hold-outs (design §9 #25).
//! Nothing is read here: [`crate::Text::wanted`] says what a text refers to, whoever can read brings the texts in [`crate::Inputs::files`].

use crate::Inputs;
use crate::diagnostic::Diagnostic;
use crate::holdouts::FOLDER_DEFAULT;
use crate::ir::{Attribute, PathList, Pipeline};
use crate::keyed::Attributes;
use crate::lower::{Draft, path_fault};
use crate::span::Span;
use std::collections::{BTreeMap, BTreeSet};

/// The attribute that names a child pipeline.
pub const CHILD: &str = "stack.child_dotfile";

/// Texts of files by the path that refers to them; of one that could not be read the reason.
pub type Files = BTreeMap<String, Result<String, String>>;

/// What a pipeline's text refers to. Every path has passed the rule about paths.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Wanted {
    /// Files with prompts.
    pub prompts: BTreeSet<String>,
    /// The child pipelines of the graph and of its nodes, each with a place of its name.
    pub children: Vec<(String, Span)>,
    /// Hold-out folders, each with a final slash: no file in one of them may be read.
    pub sealed: Vec<String>,
}

/// Lists what a text refers to, none of it read yet.
pub(crate) fn wanted(draft: &Draft<'_>, inputs: &Inputs) -> Wanted {
    let graph = draft.graph(inputs);
    let sealed = Draft::sealed(&graph);
    let fits = |path: &&str| fault(path, &sealed).is_none();
    let prompts = draft.of_nodes("prompt").filter_map(|prompt| reference(&prompt.value));
    let prompts = prompts.filter(fits).map(str::to_owned).collect();
    let mut children = named(child(&graph).into_iter().chain(draft.of_nodes(CHILD)));
    children.retain(|(path, _)| fits(&path.as_str()));
    Wanted { prompts, children, sealed }
}

/// Each child once, at the first place of its name.
fn named<'a>(attributes: impl Iterator<Item = &'a Attribute>) -> Vec<(String, Span)> {
    let mut met = BTreeSet::new();
    let paths =
        attributes.map(|attribute| (attribute.value.trim(), attribute.span)).filter(|(path, _)| !path.is_empty());
    paths.filter(|(path, _)| met.insert(*path)).map(|(path, span)| (path.to_owned(), span)).collect()
}

/// The path of a prompt that is one word after an `@`; any other prompt is a text.
fn reference(prompt: &str) -> Option<&str> {
    prompt.trim().strip_prefix('@').filter(|path| !path.contains(char::is_whitespace))
}

/// The child pipelines of a valid pipeline, each with a place of its name.
pub fn children_of(pipeline: &Pipeline) -> Vec<(String, Span)> {
    named(
        child(&pipeline.attributes).into_iter().chain(pipeline.nodes.iter().filter_map(|node| child(&node.attributes))),
    )
}

fn child(of: &Attributes) -> Option<&Attribute> {
    of.get(CHILD).filter(|child| !child.value.trim().is_empty())
}

/// Why no file of that path is read.
fn fault(path: &str, sealed: &[String]) -> Option<String> {
    match path_fault(path) {
        Some("empty entry") => Some("the path is empty".to_owned()),
        Some("absolute path") => Some("the path is absolute".to_owned()),
        Some("parent segment") => Some("the path contains `..`".to_owned()),
        Some("`.` segment") => Some("the path contains a `.` that leads nowhere".to_owned()),
        Some(fault) => Some(format!("the path contains {fault}")),
        None if path.ends_with('/') => Some("it is a folder".to_owned()),
        None => {
            sealed.iter().find(|folder| path.starts_with(*folder)).map(|folder| format!("`{folder}` holds hold-outs"))
        }
    }
}

/// The folders that no file is read from.
pub(crate) fn sealed(scenarios: Option<&PathList>) -> Vec<String> {
    scenarios.map_or_else(|| vec![FOLDER_DEFAULT.to_owned()], |named| named.0.clone())
}

/// The prompt that an attribute stands for: its own text, or the file's that it names.
pub(crate) fn prompt<'a>(
    attribute: &'a Attribute,
    inputs: &'a Inputs,
    sealed: &[String],
    tell: impl FnOnce(Diagnostic),
) -> &'a str {
    let Some(path) = reference(&attribute.value) else { return &attribute.value };
    let reason = match (fault(path, sealed), inputs.files.get(path)) {
        (Some(fault), _) => fault,
        (None, Some(Ok(text))) => return text,
        (None, Some(Err(reason))) => reason.clone(),
        (None, None) => "nobody has read it".to_owned(),
    };
    let message = format!("the prompt's file `{path}` cannot be read: {reason}");
    let help = "name a file by its path from the folder of the pipeline, such as `@prompts/review.md`";
    tell(Diagnostic::error("prompt_file", message, attribute.span).with_help(help));
    ""
}

/// What is wrong with the path of the child pipeline that the graph or a node names.
pub(crate) fn child_fault(of: &Attributes, sealed: &[String]) -> Option<Diagnostic> {
    let attribute = child(of)?;
    let path = attribute.value.trim();
    Some(unreadable_child(path, &fault(path, sealed)?, attribute.span))
}

/// The finding about a child pipeline that nobody can read, at the place that names it.
pub fn unreadable_child(path: &str, reason: &str, span: Span) -> Diagnostic {
    let message = format!("the child pipeline `{path}` cannot be read: {reason}");
    let help = "name a file by its path from the folder of this pipeline, such as `children/build.dot`";
    Diagnostic::error("child_pipeline", message, span).with_help(help)
}

/// The finding about a child pipeline that leads back to a file above it, or too deep.
pub fn endless_child(path: &str, reason: &str, span: Span) -> Diagnostic {
    let message = format!("the child pipeline `{path}` {reason}");
    Diagnostic::error("child_pipeline", message, span).with_help("let one of them do without a child")
}
