//! The syntax tree of a file: statements in order, each part with its span.
//!
//! It borrows from the source and resolves nothing: no defaults, no types, no node table. It keeps comments beside the statements, for
//! the formatter.

use crate::span::Span;
use std::borrow::Cow;

/// One file: one `digraph`.
#[derive(Debug, Clone, Default)]
pub struct Ast<'a> {
    /// The graph's name, if the file gives one.
    pub name: Option<Name<'a>>,
    /// The statements between the braces.
    pub body: Vec<Statement<'a>>,
    /// Every comment in the file, in order.
    pub comments: Vec<Comment>,
    /// From `digraph` to the closing brace.
    pub span: Span,
    /// The number of findings beyond the maximum, which the parser dropped.
    pub left_out: usize,
    /// The start of an unclosed string or comment. The parser guessed everything after it.
    pub cut_off: Option<usize>,
}

/// A node's, graph's or subgraph's name.
#[derive(Debug, Clone)]
pub struct Name<'a> {
    /// The name without quotes.
    pub text: Cow<'a, str>,
    /// Its span, quotes included.
    pub span: Span,
}

/// A comment, its marks included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Comment {
    /// The span of the comment.
    pub span: Span,
    /// True for `//` and `#`, which end with the line; false for `/* */`.
    pub line: bool,
}

/// The kind of a defaults block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Target {
    /// `graph [...]`: the graph's or subgraph's own attributes.
    Graph,
    /// `node [...]`: nodes declared later in this scope.
    Node,
    /// `edge [...]`: edges written later in this scope.
    Edge,
}

/// One statement.
#[derive(Debug, Clone)]
pub enum Statement<'a> {
    /// `graph [...]`, `node [...]`, `edge [...]`.
    Defaults {
        /// The elements to which it applies.
        target: Target,
        /// The attributes of all its blocks.
        attributes: Vec<Attr<'a>>,
        /// The span of the statement.
        span: Span,
    },
    /// `key = value` on its own: an attribute of the graph or subgraph.
    Assign(Attr<'a>),
    /// `id [...]`.
    Node {
        /// The node's name.
        id: Name<'a>,
        /// Its attributes.
        attributes: Vec<Attr<'a>>,
        /// The span of the statement.
        span: Span,
    },
    /// `a -> b -> c [...]`: one edge for each arrow, all with the same attributes (spec §2.9).
    Edge {
        /// The nodes in order, two at least.
        path: Vec<Name<'a>>,
        /// The attributes of each of these edges.
        attributes: Vec<Attr<'a>>,
        /// The span of the statement.
        span: Span,
    },
    /// `subgraph name { ... }`: a scope for defaults, and a class (spec §2.10).
    Subgraph {
        /// Its name, if it has one.
        name: Option<Name<'a>>,
        /// The statements in it.
        body: Vec<Statement<'a>>,
        /// The span of the statement.
        span: Span,
    },
}

/// One `key = value`.
#[derive(Debug, Clone)]
pub struct Attr<'a> {
    /// The key without quotes, dots included.
    pub key: Cow<'a, str>,
    /// The span of the key.
    pub key_span: Span,
    /// Its value.
    pub value: Value<'a>,
}

impl Attr<'_> {
    /// From the key to the end of the value.
    pub fn span(&self) -> Span {
        self.key_span.to(self.value.span)
    }
}

/// A value as written.
#[derive(Debug, Clone)]
pub struct Value<'a> {
    /// The text, with escapes resolved.
    pub text: Cow<'a, str>,
    /// Its span, quotes included.
    pub span: Span,
    /// True if it is quoted in the file.
    pub quoted: bool,
}
