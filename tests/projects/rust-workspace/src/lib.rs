//! Durations for people.

include!(concat!(env!("OUT_DIR"), "/unit.rs"));

/// Returns a duration in minutes and seconds.
pub fn duration(seconds: u32) -> String {
    format!("{}{}{UNIT}", minutes::whole(seconds), minutes::rest(seconds))
}
