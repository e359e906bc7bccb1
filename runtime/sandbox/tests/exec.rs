//! Host programs under guard. Every claim has a witness outside: a file that must not appear, a process that must be dead.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on stops there")]

use glovebox_sandbox::exec::{self, Command, ExecError, ExecPolicy, Exit, How, Program};
use glovebox_sandbox::path::ScopePath;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

struct Place {
    dir: tempfile::TempDir,
}

impl Place {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("root")).unwrap();
        fs::create_dir(dir.path().join("scratch")).unwrap();
        Self { dir }
    }

    fn root(&self) -> PathBuf {
        self.dir.path().join("root")
    }

    /// A file outside root and scratch that a surviving process would write.
    fn witness(&self) -> PathBuf {
        self.dir.path().join("witness")
    }

    fn run(&self, command: &Command) -> Result<Exit, ExecError> {
        self.run_with(&ExecPolicy::default(), command, &AtomicBool::new(false))
    }

    fn run_with(&self, policy: &ExecPolicy, command: &Command, canceled: &AtomicBool) -> Result<Exit, ExecError> {
        exec::run(&self.root(), &self.dir.path().join("scratch"), policy, command, canceled)
    }
}

fn shell(text: &str) -> Command {
    let program = Program::Shell(text.to_owned());
    Command { program, cwd: ScopePath::root(), env: Vec::new(), stdin: None, timeout: Duration::from_secs(60) }
}

fn argv(words: &[&str]) -> Command {
    Command { program: Program::Argv(words.iter().map(|word| word.to_string()).collect()), ..shell("") }
}

fn output(exit: &Exit) -> String {
    assert!(!exit.stdout.truncated);
    String::from_utf8([exit.stdout.head.clone(), exit.stdout.tail.clone()].concat()).unwrap()
}

/// Waits longer than a survivor would have needed, then demands that it did nothing.
fn assert_silent(place: &Place) {
    std::thread::sleep(Duration::from_millis(3_200));
    assert!(!place.witness().exists(), "something outlived its command and wrote");
}

#[test]
fn an_exit_code_a_signal_and_the_two_streams_are_told_apart() {
    let place = Place::new();
    let exit = place.run(&shell("echo out; echo err >&2; exit 3")).unwrap();
    assert_eq!((exit.how, exit.code), (How::Exited, Some(3)));
    assert_eq!((output(&exit).as_str(), exit.stderr.head.as_slice()), ("out\n", b"err\n".as_slice()));
    let exit = place.run(&shell("kill -SEGV $$")).unwrap();
    assert_eq!((exit.how, exit.code), (How::Signaled, Some(11)));
}

#[test]
fn a_flood_is_drained_and_only_head_and_tail_are_kept() {
    let place = Place::new();
    let policy = ExecPolicy { output_bytes_max: 1 << 16, ..ExecPolicy::default() };
    let flood = "echo begin; head -c 100000000 /dev/zero; echo end";
    let exit = place.run_with(&policy, &shell(flood), &AtomicBool::new(false)).unwrap();
    assert_eq!((exit.how, exit.code), (How::Exited, Some(0)));
    assert_eq!(exit.stdout.total_bytes, 100_000_010);
    assert!(exit.stdout.truncated && exit.stdout.head.len() + exit.stdout.tail.len() == 1 << 16);
    assert!(exit.stdout.head.starts_with(b"begin\n") && exit.stdout.tail.ends_with(b"end\n"));
    let mut hasher = blake3::Hasher::new();
    hasher.update(b"begin\n").update(&vec![0; 100_000_000]).update(b"end\n");
    assert_eq!(exit.stdout.digest, hasher.finalize().to_hex().to_string());
}

#[test]
fn an_endless_flood_ends_with_its_time() {
    let place = Place::new();
    let exit = place.run(&Command { timeout: Duration::from_millis(300), ..argv(&["yes"]) }).unwrap();
    assert_eq!((exit.how, exit.code), (How::TimedOut, None));
    assert!(exit.stdout.total_bytes > 1 << 20 && exit.stdout.head.len() + exit.stdout.tail.len() == 1 << 20);
}

