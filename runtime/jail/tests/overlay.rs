//! Overlays as stages leave them, created by hand and by real mounts, and the changes that are found in them. A copy is
//! the oracle.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on stops there")]

#[path = "../../workspace/tests/commit/bench.rs"]
#[allow(dead_code, reason = "shared with the copy's tests")]
mod bench;
#[path = "overlay/hostile.rs"]
mod hostile;
#[path = "overlay/layered.rs"]
mod layered;
#[path = "overlay/mask.rs"]
mod mask;
#[path = "overlay/model.rs"]
mod model;
#[path = "overlay/mounted.rs"]
mod mounted;
#[path = "overlay/replay.rs"]
mod replay;
#[path = "overlay/stale.rs"]
mod stale;
#[path = "overlay/table.rs"]
mod table;
#[path = "overlay/upper.rs"]
mod upper;
