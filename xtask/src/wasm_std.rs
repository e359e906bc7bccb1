//! Finds a standard library for `wasm32-wasip2`. Fails with a message if none is available.
//!
//! There are three ways, which are tried in this order: use the library that is installed in the toolchain, download it with rustup,
//! or build it from the compiler's source. The result is the flags for building a component.

use crate::rustc::{TARGET, rustc, rustc_field};
use crate::{Step, process, repository, sysroot};
use std::path::{Path, PathBuf};
use std::process::Command;

/// A way to get a standard library.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StdSource {
    Installed,
    Rustup,
    Source,
}

impl StdSource {
    /// Parses the name of a way.
    pub(crate) fn parse(name: &str) -> Step<Self> {
        match name {
            "installed" => Ok(Self::Installed),
            "rustup" => Ok(Self::Rustup),
            "source" => Ok(Self::Source),
            other => Err(format!("unknown std `{other}`, expected `installed`, `rustup` or `source`")),
        }
    }

    /// Reads `GLOVEBOX_WASM_STD`, which selects one way.
    pub(crate) fn from_environment() -> Step<Option<Self>> {
        match std::env::var("GLOVEBOX_WASM_STD") {
            Ok(name) if !name.is_empty() => Self::parse(&name).map(Some),
            _ => Ok(None),
        }
    }

    /// Tries to get the standard library in this way, and returns the flags for rustc.
    fn obtain(self) -> Step<Vec<String>> {
        match self {
            Self::Installed if is_installed()? => Ok(Vec::new()),
            Self::Installed => Err(format!("the toolchain holds no std for {TARGET}")),
            Self::Rustup => fetch_target(),
            Self::Source => {
                let built = sysroot::build(&sysroot_folder()?)?;
                Ok(vec![format!("--sysroot={}", built.display())])
            }
        }
    }
}

/// Finds a standard library and returns the flags for rustc.
///
/// # Errors
/// No way worked. The text contains the reason for each of them.
pub(crate) fn rustflags(forced: Option<StdSource>) -> Step<Vec<String>> {
    if let Some(rung) = forced {
        return rung.obtain();
    }
    // If a sysroot was built earlier, it is tried before the download, which failed at that time and would probably fail slowly again.
    let known = if sysroot::find(&sysroot_folder()?).is_some() { StdSource::Source } else { StdSource::Installed };
    let order = if is_installed()? {
        [StdSource::Installed, StdSource::Rustup, StdSource::Source]
    } else {
        [known, StdSource::Rustup, StdSource::Source]
    };
    let mut reasons = Vec::new();
    for rung in order {
        match rung.obtain() {
            Ok(flags) => return Ok(flags),
            Err(reason) => {
                eprintln!("note: no std for {TARGET} from `{rung:?}`: {reason}");
                reasons.push(format!("  {rung:?}: {reason}"));
            }
        }
    }
    Err(no_way(&reasons))
}

fn no_way(reasons: &[String]) -> String {
    format!(
        "no standard library for {TARGET}, so no component can be built; any one of these helps:\n\
         \x20 1. rustup target add {TARGET}\n\
         \x20 2. rustup component add rust-src, with libc.a for {TARGET}: the package wasi-libc, or WASI_SYSROOT set\n\
         \x20 3. a Debian mirror that apt can reach and that has rust-src of the running rustc\n\
         what was tried:\n{}",
        reasons.join("\n")
    )
}

fn is_installed() -> Step<bool> {
    let printed = process::capture(rustc().args(["--print", "target-libdir", "--target", TARGET]))?;
    Ok(holds_std(Path::new(printed.trim())))
}

fn holds_std(folder: &Path) -> bool {
    let Ok(entries) = folder.read_dir() else { return false };
    entries.flatten().any(|entry| entry.file_name().to_string_lossy().starts_with("libstd-"))
}

fn fetch_target() -> Step<Vec<String>> {
    process::demand(Command::new("rustup").args(["target", "add", TARGET]))?;
    if is_installed()? {
        Ok(Vec::new())
    } else {
        Err("rustup succeeded, but the running rustc does not see the target".to_owned())
    }
}

/// Returns the folder of the sysroot for the current compiler, named after the compiler's commit.
fn sysroot_folder() -> Step<PathBuf> {
    Ok(repository().join("target/sysroot").join(rustc_field("commit-hash")?))
}
