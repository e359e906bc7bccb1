//! What stands in the file: statements in order, each part with its place.
//!
//! Borrows from the source. Nothing is resolved here: no defaults, no types, no node table. Comments are kept beside the
//! statements, so that a formatter loses nothing.

use crate::span::Span;
use std::borrow::Cow;

/// One file: one `digraph`.
#[derive(Debug, Clone, Default)]
pub struct Ast<'a> {
    /// The graph's name; none when the file gives none.
    pub name: Option<Name<'a>>,
    /// The statements between the braces.
    pub body: Vec<Statement<'a>>,
    /// Every comment in the file, in order.
    pub comments: Vec<Comment>,
    /// From `digraph` to the closing brace.
    pub span: Span,
    /// How many findings of the reader were too many to be kept.
    pub left_out: usize,
    /// Where a string or comment begins that is never closed: what stands from there on was read by guess.
    pub cut_off: Option<usize>,
}

/// A node's, graph's or subgraph's name.
#[derive(Debug, Clone)]
pub struct Name<'a> {
    /// The name without quotes.
    pub text: Cow<'a, str>,
    /// Its place, quotes included.
    pub span: Span,
}

/// A comment's place, its marks included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Comment {
    /// Where.
    pub span: Span,
    /// Whether it ends with the line (`//`, `#`) or with a mark.
    pub line: bool,
}

/// Whom a defaults block speaks to.
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
        /// Whom it speaks to.
        target: Target,
        /// What it sets, of all blocks in a row.
        attributes: Vec<Attr<'a>>,
        /// The statement's place.
        span: Span,
    },
    /// `key = value` on its own: an attribute of the graph or subgraph.
    Assign(Attr<'a>),
    /// `id [...]`.
    Node {
        /// The node's name.
        id: Name<'a>,
        /// What it sets.
        attributes: Vec<Attr<'a>>,
        /// The statement's place.
        span: Span,
    },
    /// `a -> b -> c [...]`: one edge for each arrow, all with the same attributes (spec §2.9).
    Edge {
        /// The nodes in order, two at least.
        path: Vec<Name<'a>>,
        /// What each of its edges sets.
        attributes: Vec<Attr<'a>>,
        /// The statement's place.
        span: Span,
    },
    /// `subgraph name { ... }`: a scope for defaults, and a class (spec §2.10).
    Subgraph {
        /// Its name, when it has one.
        name: Option<Name<'a>>,
        /// The statements in it.
        body: Vec<Statement<'a>>,
        /// The statement's place.
        span: Span,
    },
}

/// One `key = value`.
#[derive(Debug, Clone)]
pub struct Attr<'a> {
    /// The key without quotes, dots included.
    pub key: Cow<'a, str>,
    /// The key's place.
    pub key_span: Span,
    /// What it is set to.
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
    /// The text it means, escapes resolved.
    pub text: Cow<'a, str>,
    /// Its place, quotes included.
    pub span: Span,
    /// Whether it stood in quotes.
    pub quoted: bool,
}
