//! Parses the graph language: text to [`Ast`] (spec §2).
//!
//! The specification defines a subset of Graphviz. The parser accepts more than that subset (decision lenient-syntax), because
//! real files need it. It reports a remark for syntax that Graphviz refuses, and an error for syntax that has another meaning in
//! Graphviz (decision one-plain-digraph). For every text the result is an `Ast` and diagnostics, never a panic.

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

/// Parses one file. After an error, the [`Ast`] contains the statements that the parser could read.
pub fn parse(source: Source<'_>) -> (Ast<'_>, Vec<Diagnostic>) {
    parser::parse(source)
}

/// Parses one file and passes each outer statement to `take` as soon as it is read. No list of statements is kept, so
/// the [`Ast`] has an empty body.
pub(crate) fn parse_each<'a>(source: Source<'a>, mut take: impl FnMut(Statement<'a>)) -> (Ast<'a>, Vec<Diagnostic>) {
    parser::parse_each(source, &mut take)
}
