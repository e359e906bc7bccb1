//! The template from which jails are forked: it serves many jails and holds no data of them. If it fails, no jail is
//! lost or weaker.
//!
//! Each test inspects the helpers of this process from outside, so the tests run one after the other.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on stops there")]

use glovebox_jail::exec::{Command, ExecError, Exit, Program};
use glovebox_jail::jail::{ExecPolicy, Jail, JailSetting, Source, probe_tier, wait_for_cleanup};
use glovebox_record::path::ScopePath;
use glovebox_record::{CommandEnding, Limits, Network, Tier};
use glovebox_workspace::tree::remove_all;
use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// Begins a test without any running helper. Returns `None` if this machine does not support tier `full`.
fn begin() -> Option<MutexGuard<'static, ()>> {
    let turn = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let has_full = probe_tier(Tier::Full).is_ok();
    wait_for_cleanup();
    assert_eq!(started(), Vec::<i32>::new());
    has_full.then_some(turn)
}

/// The folders of a stage.
struct Stage(tempfile::TempDir);

impl Stage {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        for name in ["root", "upper", "work", "attempt"] {
            fs::create_dir(folder.path().join(name)).unwrap();
        }
        Self(folder)
    }

    fn at(&self, name: &str) -> PathBuf {
        fs::canonicalize(self.0.path()).unwrap().join(name)
    }

    fn open(&self) -> Jail {
        self.open_with(ExecPolicy::default())
    }

    fn open_with(&self, policy: ExecPolicy) -> Jail {
        let setting = JailSetting {
            tier: Tier::Full,
            policy,
            network: Network::None,
            limits: Limits::default(),
            inside: "/workspace".into(),
            inner: Vec::new(),
            kept: Vec::new(),
            hidden: vec![self.at("attempt")],
            folder: self.at("attempt"),
            pulse: glovebox_jail::pulse::Pulse::default(),
        };
        let (upper, work) = (self.at("upper"), self.at("work"));
        Jail::open(&setting, Source::Overlay { lower: vec![self.at("root")], upper, work }).unwrap()
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        let _ = remove_all(self.0.path());
    }
}

fn shell(text: &str) -> Command {
    let program = Program::Shell(text.to_owned());
    Command { program, cwd: ScopePath::root(), env: Vec::new(), stdin: None, timeout: Duration::from_secs(60) }
}

fn run(jail: &Jail, text: &str) -> Exit {
    jail.run(&shell(text), &AtomicBool::new(false)).unwrap()
}

fn output(exit: &Exit) -> String {
    String::from_utf8([exit.stdout.head.clone(), exit.stdout.tail.clone()].concat()).unwrap()
}

/// Returns the ids of the living helpers that this process started.
fn started() -> Vec<i32> {
    let tasks = fs::read_dir("/proc/self/task").unwrap();
    let listed = tasks.map(|task| fs::read_to_string(task.unwrap().path().join("children")).unwrap_or_default());
    let children: Vec<i32> = listed.flat_map(|ids| ids.split(' ').flat_map(str::parse).collect::<Vec<i32>>()).collect();
    children.into_iter().filter(|child| status(*child, "Name").is_some_and(|name| name != "sh")).collect()
}

/// Returns a field of a process's status, or `None` if the process is dead.
fn status(process: i32, field: &str) -> Option<String> {
    let text = fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let value = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        line.map(|value| value.trim().to_owned())
    };
    value("State").filter(|state| !state.starts_with(['Z', 'X']))?;
    value(field)
}

fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let end = Instant::now() + Duration::from_secs(20);
    while !holds() {
        assert!(Instant::now() < end, "{what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn send(process: i32, signal: Signal) {
    kill_process(Pid::from_raw(process).unwrap(), signal).unwrap();
}

#[test]
fn a_template_that_is_prepared_early_serves_the_first_jail() {
    let Some(_turn) = begin() else { return };
    let stage = Stage::new();
    let configuration = vec![PathBuf::from("/etc/ssl/openssl.cnf")].into_iter().filter(|file| file.is_file()).collect();
    let policy = ExecPolicy { configuration, ..ExecPolicy::default() };
    Jail::prepare(&policy, &Network::Full);
    Jail::prepare(&policy, &Network::None);
    wait_until("the template is started", || started().len() == 1);
    let template = started();
    let jail = stage.open_with(policy);
    assert_eq!(started(), template, "the jail was forked from the template");
    assert_eq!(output(&run(&jail, "echo ok")), "ok\n");
    drop(jail);
    wait_for_cleanup();
    assert_eq!(started(), Vec::<i32>::new());
}

#[test]
fn one_template_serves_jails_that_share_no_namespace() {
    let Some(_turn) = begin() else { return };
    let (first, second) = (Stage::new(), Stage::new());
    let (one, two) = (first.open(), second.open());
    let [template] = started()[..] else { panic!("{:?}", started()) };
    let list = "for n in user mnt pid net ipc uts cgroup; do readlink /proc/self/ns/$n; done";
    let (of_one, of_two) = (output(&run(&one, list)), output(&run(&two, list)));
    let of_template: Vec<String> = ["user", "mnt", "pid", "net", "ipc", "uts", "cgroup"]
        .iter()
        .map(|name| fs::read_link(format!("/proc/{template}/ns/{name}")).unwrap().display().to_string())
        .collect();
    assert_eq!((of_one.lines().count(), of_two.lines().count()), (7, 7), "{of_one}{of_two}");
    for (one, two) in of_one.lines().zip(of_two.lines()) {
        assert!(one != two && !of_template.iter().any(|own| own == one || own == two), "{one} {two} {of_template:?}");
    }
    one.end().unwrap();
    two.end().unwrap();
    assert_eq!(started(), [template], "a third jail needs no new one");
    first.open().end().unwrap();
    assert_eq!(started(), [template]);
    wait_for_cleanup();
    assert_eq!(status(template, "Name"), None, "it ends with the program");
}

#[test]
fn a_template_has_no_rights_and_is_filtered() {
    let Some(_turn) = begin() else { return };
    let stage = Stage::new();
    let jail = stage.open();
    let [template] = started()[..] else { panic!("{:?}", started()) };
    for field in ["CapEff", "CapPrm", "CapInh", "CapAmb"] {
        assert_eq!(status(template, field).as_deref(), Some("0000000000000000"), "{field}");
    }
    assert_eq!(status(template, "Seccomp").as_deref(), Some("2"));
    assert_eq!(status(template, "Threads").as_deref(), Some("1"));
    jail.end().unwrap();
}

/// When the template dies, all its jails die, so nothing runs on without a host. The next jail gets a new template.
#[test]
fn when_a_template_dies_its_jails_die_and_the_next_jail_opens() {
    let Some(_turn) = begin() else { return };
    let (stage, next) = (Stage::new(), Stage::new());
    let jail = stage.open();
    let [template] = started()[..] else { panic!("{:?}", started()) };
    let begin = Instant::now();
    let lost = std::thread::scope(|threads| {
        let running =
            threads.spawn(|| jail.run(&shell("echo x > ran; sleep 50; echo x > late"), &AtomicBool::new(false)));
        wait_until("the command runs", || stage.at("upper/ran").exists());
        send(template, Signal::KILL);
        running.join().unwrap()
    });
    assert!(matches!(lost, Err(ExecError::Killed)) && begin.elapsed() < Duration::from_secs(20), "{lost:?}");
    assert!(jail.run(&shell("true"), &AtomicBool::new(false)).is_err(), "a dead jail runs nothing");
    jail.end().unwrap();
    let after = next.open();
    assert_eq!(output(&run(&after, "echo alive")), "alive\n");
    assert!(started().iter().all(|helper| *helper != template) && started().len() == 1);
    after.end().unwrap();
    assert!(!stage.at("upper/late").exists());
}

/// Returns the first process of the only jail of a template.
fn first_process(template: i32) -> i32 {
    let children = fs::read_to_string(format!("/proc/{template}/task/{template}/children")).unwrap();
    let [first] = children.split_whitespace().collect::<Vec<_>>()[..] else { panic!("{children}") };
    first.parse().unwrap()
}

/// The first process is killed while it waits for a command, and while a command runs. Neither is an end of the command.
#[test]
fn a_killed_first_process_is_told_from_a_killed_command() {
    let Some(_turn) = begin() else { return };
    let stages = [Stage::new(), Stage::new(), Stage::new()];
    let idle = stages[0].open();
    assert_eq!(output(&run(&idle, "echo alive")), "alive\n");
    let [template] = started()[..] else { panic!("{:?}", started()) };
    let first = first_process(template);
    send(first, Signal::KILL);
    wait_until("it is dead", || status(first, "Name").is_none());
    let lost = idle.run(&shell("true"), &AtomicBool::new(false));
    assert!(matches!(lost, Err(ExecError::Killed)), "{lost:?}");
    idle.end().unwrap();
    let busy = stages[1].open();
    let lost = std::thread::scope(|threads| {
        let running = threads.spawn(|| busy.run(&shell("echo x > ran; sleep 50"), &AtomicBool::new(false)));
        wait_until("the command runs", || stages[1].at("upper/ran").exists());
        send(first_process(template), Signal::KILL);
        running.join().unwrap()
    });
    assert!(matches!(lost, Err(ExecError::Killed)), "{lost:?}");
    busy.end().unwrap();
    let jail = stages[2].open();
    let exit = run(&jail, "kill -KILL $$");
    assert_eq!((exit.how, exit.code), (CommandEnding::Signaled, Some(9)));
    jail.end().unwrap();
}

/// A template that does not answer costs time but no safety: the jail is built by a separate helper.
#[test]
fn when_a_template_hangs_the_jail_opens_without_it() {
    let Some(_turn) = begin() else { return };
    let stage = Stage::new();
    stage.open().end().unwrap();
    let [template] = started()[..] else { panic!("{:?}", started()) };
    send(template, Signal::STOP);
    let jail = stage.open();
    assert_eq!(jail.status().tier, Tier::Full);
    assert_eq!(output(&run(&jail, "echo alive; readlink /proc/self/ns/pid | wc -l")), "alive\n1\n");
    let own: Vec<i32> = started().into_iter().filter(|helper| *helper != template).collect();
    assert_eq!(own.len(), 1, "{:?}", started());
    jail.end().unwrap();
    send(template, Signal::CONT);
    wait_until("it was retired", || status(template, "Name").is_none());
    let next = stage.open();
    assert_eq!(output(&run(&next, "echo alive")), "alive\n");
    next.end().unwrap();
}
