//! Resource limits, and the behaviour of a jail when a command exceeds them.

use crate::fixture::{Fixture, Jail, bounds, shell};
use glovebox_jail_helper::policy::{Bounds, Confinement};
use std::io::Read;

fn jail(fixture: &Fixture, confinement: Confinement, bounds: Bounds) -> Jail {
    let mut policy = fixture.policy(confinement);
    policy.bounds = bounds;
    Jail::start(&policy)
}

#[test]
fn limits_of_one_process_are_set() {
    let fixture = Fixture::new();
    for confinement in [Confinement::Unconfined, Confinement::Landlock, Confinement::Full] {
        let came = jail(&fixture, confinement, bounds()).shell("cat /proc/self/limits");
        let limit = |name: &str| {
            let line = came.out.lines().find(|line| line.starts_with(name)).unwrap();
            line[26..].split_ascii_whitespace().take(2).map(str::to_owned).collect::<Vec<_>>()
        };
        for (name, soft, hard) in [
            ("Max cpu time", "62", "63"),
            ("Max file size", "67108864", "67108864"),
            ("Max data size", "unlimited", "unlimited"),
            ("Max core file size", "1", "1"),
            ("Max open files", "256", "256"),
            ("Max locked memory", "1048576", "1048576"),
            ("Max realtime priority", "0", "0"),
        ] {
            assert_eq!(limit(name), [soft, hard], "{confinement:?} {name}");
        }
        assert_eq!(limit("Max msgqueue size")[0] == "819200", confinement == Confinement::Full, "{confinement:?}");
        let processes = limit("Max processes");
        assert_eq!(processes == ["400", "400"], confinement == Confinement::Full, "{confinement:?} {processes:?}");
    }
}

#[test]
fn the_data_of_a_process_is_limited_if_nothing_counts_its_memory() {
    let fixture = Fixture::new();
    let uncounted = Bounds { is_memory_counted: false, ..bounds() };
    let came = jail(&fixture, Confinement::Full, uncounted).shell("ulimit -d");
    assert_eq!(came.out.trim(), (4 << 20).to_string(), "KiB: {came:?}");
}

#[test]
fn a_process_may_raise_its_descriptors_up_to_the_limit() {
    let fixture = Fixture::new();
    let many = Bounds { descriptors: 4096, ..bounds() };
    let came =
        jail(&fixture, Confinement::Full, many).shell("ulimit -n; ulimit -n 4096 && ulimit -n; ulimit -n 4097 || true");
    assert!(came.out.starts_with("1024\n4096\n"), "{came:?}");
}

#[test]
fn files_and_memory_folders_end_at_their_bound() {
    let fixture = Fixture::new();
    let jail = jail(&fixture, Confinement::Full, Bounds { file_bytes: 1 << 20, tmp_bytes: 256 << 10, ..bounds() });
    let came = jail.shell("trap '' XFSZ; head -c 2000000 /dev/zero > big; stat -c %s big");
    assert_eq!(came.out.trim(), "1048576", "{came:?}");
    for folder in ["/tmp", "/dev/shm", "/home/dev"] {
        let came = jail.shell(&format!("head -c 500000 /dev/zero > {folder}/big || stat -c %s {folder}/big"));
        assert!(came.err.contains("No space left"), "{folder} {came:?}");
        assert!(came.out.trim().parse::<u64>().unwrap() <= 256 << 10, "{folder} {came:?}");
    }
}

#[test]
fn processor_time_is_bounded_and_counted() {
    let fixture = Fixture::new();
    let came = jail(&fixture, Confinement::Full, Bounds { cpu_ms: 1_000, ..bounds() })
        .shell("exec sh -c 'while :; do :; done'");
    assert_eq!(came.ended.signal, Some(24), "{came:?}");
    // The limit is counted in smaller units than the reported times.
    assert!(came.ended.cpu_ms >= 500, "{came:?}");
}

#[test]
fn a_bomb_of_processes_meets_a_wall() {
    let fixture = Fixture::new();
    let jail = jail(&fixture, Confinement::Full, Bounds { processes: 250, ..bounds() });
    let came = jail.shell("i=0; while [ $i -lt 600 ]; do sleep 631 & i=$((i+1)); done; wait");
    assert_ne!(came.ended.code, Some(0), "{came:?}");
    assert!(came.ended.killed <= 302 && came.ended.survivors == 0, "{came:?}");
    assert_eq!(jail.shell("echo on").out, "on\n");
}

#[test]
fn sixty_racers_are_all_caught() {
    for confinement in [Confinement::Landlock, Confinement::Full] {
        let fixture = Fixture::new();
        let mut jail = jail(&fixture, confinement, bounds());
        // Each racer forks itself again and again. All of them hold the pipe open.
        let racer = "perl -e 'while (1) { my $child = fork(); exit if $child; select(undef, undef, undef, 0.001) }' &";
        let script = format!("i=0; while [ $i -lt 16 ]; do {racer} i=$((i+1)); done; echo on; sleep 0.2");
        let (mut out, _err) = jail.begin(shell(&script), "").unwrap();
        let ended = jail.end();
        assert_eq!(ended.survivors, 0, "{confinement:?} {ended:?}");
        let mut text = String::new();
        out.read_to_string(&mut text).unwrap();
        assert_eq!(text, "on\n", "{confinement:?}: somebody held the pipe until now");
        jail.close();
    }
}
