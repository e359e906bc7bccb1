//! The counters of one call: memory and tables as wasmtime asks for them, everything else as imports use it.
//!
//! Memory is summed over all memories of the component, which the stock limiter does not do. Going over a bound ends the
//! call at once, so that the record names the bound instead of what a guest makes of a failed allocation.

use crate::stop::Stop;
use glovebox_jail::exec::Exit;
use glovebox_record::{LimitName, Limits};
use wasmtime::{Error, ResourceLimiter, Result};

/// What a call has used.
#[derive(Debug, Default)]
pub(crate) struct Meter {
    memory_bytes_max: u64,
    table_elements_max: u64,
    instances_max: usize,
    memory_bytes: u64,
    table_elements: u64,
    /// Taken for a growth that may still fail.
    last_growth: u64,
    /// Most memory at any time.
    pub(crate) memory_bytes_peak: u64,
    /// Most table elements at any time.
    pub(crate) table_elements_peak: u64,
    /// Most live handles seen.
    pub(crate) resources_peak: u64,
    /// Largest payload of one call of an import of the contract.
    pub(crate) hostcall_bytes_peak: u64,
    /// Bytes of artifacts.
    pub(crate) artifact_bytes: u64,
    /// Log lines and events, dropped ones too.
    pub(crate) log_lines: u64,
    /// Bytes of kept log lines.
    pub(crate) log_bytes: u64,
    /// Bytes of the answer.
    pub(crate) outcome_bytes: u64,
    /// Commands started.
    pub(crate) commands: u64,
    /// What commands used; none before the first, or where it was not measured.
    pub(crate) of_commands: OfCommands,
}

/// The most that a command used of each bound.
#[derive(Debug, Default)]
pub(crate) struct OfCommands {
    /// Wall time of the longest.
    pub(crate) command_ms: Option<u64>,
    /// Longest kept stream.
    pub(crate) command_output_bytes: Option<u64>,
    /// Most processor time.
    pub(crate) cpu_ms: Option<u64>,
    /// Most memory of all its processes together.
    pub(crate) command_memory_bytes: Option<u64>,
    /// Most processes at the same time.
    pub(crate) processes: Option<u64>,
    /// Most open descriptors of a process.
    pub(crate) descriptors: Option<u64>,
    /// Length of the largest file that was written.
    pub(crate) file_bytes: Option<u64>,
    /// Size of the fullest folder for temporary files.
    pub(crate) tmp_bytes: Option<u64>,
}

impl OfCommands {
    /// Adds a command that has ended.
    pub(crate) fn add(&mut self, exit: &Exit, duration_ms: u64) {
        let kept = [&exit.stdout, &exit.stderr].map(|stream| (stream.head.len() + stream.tail.len()) as u64);
        for (most, used) in [
            (&mut self.command_ms, Some(duration_ms)),
            (&mut self.command_output_bytes, kept.into_iter().max()),
            (&mut self.cpu_ms, Some(exit.cpu_ms)),
            (&mut self.command_memory_bytes, Some(exit.memory_peak_bytes)),
            (&mut self.processes, exit.processes_peak),
            (&mut self.descriptors, exit.descriptors_peak),
            (&mut self.file_bytes, exit.file_peak_bytes),
            (&mut self.tmp_bytes, exit.tmp_bytes),
        ] {
            *most = (*most).max(used);
        }
    }
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

    /// Notes how much one call of an import carried.
    pub(crate) fn carried(&mut self, bytes: usize) {
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