#[test]
fn a_daemon_dies_with_its_command_and_holds_no_pipe() {
    for daemon in [
        "(sleep 3; echo x > {W}) &",
        "nohup setsid sh -c 'sleep 3; echo x > {W}' &",
        // Double fork, own session, no marker in the environment, no open pipe.
        "(env -i setsid sh -c '(exec >/dev/null 2>&1; sleep 3; echo x > {W}) &' &) ; sleep 0.2",
        "trap '' TERM HUP INT; (trap '' TERM HUP; sleep 3; echo x > {W}) & echo started",
    ] {
        let place = Place::new();
        let script = daemon.replace("{W}", &place.witness().display().to_string());
        let exit = place.run(&shell(&script)).unwrap();
        assert_eq!((exit.how, exit.code), (How::Exited, Some(0)), "{daemon}");
        assert!(exit.killed > 0, "{daemon}");
        assert!(
            !exit.stdout.cut && !exit.stderr.cut && exit.duration < Duration::from_millis(2_800),
            "{daemon}: {exit:?}"
        );
        assert_silent(&place);
    }
}

#[test]
fn a_daemon_without_environment_is_told_from_those_of_other_commands() {
    let (place, other) = (Place::new(), Place::new());
    std::thread::scope(|threads| {
        let long = threads.spawn(|| other.run(&shell("touch begun; sleep 3")).unwrap());
        while !other.root().join("begun").exists() {
            std::thread::sleep(Duration::from_millis(10));
        }
        let daemon = "(env -i setsid sh -c '(exec >/dev/null 2>&1; cd /; sleep 9) &' &); sleep 0.3";
        let exit = place.run(&shell(&format!("{daemon}; ulimit -c"))).unwrap();
        assert!(exit.killed > 0 && !long.is_finished(), "{exit:?}");
        assert_eq!(output(&exit), "0\n", "no core files");
        assert_eq!(long.join().unwrap().code, Some(0));
    });
}

#[test]
fn a_daemon_that_shed_every_sign_ends_with_the_last_command() {
    let (place, other) = (Place::new(), Place::new());
    let script = "(env -i setsid prlimit --rttime=7000000:7000000 sh -c '(exec >/dev/null 2>&1; sleep 4; echo x > {W}) &' &); sleep 0.3";
    let script = script.replace("{W}", &place.witness().display().to_string());
    std::thread::scope(|threads| {
        let long = threads.spawn(|| other.run(&shell("touch begun; sleep 1")).unwrap());
        while !other.root().join("begun").exists() {
            std::thread::sleep(Duration::from_millis(10));
        }
        assert_eq!(place.run(&shell(&script)).unwrap().code, Some(0));
        assert_eq!(long.join().unwrap().code, Some(0));
    });
    assert_silent(&place);
}

#[test]
fn a_timeout_asks_first_and_then_kills_everything() {
    let place = Place::new();
    let limit = Duration::from_millis(300);
    let polite = shell("trap 'echo bye; exit 0' TERM; while :; do sleep 0.05; done");
    let exit = place.run(&Command { timeout: limit, ..polite }).unwrap();
    assert_eq!((exit.how, exit.code, output(&exit).as_str()), (How::TimedOut, None, "bye\n"));
    assert!(exit.duration < limit + Duration::from_secs(2), "it was killed: {:?}", exit.duration);

    let script =
        format!("trap '' TERM; (trap '' TERM; sleep 4; echo x > {}) & sleep 30; sleep 30", place.witness().display());
    let exit = place.run(&Command { timeout: limit, ..shell(&script) }).unwrap();
    assert_eq!(exit.how, How::TimedOut);
    assert!(exit.duration >= Duration::from_secs(2) && exit.duration < Duration::from_secs(10), "{:?}", exit.duration);
    assert_silent(&place);
}

#[test]
fn canceling_ends_a_command_at_once() {
    let place = Place::new();
    let canceled = AtomicBool::new(false);
    let exit = std::thread::scope(|threads| {
        let running = threads.spawn(|| place.run_with(&ExecPolicy::default(), &shell("sleep 30"), &canceled));
        std::thread::sleep(Duration::from_millis(200));
        canceled.store(true, Ordering::Relaxed);
        running.join().unwrap().unwrap()
    });
    assert_eq!((exit.how, exit.code), (How::Canceled, None));
    assert!(exit.duration < Duration::from_secs(5));

    let script = format!("echo x > {}", place.witness().display());
    let exit = place.run_with(&ExecPolicy::default(), &shell(&script), &canceled).unwrap();
    assert_eq!(exit.how, How::Canceled);
    assert!(!place.witness().exists(), "a canceled run started a command");
}

