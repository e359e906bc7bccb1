//! Overlays as stages leave them, created by hand and by real mounts, and the changes that are found in them. A copy is
//! the oracle.

#[path = "../../workspace/tests/commit/bench.rs"]
#[allow(dead_code, reason = "shared with the copy's tests")]
mod bench;
mod hostile;
mod layered;
mod mask;
mod model;
mod mounted;
mod replay;
mod stale;
mod table;
mod upper;
