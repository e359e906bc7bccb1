//! Parses and checks pipeline files, and answers questions about a checked pipeline.
//!
//! The steps are `text -parse-> Ast -lower-> Pipeline + [Diagnostic]`. The crate also selects the next edge for a
//! running pipeline. It is pure: no IO, no clock, no async.
//!
//! Every value has a span in the source text, including text inside string values. [`lower`] is the only module that converts
//! attribute text to types. A mistake in a file is a `Diagnostic`, never an error of the runtime. [`child`] inserts the stages of
//! child pipelines into the outer pipeline, so that later steps see one pipeline. [`transform`] parses the graphs that rule
//! plugins changed. [`lint`] runs after the last transform.
//!
//! Reading order, in which each module imports only modules before it: [`span`], [`source`], [`diagnostic`], [`key`], [`keyed`],
//! [`attributes`], [`dot`], [`condition`], [`ir`]; then the queries on a pipeline: [`outcome`], [`route`], [`parallel`],
//! [`gate`], [`next_stages`], [`planning`], [`reach`], [`fixability`]; then the steps: [`inputs`], [`files`], [`stylesheet`],
//! [`lower`], [`lint`], [`check()`], [`graph`], [`transform`], [`child`].

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