#[test]
fn fork_racers_lose() {
    // Each replaces itself by a child again and again, in the session of the command or in ever new ones.
    for racer in ["sh ./racer &", "setsid sh ./racer &"] {
        let place = Place::new();
        fs::write(place.root().join("racer"), racer).unwrap();
        let script = "for i in 1 2 3 4 5 6 7 8; do sh ./racer & done; sleep 0.05";
        let exit = place.run(&Command { timeout: Duration::from_secs(5), ..shell(script) }).unwrap();
        assert!(exit.killed > 0);
        for _ in 0..5 {
            assert_eq!(alive_in(&place), Vec::<String>::new(), "{racer}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

/// Everything alive whose working directory is in the place.
fn alive_in(place: &Place) -> Vec<String> {
    let within = fs::canonicalize(place.dir.path()).unwrap();
    let processes = fs::read_dir("/proc").unwrap().flatten().filter(|entry| {
        fs::read_link(entry.path().join("cwd")).is_ok_and(|cwd| cwd.starts_with(&within))
            && fs::read_to_string(entry.path().join("stat")).is_ok_and(|stat| !stat.contains(") Z "))
    });
    processes.map(|entry| fs::read_to_string(entry.path().join("stat")).unwrap_or_default()).collect()
}

#[test]
fn the_end_of_one_command_leaves_others_alone() {
    let (one, other) = (Place::new(), Place::new());
    let mut bystander = std::process::Command::new("sleep").arg("5").spawn().unwrap();
    std::thread::scope(|threads| {
        // Hides its daemon as well as it can, and needs it at its end.
        let script = "(env -i setsid sh -c 'sleep 1; echo alive > proof' &); for i in $(seq 100); do [ -e proof ] && break; sleep 0.1; done; cat proof";
        let long = threads.spawn(|| other.run(&shell(script)).unwrap());
        std::thread::sleep(Duration::from_millis(300));
        let until = Instant::now() + Duration::from_millis(900);
        while Instant::now() < until {
            assert_eq!(one.run(&shell("setsid sleep 9 & setsid true")).unwrap().code, Some(0));
        }
        let exit = long.join().unwrap();
        assert_eq!((exit.code, output(&exit).as_str()), (Some(0), "alive\n"), "{exit:?}");
    });
    assert!(bystander.try_wait().unwrap().is_none(), "a process that is no command was killed");
    bystander.kill().unwrap();
    bystander.wait().unwrap();
}

#[test]
fn nothing_of_the_callers_environment_arrives() {
    // The test runner's own variables are the secrets here: cargo sets many.
    assert!(std::env::vars_os().count() > 10 && std::env::var_os("CARGO_MANIFEST_DIR").is_some());
    let place = Place::new();
    let policy = ExecPolicy { env: [("ANSWER".to_owned(), "42".to_owned())].into(), ..ExecPolicy::default() };
    let command = Command { env: vec![("MODE".to_owned(), "fast".to_owned())], ..argv(&["env"]) };
    let exit = place.run_with(&policy, &command, &AtomicBool::new(false)).unwrap();
    let text = output(&exit);
    let mut names: Vec<&str> = text.lines().filter_map(|line| line.split('=').next()).collect();
    names.sort_unstable();
    assert_eq!(names, ["ANSWER", "GLOVEBOX_COMMAND", "HOME", "LANG", "MODE", "PATH", "TERM", "TMPDIR", "TZ"]);
    let refused = Command { env: vec![("LD_PRELOAD".to_owned(), "/x.so".to_owned())], ..argv(&["env"]) };
    assert!(matches!(place.run(&refused), Err(ExecError::Invalid(_))));
}

#[test]
fn programs_come_from_the_fixed_path_only() {
    let place = Place::new();
    let fake = place.root().join("git");
    fs::write(&fake, format!("#!/bin/sh\necho x > {}\n", place.witness().display())).unwrap();
    fs::set_permissions(&fake, fs::Permissions::from_mode(0o755)).unwrap();
    let absolute = fake.display().to_string();
    // A link outside that leads inside, in a folder the operator listed.
    let tools = place.dir.path().join("tools");
    fs::create_dir(&tools).unwrap();
    symlink(&fake, tools.join("hijacked")).unwrap();
    let policy = ExecPolicy { path: vec![tools.clone(), "/usr/bin".into()], ..ExecPolicy::default() };
    let run = |words: &[&str]| place.run_with(&policy, &argv(words), &AtomicBool::new(false));
    for words in [
        vec!["./git"],
        vec![absolute.as_str()],
        vec!["hijacked"],
        vec!["../root/git"],
        vec![],
        vec![""],
        vec!["no-such"],
    ] {
        let refused = run(&words);
        assert!(matches!(refused, Err(ExecError::Invalid(_) | ExecError::NotFound(_))), "{words:?}: {refused:?}");
    }
    assert!(run(&[&tools.join("hijacked").display().to_string()]).is_err());
    let inside = ExecPolicy { path: vec![place.root()], ..ExecPolicy::default() };
    assert!(place.run_with(&inside, &argv(&["git"]), &AtomicBool::new(false)).is_err());
    let relative = ExecPolicy { path: vec![".".into()], ..ExecPolicy::default() };
    assert!(place.run_with(&relative, &argv(&["git"]), &AtomicBool::new(false)).is_err());
    // By name the real one is found, although a file of that name lies in the working directory.
    assert!(output(&run(&["env", "printf", "%s", "fine"]).unwrap()).contains("fine"));
    let _ = place.run(&argv(&["git", "--version"]));
    assert!(!place.witness().exists(), "a program of the workspace was started");
}

#[test]
fn the_working_directory_is_inside_and_no_link() {
    let place = Place::new();
    fs::create_dir_all(place.root().join("a/b")).unwrap();
    symlink("/", place.root().join("out")).unwrap();
    let at = |path: &str| place.run(&Command { cwd: ScopePath::parse(path).unwrap(), ..argv(&["pwd"]) });
    let expected = fs::canonicalize(place.root().join("a/b")).unwrap();
    assert_eq!(output(&at("a/b").unwrap()).trim_end(), expected.display().to_string());
    for path in ["out", "out/etc", "missing"] {
        assert!(matches!(at(path), Err(ExecError::Invalid(_))), "{path}");
    }
}

#[test]
fn standard_input_is_empty_or_what_was_given() {
    let place = Place::new();
    assert_eq!(output(&place.run(&argv(&["cat"])).unwrap()), "");
    let bytes = vec![b'x'; 500_000];
    let exit = place.run(&Command { stdin: Some(bytes.clone()), ..argv(&["cat"]) }).unwrap();
    assert_eq!(output(&exit).len(), bytes.len());
    // A program that does not read its input does not hang us.
    let exit = place.run(&Command { stdin: Some(bytes), ..argv(&["true"]) }).unwrap();
    assert_eq!(exit.code, Some(0));
}

#[test]
fn a_command_has_its_own_session_and_no_terminal() {
    let place = Place::new();
    let exit =
        place.run(&shell("cut -d' ' -f1,6 /proc/self/stat; echo $$; (: < /dev/tty) 2>/dev/null && echo tty")).unwrap();
    let text = output(&exit);
    let numbers: Vec<&str> = text.split_whitespace().collect();
    assert_eq!(numbers.len(), 3, "{text}");
    assert_eq!(numbers[1], numbers[2], "the shell leads its own session: {text}");
}

#[test]
fn no_zombie_is_left() {
    let place = Place::new();
    for _ in 0..5 {
        place.run(&shell("(true &); (setsid true &); (setsid sleep 9 &); sleep 0.05")).unwrap();
    }
    let own = std::process::id().to_string();
    let marker = format!(" {own} ");
    let zombies = || {
        let stats = fs::read_dir("/proc").unwrap().flatten().map(|entry| fs::read_to_string(entry.path().join("stat")));
        stats.flatten().filter(|stat| stat.contains("(sleep) Z") && stat.contains(&marker)).count()
    };
    let until = Instant::now() + Duration::from_secs(5);
    while zombies() > 0 && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(50));
    }
    assert_eq!(zombies(), 0);
}
