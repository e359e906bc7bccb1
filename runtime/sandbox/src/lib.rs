//! Confinement: scoped views of a directory, sandboxed commands, the private copy and its commit.
//!
//! Reading order: [`glovebox_record::scope`] decides what a stage may do with a path. [`view`] does it on a real directory and never
//! leaves it, [`layer`] takes the changes of a component. [`refusal`] records what was denied and which grant would allow it.
//! [`project`] is the run's own copy, [`branch`] that of a branch, [`stage`] the files of one stage. [`exec`] describes a command and [`jail`] runs it, [`lazy_jail`]
//! opens it when a stage first needs it, [`port`] answers its programs, [`private_home`] is theirs, [`server`] speaks with a program in one.
//! [`found`] lists changes, [`protect`] the protected paths, [`repository_shape`] the folders that git would take for repositories.
//! [`commit`] stores and applies allowed changes, [`quarantine`] keeps the rest, [`apply`] changes the user's project,
//! [`restore`] repairs the workspace of a run that is resumed.
//! [`work_tree`] finds the folders of git. [`regular_file`] reads what a project or a run folder brings. [`record_files`] digests the files of a run's record, [`exposure`] counts those that others may change. [`holdout`] seals hold-outs, [`user_key`] authenticates the records of this user's runs.
//! The crate does not know graphs, components or journals.

#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

#[cfg(not(target_os = "linux"))]
compile_error!("this version of glovebox supports Linux only: its sandbox needs openat2, namespaces and Landlock");

mod acceptor;
pub mod apply;
mod beneath;
pub mod branch;
pub mod cache;
mod canonical;
pub mod commit;
pub mod dependencies;
pub mod exec;
pub mod exposure;
pub mod flush;
pub mod found;
pub mod holdout;
mod holes;
pub mod ignored;
pub mod jail;
pub mod layer;
pub mod lazy_jail;
mod link;
pub mod port;
pub mod private_home;
pub mod project;
pub mod protect;
pub mod proxy;
pub mod quarantine;
pub mod record_files;
pub mod refusal;
pub mod regular_file;
mod relay;
pub mod repository;
pub mod repository_shape;
pub mod restore;
pub mod run;
pub mod server;
pub mod stage;
pub mod subject;
pub mod tree;
pub mod user_key;
pub mod view;
pub mod work_tree;
pub mod worker;
