//! Runs a pipeline: plan, schedule, journal, attempts, artifacts.
//!
//! `Plan -run-> Event* -fold-> RunState -project-> files`. The journal is written first and everything else is derived from
//! it. Reading order: [`event`] (the facts; their vocabulary is the crate `glovebox-record`), [`ports`] (where they are kept), [`sqlite`], [`blobs`] and
//! [`signals`] (the adapters for one machine), [`context`] and [`state`] (the fold), [`schedule`] (what follows),
//! [`driver`] (the loop), [`run`] (a run's directory), [`evidence`] (what a run came to),
//! [`config`] and [`lock`] (what the operator says), [`plan`] (what a run stays inside of), [`project`] (its files).

#![forbid(unsafe_code)]

pub mod attempt;
pub mod bind;
pub mod blobs;
pub mod components;
pub mod config;
pub mod context;
pub mod disk;
pub mod driver;
pub mod event;
pub mod evidence;
pub mod lock;
pub mod plan;
pub mod ports;
pub mod project;
pub mod rules;
pub mod run;
pub mod schedule;
pub mod signals;
#[cfg(test)]
mod simulation;
pub mod sqlite;
pub mod state;
