//! Finds the file of a command's program: in the `PATH` of commands, or at an absolute path outside the workspace.
//!
//! A file that the stage could have written is never started as a program. This module does not interpret arguments.

use super::ExecPolicy;
use crate::exec::{ExecError, Program};
use glovebox_jail_helper::wire;
use glovebox_record::{Digest, DigestedFile};
use glovebox_workspace::canonical::canonical;
use glovebox_workspace::commit::digest_of;
use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// Maximum size of a program that is digested, bytes.
const PROGRAM_BYTES_MAX: u64 = 1 << 30;
/// Maximum number of digests in the cache.
const KNOWN_MAX: usize = 256;

/// Digests of programs by the metadata that changes with their content: device, inode, length, and the times of
/// modification and status change in nanoseconds. Only root can set the time of status change.
type DigestCache = HashMap<[i128; 5], Digest>;
static KNOWN: Mutex<Option<DigestCache>> = Mutex::new(None);

/// Returns the file of a command's program on this machine, with its digest. Returns `None` if the file is not found,
/// or if the stage can write it.
pub(super) fn file(
    policy: &ExecPolicy,
    program: &Program,
    is_writable: &dyn Fn(&Path) -> bool,
) -> Option<DigestedFile> {
    let (program, _) = resolve(policy, program, is_writable).ok()?;
    let found = match program {
        wire::Program::Path(path) => on_host(policy, &path),
        wire::Program::Search { name, folders } => {
            folders.iter().map(|folder| on_host(policy, &folder.join(&name))).find(|file| file.is_file())?
        }
        wire::Program::SelfTest(_) => return None,
    };
    digested(&found).ok()
}

/// Returns the host path of a path in a jail: through the bind with the longest matching path, otherwise the same path.
fn on_host(policy: &ExecPolicy, path: &Path) -> PathBuf {
    let shown = policy.binds.iter().filter_map(|bind| Some((bind, path.strip_prefix(&bind.at).ok()?)));
    let longest = shown.max_by_key(|(bind, _)| bind.at.as_os_str().len());
    longest.map_or_else(
        || path.to_owned(),
        |(bind, rest)| if rest.as_os_str().is_empty() { bind.source.clone() } else { bind.source.join(rest) },
    )
}

fn digested(program: &Path) -> io::Result<DigestedFile> {
    let place = canonical(program)?;
    let flags = rustix::fs::OFlags::NONBLOCK.bits().cast_signed();
    let file = File::options().read(true).custom_flags(flags).open(&place)?;
    let stat = file.metadata()?;
    let path = place.to_str().filter(|_| stat.is_file() && stat.len() <= PROGRAM_BYTES_MAX);
    let path = path.ok_or(io::ErrorKind::InvalidInput)?.to_owned();
    let nanoseconds = |seconds: i64, rest: i64| i128::from(seconds) * 1_000_000_000 + i128::from(rest);
    let (changed, touched) =
        (nanoseconds(stat.mtime(), stat.mtime_nsec()), nanoseconds(stat.ctime(), stat.ctime_nsec()));
    let key = [stat.dev().into(), stat.ino().into(), stat.len().into(), changed, touched];
    let known = || KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    let bytes = stat.len();
    if let Some(digest) = known().as_ref().and_then(|known| known.get(&key)).copied() {
        return Ok(DigestedFile { path, bytes, digest });
    }
    let digest = digest_of(file)?;
    let mut known = known();
    let known = known.get_or_insert_default();
    if known.len() >= KNOWN_MAX {
        known.clear();
    }
    known.insert(key, digest);
    Ok(DigestedFile { path, bytes, digest })
}

/// Returns the program that a jail starts. Names are looked up inside the jail. A path for which `is_writable` returns
/// true is refused.
pub(super) fn resolve(
    policy: &ExecPolicy,
    program: &Program,
    is_writable: &dyn Fn(&Path) -> bool,
) -> Result<(wire::Program, Vec<String>), ExecError> {
    let (program, arguments) = match program {
        Program::Shell(text) => (wire::Program::Path("/bin/sh".into()), vec!["-c".to_owned(), text.clone()]),
        Program::Argv(argv) => {
            let (name, arguments) =
                argv.split_first().ok_or_else(|| ExecError::Invalid("the command is empty".to_owned()))?;
            (lookup(policy, Path::new(name), is_writable)?, arguments.to_vec())
        }
    };
    if arguments.iter().any(|argument| argument.contains('\0')) {
        return Err(ExecError::Invalid("an argument contains a NUL byte".to_owned()));
    }
    Ok((program, arguments))
}

/// Decides about a program by its name or its path.
fn lookup(
    policy: &ExecPolicy,
    program: &Path,
    is_writable: &dyn Fn(&Path) -> bool,
) -> Result<wire::Program, ExecError> {
    let name = program.to_str().unwrap_or_default();
    if name.is_empty() || name.contains('\0') || name == "." || name == ".." {
        return Err(ExecError::Invalid("the command does not name a program".to_owned()));
    }
    if program.is_absolute() {
        if is_writable(program) {
            let text =
                format!("`{name}` is in a folder that the stage can write; expected a program in a read-only folder");
            return Err(ExecError::Invalid(text));
        }
        return Ok(wire::Program::Path(program.to_owned()));
    }
    if name.contains('/') {
        let text = format!(
            "`{name}` is relative, expected a name in the PATH of commands or an absolute path outside the workspace"
        );
        return Err(ExecError::Invalid(text));
    }
    Ok(wire::Program::Search { name: name.to_owned(), folders: policy.path.to_vec() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use glovebox_jail_helper::policy::Bind;
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    fn program(place: &Path, text: &str) {
        fs::write(place, text).unwrap();
        fs::set_permissions(place, PermissionsExt::from_mode(0o755)).unwrap();
    }

    #[test]
    fn a_program_is_found_where_the_jail_finds_it_and_a_new_one_has_a_new_digest() {
        let place = tempfile::tempdir().unwrap();
        let folder = fs::canonicalize(place.path()).unwrap();
        fs::create_dir(folder.join("bin")).unwrap();
        program(&folder.join("bin/tool"), "one");
        let bind = Bind::read_only(folder.clone(), "/opt/shown".into());
        let path = vec!["/no/such".into(), "/opt/shown/bin".into()];
        let policy = ExecPolicy { path, binds: vec![bind], ..ExecPolicy::default() };
        let of = |words: &[&str]| {
            let words = words.iter().map(|word| (*word).to_owned()).collect();
            file(&policy, &Program::Argv(words), &|path| path.starts_with("/made"))
        };
        let found = of(&["tool", "--flag"]).unwrap();
        assert_eq!((found.path.as_str(), found.bytes), (folder.join("bin/tool").to_str().unwrap(), 3));
        assert_eq!((found.digest, of(&["/opt/shown/bin/tool"])), (Digest::hash(b"one"), Some(found.clone())));
        program(&folder.join("bin/tool"), "two");
        assert_eq!(of(&["tool"]).unwrap().digest, Digest::hash(b"two"));
        assert_eq!((of(&["no-such"]), of(&["/made/x"]), of(&[]), of(&["a/b"])), (None, None, None, None));
        let shell = file(&policy, &Program::Shell("true".to_owned()), &|_| false).unwrap();
        assert_eq!(shell.digest, Digest::hash(&fs::read("/bin/sh").unwrap()));
    }
}
