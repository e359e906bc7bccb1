//! Tests of the arguments for `bwrap`, without running it.
#![cfg(test)]

use super::*;
use glovebox_jail_helper::policy::{Bounds, Confinement, Workspace};

fn policy() -> Policy {
    let bind =
        |source: &str, writable, optional| Bind { writable, optional, ..Bind::read_only(source.into(), source.into()) };
    Policy {
        confinement: Confinement::Bwrap,
        workspace: Workspace {
            at: "/home/dev/project".into(),
            source: Source::Directory("/var/lib/copy".into()),
            inner: vec![bind("/home/dev/project/tests", false, false)],
        },
        binds: vec![bind("/opt/go", false, false), bind("/var/cache/build", true, true)],
        files: vec![("/etc/passwd".into(), "dev:x:1000:1000::/home:/bin/sh\n".into())],
        home: "/home/dev".into(),
        tmp: "/tmp".into(),
        uid: 1000,
        gid: 1001,
        network: Network::None,
        sockets: false,
        bounds: Bounds {
            cpu_ms: 1,
            command_memory_bytes: 1,
            is_memory_counted: true,
            processes: 1,
            descriptors: 1,
            file_bytes: 1,
            tmp_bytes: 1,
        },
        cgroup_procs: Vec::new(),
    }
}

fn listed(policy: &Policy) -> String {
    let mut next = 10;
    let mut file_of = |_: &[u8]| {
        next += 1;
        Ok(next)
    };
    arguments(policy, 9, &mut file_of).expect("arguments").join(" ")
}

#[test]
fn everything_is_left_and_only_what_is_listed_comes_back() {
    let words = listed(&policy());
    for expected in [
        "--die-with-parent --new-session --unshare-user --unshare-pid",
        "--cap-drop ALL --clearenv --unshare-net --uid 1000 --gid 1001",
        "--ro-bind /usr /usr",
        "--perms 1777 --size 4096 --tmpfs /dev/shm --perms 1777 --size 4096 --tmpfs /tmp --perms 0700 --size 4096 --tmpfs /home/dev",
        "--ro-bind /opt/go /opt/go --bind-try /var/cache/build /var/cache/build --bind /var/lib/copy /home/dev/project",
        "--ro-bind /home/dev/project/tests /home/dev/project/tests --perms 0644 --ro-bind-data 11 /etc/passwd",
    ] {
        assert!(words.contains(expected), "{expected}\n{words}");
    }
    assert!(words.ends_with("--perms 0555 --ro-bind-data 9 /.glovebox-jail --remount-ro / --chdir /home/dev/project"));
    for secret in ["/etc/shadow", "/etc/ssh", "resolv.conf", "--ro-bind / /", "--ro-bind /etc /etc", "dev:x:"] {
        assert!(!words.contains(secret), "{secret}\n{words}");
    }
}

#[test]
fn folders_above_inner_mounts_are_held_in_their_place() {
    let mut policy = policy();
    for at in ["/home/dev/project/a/b/c", "/home/dev/project/a/d", "/home/dev/project2/x/y"] {
        policy.workspace.inner.push(Bind::read_only("/s".into(), at.into()));
    }
    assert_eq!(policy.workspace.above_inner(), ["a", "a/b"]);
    let expected = "--bind /var/lib/copy /home/dev/project --bind /var/lib/copy/a /home/dev/project/a \
        --bind /var/lib/copy/a/b /home/dev/project/a/b --ro-bind";
    assert!(listed(&policy).contains(expected), "{}", listed(&policy));
}

#[test]
fn the_network_is_shared_only_when_all_of_it_is_asked_for() {
    let mut policy = policy();
    policy.network = Network::Full;
    let words = listed(&policy);
    assert!(!words.contains("--unshare-net") && words.contains("--ro-bind-try /etc/resolv.conf"));
    policy.network = Network::Proxy;
    assert!(arguments(&policy, 9, &mut |_| Ok(11)).is_err());
}

#[test]
fn layers_are_refused() {
    let mut policy = policy();
    policy.workspace.source = Source::Overlay { lower: Vec::new(), upper: "/u".into(), work: "/w".into() };
    assert!(arguments(&policy, 9, &mut |_| Ok(11)).expect_err("refused").text.contains("copy"));
}
