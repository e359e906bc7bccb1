//! Visible and writable files in a jail of tier `full`, with witnesses outside.

use crate::fixture::{Fixture, Jail, is_root, names, shell};
use glovebox_jail_helper::policy::{Bind, Confinement, Network, Source};
use glovebox_jail_helper::wire::{Enforcement, Reply, Request};
use rustix::fs::{CWD, FileType, Mode, mknodat};
use rustix::io::Errno;
use std::fs;
use std::net::TcpListener;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileTypeExt, PermissionsExt, symlink};
use std::path::PathBuf;

fn bind(source: impl Into<PathBuf>, at: &str) -> Bind {
    Bind::read_only(source.into(), at.into())
}

#[test]
fn only_what_was_given_exists() {
    let fixture = Fixture::new();
    let mut policy = fixture.policy(Confinement::Full);
    fs::write(fixture.path("outside/tool"), "tool\n").unwrap();
    policy.binds.push(bind(fixture.path("outside/tool"), "/opt/deep/tool"));
    policy.binds.push(Bind { optional: true, ..bind("/no/such/folder", "/opt/absent") });
    let jail = Jail::start(&policy);
    let root = jail.shell("ls -A /").out;
    let allowed =
        ["bin", "dev", "etc", "home", "lib", "lib32", "lib64", "libx32", "opt", "proc", "sbin", "sys", "tmp", "usr"];
    assert!(root.lines().all(|name| allowed.contains(&name)), "{root}");
    assert_eq!(jail.shell("cat /opt/deep/tool; ls /opt").out, "tool\ndeep\n");
    for path in [
        "/etc/shadow",
        "/etc/ssh",
        "/etc/ssl/private",
        "/root",
        "/home/dev/.ssh",
        "/run",
        "/var",
        "/dev/kmsg",
        "/dev/tty",
        "/dev/kvm",
    ] {
        let came = jail.shell(&format!("ls -d {path}"));
        assert!(came.ended.code != Some(0) && came.err.contains("No such file"), "{path} {came:?}");
    }
    assert_eq!(
        jail.shell("ls -A /home /home/dev /tmp /dev/shm").out,
        "/dev/shm:\n\n/home:\ndev\n\n/home/dev:\nproject\n\n/tmp:\n"
    );
    assert_eq!(jail.shell("cat /etc/passwd").out, "dev:x:1000:1000::/home/dev:/bin/sh\n");
    assert_eq!(jail.shell(&format!("cat {}", fixture.text("outside/secret"))).ended.code, Some(1));
    let mounts = jail.shell("cat /proc/self/mountinfo").out;
    assert!(!mounts.contains("/mask") && !mounts.contains("/lower"), "{mounts}");
}

/// As root outside, the jail's user owns the files of the kernel's `/sys`, so none of them may be mounted.
#[test]
fn sys_has_copies_of_a_few_files_about_the_machine() {
    let fixture = Fixture::new();
    let jail = Jail::start(&fixture.policy(Confinement::Full));
    let online = fs::read_to_string("/sys/devices/system/cpu/online").unwrap();
    assert_eq!(jail.shell("cat /sys/devices/system/cpu/online").out, online);
    assert_eq!(jail.shell("test -d /sys/devices/system/cpu/cpu0/topology && echo yes").out, "yes\n");
    let listed = jail.shell("ls /sys /sys/devices /sys/devices/system /sys/kernel /sys/kernel/mm").out;
    for name in listed.split_whitespace().filter(|name| !name.ends_with(':')) {
        let known = ["cpu", "devices", "kernel", "mm", "node", "system", "transparent_hugepage"];
        assert!(known.contains(&name), "{listed}");
    }
    assert!(!jail.shell("cat /proc/self/mounts").out.contains("sysfs"));
    let came = jail.shell(
        "for f in $(find /sys -type f); do (echo 0 > $f) 2>/dev/null && echo $f; done; \
         mkdir /sys/fs 2>/dev/null && echo made; touch /sys/x 2>/dev/null && echo touched; echo refused",
    );
    assert_eq!(came.out, "refused\n");
}

