//! Sandboxed commands.
//!
//! [`exec`] describes a command, [`jail`] runs it. There are three tiers, from namespaces to Landlock alone, each
//! tested by a probe before use. The helper `glovebox-jail-helper` builds the jail and is process 1 in it; all `unsafe`
//! code of the sandbox is in the helper. [`lazy_jail`] opens a jail when a stage first needs it, [`private_home`] is
//! the home folder of an agent program.
//!
//! [`proxy`] lets a jail reach named hosts, [`port`] serves programs in a jail, [`worker`] processes untrusted bytes in
//! a confined child process, [`server`] communicates with a tool server in its own jail, and [`subject`] runs the
//! program under test in a second jail. [`pulse`] counts what the host observes of an attempt.

#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

#[cfg(not(target_os = "linux"))]
compile_error!("this version of glovebox supports Linux only: its sandbox needs openat2, namespaces and Landlock");

mod acceptor;
pub mod exec;
pub mod jail;
pub mod lazy_jail;
pub mod port;
pub mod private_home;
pub mod proxy;
pub mod pulse;
mod relay;
pub mod server;
pub mod status_drop;
pub mod subject;
pub mod worker;
