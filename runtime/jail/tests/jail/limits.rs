//! Resource limits of commands, and the names under which they are reported.

use super::fixture::{Fixture, each, never, shell};
use glovebox_record::{CommandEnding, LimitName, Tier};

#[test]
fn processor_time_ends() {
    each(|fixture| {
        let jail = fixture.open(|setting| setting.limits.cpu_ms = 1_000).unwrap();
        for text in ["while :; do :; done", "sh -c 'while :; do :; done'; exit $?"] {
            let exit = jail.run(&shell(text), &never()).unwrap();
            assert_eq!(exit.over, Some(LimitName::CpuMs), "{text}: {exit:?}");
            assert!(exit.cpu_ms >= 500, "{exit:?}");
        }
    });
}

#[test]
fn a_file_ends() {
    each(|fixture| {
        let jail = fixture.open(|setting| setting.limits.file_bytes = 1 << 20).unwrap();
        for text in ["exec head -c 3000000 /dev/zero > large", "head -c 3000000 /dev/zero > large; exit $?"] {
            let exit = jail.run(&shell(text), &never()).unwrap();
            assert_eq!(exit.over, Some(LimitName::FileBytes), "{text}: {exit:?}");
        }
        assert!(fixture.written("large").metadata().unwrap().len() <= 1 << 20);
    });
}

#[test]
fn memory_of_all_processes_together_ends() {
    each(|fixture| {
        let jail = fixture.open(|setting| setting.limits.command_memory_bytes = 96 << 20).unwrap();
        // Sixteen processes that each hold at least sixteen megabytes.
        let hog =
            "for i in $(seq 16); do (x=$(head -c 16000000 /dev/zero | tr '\\0' x); sleep 20) & done; wait; sleep 20";
        let exit = jail.run(&shell(hog), &never()).unwrap();
        assert_eq!((exit.how, exit.over), (CommandEnding::Signaled, Some(LimitName::CommandMemoryBytes)), "{exit:?}");
        assert!(exit.memory_peak_bytes > 64 << 20, "{exit:?}");
        let exit = jail.run(&shell("true"), &never()).unwrap();
        assert_eq!((exit.code, exit.over), (Some(0), None), "the next command is not blamed");
    });
}

#[test]
fn what_is_on_disk_ends() {
    each(|fixture| {
        let jail = fixture.open(|setting| setting.limits.disk_bytes = 8 << 20).unwrap();
        let text = "for i in 1 2 3 4 5 6 7 8 9; do head -c 3000000 /dev/urandom > f$i; done; sleep 30";
        let exit = jail.run(&shell(text), &never()).unwrap();
        assert_eq!((exit.how, exit.over), (CommandEnding::Signaled, Some(LimitName::DiskBytes)), "{exit:?}");
        assert!(jail.end().unwrap().disk_peak_bytes.unwrap() > 8 << 20);
    });
}

/// Twelve files of one megabyte each that are unlinked directly after they are created.
const NAMELESS: &str = "my $block = 'x' x (1 << 20); my @held; for (1 .. 12) { open my $file, '+>', 'gone' or die; unlink 'gone'; \
     syswrite $file, $block; push @held, $file; } print \"held\\n\"; sleep 30;";

#[test]
fn what_is_on_disk_without_a_name_ends() {
    each(|fixture| {
        let jail = fixture.open(|setting| setting.limits.disk_bytes = 8 << 20).unwrap();
        let exit = jail.run(&shell(&format!("exec perl -e '{}'", NAMELESS.replace('\'', "\""))), &never()).unwrap();
        assert_eq!((exit.how, exit.over), (CommandEnding::Signaled, Some(LimitName::DiskBytes)), "{exit:?}");
        assert!(jail.end().unwrap().disk_peak_bytes.unwrap() > 8 << 20);
    });
}

/// A process that waits until samples are rare, uses the space in a short time, and waits again.
const LATE: &str =
    "sleep 4; open my $file, '>', 'late' or die; syswrite $file, 'x' x (9 << 20); close $file; sleep 30;";

#[test]
fn what_a_command_puts_on_disk_after_it_waited_ends() {
    each(|fixture| {
        let jail = fixture.open(|setting| setting.limits.disk_bytes = 8 << 20).unwrap();
        let exit = jail.run(&shell(&format!("exec perl -e '{}'", LATE.replace('\'', "\""))), &never()).unwrap();
        assert_eq!((exit.how, exit.over), (CommandEnding::Signaled, Some(LimitName::DiskBytes)), "{exit:?}");
    });
}

