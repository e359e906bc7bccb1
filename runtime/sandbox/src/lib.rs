//! Confinement: scoped views of a directory, guarded subprocesses, the private copy and its commit.
//!
//! Reading order: [`glovebox_record::scope`] says what a stage may do with a path, [`view`] does it on a real directory
//! without ever leaving it, [`refusal`] remembers what was denied and which grant would have allowed it. Around a
//! stage: [`project`] is the run's own copy, [`stage`] what a stage sees of it, [`exec`] is a command and [`jail`] runs it, [`found`] says
//! what changed and, with [`protect`], what of it may stay, [`commit`] brings that back, [`quarantine`] keeps the rest, and
//! [`apply`] takes a run's result to the user. [`holdout`] keeps what builders are judged by out of their reach, [`user_key`]
//! authenticates what this user's runs say of themselves.
//! The crate knows no graph, no component and no journal.

#[cfg(not(target_os = "linux"))]
compile_error!("this version of glovebox supports Linux only: its sandbox needs openat2, namespaces and Landlock");

mod acceptor;
pub mod apply;
mod beneath;
pub mod cache;
pub mod commit;
pub mod exec;
pub mod found;
pub mod holdout;
pub mod jail;
mod link;
pub mod project;
pub mod protect;
pub mod proxy;
pub mod quarantine;
pub mod refusal;
mod relay;
pub mod repository;
pub mod run;
pub mod stage;
pub mod subject;
pub mod tree;
pub mod user_key;
pub mod view;
pub mod worker;
