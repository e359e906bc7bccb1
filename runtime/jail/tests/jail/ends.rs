//! How commands end: by exit, by a timeout, or with this program, and that none of their processes is left.

use super::fixture::{Fixture, argv, assert_silent, each, never, output, shell, tiers};
use glovebox_jail::exec::{Command, ExecError};
use glovebox_jail::jail::{ExecPolicy, cancel};
use glovebox_jail::lazy_jail::{LazyJail, START_OVERS_MAX, StartOverError};
use glovebox_record::{CommandEnding, Tier};
use glovebox_workspace::tree::remove_all;
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

#[test]
fn a_daemon_dies_with_its_command_and_holds_no_pipe() {
    let daemons = [
        "(sleep 3; echo x > {W}) &",
        "nohup setsid sh -c 'sleep 3; echo x > {W}' &",
        // A double fork with a separate session, an empty environment, no open pipe, and a limit of its own.
        "(env -i setsid prlimit --rttime=7000000:7000000 sh -c '(exec >/dev/null 2>&1; sleep 3; echo x > {W}) &' &) ; sleep 0.2",
        "trap '' TERM HUP INT; (trap '' TERM HUP; sleep 3; echo x > {W}) & echo started",
    ];
    each(|fixture| {
        let jail = fixture.jail();
        for daemon in daemons {
            let script = daemon.replace("{W}", &fixture.witness_inside());
            let exit = jail.run(&shell(&script), &never()).unwrap();
            assert_eq!((exit.how, exit.code), (CommandEnding::Exited, Some(0)), "{daemon}");
            assert!(exit.killed > 0, "{daemon}");
            assert!(!exit.stdout.cut && !exit.stderr.cut, "{daemon}: {exit:?}");
        }
        assert_silent(fixture);
    });
}

#[test]
fn a_timeout_asks_first_and_then_kills_everything() {
    each(|fixture| {
        let jail = fixture.jail();
        let polite = shell("trap 'echo bye; exit 0' TERM; while :; do sleep 0.05; done");
        let exit = jail.run(&Command { timeout: Duration::from_secs(1), ..polite }, &never()).unwrap();
        // If it had been killed, it would not have printed anything.
        assert_eq!((exit.how, exit.code, output(&exit).as_str()), (CommandEnding::TimedOut, None, "bye\n"));

        let script = format!(
            "trap '' TERM; (trap '' TERM; sleep 5; echo x > {}) & sleep 60; sleep 60; sleep 60",
            fixture.witness_inside()
        );
        let exit = jail.run(&Command { timeout: Duration::from_millis(300), ..shell(&script) }, &never()).unwrap();
        assert_eq!(exit.how, CommandEnding::TimedOut);
        let took = exit.duration;
        assert!(took >= Duration::from_secs(2) && took < Duration::from_secs(50), "{took:?}");
        assert_silent(fixture);
        // The jail is still usable.
        assert_eq!(jail.run(&argv(&["true"]), &never()).unwrap().code, Some(0));
    });
}

#[test]
fn canceling_ends_a_command_at_once() {
    each(|fixture| {
        let (jail, canceled) = (fixture.jail(), never());
        // A flag that is set without a call of `cancel` is noticed too, at the next sample.
        for set in [cancel as fn(&AtomicBool), |flag| flag.store(true, Ordering::Relaxed)] {
            canceled.store(false, Ordering::Relaxed);
            let exit = std::thread::scope(|threads| {
                let running = threads.spawn(|| jail.run(&shell("sleep 60"), &canceled));
                std::thread::sleep(Duration::from_millis(200));
                set(&canceled);
                running.join().unwrap().unwrap()
            });
            assert_eq!((exit.how, exit.code), (CommandEnding::Canceled, None));
            assert!(exit.duration < Duration::from_secs(50));
        }
        let script = format!("echo x > {}", fixture.witness_inside());
        let exit = jail.run(&shell(&script), &canceled).unwrap();
        assert_eq!(exit.how, CommandEnding::Canceled);
        assert!(!fixture.witness().exists(), "a canceled run started a command");
    });
}

