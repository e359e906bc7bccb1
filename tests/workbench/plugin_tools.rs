//! The environment of an author of plugins: the tools that `cargo xtask plugin-tools` brings, and cargo without the network.
//!
//! The tools of JavaScript and Python write other bytes in each build, and take seconds. They are run through a program that runs each tool
//! once for the same files and arguments, so that all tests of a plugin have one component, which is compiled to machine code once.

use super::root;
use std::ffi::OsString;
use std::fmt::Write;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// Target folder of the example that `cargo xtask components` builds. It has the packages of the SDK.
const BUILT: &str = "examples/quickstart/review-plugin/target";

/// The tools that write other bytes in each build: the program, and the folder whose names and texts say which version it is.
const SHARED: [(&str, &str, &str); 2] = [
    ("componentize-qjs", "js/node_modules/.bin", "js/node_modules/componentize-qjs/package.json"),
    ("componentize-py", "python/bin", "python/lib"),
];

/// Runs a tool once for the same input. TOOL, VERSION and STORE are replaced. The folders are those that a build or a test writes.
const SCRIPT: &str = r#"#!/bin/sh
set -eu
output= previous=
for word; do
    if [ "$previous" = -o ]; then output=$word; fi
    previous=$word
done
if [ -z "$output" ]; then exec 'TOOL' "$@"; fi
files() {
    find . -type f -not -path './build/*' -not -path './dist/*' -not -path '*/__pycache__/*' -not -path './cases/*' \
        -not -name plugin.toml -not -name '*.md' -not -name .gitignore -print0 | LC_ALL=C sort -z | xargs -0 sha256sum
}
key=$({ printf '%s\n' 'VERSION' "$@"; files; } | sha256sum | cut -c 1-64)
exec 9> "STORE/$key.lock"
flock 9
if [ ! -f "STORE/$key.wasm" ]; then
    'TOOL' "$@" 9>&-
    cp "$output" "STORE/$key.new"
    mv "STORE/$key.new" "STORE/$key.wasm"
else
    cp "STORE/$key.wasm" "$output"
fi
"#;

/// Returns the folder with the tools.
fn tools() -> PathBuf {
    root().join("target/plugin-tools")
}

/// Returns true if a program is on the search path, or was brought by `cargo xtask plugin-tools`.
pub(crate) fn is_plugin_tool_here(program: &str) -> bool {
    std::env::split_paths(&search_path()).any(|folder| folder.join(program).is_file())
}

/// Adds the environment in which an author would work.
///
/// Crates of one name share what cargo built, wherever their folders are: cargo compares only the times of the files. So projects with
/// other sources than those of the template need a name of their own.
pub(crate) fn as_author(command: &mut Command) -> &mut Command {
    command.env("PATH", search_path());
    command.env("CARGO_NET_OFFLINE", "true").env("CARGO_BUILD_BUILD_DIR", root().join(BUILT));
    for name in ["RUSTFLAGS", "CARGO_TARGET_DIR", "CARGO_BUILD_TARGET", "CARGO_ENCODED_RUSTFLAGS"] {
        command.env_remove(name);
    }
    if let Some(sysroot) = wasm_sysroot() {
        command.env("CARGO_TARGET_WASM32_WASIP2_RUSTFLAGS", format!("--sysroot={}", sysroot.display()));
    }
    command
}

/// Returns the search path of this process, after the folders with the tools and with the programs that run them once.
pub(crate) fn search_path() -> OsString {
    static PATH: OnceLock<OsString> = OnceLock::new();
    let path = PATH.get_or_init(|| {
        let own = ["js/node_modules/.bin", "python/bin", "c/bin"].map(|folder| tools().join(folder));
        let path = std::env::var_os("PATH").unwrap_or_default();
        let all = shared_programs().into_iter().chain(own).chain(std::env::split_paths(&path));
        std::env::join_paths(all).unwrap()
    });
    path.clone()
}

/// Writes a program for each tool that is here, and returns their folder. `None` if there is none.
fn shared_programs() -> Option<PathBuf> {
    let own = Path::new(env!("CARGO_TARGET_TMPDIR")).join("plugin-builds");
    let mut written = None;
    for (name, folder, version) in SHARED {
        let tool = tools().join(folder).join(name);
        if !tool.is_file() {
            continue;
        }
        let (programs, store) = (own.join("programs"), own.join("components"));
        fs::create_dir_all(&programs).unwrap();
        fs::create_dir_all(&store).unwrap();
        let replaced = [("TOOL", tool.display().to_string()), ("STORE", store.display().to_string())];
        let text = replaced.iter().fold(SCRIPT.to_owned(), |text, (from, to)| text.replace(from, to));
        let text = text.replace("VERSION", &version_of(&tools().join(version)));
        // Another process of the tests may run the program at this moment.
        let new = tempfile::NamedTempFile::new_in(&programs).unwrap();
        fs::write(new.path(), text).unwrap();
        fs::set_permissions(new.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let (file, path) = new.into_parts();
        drop(file);
        path.persist(programs.join(name)).unwrap();
        written = Some(programs);
    }
    written
}

/// Returns a digest of what says the version of a tool: the text of a file, or the names of the packages in a folder.
fn version_of(place: &Path) -> String {
    let mut text = fs::read_to_string(place).unwrap_or_default();
    for python in place.read_dir().into_iter().flatten().flatten() {
        let packages = python.path().join("site-packages").read_dir().into_iter().flatten().flatten();
        let mut names: Vec<String> = packages.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        let _ = write!(text, "{names:?}");
    }
    glovebox_record::Digest::hash(text.as_bytes()).to_string()
}

/// Returns the folder of the standard library for components that `cargo xtask components` built, or `None` if the
/// toolchain has one.
fn wasm_sysroot() -> Option<PathBuf> {
    static SYSROOT: OnceLock<Option<PathBuf>> = OnceLock::new();
    SYSROOT.get_or_init(find_sysroot).clone()
}

fn find_sysroot() -> Option<PathBuf> {
    let printed = |words: &[&str]| {
        let output = Command::new("rustc").current_dir(root()).args(words).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    let libraries = printed(&["--print", "target-libdir", "--target", "wasm32-wasip2"]);
    let is_std = |name: &str| name.starts_with("libstd-");
    let mut names = Path::new(libraries.trim()).read_dir().into_iter().flatten().flatten();
    if names.any(|entry| is_std(&entry.file_name().to_string_lossy())) {
        return None;
    }
    let version = printed(&["-vV"]);
    let commit = version.lines().find_map(|line| line.strip_prefix("commit-hash: ")).unwrap();
    let built = root().join("target/sysroot").join(commit).read_dir().unwrap().map(|entry| entry.unwrap().path());
    Some(built.into_iter().find(|sysroot| sysroot.join("complete").is_file()).unwrap())
}
