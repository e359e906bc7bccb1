//! The syntax tree of a file: the statements in order, each part with its span.
//!
//! The tree borrows from the source text and resolves nothing: it has no defaults, no types and no table of nodes. Comments are
//! kept in a separate list, for the formatter.

use crate::span::Span;
use std::borrow::Cow;

/// The syntax tree of one file, which contains one `digraph`.
#[derive(Debug, Clone, Default)]
pub struct Ast<'a> {
    /// The name of the graph, if the file gives one.
    pub name: Option<Name<'a>>,
    /// The statements between the braces.
    pub body: Vec<Statement<'a>>,
    /// All comments in the file, in order.
    pub comments: Vec<Comment>,
    /// The span from `digraph` to the closing brace.
    pub span: Span,
    /// Number of findings that the parser left out because there were more than the maximum.
    pub left_out: usize,
    /// Offset of an unclosed string or comment. The syntax tree after it is a guess. `None` if everything is closed.
    pub cut_off: Option<usize>,
}

/// The name of a node, a graph or a subgraph.
#[derive(Debug, Clone)]
pub struct Name<'a> {
    /// The name without quotes.
    pub text: Cow<'a, str>,
    /// The span of the name, including quotes.
    pub span: Span,
}

/// A comment, including its markers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Comment {
    /// The span of the comment.
    pub span: Span,
    /// True for `//` and `#` comments, which end with the line; false for `/* */`.
    pub line: bool,
}

/// The elements to which a block of defaults applies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Target {
    /// `graph [...]`: the attributes of the graph or subgraph itself.
    Graph,
    /// `node [...]`: all nodes that are declared later in this scope.
    Node,
    /// `edge [...]`: all edges that are written later in this scope.
    Edge,
}

/// One statement.
#[derive(Debug, Clone)]
pub enum Statement<'a> {
    /// `graph [...]`, `node [...]` or `edge [...]`: defaults.
    Defaults {
        /// The elements to which the defaults apply.
        target: Target,
        /// The attributes of all brackets of the statement.
        attributes: Vec<Attr<'a>>,
        /// The span of the statement.
        span: Span,
    },
    /// `key = value` on its own: an attribute of the graph or subgraph.
    Assign(Attr<'a>),
    /// `id [...]`: a node.
    Node {
        /// The name of the node.
        id: Name<'a>,
        /// The attributes of the node.
        attributes: Vec<Attr<'a>>,
        /// The span of the statement.
        span: Span,
    },
    /// `a -> b -> c [...]`: one edge for each arrow, all with the same attributes (spec §2.9).
    Edge {
        /// The names of the nodes in order, at least two.
        path: Vec<Name<'a>>,
        /// The attributes of each edge.
        attributes: Vec<Attr<'a>>,
        /// The span of the statement.
        span: Span,
    },
    /// `subgraph name { ... }`: a scope for defaults, and a class for its nodes (spec §2.10).
    Subgraph {
        /// The name of the subgraph, if it has one.
        name: Option<Name<'a>>,
        /// The statements inside the subgraph.
        body: Vec<Statement<'a>>,
        /// The span of the statement.
        span: Span,
    },
}

/// One `key = value`.
#[derive(Debug, Clone)]
pub struct Attr<'a> {
    /// The key without quotes; it may contain dots.
    pub key: Cow<'a, str>,
    /// The span of the key.
    pub key_span: Span,
    /// The value of the attribute.
    pub value: Value<'a>,
}

impl Attr<'_> {
    /// Returns the span from the key to the end of the value.
    pub fn span(&self) -> Span {
        self.key_span.to(self.value.span)
    }
}

/// A value as written.
#[derive(Debug, Clone)]
pub struct Value<'a> {
    /// The text of the value, with escapes resolved.
    pub text: Cow<'a, str>,
    /// The span of the value, including quotes.
    pub span: Span,
    /// True if the value is quoted in the file.
    pub quoted: bool,
}
