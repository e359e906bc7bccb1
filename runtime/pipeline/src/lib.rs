//! Text to checked pipeline.
//!
//! `text -parse-> Ast -lower-> Pipeline + [Diagnostic]`, and the selection of the next edge for a running pipeline.
//! Pure: no IO, no clock, no async.
//!
//! Everything has a span, also inside string values. [`lower`] is the only place where a string attribute becomes a type. A mistake in
//! a file is a `Diagnostic`, never an error of the runtime. [`child`] puts the stages of child pipelines into the one pipeline, so that later
//! steps know nothing of files. [`transform`] reads a graph that a rule plugin changed as text again, and [`lint`] comes after the last of them.
//!
//! Reading order, each module above those that it imports: [`span`], [`source`], [`diagnostic`], [`key`], [`keyed`], [`attributes`], [`dot`],
//! [`condition`], [`ir`]; then the queries over a pipeline: [`outcome`], [`route`], [`parallel`], [`gate`], [`next_stages`], [`planning`],
//! [`reach`], [`fixability`]; then the steps: [`inputs`], [`files`], [`stylesheet`], [`lower`], [`lint`], [`check()`], [`graph`], [`transform`], [`child`].

#![forbid(unsafe_code)]
#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

pub mod attributes;
mod check;
pub mod child;
pub mod condition;
pub mod diagnostic;
pub mod diff_limits;
pub mod dot;
pub mod files;
pub mod fixability;
pub mod format;
pub mod gate;
pub mod graph;
mod hash;
mod holdout_roles;
pub mod inputs;
pub mod ir;
pub mod key;
pub mod keyed;
pub mod lint;
pub mod lower;
pub mod nearest;
pub mod next_stages;
pub mod outcome;
pub mod parallel;
mod path;
pub mod planning;
pub mod reach;
pub mod route;
mod session;
pub mod source;
pub mod span;
pub mod stylesheet;
pub mod transform;

pub use check::{CheckResult, LoweredFile, ParsedFile, check, parse, validate};
pub use inputs::Inputs;
pub use source::Source;
