//! What went through a proxy, and what did not.
//!
//! Bounded whatever a stage asks for: so many hosts and refusals are kept by name, the rest is counted.

use super::host::Host;
use super::refused::Refused;
use super::rules::Rules;
use crate::refusal::Refusal;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Most hosts that are kept by name.
pub const HOSTS_MAX: usize = 128;
/// Most refusals that are kept one by one.
pub const REFUSALS_MAX: usize = 32;

/// The record of a proxy.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Traffic {
    /// Hosts by name.
    pub hosts: BTreeMap<String, HostTraffic>,
    /// Requests to hosts beyond [`HOSTS_MAX`], all of them together, and those that named no host.
    pub others: HostTraffic,
    /// The first different refusals with the grant that would allow each, at most [`REFUSALS_MAX`].
    pub refusals: Vec<Refusal>,
}

/// What one host was asked.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HostTraffic {
    /// Connections that were made.
    pub allowed: u64,
    /// Requests that were refused, or that the host did not answer.
    pub denied: u64,
    /// Bytes sent to it.
    pub bytes_sent: u64,
    /// Bytes received from it.
    pub bytes_received: u64,
}

impl Traffic {
    /// All requests that were refused or not answered.
    pub fn denied(&self) -> u64 {
        self.hosts.values().fold(self.others.denied, |sum, host| sum.saturating_add(host.denied))
    }

    fn entry(&mut self, host: Option<&Host>) -> &mut HostTraffic {
        match host {
            Some(host) if self.hosts.len() < HOSTS_MAX || self.hosts.contains_key(host.as_str()) => {
                self.hosts.entry(host.to_string()).or_default()
            }
            _ => &mut self.others,
        }
    }
}

/// The record while it is written, by all connections.
#[derive(Debug, Default)]
pub(super) struct Ledger(Mutex<Traffic>);

impl Ledger {
    pub(super) fn connected(&self, host: &Host) {
        let mut traffic = self.lock();
        let entry = traffic.entry(Some(host));
        entry.allowed = entry.allowed.saturating_add(1);
    }

    pub(super) fn moved(&self, host: &Host, sent: u64, received: u64) {
        let mut traffic = self.lock();
        let entry = traffic.entry(Some(host));
        entry.bytes_sent = entry.bytes_sent.saturating_add(sent);
        entry.bytes_received = entry.bytes_received.saturating_add(received);
    }

    pub(super) fn refused(&self, host: Option<&Host>, refused: &Refused, granted: &Rules) {
        let mut traffic = self.lock();
        let entry = traffic.entry(host);
        entry.denied = entry.denied.saturating_add(1);
        if traffic.refusals.len() >= REFUSALS_MAX {
            return;
        }
        let refusal = refused.recorded(host, granted);
        if !traffic.refusals.contains(&refusal) {
            traffic.refusals.push(refusal);
        }
    }

    pub(super) fn take(&self) -> Traffic {
        std::mem::take(&mut *self.lock())
    }

    fn lock(&self) -> MutexGuard<'_, Traffic> {
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
            ledger.refused(Some(&host), &Refused::NotGranted(host.clone(), 443), &Rules::default());
        }
        ledger.refused(None, &Refused::Slow, &Rules::default());
        let traffic = ledger.take();
        assert_eq!((traffic.hosts.len(), traffic.refusals.len()), (HOSTS_MAX, REFUSALS_MAX));
        assert_eq!((traffic.others.denied, traffic.denied()), (9 * HOSTS_MAX as u64 + 1, 10 * HOSTS_MAX as u64 + 1));
    }
}
