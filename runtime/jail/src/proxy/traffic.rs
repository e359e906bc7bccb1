//! A record of a proxy's traffic and refusals.
//!
//! The record is bounded: it lists a fixed number of hosts and refusals, and counts the rest.

use super::refused_request::RefusedRequest;
use glovebox_record::network::Host;
use glovebox_record::network::HostRules;
use glovebox_record::{HostTraffic, Refusal, Traffic};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Maximum number of hosts that are listed by name.
pub const HOSTS_MAX: usize = 128;
/// Maximum number of refusals that are listed.
pub const REFUSALS_MAX: usize = 32;

/// The record of a proxy's traffic.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProxyRecord {
    /// The traffic by host. At most [`HOSTS_MAX`] hosts are listed by name, and all others are counted together.
    pub traffic: Traffic,
    /// The first different refusals with the grant that would allow each, at most [`REFUSALS_MAX`].
    pub refusals: Vec<Refusal>,
}

impl ProxyRecord {
    fn entry(&mut self, host: Option<&Host>) -> &mut HostTraffic {
        let Traffic { hosts, others } = &mut self.traffic;
        match host {
            Some(host) if hosts.len() < HOSTS_MAX || hosts.contains_key(host.as_str()) => {
                hosts.entry(host.to_string()).or_default()
            }
            _ => others,
        }
    }
}

/// The record while all connections write to it.
#[derive(Debug, Default)]
pub(super) struct Ledger(Mutex<ProxyRecord>);

impl Ledger {
    pub(super) fn connected(&self, host: &Host) {
        let mut record = self.lock();
        let entry = record.entry(Some(host));
        entry.requests = entry.requests.saturating_add(1);
    }

    pub(super) fn moved(&self, host: &Host, sent: u64, received: u64) {
        let mut record = self.lock();
        let entry = record.entry(Some(host));
        entry.bytes_sent = entry.bytes_sent.saturating_add(sent);
        entry.bytes_received = entry.bytes_received.saturating_add(received);
    }

    pub(super) fn refused(&self, host: Option<&Host>, refused: &RefusedRequest, granted: &HostRules) {
        let mut record = self.lock();
        let entry = record.entry(host);
        entry.refused = entry.refused.saturating_add(1);
        if record.refusals.len() >= REFUSALS_MAX {
            return;
        }
        let refusal = refused.recorded(host, granted);
        if !record.refusals.contains(&refusal) {
            record.refusals.push(refusal);
        }
    }

    pub(super) fn drain(&self) -> ProxyRecord {
        std::mem::take(&mut *self.lock())
    }

    fn lock(&self) -> MutexGuard<'_, ProxyRecord> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stage_cannot_grow_the_record() {
        let ledger = Ledger::default();
        for number in 0..10 * HOSTS_MAX {
            let host = Host::parse(&format!("h{number}.example")).unwrap();
            ledger.refused(Some(&host), &RefusedRequest::NotGranted(host.clone(), 443), &HostRules::default());
        }
        ledger.refused(None, &RefusedRequest::Slow, &HostRules::default());
        let ProxyRecord { traffic, refusals } = ledger.drain();
        assert_eq!((traffic.hosts.len(), refusals.len()), (HOSTS_MAX, REFUSALS_MAX));
        assert_eq!((traffic.others.refused, traffic.refused()), (9 * HOSTS_MAX as u64 + 1, 10 * HOSTS_MAX as u64 + 1));
    }
}
