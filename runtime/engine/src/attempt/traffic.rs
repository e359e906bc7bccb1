//! The proxy's record in the journal's words.
//!
//! The names are chosen by what ran in the jail: bounded and read as host names by the proxy before they come here. They stand in the
//! record, for people; no stage is given any of it.

use super::outcome;
use crate::event::{HostTraffic, StageFinished, Traffic};
use glovebox_sandbox::proxy::traffic as proxy;

/// Adds what the proxy saw: by host, and each refusal with the grant that would allow it.
pub(super) fn record(seen: &proxy::Traffic, fact: &mut StageFinished) {
    let hosts = seen.hosts.iter().map(|(host, traffic)| (host.clone(), host_traffic(traffic)));
    fact.network = Some(Traffic { hosts: hosts.collect(), others: host_traffic(&seen.others) });
    fact.refusals.extend(seen.refusals.iter().cloned().map(outcome::refusal));
    fact.refusals_total = fact.refusals_total.saturating_add(seen.denied());
}

fn host_traffic(seen: &proxy::HostTraffic) -> HostTraffic {
    HostTraffic {
        requests: seen.allowed,
        refused: seen.denied,
        bytes_sent: seen.bytes_sent,
        bytes_received: seen.bytes_received,
    }
}
