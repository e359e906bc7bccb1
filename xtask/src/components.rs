//! Builds the first-party components into `target/components` and the plugins of the examples into their own folders. Also builds two
//! static programs for this machine: the jail helper, and the hostile program that attacks it.
//!
//! Cargo decides what must be rebuilt. A component file is replaced only if its bytes differ, so that nothing that embeds it is
//! rebuilt unnecessarily.

use crate::process::{at, capture, demand, nested_cargo};
use crate::rustc::TARGET;
use crate::wasm_std::{self, StdSource};
use crate::{Step, repository, sources};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The handlers that are embedded in the binary.
pub(crate) const SHIPPED: [&str; 8] =
    ["codergen", "diff-limits", "json-schema", "junit", "tool", "tree-assert", "verify", "verification"];
/// The component that attacks the host.
const INTRUDER: &str = "intruder";
/// The program that confines commands, which is embedded in the sandbox, and the program that attacks it, which is
/// embedded in `glovebox-attack`. Each entry is a package and the program in it.
const PROGRAMS: [(&str, &str); 2] =
    [("glovebox-jail-helper", "glovebox-jail"), ("glovebox-hostile", "glovebox-hostile")];
/// The plugin of the quickstart. It has its own workspace and lock file, and is built with a plain `cargo build`, as its author would do.
pub(crate) const REVIEW_PLUGIN: &str = "examples/quickstart/review-plugin";
/// The plugins of all examples.
pub(crate) const EXAMPLES: [&str; 4] =
    [REVIEW_PLUGIN, "examples/custom-verifier/quiet", "examples/hostile-plugin/plugin", "examples/house-rules/rules"];

/// Builds the first-party components and the plugins of these examples.
pub(crate) fn build(forced: Option<StdSource>, examples: &[&str]) -> Step<()> {
    // Computed before the build, so that a file that is edited during the build is treated as newer.
    let digest = at(&repository(), sources::digest(&repository()))?;
    let std_flags = wasm_std::rustflags(forced)?;
    let names = [&SHIPPED[..], &[INTRUDER]].concat();
    let target = repository().join("target/wasm");
    build_first_party(&repository(), &names, &std_flags, &target)?;
    names.iter().try_for_each(|name| publish(&built(&target, name), &format!("{name}.wasm")))?;
    put(digest.as_bytes(), &published(sources::FILE))?;
    build_programs()?;
    examples.iter().try_for_each(|example| build_example(example, &std_flags))
}

/// Builds one component into a separate folder, to check that a standard library is available. `target/components` is not changed.
pub(crate) fn check(forced: Option<StdSource>) -> Step<()> {
    let folder = repository().join("target/wasm-check");
    build_first_party(&repository(), &SHIPPED[..1], &wasm_std::rustflags(forced)?, &folder)?;
    let built = built(&folder, SHIPPED[0]);
    let bytes = at(&built, fs::read(&built))?;
    // A component has version 13 in layer 1, and a core module version 1 in layer 0.
    if !bytes.starts_with(b"\0asm\x0d\0\x01\0") {
        return Err(format!("`{}` is not a component", built.display()));
    }
    eprintln!("built `{}` ({} bytes)", built.display(), bytes.len());
    Ok(())
}

/// Returns the file of a component below a target folder.
pub(crate) fn built(target: &Path, name: &str) -> PathBuf {
    target.join(TARGET).join(format!("component/glovebox_{}.wasm", name.replace('-', "_")))
}

/// Builds components from a copy of the repository.
pub(crate) fn build_first_party(source: &Path, names: &[&str], std_flags: &[String], target_folder: &Path) -> Step<()> {
    let flags = [std_flags, &remapped(source)].concat();
    let mut cargo = nested_cargo(source, &flags);
    cargo.args(["build", "--locked", "--profile", "component", "--target", TARGET, "--target-dir"]).arg(target_folder);
    for name in names {
        cargo.args(["--package", &format!("glovebox-{name}")]);
    }
    demand(&mut cargo)
}

/// Returns cargo's home folder. Its path, in that of the registry, would otherwise appear in panic messages of the
/// components.
fn cargo_home() -> Option<String> {
    let given = std::env::var("CARGO_HOME").ok();
    given.or_else(|| std::env::var("HOME").ok().map(|home| format!("{home}/.cargo")))
}

