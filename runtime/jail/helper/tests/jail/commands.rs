//! Commands in every confinement: how they end, their arguments, and that none of their processes survive.

use crate::fixture::{Fixture, Jail, gone, shell};
use glovebox_jail_helper::policy::Confinement;
use glovebox_jail_helper::wire::{Command, Program, Reply, Request};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use std::io::Read;

const ALL: [Confinement; 3] = [Confinement::Unconfined, Confinement::Landlock, Confinement::Full];

fn everywhere(check: impl Fn(&Fixture, &Jail, Confinement)) {
    for confinement in ALL {
        let fixture = Fixture::new();
        let jail = Jail::start(&fixture.policy(confinement));
        check(&fixture, &jail, confinement);
    }
}

#[test]
fn codes_and_signals_arrive() {
    everywhere(|_, jail, confinement| {
        for (script, code, signal) in [
            ("true", Some(0), None),
            ("false", Some(1), None),
            ("exit 77", Some(77), None),
            ("kill -TERM $$", None, Some(15)),
            ("kill -KILL $$", None, Some(9)),
        ] {
            let came = jail.shell(script);
            assert_eq!((came.ended.code, came.ended.signal), (code, signal), "{confinement:?} {script} {came:?}");
            assert_eq!(came.ended.survivors, 0, "{confinement:?} {script}");
        }
    });
}

#[test]
fn streams_words_environment_and_folder_are_as_given() {
    everywhere(|_, jail, confinement| {
        let mut command = shell("cat; echo err >&2; env; echo \"$0 $*\"; pwd");
        command.arguments.extend(["name".to_owned(), "a b".to_owned(), "--".to_owned(), "$HOME".to_owned()]);
        command.env.push(("ODD".to_owned(), "x=y z".to_owned()));
        let came = jail.try_run(command, "input\n").expect("started");
        assert!(came.out.starts_with("input\n"), "{confinement:?} {came:?}");
        assert!(
            came.out.contains("\nODD=x=y z\n") && came.out.contains("\nname a b -- $HOME\n"),
            "{confinement:?} {came:?}"
        );
        assert!(!came.out.contains("CARGO") && came.err == "err\n", "{confinement:?} {came:?}");
        assert!(came.out.trim_end().ends_with(if confinement == Confinement::Full {
            "/home/dev/project"
        } else {
            "/copy"
        }));
        assert_eq!(jail.shell("ls /proc/self/fd | wc -l").out.trim(), "4", "{confinement:?}");
    });
}

#[test]
fn a_program_that_is_not_there_is_a_failure_and_the_jail_goes_on() {
    everywhere(|fixture, jail, confinement| {
        let run = |program| {
            let command = Command { program, arguments: Vec::new(), env: Vec::new(), cwd: String::new() };
            jail.try_run(command, "").expect_err("not started")
        };
        let missing = run(Program::Path("/usr/bin/no-such-program".into()));
        assert_eq!((missing.step.as_str(), missing.errno), ("exec /usr/bin/no-such-program", 2), "{confinement:?}");
        let at = fixture.policy(confinement).workspace.at;
        let planted = jail.shell("printf '#!/bin/sh\\n' > go && chmod 755 go && ./go && echo ran");
        assert_eq!(planted.out, "ran\n", "{confinement:?} {planted:?}");
        let missing = run(Program::Search { name: "go".to_owned(), folders: vec![at, "/bin".into()] });
        assert_eq!((missing.step.as_str(), missing.errno), ("find program", 2), "{confinement:?}");
        jail.shell("ln -s / out; ln -s ../.. above; ln -s /proc/self/root magic");
        for cwd in ["../", "/etc", "no-such-folder", "file.txt", "out", "above", "magic", "out/etc"] {
            let command = Command { cwd: cwd.to_owned(), ..shell("pwd") };
            assert_eq!(
                jail.try_run(command, "").expect_err("refused").step,
                "open the command's folder",
                "{confinement:?} {cwd}"
            );
        }
        assert_eq!(jail.shell("mkdir deep && cd deep && echo fine").out, "fine\n", "{confinement:?}");
        assert!(
            jail.try_run(Command { cwd: "deep".to_owned(), ..shell("pwd") }, "")
                .expect("started")
                .out
                .ends_with("/deep\n")
        );
    });
}

