//! The attack battery: every attack that the sandbox must stop as one table, where it is tried, and the result.
//!
//! Reading order: [`row`] is one attack and its expected result, [`rows`] is the table. [`host_fixture`] lays out canaries and a victim on
//! the host and notices a touch, [`target`] is the sandbox in which an attack runs. [`battery`] runs the table, [`observe`] collects what
//! the witnesses saw, and [`evaluate`] decides. The program that attacks is this package's binary.
//!
//! The crate knows no sandbox: a caller that has one implements [`target::Confinement`]. A result never rests on the attacker's word alone.

#![cfg(target_os = "linux")]
#![forbid(unsafe_code)]

pub mod battery;
pub mod evaluate;
pub mod host_fixture;
pub mod observe;
pub mod row;
pub mod rows;
pub mod target;
