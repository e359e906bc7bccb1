//! The battery: every attack the sandbox must stop as one table, the world it is tried in, and the verdict.
//!
//! Reading order: [`row`] is one attack and what is expected of it, [`rows`] is the table, [`outside`] lays out canaries and a victim
//! and notices when one is touched, [`ground`] is the place behind the walls where an attack runs, [`battery`] runs the table and
//! [`judge`] decides. The program that attacks is this package's binary.
//!
//! The crate knows no sandbox: who has one implements [`ground::Confinement`]. A verdict never rests on the attacker's word alone.

#![cfg(target_os = "linux")]
#![forbid(unsafe_code)]

pub mod battery;
pub mod evaluate;
pub mod host_fixture;
pub mod observe;
pub mod row;
pub mod rows;
pub mod target;