#[test]
fn nothing_outlives_a_command() {
    everywhere(|_, jail, confinement| {
        // Daemons: one holds the output open, one ignores signals. The witness is the pipe, whose other end must be
        // closed.
        let came = jail.shell("setsid sleep 600 & (trap '' TERM HUP INT; setsid sleep 601 >/dev/null 2>&1 &) ; sleep 602 & sleep 0.1; echo done");
        assert_eq!((came.out.as_str(), came.ended.survivors), ("done\n", 0), "{confinement:?}");
        assert!(came.ended.killed >= 3, "{confinement:?} {came:?}");
        let listed = jail.shell("for stat in /proc/[0-9]*/cmdline; do tr '\\0' ' ' < $stat; echo; done 2>/dev/null");
        assert!(
            !["600", "601", "602"].iter().any(|time| listed.out.contains(&format!("sleep {time}"))),
            "{confinement:?}"
        );
    });
}

#[test]
fn a_command_can_be_asked_to_end_and_be_killed() {
    everywhere(|_, jail, confinement| {
        let (mut out, _err) =
            jail.begin(shell("trap 'echo asked; exit 3' TERM; echo on; while :; do sleep 0.05; done"), "").unwrap();
        out.read_exact(&mut [0; 3]).unwrap();
        jail.request(&Request::Run(shell("true")), &[]);
        assert!(matches!(jail.reply().0, Reply::Failed(_)), "{confinement:?}: two at a time");
        jail.request(&Request::Terminate, &[]);
        assert_eq!(jail.end().code, Some(3), "{confinement:?}");
        let (mut out, _err) = jail.begin(shell("trap '' TERM; echo on; while :; do sleep 0.05; done"), "").unwrap();
        out.read_exact(&mut [0; 3]).unwrap();
        jail.request(&Request::Terminate, &[]);
        jail.request(&Request::Kill, &[]);
        assert_eq!(jail.end().signal, Some(9), "{confinement:?}");
        // Requests that arrive after the end have no effect.
        jail.request(&Request::Kill, &[]);
        assert_eq!(jail.shell("echo still here").out, "still here\n", "{confinement:?}");
    });
}

#[test]
fn when_the_host_closes_its_end_everything_dies() {
    for confinement in ALL {
        let fixture = Fixture::new();
        let mut jail = Jail::start(&fixture.policy(confinement));
        let (mut out, _err) = jail.begin(shell("setsid sleep 605 & echo on; sleep 606"), "").unwrap();
        out.read_exact(&mut [0; 3]).unwrap();
        let witnesses: Vec<_> = descendants(jail.child.id())
            .iter()
            .map(|pid| pidfd_open(Pid::from_raw(*pid).unwrap(), PidfdFlags::empty()).unwrap())
            .collect();
        assert!(witnesses.len() >= 2, "{confinement:?}");
        jail.close();
        // PID 1 ends only when its namespace is empty. Without a namespace, the end of the reaper shows it.
        for witness in &witnesses {
            assert!(gone(witness), "{confinement:?}");
        }
        assert_eq!(out.read_to_end(&mut Vec::new()).unwrap(), 0, "{confinement:?}: somebody holds the pipe");
    }
}

/// Returns all descendants of a process, by their ids on the host.
fn descendants(of: u32) -> Vec<i32> {
    let all: Vec<(i32, i32)> = std::fs::read_dir("/proc")
        .unwrap()
        .flatten()
        .filter_map(|entry| {
            let stat = std::fs::read_to_string(entry.path().join("stat")).ok()?;
            let parent = stat.rsplit_once(')')?.1.split_ascii_whitespace().nth(1)?.parse().ok()?;
            Some((entry.file_name().to_str()?.parse().ok()?, parent))
        })
        .collect();
    let (mut found, mut next) = (Vec::new(), vec![of as i32]);
    while let Some(parent) = next.pop() {
        let children: Vec<i32> = all.iter().filter(|(_, of)| *of == parent).map(|(pid, _)| *pid).collect();
        next.extend(&children);
        found.extend(children);
    }
    found
}
