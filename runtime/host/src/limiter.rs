//! Counters of a call that belong to no single interface: memory and tables as wasmtime requests them, and the bytes between guest and
//! host.
//!
//! Memory is summed over all memories of the component, which wasmtime's own limiter does not do. Exceeding a bound ends the call at
//! once, so that the record names the bound and the guest cannot handle the failed allocation.

use crate::stop::Stop;
use glovebox_record::{LimitName, Limits};
use wasmtime::{Error, ResourceLimiter, Result};

/// Resource usage of a call.
#[derive(Debug, Default)]
pub(crate) struct Meter {
    memory_bytes_max: u64,
    table_elements_max: u64,
    instances_max: usize,
    memory_bytes: u64,
    table_elements: u64,
    /// Size of the last growth, which may still fail.
    last_growth: u64,
    /// Peak memory.
    pub(crate) memory_bytes_peak: u64,
    /// Peak number of table elements.
    pub(crate) table_elements_peak: u64,
    /// Peak number of bytes that passed between guest and host in one call of an import.
    pub(crate) hostcall_bytes_peak: u64,
    /// Length of the handler's outcome, in bytes.
    pub(crate) outcome_bytes: u64,
}

impl Meter {
    pub(crate) fn new(limits: &Limits) -> Self {
        Meter {
            memory_bytes_max: limits.memory_bytes,
            table_elements_max: limits.table_elements,
            instances_max: usize::try_from(limits.instances).unwrap_or(usize::MAX),
            ..Meter::default()
        }
    }

    /// Records the number of bytes of one call of an import.
    pub(crate) fn record_bytes(&mut self, bytes: usize) {
        self.hostcall_bytes_peak = self.hostcall_bytes_peak.max(bytes as u64);
    }
}

impl ResourceLimiter for Meter {
    fn memory_growing(&mut self, current: usize, desired: usize, maximum: Option<usize>) -> Result<bool> {
        let growth = desired.saturating_sub(current) as u64;
        let total = self.memory_bytes.saturating_add(growth);
        if total > self.memory_bytes_max {
            return Err(Error::new(Stop::Limit(LimitName::MemoryBytes)));
        }
        if maximum.is_some_and(|maximum| desired > maximum) {
            return Ok(false);
        }
        self.last_growth = growth;
        self.memory_bytes = total;
        self.memory_bytes_peak = self.memory_bytes_peak.max(total);
        Ok(true)
    }

    fn memory_grow_failed(&mut self, _: Error) -> Result<()> {
        self.memory_bytes = self.memory_bytes.saturating_sub(std::mem::take(&mut self.last_growth));
        Ok(())
    }

    fn table_growing(&mut self, current: usize, desired: usize, maximum: Option<usize>) -> Result<bool> {
        let total = self.table_elements.saturating_add(desired.saturating_sub(current) as u64);
        if total > self.table_elements_max {
            return Err(Error::new(Stop::Limit(LimitName::TableElements)));
        }
        if maximum.is_some_and(|maximum| desired > maximum) {
            return Ok(false);
        }
        self.table_elements = total;
        self.table_elements_peak = self.table_elements_peak.max(total);
        Ok(true)
    }

    fn instances(&self) -> usize {
        self.instances_max
    }

    fn tables(&self) -> usize {
        self.instances_max
    }

    fn memories(&self) -> usize {
        self.instances_max
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_summed_and_a_failed_growth_is_given_back() {
        let mut meter = Meter { memory_bytes_max: 100, ..Meter::default() };
        assert!(meter.memory_growing(0, 60, None).unwrap());
        assert!(meter.memory_growing(0, 40, None).unwrap());
        let stop = meter.memory_growing(40, 41, None).unwrap_err();
        assert_eq!(stop.downcast_ref(), Some(&Stop::Limit(LimitName::MemoryBytes)));
        meter.memory_grow_failed(Error::msg("no pages")).unwrap();
        assert_eq!((meter.memory_bytes, meter.memory_bytes_peak), (60, 100));
        assert!(!meter.memory_growing(0, 30, Some(20)).unwrap());
    }
}
