//! The places of the ordinary behaviours: Glovebox's tiers, and other sandboxes.
//!
//! The other sandboxes come from npm and Debian below `target/`. What cannot be installed is reported and left out.

use crate::process::demand;
use crate::{Step, bubblewrap, repository};
use glovebox_ordinary::place::Place;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The columns of the comparison: the heading and the place.
pub(crate) const COLUMNS: [(&str, &str); 5] = [
    ("plain", "plain"),
    ("glovebox", "tier-full"),
    ("bubblewrap", "bwrap"),
    ("codex", "codex"),
    ("sandbox-runtime", "sandbox-runtime"),
];
/// The packages of npm.
const NPM: [&str; 2] = ["@openai/codex", "@anthropic-ai/sandbox-runtime"];
/// The Debian packages whose programs the sandboxes start.
const DEBIAN: [&str; 4] = ["bubblewrap", "socat", "libwrap0", "ripgrep"];
/// Settings of sandbox-runtime: no hosts, and writes to the project and to the folder for temporary files.
const RUNTIME_SETTINGS: &str = r#"{
  "network": { "allowedDomains": [], "deniedDomains": [] },
  "filesystem": { "denyRead": [], "allowWrite": [".", "/tmp"], "denyWrite": [] }
}
"#;
const SETTINGS_FILE: &str = "sandbox-runtime.json";
/// The home folder of Codex. Codex starts no sandbox if its home is below a folder for temporary files, as that of a trial is.
const CODEX_HOME: &str = "codex-home";
/// Files of `/etc` that bubblewrap shows.
const ETC: [&str; 14] = [
    "passwd",
    "group",
    "hosts",
    "nsswitch.conf",
    "ld.so.cache",
    "ld.so.conf",
    "localtime",
    "alternatives",
    "ssl",
    "services",
    "protocols",
    "os-release",
    "java-17-openjdk",
    "terminfo",
];

/// Installs the packages of npm. Returns their folder, which the ordinary user must be able to read.
pub(crate) fn install() -> PathBuf {
    let folder = repository().join("target/peers");
    let present = NPM.iter().all(|package| folder.join("node_modules").join(package).exists());
    let installed = if present { Ok(()) } else { npm(&folder) };
    let settings = fs::write(folder.join(SETTINGS_FILE), RUNTIME_SETTINGS).and_then(|()| {
        let home = folder.join(CODEX_HOME);
        fs::create_dir_all(&home)?;
        // The ordinary user writes there.
        fs::set_permissions(&home, Permissions::from_mode(0o1777))
    });
    if let Some(problem) = installed.err().or_else(|| settings.err().map(|error| error.to_string())) {
        eprintln!("not here: {}: {problem}", NPM.join(", "));
    }
    folder
}

fn npm(folder: &Path) -> Step<()> {
    fs::create_dir_all(folder).map_err(|error| format!("`{}`: {error}", folder.display()))?;
    let mut command = Command::new("npm");
    demand(command.args(["install", "--no-audit", "--no-fund", "--prefix", "."]).args(NPM).current_dir(folder))
}

/// Returns true if a place can be tried.
pub(crate) fn is_here(place: &str, folder: &Path) -> bool {
    match place {
        "codex" => program(folder, "codex").exists(),
        "sandbox-runtime" => program(folder, "srt").exists() && folder.join(SETTINGS_FILE).exists(),
        _ => true,
    }
}

/// Changes a command so that it finds the programs of [`DEBIAN`].
///
/// # Errors
/// As [`bubblewrap::beside_packages`].
pub(crate) fn beside(command: &Command) -> Step<Command> {
    bubblewrap::beside_packages(command, &DEBIAN)
}

/// Returns a place by its name. `folder` has the programs of the place.
pub(crate) fn place(name: &str, folder: &Path) -> Step<Place> {
    if let Some(tier) = name.strip_prefix("tier-") {
        return Ok(Place::Glovebox { program: folder.join("glovebox"), tier: tier.to_owned() });
    }
    let text = |path: PathBuf| path.to_string_lossy().into_owned();
    let (words, takes_text) = match name {
        "plain" => return Ok(Place::plain()),
        "bwrap" => (bwrap(), false),
        "codex" => {
            let home = format!("CODEX_HOME={}", text(folder.join(CODEX_HOME)));
            let words = ["sandbox", "-c", "sandbox_mode=\"workspace-write\"", "--"].map(str::to_owned);
            let begin = ["env".to_owned(), home, text(program(folder, "codex"))];
            (begin.into_iter().chain(words).collect(), false)
        }
        "sandbox-runtime" => {
            let settings = text(folder.join(SETTINGS_FILE));
            // Without this variable, all trials share one folder for temporary files.
            let words = ["env", "CLAUDE_CODE_TMPDIR={tmp}"].map(str::to_owned).into_iter();
            (words.chain([text(program(folder, "srt")), "-s".to_owned(), settings, "-c".to_owned()]).collect(), true)
        }
        other => return Err(format!("there is no place `{other}`")),
    };
    Ok(Place::Command { words, takes_text })
}

fn program(folder: &Path, name: &str) -> PathBuf {
    folder.join("node_modules/.bin").join(name)
}

/// Returns the words of bubblewrap. It shows only the system's programs, [`ETC`], the project with its `origin`, and
/// empty folders.
fn bwrap() -> Vec<String> {
    let mut text = "bwrap --unshare-all --die-with-parent --ro-bind /usr /usr --symlink usr/bin /bin --symlink usr/sbin /sbin \
                    --symlink usr/lib /lib --symlink usr/lib64 /lib64 --proc /proc --dev /dev --tmpfs /tmp --tmpfs /dev/shm \
                    --dir /home/user --setenv HOME /home/user --setenv TMPDIR /tmp --unsetenv GIT_CONFIG_GLOBAL"
        .to_owned();
    for name in ETC {
        text.push_str(&format!(" --ro-bind-try /etc/{name} /etc/{name}"));
    }
    text.push_str(" --bind {project} {project} --bind-try {base}/origin {base}/origin --chdir {project}");
    text.split_whitespace().map(str::to_owned).collect()
}