/// Returns flags that remove this machine's folders from the build output.
fn remapped(source: &Path) -> Vec<String> {
    let mut flags = vec![format!("--remap-path-prefix={}=/glovebox", source.display())];
    flags.extend(cargo_home().map(|home| format!("--remap-path-prefix={home}=/cargo")));
    flags
}

/// Builds the programs that run inside of a jail, statically for this machine. They exist only on Linux.
pub(crate) fn build_programs() -> Step<()> {
    let triple = host_triple()?;
    if !triple.contains("linux") {
        return Ok(());
    }
    let static_flags = ["-Ctarget-feature=+crt-static", "-Cstrip=symbols"].map(str::to_owned);
    let flags = [static_flags.to_vec(), remapped(&repository())].concat();
    let folder = repository().join("target/jail");
    let mut cargo = nested_cargo(&repository(), &flags);
    // With `--target`, the flags apply only to the program, and not to build scripts and macros, which cannot be static.
    cargo.args(["build", "--locked", "--profile", "component"]);
    for (package, program) in PROGRAMS {
        cargo.args(["--package", package, "--bin", program]);
    }
    demand(cargo.args(["--target", &triple, "--target-dir"]).arg(&folder))?;
    let built = folder.join(triple).join("component");
    PROGRAMS.iter().try_for_each(|(_, program)| publish(&built.join(program), program))
}

fn host_triple() -> Step<String> {
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let version = capture(Command::new(rustc).current_dir(repository()).arg("-vV"))?;
    let triple = version.lines().find_map(|line| line.strip_prefix("host: "));
    triple.map(str::to_owned).ok_or_else(|| "`rustc -vV` names no host".to_owned())
}

/// Copies a built file into `target/components`.
fn publish(built: &Path, name: &str) -> Step<()> {
    put(&at(built, fs::read(built))?, &published(name))
}

/// Returns the place of a file in `target/components`.
fn published(name: &str) -> PathBuf {
    repository().join("target/components").join(name)
}

/// Writes a file, unless it already has these bytes.
fn put(bytes: &[u8], place: &Path) -> Step<()> {
    if fs::read(place).is_ok_and(|present| present == bytes) {
        return Ok(());
    }
    if let Some(folder) = place.parent() {
        at(folder, fs::create_dir_all(folder))?;
    }
    let fresh = place.with_extension("new");
    at(&fresh, fs::write(&fresh, bytes))?;
    at(place, fs::rename(&fresh, place))
}

/// Runs the native tests of the quickstart's plugin, as its author would do.
pub(crate) fn test_review_plugin() -> Step<()> {
    demand(nested_cargo(&repository().join(REVIEW_PLUGIN), &[]).args(["test", "--locked"]))
}

/// Builds the plugin of an example. All examples but the quickstart's share one target folder, because their dependencies are the
/// same; their components are copied to where a plain `cargo build` in the example puts them.
fn build_example(example: &str, std_flags: &[String]) -> Step<()> {
    let folder = repository().join(example);
    let mut cargo = nested_cargo(&folder, std_flags);
    cargo.args(["build", "--locked", "--release", "--target", TARGET]);
    if example == REVIEW_PLUGIN {
        return demand(&mut cargo);
    }
    let shared = repository().join("target/wasm-examples");
    demand(cargo.arg("--target-dir").arg(&shared))?;
    let component = format!("{TARGET}/release/{}.wasm", package(&folder)?.replace('-', "_"));
    let (built, place) = (shared.join(&component), folder.join("target").join(&component));
    put(&at(&built, fs::read(&built))?, &place)
}

/// Returns the name in the `Cargo.toml` of a folder.
fn package(folder: &Path) -> Step<String> {
    let file = folder.join("Cargo.toml");
    let text = at(&file, fs::read_to_string(&file))?;
    let name = text.lines().find_map(|line| line.strip_prefix("name = \"")?.strip_suffix('"'));
    name.map(str::to_owned).ok_or_else(|| format!("`{}` has no line with a name", file.display()))
}