#[test]
fn what_is_not_the_commands_cannot_be_written() {
    let fixture = Fixture::new();
    let mut policy = fixture.policy(Confinement::Full);
    policy.binds.push(bind(fixture.path("outside"), "/opt/outside"));
    let jail = Jail::start(&policy);
    for act in [
        "echo x > /new",
        "mkdir /new",
        "echo x > /usr/new",
        "echo x > /etc/passwd",
        "echo x > /opt/outside/secret",
        "chmod 777 /opt/outside/secret",
        "touch /opt/outside/secret",
        "rm /opt/outside/secret",
        "mv /opt/outside/secret /tmp/s",
        "ln /opt/outside/secret /tmp/s",
        "chmod 000 /dev/null",
        "rm /dev/null",
        "echo x > /dev/new",
        "mknod /tmp/d c 1 3",
        "echo 1 > /proc/self/oom_score_adj",
        "echo x > /proc/sys/kernel/hostname",
        "echo x > /proc/self/uid_map",
        "mount -t tmpfs x /tmp",
        "umount /home/dev/project",
        "touch /tmp/s && chmod 4755 /tmp/s",
        "unshare -U true",
        "prlimit --pid 1 --cpu=0",
        "renice -n 19 -p 1",
        "taskset -p 1 1",
        "chroot / true",
    ] {
        let came = jail.shell(&format!("({act}) 2>/dev/null"));
        assert_ne!(came.ended.code, Some(0), "{act} {came:?}");
    }
    assert_eq!(fs::read_to_string(fixture.path("outside/secret")).unwrap(), "secret\n");
    assert_eq!(names(&fixture.path("outside")), ["secret"]);
    assert_ne!(fs::metadata("/dev/null").unwrap().permissions().mode() & 0o777, 0);
    assert_eq!(jail.shell("echo fine > /dev/null && echo a > /tmp/a && echo b > /home/dev/b && cat /tmp/a").out, "a\n");
}

#[test]
fn changes_land_in_the_upper_layer_and_whiteouts_hide() {
    let fixture = Fixture::new();
    fs::create_dir(fixture.path("lower/tests")).unwrap();
    fs::write(fixture.path("lower/tests/secret.txt"), "hidden\n").unwrap();
    mknodat(CWD, fixture.path("mask/tests"), FileType::CharacterDevice, Mode::empty(), 0).unwrap();
    let jail = Jail::start(&fixture.policy(Confinement::Full));
    assert_eq!(jail.shell("ls -A; cat tests/secret.txt; ls tests").out, "file.txt\n");
    let came = jail
        .shell("echo new > new.txt && sed -i s/content/changed/ file.txt && mv file.txt moved.txt && cat moved.txt");
    assert_eq!(came.out, "changed\n", "{came:?}");
    assert_eq!(fs::read_to_string(fixture.path("lower/file.txt")).unwrap(), "content\n");
    assert_eq!(names(&fixture.path("upper")), ["file.txt", "moved.txt", "new.txt"]);
    assert!(fs::symlink_metadata(fixture.path("upper/file.txt")).unwrap().file_type().is_char_device());
    assert_eq!(fs::read_to_string(fixture.path("upper/moved.txt")).unwrap(), "changed\n");
}

#[test]
fn commands_share_the_workspace_with_each_other_and_with_the_host() {
    let fixture = Fixture::new();
    let jail = Jail::start(&fixture.policy(Confinement::Full));
    let merged = format!("/proc/self/fd/{}", jail.beside[0].as_raw_fd());
    assert_eq!(jail.beside.len(), 1);
    assert_eq!(
        jail.shell("echo one > shared; (sleep 620 &); cat /proc/sys/kernel/ns_last_pid >/dev/null; echo").out,
        "\n"
    );
    fs::write(format!("{merged}/host"), "two\n").unwrap();
    let came = jail.shell("cat shared host; for p in /proc/[0-9]*; do echo ${p#/proc/}; done | wc -l");
    // Visible are only PID 1, the shell, and the processes that it forks for the pipe: no process of the first command.
    let (files, count) = came.out.split_at("one\ntwo\n".len());
    assert!(files == "one\ntwo\n" && count.trim().parse::<u32>().unwrap() <= 4, "{came:?}");
    assert_eq!(names(&fixture.path("upper")), ["host", "shared"]);
}

#[test]
fn the_merged_root_serves_after_the_death_of_the_jail() {
    let fixture = Fixture::new();
    let mut jail = Jail::start(&fixture.policy(Confinement::Full));
    jail.shell("echo late > late.txt");
    jail.close();
    let merged = format!("/proc/self/fd/{}", jail.beside[0].as_raw_fd());
    assert_eq!(fs::read_to_string(format!("{merged}/late.txt")).unwrap(), "late\n");
}

