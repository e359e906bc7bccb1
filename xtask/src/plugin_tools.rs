//! `cargo xtask plugin-tools`: brings the tools with which plugins are written in JavaScript, Python and C into `target/plugin-tools`.
//!
//! The tests of the templates use them. Nothing is installed into the system. Tools that cannot be had are named, and their tests are
//! listed as not run.

use crate::debian::Mirror;
use crate::process::{at, demand};
use crate::{Step, repository};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The package of npm that makes components of JavaScript, in the version of the template.
const JAVASCRIPT: &str = "componentize-qjs@0.4.5";
/// The package of PyPI that makes components of Python, in the version of the template.
const PYTHON: &str = "componentize-py==0.25.1";
/// The Debian packages of a C compiler for WebAssembly. Their other dependencies are on every Debian machine.
const C: [&str; 8] = [
    "clang-19",
    "libclang-common-19-dev",
    "libclang-cpp19",
    "libclang-rt-19-dev-wasm32",
    "libllvm19",
    "lld-19",
    "llvm-19-linker-tools",
    "wasi-libc",
];

/// Brings the tools of every language, and prints those that cannot be had.
pub(crate) fn prepare() -> Step<()> {
    let folder = repository().join("target/plugin-tools");
    let tools = [("JavaScript", javascript(&folder)), ("Python", python(&folder)), ("C", c(&folder))];
    for (language, tool) in tools {
        if let Err(reason) = tool {
            eprintln!("the tools for plugins in {language} cannot be had: {reason}");
        }
    }
    Ok(())
}

fn works(program: PathBuf) -> bool {
    Command::new(program).arg("--version").output().is_ok_and(|ended| ended.status.success())
}

fn javascript(folder: &Path) -> Step<()> {
    let folder = folder.join("js");
    if folder.join("node_modules/.bin/componentize-qjs").exists() {
        return Ok(());
    }
    at(&folder, fs::create_dir_all(&folder))?;
    let install = ["install", "--no-audit", "--no-fund", "--no-save", "--prefix", ".", JAVASCRIPT];
    demand(Command::new("npm").args(install).current_dir(&folder))
}

fn python(folder: &Path) -> Step<()> {
    let folder = folder.join("python");
    if works(folder.join("bin/componentize-py")) {
        return Ok(());
    }
    demand(Command::new("python3").args(["-m", "venv", "--clear"]).arg(&folder))?;
    let pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", PYTHON];
    demand(Command::new(folder.join("bin/python3")).args(pip))
}

/// Unpacks the compiler, and writes a program `clang` that finds its parts there.
fn c(folder: &Path) -> Step<()> {
    let folder = folder.join("c");
    let program = folder.join("bin/clang");
    if works(program.clone()) {
        return Ok(());
    }
    let root = folder.join("root");
    at(&root, fs::create_dir_all(&root))?;
    let mirror = Mirror::open(&folder.join("apt"), &suite()?)?;
    mirror.unpack_all(&C, &root)?;
    let llvm = root.join("usr/lib/llvm-19");
    let (include, library) = (root.join("usr/include/wasm32-wasi"), root.join("usr/lib/wasm32-wasi"));
    let text = format!(
        "#!/bin/sh\nexport LD_LIBRARY_PATH={root}/usr/lib/$(uname -m)-linux-gnu:{llvm}/lib\n\
         exec {llvm}/bin/clang -isystem {include} -L {library} -B {library} -fuse-ld={llvm}/bin/wasm-ld \"$@\"\n",
        root = root.display(),
        llvm = llvm.display(),
        include = include.display(),
        library = library.display(),
    );
    at(&folder, fs::create_dir_all(folder.join("bin")))?;
    at(&program, fs::write(&program, text))?;
    at(&program, fs::set_permissions(&program, fs::Permissions::from_mode(0o755)))?;
    if works(program) { Ok(()) } else { Err("the unpacked clang does not start".to_owned()) }
}

/// Returns the name of this machine's Debian release.
pub(crate) fn suite() -> Step<String> {
    let file = Path::new("/etc/os-release");
    let text = at(file, fs::read_to_string(file))?;
    let name = text.lines().find_map(|line| line.strip_prefix("VERSION_CODENAME="));
    name.map(|name| name.trim_matches('"').to_owned()).ok_or_else(|| "this is not a Debian machine".to_owned())
}
