//! A stage's folders for one test, and a jail over them.

use glovebox_jail::exec::{Command, ExecError, Exit, Program};
use glovebox_jail::jail::ExecPolicy;
use glovebox_jail::jail::{Jail, JailError, JailSetting, Source, probe_tier};
use glovebox_record::path::ScopePath;
use glovebox_record::{Limits, Network, Tier};
use glovebox_workspace::tree::remove_all;
use std::fs;
use std::path::PathBuf;
use std::sync::OnceLock;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// Returns the tiers in which every guarantee is tested: with a separate root, without a separate root, and with only
/// the helper. Tier `bwrap` is included if it works on this machine.
pub(crate) fn tiers() -> Vec<Tier> {
    static BWRAP: OnceLock<bool> = OnceLock::new();
    let is_here = || match probe_tier(Tier::Bwrap) {
        Ok(()) => true,
        Err(error) => {
            crate::not_run::not_run("guarantees of jails in tier bwrap", &error.reason);
            false
        }
    };
    let mut tiers = vec![Tier::Full, Tier::Landlock, Tier::Unconfined];
    if *BWRAP.get_or_init(is_here) {
        tiers.push(Tier::Bwrap);
    }
    tiers
}

pub(crate) struct Fixture {
    pub(crate) tier: Tier,
    dir: tempfile::TempDir,
}

impl Fixture {
    pub(crate) fn new(tier: Tier) -> Self {
        let dir = tempfile::tempdir().unwrap();
        for name in ["root", "upper", "work", "attempt", "project"] {
            fs::create_dir(dir.path().join(name)).unwrap();
        }
        Self { tier, dir }
    }

    /// Returns a path in the host folder that contains the workspace.
    pub(crate) fn at(&self, name: &str) -> PathBuf {
        fs::canonicalize(self.dir.path()).unwrap().join(name)
    }

    /// Returns the folder in which tests create files of the workspace before a command.
    pub(crate) fn root(&self) -> PathBuf {
        self.at("root")
    }

    /// Returns the path at which tests find a file that commands wrote.
    pub(crate) fn written(&self, name: &str) -> PathBuf {
        self.at(if self.tier == Tier::Full { "upper" } else { "root" }).join(name)
    }

    /// Returns the path of the workspace as commands see it.
    pub(crate) fn inside(&self) -> PathBuf {
        self.at(if self.tier.has_own_root() { "project" } else { "root" })
    }

    /// Returns a path for commands that a surviving process would write. [`Fixture::witness`] is the same file on the
    /// host.
    pub(crate) fn witness_inside(&self) -> String {
        self.inside().join("witness").display().to_string()
    }

    pub(crate) fn witness(&self) -> PathBuf {
        self.written("witness")
    }

    pub(crate) fn setting(&self) -> JailSetting {
        JailSetting {
            tier: self.tier,
            policy: ExecPolicy::default(),
            network: Network::None,
            limits: Limits::default(),
            inside: self.at("project"),
            inner: Vec::new(),
            kept: Vec::new(),
            hidden: vec![self.at("attempt"), self.at("project")],
            folder: self.at("attempt"),
            pulse: glovebox_jail::pulse::Pulse::default(),
        }
    }

    pub(crate) fn source(&self) -> Source {
        if self.tier == Tier::Full {
            Source::Overlay { lower: vec![self.at("root")], upper: self.at("upper"), work: self.at("work") }
        } else {
            Source::Directory(self.at("root"))
        }
    }

    pub(crate) fn open(&self, change: impl FnOnce(&mut JailSetting)) -> Result<Jail, JailError> {
        let mut setting = self.setting();
        change(&mut setting);
        Jail::open(&setting, self.source())
    }

    pub(crate) fn jail(&self) -> Jail {
        self.open(|_| {}).unwrap()
    }

    /// Runs a command in a new jail and ends the jail.
    pub(crate) fn run(&self, command: &Command) -> Result<Exit, ExecError> {
        self.run_with(&ExecPolicy::default(), command, &AtomicBool::new(false))
    }

    pub(crate) fn run_with(
        &self,
        policy: &ExecPolicy,
        command: &Command,
        canceled: &AtomicBool,
    ) -> Result<Exit, ExecError> {
        let jail = self.open(|setting| setting.policy = policy.clone()).unwrap();
        let exit = jail.run(command, canceled);
        jail.end().unwrap();
        exit
    }
}

impl Drop for Fixture {
    /// The kernel leaves an unreadable folder in an overlay's work folder, at which an ordinary removal stops.
    fn drop(&mut self) {
        let _ = remove_all(self.dir.path());
    }
}

/// Calls a test once for each tier.
pub(crate) fn each(test: impl Fn(&Fixture)) {
    for tier in tiers() {
        test(&Fixture::new(tier));
    }
}

pub(crate) fn shell(text: &str) -> Command {
    let program = Program::Shell(text.to_owned());
    Command { program, cwd: ScopePath::root(), env: Vec::new(), stdin: None, timeout: Duration::from_secs(60) }
}

pub(crate) fn argv(words: &[&str]) -> Command {
    Command { program: Program::Argv(words.iter().map(|word| word.to_string()).collect()), ..shell("") }
}

pub(crate) fn output(exit: &Exit) -> String {
    assert!(!exit.stdout.truncated);
    String::from_utf8([exit.stdout.head.clone(), exit.stdout.tail.clone()].concat()).unwrap()
}

/// Waits longer than a surviving process would have needed, then checks that it wrote nothing.
pub(crate) fn assert_silent(fixture: &Fixture) {
    std::thread::sleep(Duration::from_millis(3_200));
    assert!(!fixture.witness().exists(), "something outlived its command and wrote ({})", fixture.tier);
}

/// Returns a flag that is never set, for a command that is not canceled.
pub(crate) fn never() -> AtomicBool {
    AtomicBool::new(false)
}
