//! What commands may use up, and the name under which they are told so.

use crate::place::{Place, each, never, shell};
use glovebox_sandbox::exec::How;
use glovebox_sandbox::jail::Tier;

#[test]
fn processor_time_ends() {
    each(|place| {
        let jail = place.open(|setting| setting.bounds.cpu_ms = 1_000).unwrap();
        for text in ["while :; do :; done", "sh -c 'while :; do :; done'; exit $?"] {
            let exit = jail.run(&shell(text), &never()).unwrap();
            assert_eq!(exit.over.as_deref(), Some("cpu_ms"), "{text}: {exit:?}");
            assert!(exit.cpu_ms >= 500, "{exit:?}");
        }
    });
}

#[test]
fn a_file_ends() {
    each(|place| {
        let jail = place.open(|setting| setting.bounds.file_bytes = 1 << 20).unwrap();
        for text in ["exec head -c 3000000 /dev/zero > large", "head -c 3000000 /dev/zero > large; exit $?"] {
            let exit = jail.run(&shell(text), &never()).unwrap();
            assert_eq!(exit.over.as_deref(), Some("file_bytes"), "{text}: {exit:?}");
        }
        assert!(place.written("large").metadata().unwrap().len() <= 1 << 20);
    });
}

#[test]
fn memory_of_all_processes_together_ends() {
    each(|place| {
        let jail = place.open(|setting| setting.bounds.command_memory_bytes = 96 << 20).unwrap();
        // Sixteen that each hold as many megabytes and more.
        let hog =
            "for i in $(seq 16); do (x=$(head -c 16000000 /dev/zero | tr '\\0' x); sleep 20) & done; wait; sleep 20";
        let exit = jail.run(&shell(hog), &never()).unwrap();
        assert_eq!((exit.how, exit.over.as_deref()), (How::Signaled, Some("command_memory_bytes")), "{exit:?}");
        assert!(exit.memory_peak_bytes > 64 << 20, "{exit:?}");
        let exit = jail.run(&shell("true"), &never()).unwrap();
        assert_eq!((exit.code, exit.over), (Some(0), None), "the next command is not blamed");
    });
}

#[test]
fn what_is_on_disk_ends() {
    each(|place| {
        let jail = place.open(|setting| setting.bounds.disk_bytes = 8 << 20).unwrap();
        let text = "for i in 1 2 3 4 5 6 7 8 9; do head -c 3000000 /dev/urandom > f$i; done; sleep 30";
        let exit = jail.run(&shell(text), &never()).unwrap();
        assert_eq!((exit.how, exit.over.as_deref()), (How::Signaled, Some("disk_bytes")), "{exit:?}");
        assert!(jail.end().unwrap().disk_peak_bytes > 8 << 20);
    });
}

#[test]
fn temporary_files_end() {
    let place = Place::new(Tier::Full);
    let jail = place.open(|setting| setting.bounds.tmp_bytes = 1 << 20).unwrap();
    let exit = jail.run(&shell("head -c 5000000 /dev/zero > /tmp/large"), &never()).unwrap();
    assert_ne!(exit.code, Some(0));
    let exit = jail.run(&shell("stat -c %s /tmp/large"), &never()).unwrap();
    let bytes: u64 = crate::place::output(&exit).trim().parse().unwrap();
    assert!(bytes <= 1 << 20);
}

#[test]
fn processes_end() {
    let place = Place::new(Tier::Full);
    let jail = place.open(|setting| setting.bounds.processes = 40).unwrap();
    let text = "for i in $(seq 200); do sleep 5 & done; wait";
    let exit = jail.run(&shell(text), &never()).unwrap();
    assert!(exit.processes_peak <= 45, "{exit:?}");
    assert!(exit.code != Some(0) || exit.over.is_some() || !exit.stderr.head.is_empty(), "{exit:?}");
    assert_eq!(jail.run(&shell("true"), &never()).unwrap().code, Some(0), "the jail is as good as before");
}
