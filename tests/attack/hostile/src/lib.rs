//! The attack battery: the table of all attacks that the sandbox must stop, the environment in which they run, and
//! their evaluation.
//!
//! Reading order: [`row`] describes one attack and its expected result, [`rows`] is the table. [`host_fixture`] creates
//! canaries and a victim on the host and detects changes to them, [`target`] is the sandbox in which an attack runs.
//! [`battery`] runs the table, [`observe`] collects what the witnesses saw, and [`evaluate`] decides the verdicts. The
//! attacking program is the binary of this package.
//!
//! The crate does not depend on a sandbox: a caller that has one implements [`target::Confinement`]. A verdict never
//! depends only on the attacker's report.

#![cfg(target_os = "linux")]
#![forbid(unsafe_code)]

pub mod battery;
pub mod evaluate;
pub mod host_fixture;
pub mod observe;
pub mod row;
pub mod rows;
pub mod target;
