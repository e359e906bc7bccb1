//! The battery's ground over a real jail: the same view, walls and judgement of changes as a stage's commands get.
//!
//! Knows the sandbox and the battery, nothing of a run; the sandbox's own tests include this file.

use glovebox_hostile::ground::{
    CHANGES_MAX, Change, Failed, Ground, HIDDEN, OUTPUT_BYTES_MAX, Order, Program, Seen, WRITE, Walls,
};
use glovebox_hostile::outside::Outside;
use glovebox_hostile::row::Room;
use glovebox_sandbox::exec::{self, Captured, ExecError, ExecPolicy};
use glovebox_sandbox::found::Limits;
use glovebox_sandbox::jail::{Bind, Bounds, Jail, JailSetting, Network, Tier};
use glovebox_sandbox::path::ScopePath;
use glovebox_sandbox::protect::Protected;
use glovebox_sandbox::scope::{Entry, Scope};
use glovebox_sandbox::stage::{Extra, WorkspaceView};
use std::fs;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// The one host that a proxy in these jails lets through; nobody has that name.
const ALLOWED: &str = "allowed.example";

/// Largest file an attack may make.
const FILE_BYTES: u64 = 128 << 20;

/// Walls of a tier.
pub struct Jailed {
    /// Which.
    pub tier: Tier,
}

/// A jail with the view of its stage.
pub struct Standing {
    jail: Jail,
    view: WorkspaceView,
}

impl Walls for Jailed {
    type Ground = Standing;

    fn tier(&self) -> &'static str {
        self.tier.as_str()
    }

    fn open(&self, outside: &Outside, room: &Room) -> Result<Standing, String> {
        let at = outside.stage().join("view");
        let (project, scope, extra) = (outside.project(), scope()?, Extra::default());
        let view = if self.tier == Tier::Full {
            WorkspaceView::overlay(&project, &at, &scope, &extra)
        } else {
            WorkspaceView::copy(&project, &at, &scope, &extra)
        };
        let view = view.map_err(|error| error.to_string())?;
        let setting = setting(self.tier, outside, room)?;
        let source = view.source().map_err(|error| error.to_string())?;
        let jail = Jail::open(&setting, source).map_err(|error| error.to_string())?;
        Ok(Standing { jail, view })
    }
}

impl Ground for Standing {
    fn project(&self) -> String {
        self.jail.inside().to_string_lossy().into_owned()
    }

    fn run(&mut self, order: &Order) -> Result<Seen, Failed> {
        let program = match &order.program {
            Program::Argv(words) => exec::Program::Argv(words.clone()),
            Program::Shell(text) => exec::Program::Shell(text.clone()),
        };
        let (cwd, env, stdin, timeout) = (ScopePath::root(), Vec::new(), None, order.timeout);
        let command = exec::Command { program, cwd, env, stdin, timeout };
        let exit = self.jail.run(&command, &AtomicBool::new(false)).map_err(|error| Failed {
            by_attack: matches!(error, ExecError::Lost(_) | ExecError::Survivors { .. }),
            reason: error.to_string(),
        })?;
        Ok(Seen {
            how: exit.how.as_str().to_owned(),
            code: exit.code,
            stdout: kept(exit.stdout),
            stderr: kept(exit.stderr),
            over: exit.over,
        })
    }

    fn end(self) -> Result<Vec<Change>, String> {
        self.jail.end().map_err(|error| error.to_string())?;
        let (write_bytes, write_entries, depth) = CHANGES_MAX;
        let limits = Limits { write_bytes, write_entries, depth, ..Limits::default() };
        let found = self.view.changes(&limits, &Protected::new(HIDDEN));
        let changes = found.map(|found| {
            let change = |one: &glovebox_sandbox::found::Found| Change {
                path: one.path.clone(),
                op: one.op.as_str().to_owned(),
                allowed: one.is_allowed(),
            };
            found.iter().map(change).collect()
        });
        self.view.remove().map_err(|error| error.to_string())?;
        changes.map_err(|error| error.to_string())
    }
}

fn kept(captured: Captured) -> Vec<u8> {
    [captured.head, captured.tail].concat()
}

fn scope() -> Result<Scope, String> {
    let entries = |texts: &[&str]| {
        texts.iter().map(|text| Entry::parse(text).map_err(|error| error.to_string())).collect::<Result<Vec<_>, _>>()
    };
    Ok(Scope::new(entries(&["./"])?, entries(WRITE)?, entries(HIDDEN)?))
}

fn setting(tier: Tier, outside: &Outside, room: &Room) -> Result<JailSetting, String> {
    let folder = outside.stage().join("attempt");
    fs::create_dir_all(&folder).map_err(|error| error.to_string())?;
    let text = |path: &Path| path.to_string_lossy().into_owned();
    let attacker = outside.attacker();
    let bind = Bind { source: text(&attacker), at: text(&attacker), writable: false, optional: false };
    let policy = ExecPolicy {
        binds: vec![bind],
        output_bytes_max: OUTPUT_BYTES_MAX,
        grace: Duration::from_millis(200),
        ..ExecPolicy::default()
    };
    let bounds = Bounds {
        cpu_ms: room.cpu_seconds * 1000,
        command_memory_bytes: room.memory_bytes,
        processes: room.processes,
        file_bytes: FILE_BYTES,
        tmp_bytes: room.tmp_bytes,
        ..Bounds::default()
    };
    let network = if room.proxy { Network::Proxy(vec![ALLOWED.to_owned()]) } else { Network::None };
    Ok(JailSetting {
        tier,
        policy,
        network,
        bounds,
        inside: "/workspace".into(),
        inner: Vec::new(),
        hidden: vec![outside.folder().to_owned()],
        folder,
    })
}