#[test]
fn inner_mounts_are_read_only_and_follow_no_planted_link() {
    let fixture = Fixture::new();
    fs::create_dir_all(fixture.path("lower/scripts/scenarios")).unwrap();
    fs::write(fixture.path("outside/case"), "case\n").unwrap();
    let mut policy = fixture.policy(Confinement::Full);
    policy.workspace.inner = vec![bind(fixture.path("outside"), "/home/dev/project/scripts/scenarios")];
    let jail = Jail::start(&policy);
    let came = jail.shell("cat scripts/scenarios/case; echo x > scripts/scenarios/new || echo refused");
    assert_eq!(came.out, "case\nrefused\n", "{came:?}");
    let came = jail.shell(
        "mv scripts old || rm -rf scripts/scenarios || mv scripts/scenarios old || echo held; echo y > scripts/y",
    );
    assert_eq!(
        (came.out.as_str(), names(&fixture.path("upper/scripts"))),
        ("held\n", vec!["y".to_owned()]),
        "{came:?}"
    );
    drop(jail);
    let fixture = Fixture::new();
    symlink("/etc", fixture.path("lower/scripts")).unwrap();
    let mut policy = fixture.policy(Confinement::Full);
    policy.workspace.inner = vec![bind(fixture.path("outside"), "/home/dev/project/scripts/ssl")];
    let failure = Jail::try_start(&policy).err().expect("refused");
    assert_eq!(failure.errno, Errno::LOOP.raw_os_error(), "{failure:?}");
}

#[test]
fn writable_binds_keep_what_is_written() {
    let fixture = Fixture::new();
    let mut policy = fixture.policy(Confinement::Full);
    policy.binds.push(Bind { writable: true, ..bind(fixture.path("outside"), "/home/dev/.cache") });
    let jail = Jail::start(&policy);
    let came = jail
        .shell("echo kept > /home/dev/.cache/kept; cp /bin/true /home/dev/.cache/t; /home/dev/.cache/t && echo ran");
    assert_eq!(fs::read_to_string(fixture.path("outside/kept")).unwrap(), "kept\n", "{came:?}");
}

#[test]
fn a_copy_is_bound_at_its_place() {
    let fixture = Fixture::new();
    let mut policy = fixture.policy(Confinement::Full);
    policy.workspace.source = Source::Directory(fixture.path("copy"));
    let jail = Jail::start(&policy);
    assert_eq!(jail.shell("pwd; cat file.txt; echo x > new").out, "/home/dev/project\ncontent\n");
    assert_eq!(names(&fixture.path("copy")), ["file.txt", "new"]);
}

#[test]
fn identity_inside_is_nobody_special() {
    let fixture = Fixture::new();
    let jail = Jail::start(&fixture.policy(Confinement::Full));
    assert_eq!(jail.shell("id -u; id -g").out, "1000\n1000\n");
    let status = jail.shell("cat /proc/self/status").out;
    for set in ["CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"] {
        assert!(status.contains(&format!("{set}:\t0000000000000000")), "{set}\n{status}");
    }
    assert_eq!(jail.shell("cat /proc/sys/user/max_user_namespaces").out, "0\n");
    assert!(status.contains("NoNewPrivs:\t1") && status.contains("Seccomp:\t2"), "{status}");
    if is_root() {
        // Groups of an ordinary user stay, so files that are readable only through a group must not be visible.
        assert!(status.contains("Groups:\t\n") || status.contains("Groups:\t \n"), "{status}");
    }
    for file in ["environ", "exe", "cwd", "root", "mem", "maps", "fd", "fdinfo"] {
        let came = jail.shell(&format!("ls -l /proc/1/{file}/ || cat /proc/1/{file}"));
        assert!(came.out.trim().is_empty() && came.ended.code != Some(0), "/proc/1/{file} {came:?}");
    }
    let words = jail.shell("tr '\\0' ' ' < /proc/1/cmdline; kill -9 1; kill -STOP 1; echo; echo still").out;
    assert_eq!(words, "\nstill\n", "it is not even listed");
    let listed = jail.shell("cd /proc; echo [0-9]*").out;
    assert!(!listed.split_whitespace().any(|number| number == "1"), "{listed}");
}

#[test]
fn the_loopback_is_its_own() {
    let outside = TcpListener::bind("127.0.0.1:0").unwrap();
    outside.set_nonblocking(true).unwrap();
    let port = outside.local_addr().unwrap().port();
    let fixture = Fixture::new();
    let jail = Jail::start(&fixture.policy(Confinement::Full));
    let came = jail.shell(&format!("bash -c 'echo x > /dev/tcp/127.0.0.1/{port}'; cat /proc/net/dev"));
    assert!(came.err.contains("refused") && came.out.contains("lo:"), "{came:?}");
    assert_eq!(came.out.lines().count(), 3, "{came:?}");
    assert!(outside.accept().is_err(), "somebody came through");
}

