//! Builds a standard library for `wasm32-wasip2` from the source of the current compiler.
//!
//! The source is the toolchain's `rust-src` if it is installed, and otherwise the Debian package of the same version. The C library
//! comes from the package `wasi-libc`. Nothing outside of `target/` changes. An incomplete sysroot is never used.

use crate::process::{at, capture, demand, nested_cargo};
use crate::rustc::{TARGET, rustc, rustc_field};
use crate::{Step, debian};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

/// Files of the C library that are needed to link a component.
const LIBC_FILES: [&str; 3] = ["libc.a", "crt1-command.o", "crt1-reactor.o"];

/// Finds a completely built sysroot in the folder of a compiler.
pub(crate) fn find(folder: &Path) -> Option<PathBuf> {
    let sysroots = folder.read_dir().ok()?.flatten().map(|entry| entry.path());
    sysroots.into_iter().find(|sysroot| sysroot.join("complete").is_file())
}

/// Returns the sysroot in the folder of a compiler, and builds it first if there is none.
///
/// Every build gets a new name: cargo does not detect changes inside of a sysroot, and crates that were compiled against an earlier
/// one cannot be linked with a later one.
///
/// # Errors
/// The source or the C library was not found, or the standard library could not be built.
pub(crate) fn build(folder: &Path) -> Step<PathBuf> {
    if let Some(sysroot) = find(folder) {
        return Ok(sysroot);
    }
    eprintln!("building a std for {TARGET} from source, once for this compiler");
    if folder.exists() {
        at(folder, fs::remove_dir_all(folder))?;
    }
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let sysroot = folder.join(now.to_string());
    let work = sysroot.join("work");
    at(&work, fs::create_dir_all(&work))?;
    let parts = SysrootParts { source: installed_source()?, libc: installed_libc() };
    let (source, libc) = parts.complete(&work)?;
    // The C library is copied first, so that the standard library is built only with this sysroot and not with an installed target.
    lay_out_libc(&libc, &sysroot)?;
    compile(&source, &sysroot, &work)?;
    at(&work, fs::remove_dir_all(&work))?;
    at(&sysroot, fs::write(sysroot.join("complete"), b"built by cargo xtask components\n"))?;
    Ok(sysroot)
}

/// The parts that are installed on this machine. The others are downloaded.
struct SysrootParts {
    source: Option<PathBuf>,
    libc: Option<PathBuf>,
}

impl SysrootParts {
    fn complete(self, work: &Path) -> Step<(PathBuf, PathBuf)> {
        if let (Some(source), Some(libc)) = (&self.source, &self.libc) {
            return Ok((source.clone(), libc.clone()));
        }
        let mirror = debian::Mirror::open(&work.join("apt"), debian::BACKPORTS)?;
        let source = match self.source {
            Some(source) => source,
            None => debian_source(&mirror, work)?,
        };
        let libc = match self.libc {
            Some(libc) => libc,
            None => debian_libc(&mirror, work)?,
        };
        Ok((source, libc))
    }
}

fn installed_source() -> Step<Option<PathBuf>> {
    let root = capture(rustc().args(["--print", "sysroot"]))?;
    let library = Path::new(root.trim()).join("lib/rustlib/src/rust/library");
    Ok(library.join("sysroot/Cargo.toml").is_file().then_some(library))
}

/// Returns the folder of the C library: in the WASI sysroot that `WASI_SYSROOT` names, or of the installed package.
fn installed_libc() -> Option<PathBuf> {
    let named = std::env::var_os("WASI_SYSROOT").map(|root| PathBuf::from(root).join("lib"));
    let folders = named.into_iter().chain([PathBuf::from("/usr/lib")]);
    folders.map(|folder| folder.join(TARGET)).find(|folder| holds_libc(folder))
}

fn holds_libc(folder: &Path) -> bool {
    LIBC_FILES.iter().all(|name| folder.join(name).is_file())
}

fn debian_source(mirror: &debian::Mirror, work: &Path) -> Step<PathBuf> {
    let release = rustc_field("release")?;
    let folder = work.join("rust-src");
    mirror.unpack("rust-src", &folder, |version| version.starts_with(&format!("{release}+")))?;
    let library = folder.join(format!("usr/src/rustc-{release}/library"));
    if library.join("sysroot/Cargo.toml").is_file() {
        Ok(library)
    } else {
        Err(format!("the Debian package rust-src {release} holds no `sysroot/Cargo.toml`"))
    }
}

fn debian_libc(mirror: &debian::Mirror, work: &Path) -> Step<PathBuf> {
    let folder = work.join("wasi-libc");
    mirror.unpack("wasi-libc", &folder, |_| true)?;
    let libraries = folder.join("usr/lib").join(TARGET);
    if holds_libc(&libraries) {
        Ok(libraries)
    } else {
        Err(format!("the Debian package wasi-libc holds no libc.a for {TARGET}"))
    }
}

fn libraries(sysroot: &Path) -> PathBuf {
    sysroot.join("lib/rustlib").join(TARGET).join("lib")
}

fn lay_out_libc(libc: &Path, sysroot: &Path) -> Step<()> {
    let folder = libraries(sysroot).join("self-contained");
    at(&folder, fs::create_dir_all(&folder))?;
    for name in LIBC_FILES {
        at(&libc.join(name), fs::copy(libc.join(name), folder.join(name)))?;
    }
    Ok(())
}

/// Compiles the standard library as the compiler's own bootstrap does: as a stable library that may use unstable features.
fn compile(library: &Path, sysroot: &Path, work: &Path) -> Step<()> {
    let target_folder = work.join("target");
    let flags = [
        "-Zforce-unstable-if-unmarked".to_owned(),
        "-Cembed-bitcode=yes".to_owned(),
        format!("--sysroot={}", sysroot.display()),
        format!("-Lnative={}", libraries(sysroot).join("self-contained").display()),
        format!("--remap-path-prefix={}=/rustc/library", library.display()),
    ];
    let mut cargo = nested_cargo(library, &flags);
    cargo.env("RUSTC_BOOTSTRAP", "1").args(["build", "--quiet", "--release", "--locked", "--target", TARGET]);
    cargo.args(["--features", "compiler-builtins-mem,panic-unwind,backtrace"]);
    cargo.arg("--manifest-path").arg(library.join("sysroot/Cargo.toml")).arg("--target-dir").arg(&target_folder);
    demand(&mut cargo)?;
    let built = target_folder.join(TARGET).join("release/deps");
    for entry in at(&built, fs::read_dir(&built))? {
        let path = at(&built, entry)?.path();
        if let (Some("rlib"), Some(name)) = (path.extension().and_then(|ending| ending.to_str()), path.file_name()) {
            at(&path, fs::copy(&path, libraries(sysroot).join(name)))?;
        }
    }
    Ok(())
}
