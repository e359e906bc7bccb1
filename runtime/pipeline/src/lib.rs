//! Text to checked pipeline.
//!
//! `text -parse-> Ast -lower-> Pipeline + [Diagnostic]`, and the selection of the next edge for a running pipeline.
//! Pure: no IO, no clock, no async.
//!
//! Everything has a span, also inside string values. [`lower`] is the only place where a string attribute becomes a type. What is wrong with
//! a file is a `Diagnostic`, never an error of ours. [`child`] puts the stages of child pipelines into the one pipeline, so that nothing after
//! it knows of files. [`transform`] reads a graph that a rule plugin changed as text again, and [`lint`] comes after the last of them.
//!
//! Reading order: [`span`], [`diagnostic`], [`dot`], [`inputs`], [`files`], [`lower`], [`ir`], [`fork`], [`child`], [`gate`], [`ahead`], [`keyed`], [`attributes`],
//! [`outcome`], [`condition`], [`diff_limits`], [`stylesheet`], [`holdout_roles`], [`reach`], [`fixability`], [`transform`], [`lint`], [`session`], [`route`], [`graph`].

#![forbid(unsafe_code)]
#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

pub mod ahead;
pub mod attributes;
mod check;
pub mod child;
pub mod condition;
pub mod diagnostic;
pub mod diff_limits;
pub mod dot;
pub mod files;
pub mod fixability;
pub mod fork;
pub mod format;
pub mod gate;
pub mod graph;
mod hash;
pub mod holdout_roles;
mod index;
pub mod inputs;
pub mod ir;
pub mod key;
pub mod keyed;
pub mod lint;
pub mod lower;
pub mod nearest;
pub mod outcome;
mod path;
pub mod planning;
pub mod reach;
pub mod restart;
pub mod route;
pub mod session;
pub mod source;
pub mod span;
pub mod stylesheet;
pub mod transform;

pub use check::{Checked, Lowered, ParsedFile, check, parse, validate};
pub use inputs::Inputs;
pub use source::Source;