#[test]
fn the_proxys_listener_is_handed_over() {
    let fixture = Fixture::new();
    let mut policy = fixture.policy(Confinement::Full);
    policy.network = Network::Proxy;
    let mut jail = Jail::start(&policy);
    assert_eq!(jail.beside.len(), 2);
    let listener = TcpListener::from(jail.beside.pop().unwrap());
    let (mut out, _err) =
        jail.begin(shell("bash -c 'exec 3<>/dev/tcp/127.0.0.1/3128; echo asked >&3; cat <&3'"), "").unwrap();
    let (mut stream, _) = listener.accept().unwrap();
    std::io::Write::write_all(&mut stream, b"answered\n").unwrap();
    let mut question = [0; 6];
    std::io::Read::read_exact(&mut stream, &mut question).unwrap();
    drop(stream);
    let mut answer = String::new();
    std::io::Read::read_to_string(&mut out, &mut answer).unwrap();
    assert_eq!((question.as_slice(), answer.as_str()), (b"asked\n".as_slice(), "answered\n"));
    jail.end();
}

#[test]
fn what_cannot_be_built_is_a_failure_with_its_step() {
    let fixture = Fixture::new();
    let check = |change: &dyn Fn(&mut glovebox_jail_helper::policy::Policy), step: &str| {
        let mut policy = fixture.policy(Confinement::Full);
        change(&mut policy);
        let failure = Jail::try_start(&policy).err().expect("a failure");
        assert!(failure.step.contains(step), "{step}: {failure:?}");
    };
    symlink(fixture.path("outside"), fixture.path("link")).unwrap();
    check(&|policy| policy.binds.push(bind("/no/such/folder", "/opt/x")), "open /no/such/folder");
    check(&|policy| policy.binds.push(bind(fixture.path("link"), "/opt/x")), "open ");
    check(&|policy| policy.uid = 0, "map ids");
    check(&|policy| policy.cgroup_procs.push("/no/such/cgroup.procs".into()), "enter cgroup");
    check(&|policy| policy.workspace.source = overlay(&fixture, "outside/secret"), "mount overlay");
    check(&|policy| policy.workspace.source = overlay(&fixture, "missing"), "open layer");
    let mut policy = fixture.policy(Confinement::Landlock);
    policy.workspace.source = overlay(&fixture, "upper");
    assert_eq!(Jail::try_start(&policy).err().expect("a failure").step, "set up the workspace");
}

fn overlay(fixture: &Fixture, upper: &str) -> Source {
    Source::Overlay { lower: vec![fixture.path("lower")], upper: fixture.path(upper), work: fixture.path("work") }
}

#[test]
fn odd_names_of_layers_are_no_options() {
    let fixture = Fixture::new();
    let odd = fixture.path("a:b,c\\d=upperdir");
    fs::create_dir(&odd).unwrap();
    fs::write(odd.join("odd.txt"), "odd\n").unwrap();
    let mut policy = fixture.policy(Confinement::Full);
    policy.workspace.source = Source::Overlay {
        lower: vec![odd, fixture.path("lower")],
        upper: fixture.path("upper"),
        work: fixture.path("work"),
    };
    assert_eq!(Jail::start(&policy).shell("cat odd.txt file.txt").out, "odd\ncontent\n");
}

#[test]
fn a_jail_says_what_it_came_out_as() {
    let fixture = Fixture::new();
    let Enforcement { landlock_abi, degradations } =
        Jail::start(&fixture.policy(Confinement::Full)).enforcement.clone();
    let is_known = |known: &String| ["processes=soft", "proc=shared", "renames=kernel"].contains(&known.as_str());
    assert!(landlock_abi >= 3 && degradations.iter().all(is_known), "{landlock_abi} {degradations:?}");
    let lesser = Jail::start(&fixture.policy(Confinement::Landlock)).enforcement.clone();
    assert!(
        lesser.landlock_abi >= 3 && lesser.degradations == ["processes=shared", "tmp=none", "processes=soft"],
        "{lesser:?}"
    );
    let none = Jail::start(&fixture.policy(Confinement::Unconfined));
    assert_eq!(none.enforcement.landlock_abi, 0);
    none.request(&Request::Setup(Box::new(fixture.policy(Confinement::Full))), &[]);
    assert!(matches!(none.reply().0, Reply::Failed(_)), "a jail is built once");
}
