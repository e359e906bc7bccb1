//! The graph language: text to [`Ast`] (spec §2).
//!
//! The parser accepts a superset of the specification's subset of Graphviz (decision lenient-syntax), because real files use it. It adds a
//! remark to what Graphviz refuses, and an error to what has another meaning in Graphviz (decision one-plain-digraph). Any text results in
//! an `Ast` and diagnostics; none causes a panic.

mod ast;
mod attributes;
mod lexer;
mod names;
mod parser;
mod source_map;
pub(crate) mod text;
mod writer;

pub use ast::{Ast, Attr, Comment, Name, Statement, Target, Value};
pub(crate) use names::{Keyword, is_identifier, is_numeral};
pub use source_map::SourceMap;
pub use text::quote;
pub(crate) use writer::{Element, Writer};

use crate::diagnostic::Diagnostic;
use crate::source::Source;

/// Parses one file. After an error, the [`Ast`] contains what the parser could read.
pub fn parse(source: Source<'_>) -> (Ast<'_>, Vec<Diagnostic>) {
    parser::parse(source)
}

/// Parses one file and passes each outer statement to `take` at once, without a list of them. The [`Ast`] has no body.
pub(crate) fn parse_each<'a>(source: Source<'a>, mut take: impl FnMut(Statement<'a>)) -> (Ast<'a>, Vec<Diagnostic>) {
    parser::parse_each(source, &mut take)
}
