//! The sandbox that the battery attacks: a real jail, with the same view, confinement and commit rules as the commands
//! of a stage.
//!
//! The module depends on the sandbox and the battery, not on runs. The sandbox's own tests include this file.

use glovebox_hostile::host_fixture::HostFixture;
use glovebox_hostile::row::Limits;
use glovebox_hostile::target::{
    self, AttackCommand, CHANGES_MAX, Change, CommandResult, Confinement, Ending, HIDDEN, NotRun, OUTPUT_BYTES_MAX,
    Program, Target, WRITE,
};
use glovebox_jail::exec::{self, CapturedOutput, ExecError};
use glovebox_jail::jail::{Bind, ExecPolicy, Jail, JailSetting};
use glovebox_jail::subject::{FOLDER, SubjectSetting, Subjects};
use glovebox_record::network::HostRules;
use glovebox_record::path::ScopePath;
use glovebox_record::scope::{Entry, Scope};
use glovebox_record::{CommandEnding, Network, Tier};
use glovebox_workspace::change;
use glovebox_workspace::protect::Protected;
use glovebox_workspace::stage::{ViewOverrides, WorkspaceView};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// The only host that the proxy in these jails allows. No host has this name.
const ALLOWED: &str = "allowed.example";

/// Maximum size of a file that an attack creates, in bytes.
const FILE_BYTES: u64 = 128 << 20;

/// The confinement of a tier.
pub(crate) struct JailConfinement {
    /// The tier.
    pub tier: Tier,
    /// True if the program under test has a separate sandbox. Without one, the attacks on a verifier must succeed.
    pub is_apart: bool,
}

impl JailConfinement {
    /// Uses every layer of a tier.
    pub(crate) fn new(tier: Tier) -> Self {
        Self { tier, is_apart: true }
    }
}

/// A jail with the view of its stage.
pub(crate) struct JailTarget {
    jail: Jail,
    view: WorkspaceView,
    /// Starts the program under test; `None` if the attacker is not a program under test.
    subjects: Option<Subjects>,
    /// Path of the hostile program.
    hostile: PathBuf,
    is_apart: bool,
}

/// Additional time that a verifier needs for its own work.
const VERIFIER_TIME: Duration = Duration::from_secs(4);

/// The script of a verifier before it starts the program under test. It copies the hold-out to all its own folders, and
/// starts a process that holds the hold-out in its memory, arguments, environment variables, file descriptors, shared
/// memory segment and message queue.
const VERIFIER: &str = r#"
canary=$(cat scenarios/holdout-canary.txt)
cp scenarios/holdout-canary.txt /tmp/canary.txt; cp /tmp/canary.txt "$HOME"; cp /tmp/canary.txt /dev/shm; mkdir -p out; cp /tmp/canary.txt out
mkfifo /tmp/asked; hostile=$1; shift
CANARY=$canary "$hostile" victim "$canary" scenarios/holdout-canary.txt inner </tmp/asked >/tmp/victim & victim=$!
exec 9>/tmp/asked
until test -s /tmp/victim; do sleep 0.01; done
subject "$@" 9>&-; code=$?
echo '?' >&9; sleep 0.02; kill -0 $victim && grep -q intact /tmp/victim || echo VICTIM-GONE
rm -rf out/canary.txt /tmp/canary.txt /tmp/asked /tmp/victim
exit $code"#;

impl Confinement for JailConfinement {
    type Target = JailTarget;

    fn tier(&self) -> target::Tier {
        match self.tier {
            Tier::Full => target::Tier::Full,
            Tier::Bwrap => target::Tier::Bwrap,
            Tier::Landlock => target::Tier::Landlock,
            Tier::Unconfined => target::Tier::Unconfined,
        }
    }

