//! Runs a pipeline: plan, decide, journal, attempts, artifacts.
//!
//! `Plan -run-> Event* -fold-> RunState -project-> files`. The journal is written first and everything else is derived from
//! it. Reading order: [`event`] (the facts; their vocabulary is the crate `glovebox-record`), [`ports`] (where they are kept), [`sqlite`], [`blobs`] and
//! [`signals`] (the adapters for one machine), [`memory`] (the adapters for tests), [`context`] and [`state`] (the fold), [`decide`] (what follows),
//! [`driver`] (the loop), [`inbox`] (what reaches it from outside), [`run`] (a run's directory), [`evidence`] (what a run came to),
//! [`why`] (how it came to that),
//! [`config`], [`verify`], [`no_change`] and [`lock`] (what the operator says), [`plan`] (what a run stays inside of), [`project`] (its files),
//! [`merge_check`] (what branches may be together).

#![forbid(unsafe_code)]
#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

pub mod attempt;
pub mod bind;
pub mod blobs;
pub mod components;
pub mod config;
pub mod context;
pub mod decide;
pub mod disk;
pub mod driver;
pub mod event;
pub mod evidence;
pub mod folded;
pub mod inbox;
mod lease;
pub mod lock;
pub mod memory;
pub mod merge_check;
pub mod no_change;
pub mod plan;
pub mod ports;
pub mod project;
pub mod reading;
pub mod rewind;
pub mod rules;
pub mod run;
pub mod signals;
mod simulation;
pub mod sqlite;
pub mod state;
pub mod verify;
pub mod why;