#[test]
fn fork_racers_lose() {
    // Each racer replaces itself by a child again and again, in the session of the command or in new sessions.
    for racer in ["sh ./racer &", "setsid sh ./racer &"] {
        each(|fixture| {
            fs::write(fixture.root().join("racer"), racer).unwrap();
            let script = "for i in 1 2 3 4 5 6 7 8; do sh ./racer & done; sleep 0.05";
            let jail = fixture.jail();
            let exit = jail.run(&Command { timeout: Duration::from_secs(20), ..shell(script) }, &never()).unwrap();
            assert!(exit.killed > 0);
            if fixture.tier.has_own_root() {
                let exit = jail.run(&shell("cd /proc; echo [0-9]* $$"), &never()).unwrap();
                let text = output(&exit);
                let words: Vec<&str> = text.split_whitespace().collect();
                // In tier `bwrap`, the helper and its parent are listed too.
                let expected = if fixture.tier == Tier::Full { 2 } else { 4 };
                assert_eq!(words.len(), expected, "nobody but the shell: {text}");
            }
            if fixture.tier == Tier::Bwrap {
                // In this tier, the working directory of the helper itself is in the fixture.
                return;
            }
            for _ in 0..5 {
                assert_eq!(alive_in(fixture), Vec::<String>::new(), "{racer}");
                std::thread::sleep(Duration::from_millis(20));
            }
        });
    }
}

/// Returns the living processes whose working directory is in the fixture.
fn alive_in(fixture: &Fixture) -> Vec<String> {
    let within = fixture.at("");
    let processes = fs::read_dir("/proc").unwrap().flatten().filter(|entry| {
        fs::read_link(entry.path().join("cwd")).is_ok_and(|cwd| cwd.starts_with(&within))
            && fs::read_to_string(entry.path().join("stat")).is_ok_and(|stat| !stat.contains(") Z "))
    });
    processes.map(|entry| fs::read_to_string(entry.path().join("stat")).unwrap_or_default()).collect()
}

#[test]
fn the_end_of_one_command_leaves_others_alone() {
    each(|one| {
        let other = Fixture::new(one.tier);
        let mut bystander = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        std::thread::scope(|threads| {
            // The command hides its daemon as well as it can, and needs the daemon at its end.
            let script = "(env -i setsid sh -c 'sleep 1; echo alive > proof' &); for i in $(seq 100); do [ -e proof ] && break; sleep 0.1; done; cat proof";
            let long = threads.spawn(|| other.run(&shell(script)).unwrap());
            std::thread::sleep(Duration::from_millis(300));
            let until = Instant::now() + Duration::from_millis(900);
            // One workspace can be used for about sixty jails.
            for _ in 0..40 {
                if Instant::now() < until {
                    assert_eq!(one.run(&shell("setsid sleep 9 & setsid true")).unwrap().code, Some(0));
                }
            }
            let exit = long.join().unwrap();
            assert_eq!((exit.code, output(&exit).as_str()), (Some(0), "alive\n"), "{exit:?}");
        });
        assert!(bystander.try_wait().unwrap().is_none(), "a process that is no command was killed");
        bystander.kill().unwrap();
        bystander.wait().unwrap();
    });
}

#[test]
fn eight_jails_at_once_keep_to_themselves() {
    each(|first| {
        std::thread::scope(|threads| {
            let running: Vec<_> = (0..8)
                .map(|number| {
                    threads.spawn(move || {
                        let fixture = Fixture::new(first.tier);
                        let jail = fixture.jail();
                        for _ in 0..5 {
                            let text = format!("echo {number} >> log; setsid sleep 9 & echo {number}");
                            let exit = jail.run(&shell(&text), &never()).unwrap();
                            assert_eq!((exit.code, output(&exit)), (Some(0), format!("{number}\n")));
                        }
                        jail.end().unwrap();
                        assert_eq!(
                            fs::read_to_string(fixture.written("log")).unwrap(),
                            format!("{number}\n").repeat(5)
                        );
                    })
                })
                .collect();
            running.into_iter().for_each(|thread| thread.join().unwrap());
        });
    });
}

/// The kernel's parent-death signal is bound to the thread that started a process, so this must not be the thread that
/// opened the jail.
#[test]
fn a_jail_outlives_the_thread_that_opened_it() {
    each(|fixture| {
        let jail = std::thread::scope(|threads| threads.spawn(|| fixture.jail()).join().unwrap());
        std::thread::sleep(Duration::from_millis(50));
        let exit = jail.run(&shell("sleep 0.3; echo alive"), &never()).unwrap();
        assert_eq!((exit.code, output(&exit).as_str()), (Some(0), "alive\n"));
    });
}

#[test]
fn a_jail_that_lost_its_first_process_says_so() {
    let fixture = Fixture::new(Tier::Unconfined);
    let jail = fixture.jail();
    // Without a sandbox, a command can kill the helper, which is its parent. No process may be left, and the command
    // must not be reported as successful.
    let script = format!(
        "(trap '' TERM; sleep 3; echo x > {}) & kill -TERM $PPID; kill -KILL $PPID; sleep 9",
        fixture.witness_inside()
    );
    let lost = jail.run(&shell(&script), &never());
    assert!(matches!(lost, Err(ExecError::Killed)), "{lost:?}");
    assert!(jail.run(&argv(&["true"]), &never()).is_err());
    // Only a control group lists the processes that a killed helper leaves. In this tier, no other mechanism finds
    // them.
    let is_grouped = !jail.status().degradations.iter().any(|known| known == "memory=soft");
    jail.end().unwrap();
    if is_grouped {
        assert_silent(&fixture);
    }
}

