//! Text to checked pipeline.
//!
//! `text -parse-> Ast -lower-> Pipeline + [Diagnostic]`, and what a running pipeline asks of its graph: which edge next.
//! Pure: no IO, no clock, no async. Reading order: [`span`], [`diagnostic`], [`dot`], [`lower`], [`ir`], [`condition`],
//! [`route`], [`lint`].

#![forbid(unsafe_code)]

pub mod condition;
pub mod diagnostic;
pub mod ir;
pub mod span;
