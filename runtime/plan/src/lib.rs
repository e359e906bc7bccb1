//! What a run may do, before anything runs.
//!
//! [`config`] reads what the operator says, [`lock`] pins the plugins, [`components`] says what each is. [`bind`] joins them with a pipeline
//! into a [`plan`]: for each node its component, its effective grants, and whose word gave each. [`rules`] lets the operator's rule plugins
//! check and change the graph first. [`verify`] turns the settings of verification into what a stage is handed.
//!
//! A plan is printed, compared, locked and recorded. [`prepare`] does all of it for a project folder on this machine. This crate begins no
//! run.

#![forbid(unsafe_code)]
#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

pub mod bind;
pub mod components;
pub mod config;
pub mod lock;
pub mod plan;
pub mod prepare;
pub mod rules;
pub mod verify;