#[test]
fn no_zombie_is_left() {
    each(|fixture| {
        for _ in 0..5 {
            fixture.run(&shell("(true &); (setsid true &); (setsid sleep 9 &); sleep 0.05")).unwrap();
        }
        let own = std::process::id().to_string();
        let zombies = || {
            let stats =
                fs::read_dir("/proc").unwrap().flatten().map(|entry| fs::read_to_string(entry.path().join("stat")));
            stats.flatten().filter(|stat| stat.contains("(sleep) Z") && stat.contains(&format!(" {own} "))).count()
        };
        let until = Instant::now() + Duration::from_secs(5);
        while zombies() > 0 && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(50));
        }
        assert_eq!(zombies(), 0);
    });
}

const VICTIM: &str = "GLOVEBOX_TEST_VICTIM";

/// Not a test itself: [`a_host_that_dies_takes_its_commands_along`] starts this program again to run it.
#[test]
fn victim() {
    let Some(way) = std::env::var_os(VICTIM) else { return };
    let way = way.into_string().unwrap();
    let (tier, folder) = way.split_once(':').unwrap();
    let fixture = Fixture::new(Tier::parse(tier).unwrap());
    fs::write(folder, fixture.at("").display().to_string()).unwrap();
    let script = format!(
        "(trap '' TERM HUP; setsid sh -c 'sleep 6; echo x > {0}' & sleep 6; echo x > {0}) & touch begun; sleep 30",
        fixture.witness_inside()
    );
    let exit = fixture.run_with(&ExecPolicy::default(), &shell(&script), &AtomicBool::new(false));
    panic!("it should have been killed: {exit:?}");
}

#[test]
fn a_host_that_dies_takes_its_commands_along() {
    for tier in tiers() {
        let dir = tempfile::tempdir().unwrap();
        let note = dir.path().join("note");
        let mut host = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "jail::ends::victim", "--nocapture"])
            .env(VICTIM, format!("{tier}:{}", note.display()))
            .stdout(std::process::Stdio::null())
            .stderr(std::process::Stdio::null())
            .spawn()
            .unwrap();
        let begun =
            |at: &str| ["upper/begun", "root/begun"].iter().any(|name| std::path::Path::new(at).join(name).exists());
        let until = Instant::now() + Duration::from_secs(20);
        let fixture = loop {
            let at = fs::read_to_string(&note).unwrap_or_default();
            if !at.is_empty() && begun(&at) {
                break at;
            }
            assert!(Instant::now() < until && host.try_wait().unwrap().is_none(), "the victim never began ({tier})");
            std::thread::sleep(Duration::from_millis(20));
        };
        host.kill().unwrap();
        assert_eq!(host.wait().unwrap().signal(), Some(9));
        std::thread::sleep(Duration::from_millis(7_000));
        for name in ["witness", "upper/witness", "root/witness"] {
            assert!(!std::path::Path::new(&fixture).join(name).exists(), "something outlived its host ({tier})");
        }
        // The killed program could not remove its folder.
        remove_all(std::path::Path::new(fixture.trim_end_matches('/'))).unwrap();
    }
}

#[test]
fn a_stage_starts_over_so_often_and_not_while_its_jail_is_in_use() {
    for tier in tiers() {
        let fixture = Arc::new(Fixture::new(tier));
        let (first, again) = (Arc::clone(&fixture), Arc::clone(&fixture));
        let lazy = LazyJail::new(move || Ok(first.open(|_| {})?)).starting_over(move || Ok(again.open(|_| {})?));
        let jail = lazy.get().unwrap();
        assert!(matches!(lazy.reset(), Err(StartOverError::InUse)));
        assert_eq!(jail.run(&argv(&["true"]), &never()).unwrap().code, Some(0), "it stays open");
        drop(jail);
        (0..START_OVERS_MAX).for_each(|_| lazy.reset().unwrap());
        let refused = lazy.reset().unwrap_err();
        assert_eq!(refused.to_string(), "a stage can be restarted at most 32 times");
        // The last jail works like the first.
        assert_eq!(lazy.get().unwrap().run(&argv(&["true"]), &never()).unwrap().code, Some(0));
        assert_eq!(lazy.used_before().len(), START_OVERS_MAX);
        lazy.into_jail().unwrap().unwrap().end().unwrap();
    }
}
