//! Edge conditions (spec §10): parsed once, evaluated without side effects.

use crate::span::Span;

/// A conjunction of clauses; all must hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Condition {
    /// As written.
    pub text: String,
    /// The clauses in order.
    pub clauses: Vec<Clause>,
}

/// One comparison.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Clause {
    /// `outcome`, `preferred_label`, `context.…` or a bare context key.
    pub key: String,
    /// How it compares.
    pub operator: Operator,
    /// What it compares with.
    pub literal: String,
    /// Its place in the file.
    pub span: Span,
}

/// Comparison operators.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operator {
    /// `=`
    Equal,
    /// `!=`
    NotEqual,
    /// A bare key: holds when the value is neither empty nor `false`.
    Truthy,
}
