//! Decides what a run may do, before anything runs.
//!
//! [`config`] reads the operator's settings, [`lock`] pins the plugins, and [`components`] has the bytes of all components and
//! refuses those that are not signed as the operator requires, or that were revoked.
//! [`bind`] joins them with a pipeline into a [`plan`]: for each node its component, its effective grants, and the origin of
//! each grant. Before that, [`rules`] lets the operator's rule plugins check and change the graph. [`verify`] turns the
//! settings of verification into the inputs of a stage.
//!
//! A plan is printed, compared, locked and recorded. [`prepare`] does all of this for a project folder on this machine. This
//! crate does not start runs.

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
