//! The graph language: text to [`Ast`] (spec §2).
//!
//! A superset of the specification's subset of Graphviz: what real files hold is read, what Graphviz would refuse gets a
//! remark, and what would mean something else gets an error of its own. Any text ends in an `Ast` and diagnostics.

mod ast;
mod attributes;
mod lexer;
mod names;
mod parser;
pub(crate) mod text;

pub use ast::{Ast, Attr, Comment, Name, Statement, Target, Value};
pub(crate) use names::is_identifier;
pub use text::quote;

use crate::diagnostic::Diagnostic;

/// Reads one file. With an error among the diagnostics the [`Ast`] holds what could be read.
pub fn parse(source: &str) -> (Ast<'_>, Vec<Diagnostic>) {
    parser::parse(source)
}

/// Reads one file and hands each outer statement on as soon as it is read, so that no list of them is kept; the [`Ast`] has no body.
pub(crate) fn parse_each<'a>(source: &'a str, mut take: impl FnMut(Statement<'a>)) -> (Ast<'a>, Vec<Diagnostic>) {
    parser::parse_each(source, &mut take)
}
