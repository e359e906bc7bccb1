//! The interval at which a running command is sampled: short while the command works, long while it waits.
//!
//! A command works if its processes use processor time, start or end. Resources that only the host limits cannot grow
//! without that, so a waiting command is sampled less and less often. The next sample notices when it works again.

use super::processes::Sample;
use std::time::Duration;

/// Time from the start of a command to the first sample, and between two samples while it works.
pub(super) const PERIOD: Duration = Duration::from_millis(100);
/// Maximum time between two samples.
pub(super) const PERIOD_MAX: Duration = Duration::from_secs(1);
/// Free space that other programs may use up before the folders of the command are walked again, bytes.
const FREE_STEP: u64 = 1 << 20;

/// The interval between the samples of one command.
#[derive(Debug)]
pub(super) struct PollInterval {
    max: Duration,
    period: Duration,
    seen: Vec<[u64; 4]>,
    held_disk_bytes: u64,
    free_bytes: u64,
    works: bool,
}

impl PollInterval {
    /// Creates the interval of a command. `is_bounded` is true if the kernel limits its memory and processes.
    pub(super) fn new(is_bounded: bool) -> Self {
        let max = if is_bounded { PERIOD_MAX } else { PERIOD };
        Self { max, period: PERIOD, seen: Vec::new(), held_disk_bytes: 0, free_bytes: 0, works: true }
    }

    /// Notes a sample, and the free space of the file system at that time. Returns true if the folders of the command
    /// may have grown.
    pub(super) fn note(&mut self, sample: &Sample, free_bytes: u64) -> bool {
        let seen = sample.processes.iter().map(|one| [one.pid as u64, one.started, one.threads, one.cpu_ticks]);
        let seen: Vec<[u64; 4]> = seen.collect();
        // An empty list means that the processes cannot be seen, so the command may be working.
        let works = seen.is_empty() || seen != self.seen;
        (self.seen, self.works) = (seen, works);
        self.period = if works { PERIOD } else { (self.period * 2).min(self.max) };
        let holds_more = sample.held.hides_disk || sample.held.disk_bytes != self.held_disk_bytes;
        let disk = works || holds_more || free_bytes.saturating_add(FREE_STEP) < self.free_bytes;
        self.held_disk_bytes = sample.held.disk_bytes;
        self.free_bytes = if disk { free_bytes } else { self.free_bytes.max(free_bytes) };
        disk
    }

    /// Returns true if the command worked before the last sample, or may have worked because its processes cannot be
    /// seen.
    pub(super) fn works(&self) -> bool {
        self.works
    }

    /// Returns the time until the next sample.
    pub(super) fn period(&self) -> Duration {
        self.period
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use glovebox_jail_helper::process::ProcessStat;

    const FREE: u64 = 1 << 30;

    fn sample(ticks: &[u64]) -> Sample {
        let stat = |(pid, cpu_ticks)| ProcessStat {
            pid,
            started: 7,
            parent: 1,
            threads: 1,
            is_headless: false,
            resident_bytes: 0,
            cpu_ticks,
        };
        Sample { processes: (1..).zip(ticks.iter().copied()).map(stat).collect(), ..Sample::default() }
    }

    #[test]
    fn a_command_that_waits_is_looked_at_ever_less_until_it_works() {
        let mut pace = PollInterval::new(true);
        let mut look = |ticks: &[u64]| {
            let disk = pace.note(&sample(ticks), FREE);
            assert_eq!(pace.works(), disk, "nothing but work changes the folders here");
            (disk, pace.period().as_millis())
        };
        assert_eq!([look(&[1]), look(&[1]), look(&[1])], [(true, 100), (false, 200), (false, 400)]);
        assert_eq!([look(&[1]), look(&[1]), look(&[1])], [(false, 800), (false, 1_000), (false, 1_000)]);
        assert_eq!([look(&[2]), look(&[2, 0]), look(&[2])], [(true, 100); 3], "time, one more, one less");
        assert_eq!([look(&[]), look(&[])], [(true, 100); 2], "processes that cannot be seen");
    }

    #[test]
    fn without_bounds_of_the_kernel_the_pace_stays() {
        let mut pace = PollInterval::new(false);
        assert!(pace.note(&sample(&[1]), FREE) && !pace.note(&sample(&[1]), FREE));
        assert_eq!(pace.period(), PERIOD);
    }

    #[test]
    fn less_free_space_and_files_without_a_name_make_a_look_at_the_folders() {
        let mut pace = PollInterval::new(true);
        let mut look = |held: u64, free: u64| {
            let mut sample = sample(&[1]);
            sample.held.disk_bytes = held;
            pace.note(&sample, free)
        };
        assert!(look(0, FREE) && !look(0, FREE - FREE_STEP) && look(0, FREE - FREE_STEP - 1));
        assert!(look(4096, FREE) && !look(4096, FREE) && look(0, FREE));
        assert!(!look(0, FREE - FREE_STEP / 2) && look(0, FREE - 2 * FREE_STEP), "what is taken in steps adds up");
    }
}