    fn open(&self, fixture: &HostFixture, limits: &Limits) -> Result<JailTarget, String> {
        let at = fixture.stage().join("view");
        let hidden = if limits.subject { &[] } else { HIDDEN };
        let (project, scope, overrides) = (fixture.project(), scope(hidden)?, ViewOverrides::default());
        let view = if self.tier == Tier::Full {
            WorkspaceView::overlay(&project, &at, &scope, &overrides)
        } else {
            WorkspaceView::copy(&project, &at, &scope, &overrides)
        };
        let view = view.map_err(|error| error.to_string())?;
        let setting = setting(self.tier, fixture, limits)?;
        let source = view.source().map_err(|error| error.to_string())?;
        let subjects = limits.subject.then(|| self.offer(fixture, limits, &setting)).transpose()?;
        let channels = subjects.as_ref().map(Subjects::channels).unwrap_or_default();
        let mut setting = setting;
        if subjects.is_some() {
            setting.policy.path.insert(0, FOLDER.into());
        }
        let jail = Jail::open_with_channels(&setting, source, &channels).map_err(|error| error.to_string())?;
        let hostile = fixture.attacker().join("glovebox-hostile");
        Ok(JailTarget { jail, view, subjects, hostile, is_apart: self.is_apart })
    }
}

impl JailConfinement {
    /// Returns what starts the program under test, with the builders' view.
    fn offer(&self, fixture: &HostFixture, limits: &Limits, jail: &JailSetting) -> Result<Subjects, String> {
        let offered = Subjects::offer(SubjectSetting {
            jail: jail.clone(),
            workspace: fixture.project(),
            scope: scope(HIDDEN)?,
            overrides: ViewOverrides::default(),
            mounts: self.tier == Tier::Full,
            workdir: ScopePath::root(),
            command: None,
            port: None,
            timeout: Duration::from_millis(limits.timeout_ms),
            calls_max: u64::MAX,
        });
        offered.map_err(|error| error.to_string())
    }
}

fn started(program: &Program) -> exec::Program {
    match program {
        Program::Argv(words) => exec::Program::Argv(words.clone()),
        Program::Shell(text) => exec::Program::Shell(text.clone()),
    }
}

/// Returns the command of a verifier that starts a program under test.
fn by_verifier(command: &AttackCommand, hostile: &Path, is_apart: bool) -> exec::Program {
    let words = started(&command.program).words();
    let text = if is_apart { VERIFIER.to_owned() } else { VERIFIER.replace("subject \"$@\"", "\"$@\"") };
    let verifier = ["/bin/sh", "-c", &text, "sh"].map(str::to_owned);
    exec::Program::Argv(verifier.into_iter().chain([hostile.display().to_string()]).chain(words).collect())
}

/// Returns the result of the program under test, from the result of its verifier.
fn of_subject(seen: CommandResult) -> CommandResult {
    let text = seen.text();
    let over = text.split_once("reached `limits.").and_then(|(_, rest)| rest.split('`').next()).map(str::to_owned);
    let (how, code) = match seen.code {
        Some(124) => (Ending::TimedOut, None),
        Some(code) if code > 128 => (Ending::Signaled, Some(code - 128)),
        code => (seen.how, code),
    };
    CommandResult { how, code, over, stdout: seen.stdout, stderr: seen.stderr }
}

impl Target for JailTarget {
    fn project(&self) -> PathBuf {
        self.jail.inside().to_owned()
    }

    fn run(&mut self, command: &AttackCommand) -> Result<CommandResult, NotRun> {
        let is_subject = self.subjects.is_some();
        let program = match is_subject {
            true => by_verifier(command, &self.hostile, self.is_apart),
            false => started(&command.program),
        };
        let grace = if is_subject { VERIFIER_TIME } else { Duration::ZERO };
        let (cwd, env, stdin, timeout) = (ScopePath::root(), Vec::new(), None, command.timeout + grace);
        let jail_command = exec::Command { program, cwd, env, stdin, timeout };
        let exit = self.jail.run(&jail_command, &AtomicBool::new(false)).map_err(|error| NotRun {
            by_attack: matches!(error, ExecError::Lost(_) | ExecError::Survivors { .. }),
            reason: error.to_string(),
        })?;
        let seen = CommandResult {
            how: ending(exit.how),
            code: exit.code,
            stdout: kept(exit.stdout),
            stderr: kept(exit.stderr),
            over: exit.over.map(|limit| limit.to_string()),
        };
        Ok(if is_subject { of_subject(seen) } else { seen })
    }

