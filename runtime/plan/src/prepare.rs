//! Prepares a plan that is ready to run from the files that a user names. The command line, a server and a worker use the
//! same code.
//!
//! [`rule_plugins::read_pipeline`] reads a pipeline, its children and its project, [`binding::bind_plan`] binds them on this
//! machine, and [`binding::Bound::ready`] reads keys after the user has confirmed what leaves the machine. [`check`] does the
//! part of this that `glovebox check` needs, for many files. These modules print nothing, ask nothing and start no process:
//! problems are [`refusal::Refusal`]s and warnings are values.
//!
//! These modules read the user's files and environment. The rest of the crate never does.

pub mod admission;
pub mod agent_programs;
pub mod binding;
pub mod binding_check;
pub mod capability;
pub mod check;
pub mod children;
pub mod component_host;
pub mod dependencies;
pub mod executor;
pub mod findings;
pub mod folders;
pub mod keys;
pub mod plugin_bytes;
pub mod project;
pub mod references;
pub mod refusal;
pub mod rule_plugins;
pub mod scenarios;
pub mod script;
pub mod shipped;
pub mod source;
pub mod survey;
pub mod toolchain;
pub mod trust;
pub mod user_key;
pub mod verify_settings;
pub mod widening;