#[test]
fn what_a_quick_command_leaves_on_disk_ends_as_well() {
    each(|fixture| {
        let jail = fixture.open(|setting| setting.limits.disk_bytes = 8 << 20).unwrap();
        let exit = jail.run(&shell("head -c 20000000 /dev/urandom > large"), &never()).unwrap();
        assert_eq!(exit.over, Some(LimitName::DiskBytes), "{exit:?}");
    });
}

#[test]
fn an_exit_code_is_no_proof_of_a_bound() {
    each(|fixture| {
        let jail = fixture.open(|setting| setting.limits.file_bytes = 1 << 20).unwrap();
        for code in [152, 153, 137] {
            let exit = jail.run(&shell(&format!("exit {code}")), &never()).unwrap();
            assert_eq!((exit.code, exit.over), (Some(code), None));
        }
        let exit = jail.run(&shell("kill -XCPU $$; sleep 5"), &never()).unwrap();
        assert_eq!((exit.how, exit.over), (CommandEnding::Signaled, None));
    });
}

#[test]
fn a_process_that_its_parent_disowns_ends_the_command() {
    each(|fixture| {
        let jail = fixture.open(|setting| setting.limits.cpu_ms = 1_000).unwrap();
        let exit = jail.run(&shell("sh -c 'while :; do :; done'; sleep 30; exit 0"), &never()).unwrap();
        assert_eq!((exit.how, exit.over), (CommandEnding::Signaled, Some(LimitName::CpuMs)), "{exit:?}");
    });
}

#[test]
fn what_can_be_measured_is() {
    let fixture = Fixture::new(Tier::Full);
    let jail = fixture.open(|_| ()).unwrap();
    let text = "exec 5>/dev/null 6>/dev/null 7>large; head -c 3000000 /dev/zero > /tmp/t; head -c 100000 /dev/zero >&7; sleep 1";
    let exit = jail.run(&shell(text), &never()).unwrap();
    assert!(exit.descriptors_peak.unwrap() >= 6 && exit.processes_peak.unwrap() >= 1, "{exit:?}");
    // The host may sample while the larger file below `/tmp` is still open.
    let is_of_either = |peak: Option<u64>| peak.is_some_and(|peak| (100_000..=3_000_000).contains(&peak));
    assert!(is_of_either(exit.file_peak_bytes), "{exit:?}");
    assert!((3_000_000..4_000_000).contains(&exit.tmp_bytes.unwrap()), "{exit:?}");
    let spent = jail.end().unwrap();
    assert!(spent.disk_peak_bytes.unwrap() >= 100_000 && is_of_either(spent.file_peak_bytes), "{spent:?}");
}

#[test]
fn bounds_that_nothing_holds_are_named() {
    each(|fixture| {
        let jail = fixture.open(|_| ()).unwrap();
        let status = jail.status();
        let says = |word: &str| status.degradations.iter().any(|known| known == word);
        let is_own = status.tier.has_own_root();
        assert_eq!(says("tmp=none"), !is_own, "{status:?}");
        // With a control group, both limits are exact. Otherwise they are soft, and a machine without visible processes
        // reports `none`.
        assert!(!says("memory=none") && !says("processes=none"), "{status:?}");
    });
}

#[test]
fn temporary_files_end() {
    let fixture = Fixture::new(Tier::Full);
    let jail = fixture.open(|setting| setting.limits.tmp_bytes = 1 << 20).unwrap();
    let exit = jail.run(&shell("head -c 5000000 /dev/zero > /tmp/large"), &never()).unwrap();
    assert_ne!(exit.code, Some(0));
    let exit = jail.run(&shell("stat -c %s /tmp/large"), &never()).unwrap();
    let bytes: u64 = super::fixture::output(&exit).trim().parse().unwrap();
    assert!(bytes <= 1 << 20);
}

#[test]
fn processes_end() {
    let fixture = Fixture::new(Tier::Full);
    let jail = fixture.open(|setting| setting.limits.processes = 40).unwrap();
    let text = "for i in $(seq 200); do sleep 5 & done; wait";
    let exit = jail.run(&shell(text), &never()).unwrap();
    assert!(exit.processes_peak <= Some(45), "{exit:?}");
    assert!(exit.code != Some(0) || exit.over.is_some() || !exit.stderr.head.is_empty(), "{exit:?}");
    assert_eq!(jail.run(&shell("true"), &never()).unwrap().code, Some(0), "the jail is as good as before");
}