    fn end(self) -> Result<Vec<Change>, String> {
        self.jail.end().map_err(|error| error.to_string())?;
        if let Some(subjects) = self.subjects {
            let ended = subjects.end().map_err(|error| error.to_string())?;
            ended.views.into_iter().try_for_each(WorkspaceView::remove).map_err(|error| error.to_string())?;
        }
        let (write_bytes, write_entries, depth) = CHANGES_MAX;
        let stage = glovebox_record::Limits { write_bytes, write_entries, ..glovebox_record::Limits::default() };
        let limits = change::ChangeLimits { depth, ..change::ChangeLimits::new(stage) };
        let found = self.view.changes(&limits, &Protected::new(HIDDEN));
        let changes = found.map(|found| {
            let change = |one: change::FoundChange| Change {
                op: one.op.as_str().to_owned(),
                allowed: one.is_allowed(),
                path: one.path,
            };
            found.into_iter().map(change).collect()
        });
        self.view.remove().map_err(|error| error.to_string())?;
        changes.map_err(|error| error.to_string())
    }
}

fn ending(how: CommandEnding) -> Ending {
    match how {
        CommandEnding::Exited => Ending::Exited,
        CommandEnding::Signaled | CommandEnding::Lost => Ending::Signaled,
        CommandEnding::TimedOut => Ending::TimedOut,
        CommandEnding::Canceled => Ending::Canceled,
    }
}

fn kept(captured: CapturedOutput) -> Vec<u8> {
    [captured.head, captured.tail].concat()
}

fn scope(hidden: &[&str]) -> Result<Scope, String> {
    let entries = |texts: &[&str]| {
        texts.iter().map(|text| Entry::parse(text).map_err(|error| error.to_string())).collect::<Result<Vec<_>, _>>()
    };
    Ok(Scope::new(entries(&["./"])?, entries(WRITE)?, entries(hidden)?))
}

fn setting(tier: Tier, fixture: &HostFixture, limits: &Limits) -> Result<JailSetting, String> {
    let folder = fixture.stage().join("attempt");
    fs::create_dir_all(&folder).map_err(|error| error.to_string())?;
    let attacker = fixture.attacker().to_owned();
    let bind = Bind::read_only(attacker.clone(), attacker);
    let policy = ExecPolicy {
        binds: vec![bind],
        output_bytes_max: OUTPUT_BYTES_MAX,
        grace: Duration::from_millis(200),
        ..ExecPolicy::default()
    };
    let limits_of_jail = glovebox_record::Limits {
        cpu_ms: limits.cpu_ms,
        command_memory_bytes: limits.command_memory_bytes,
        processes: limits.processes,
        file_bytes: FILE_BYTES,
        tmp_bytes: limits.tmp_bytes,
        disk_bytes: limits.disk_bytes,
        ..glovebox_record::Limits::default()
    };
    let network = match limits.proxy {
        true => Network::Proxy(HostRules::parse([ALLOWED].into_iter()).map_err(|error| error.to_string())?),
        false => Network::None,
    };
    Ok(JailSetting {
        tier,
        policy,
        network,
        limits: limits_of_jail,
        inside: "/workspace".into(),
        inner: Vec::new(),
        kept: Vec::new(),
        hidden: vec![fixture.folder().to_owned()],
        folder,
        pulse: glovebox_jail::pulse::Pulse::default(),
    })
}
