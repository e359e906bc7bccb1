//! The event of a takeover: another driver drives the run, and the attempts in progress continue.
//!
//! The event is also a fence. Every append of a driver expects the head of the run, which this event moves. So the driver before
//! cannot append any more, and finds this event when it reads why.

use glovebox_record::{DriverId, MachineId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Another driver drives the run from here on. The attempts in progress continue, unlike those of a run that is resumed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RunTakenOver {
    /// The machine that drives the run from here on.
    pub machine: MachineId,
    /// The id of the takeover. It tells apart two drivers of one machine that take over the same run.
    pub driver: DriverId,
    /// The machine or the worker that drove the run before; absent if no earlier takeover or resume names one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub previous: Option<String>,
}
