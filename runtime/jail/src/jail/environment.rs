//! The environment of a command: only fixed variables, those of the operator, and those of the command.
//!
//! The caller's environment is never read or passed on. Some variables make programs load or run other code. Only the
//! operator may set these, and a command that sets one is refused.

use super::ExecPolicy;
use crate::exec::{Command, ExecError};
use glovebox_names::visible;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::Path;

/// The private folders of a command, as the command sees them.
#[derive(Debug, Clone, Copy)]
pub(super) struct OwnFolders<'p> {
    pub(super) home: &'p Path,
    pub(super) tmp: &'p Path,
    /// The name of the user, if the jail has its own.
    pub(super) user: Option<&'p str>,
    /// The path that replaces `{scratch}` in the value of a variable.
    pub(super) scratch: &'p Path,
    /// The path that replaces `{kept}` in the value of a variable.
    pub(super) kept: &'p Path,
}

/// Variables of every command. With `CI` and `NO_COLOR`, tools ask no questions and print no control sequences.
const FIXED: [(&str, &str); 6] =
    [("CI", "true"), ("LANG", "C.UTF-8"), ("NO_COLOR", "1"), ("SHELL", "/bin/sh"), ("TERM", "dumb"), ("TZ", "UTC")];

/// Prefixes of the names of variables that make programs load or run other code, or read other settings.
const DANGEROUS_STARTS: &[&str] = &[
    "LD_",
    "DYLD_",
    "GIT_",
    "PYTHON",
    "PERL",
    "RUBY",
    "NODE_",
    "NPM_CONFIG_",
    "CARGO_",
    "RUSTC",
    "RUSTDOC",
    "RUSTUP_",
    "BASH_FUNC_",
    "SSH_",
    "DBUS_",
    "XDG_",
    "DOCKER_",
    "MALLOC_",
    "GLIBC_",
    "GCONV_",
    "MAVEN_",
    "GRADLE_",
    "GLOVEBOX_",
];

/// Names of further variables that make programs load or run other code, or read other settings.
const DANGEROUS: &[&str] = &[
    "PATH",
    "HOME",
    "TMPDIR",
    "SHELL",
    "ENV",
    "BASH_ENV",
    "PROMPT_COMMAND",
    "SHELLOPTS",
    "BASHOPTS",
    "PS4",
    "IFS",
    "CDPATH",
    "ZDOTDIR",
    "RUSTFLAGS",
    "JAVA_TOOL_OPTIONS",
    "_JAVA_OPTIONS",
    "JDK_JAVA_OPTIONS",
    "GOFLAGS",
    "GOENV",
    "GOROOT",
    "GOPATH",
    "GOTOOLCHAIN",
    "GOPROXY",
    "EDITOR",
    "VISUAL",
    "PAGER",
    "MANPAGER",
    "LESSOPEN",
    "LESSCLOSE",
    "MAKEFLAGS",
    "MFLAGS",
    "GNUMAKEFLAGS",
    "MAKEFILES",
    "LOCPATH",
    "NLSPATH",
    "HOSTALIASES",
    "BROWSER",
    "CC",
    "CXX",
    "LUA_INIT",
    "PHPRC",
];

/// A variable that the operator or a command sets.
#[derive(Clone, Copy)]
struct Variable<'v> {
    name: &'v str,
    value: &'v str,
}

impl<'v> Variable<'v> {
    /// Checks the name and the value.
    fn checked(name: &'v str, value: &'v str) -> Result<Self, ExecError> {
        let starts_well = name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_');
        if !starts_well || !name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') {
            return Err(ExecError::Invalid(format!("`{}` is not the name of a variable", visible::line(name))));
        }
        if value.contains('\0') {
            return Err(ExecError::Invalid(format!("the value of `{name}` contains a NUL byte")));
        }
        Ok(Self { name, value })
    }

    /// Returns true for names that only the operator may set: `LD_PRELOAD`, `BASH_ENV`, `GIT_SSH_COMMAND` and similar
    /// names.
    fn is_dangerous(self) -> bool {
        let name = self.name.to_ascii_uppercase();
        DANGEROUS.contains(&name.as_str()) || DANGEROUS_STARTS.iter().any(|start| name.starts_with(start))
    }
}

/// Returns all variables of a command. Later ones override earlier ones: the fixed variables, the operator's, the
/// command's.
pub(super) fn build(
    policy: &ExecPolicy,
    command: &Command,
    folders: OwnFolders<'_>,
    has_proxy: bool,
) -> Result<BTreeMap<String, OsString>, ExecError> {
    let mut all: BTreeMap<String, OsString> = BTreeMap::new();
    all.extend(FIXED.map(|(name, value)| (name.to_owned(), value.into())));
    if let Some(user) = folders.user {
        all.extend(["USER", "LOGNAME"].map(|name| (name.to_owned(), user.into())));
    }
    all.insert("HOME".to_owned(), folders.home.into());
    all.insert("TMPDIR".to_owned(), folders.tmp.into());
    if has_proxy {
        all.extend(crate::proxy::environment().map(|(name, value)| (name.to_owned(), value.into())));
    }
    for (name, value) in &policy.env {
        let Variable { name, value } = Variable::checked(name, value)?;
        if name == "PATH" {
            return Err(ExecError::Invalid(
                "PATH is fixed; add folders with `[exec] path` in glovebox.toml".to_owned(),
            ));
        }
        let filled = value.replace("{scratch}", &folders.scratch.to_string_lossy());
        let filled = filled.replace("{home}", &folders.home.to_string_lossy());
        let filled = filled.replace("{kept}", &folders.kept.to_string_lossy());
        all.insert(name.to_owned(), filled.into());
    }
    for (name, value) in &command.env {
        let variable = Variable::checked(name, value)?;
        if variable.is_dangerous() && policy.env.get(name) != Some(value) {
            let remedy = format!("only `[exec] env` in glovebox.toml may set `{name}`");
            return Err(ExecError::Invalid(format!(
                "the command may not set `{name}`, which can make programs run other code; {remedy}"
            )));
        }
        if !policy.env.contains_key(name) || !variable.is_dangerous() {
            all.insert(name.to_owned(), value.into());
        }
    }
    let path = std::env::join_paths(&policy.path).map_err(|error| ExecError::Invalid(format!("PATH: {error}")))?;
    all.insert("PATH".to_owned(), path);
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exec::Program;
    use glovebox_record::path::ScopePath;
    use std::time::Duration;

    fn build_with(policy: &[(&str, &str)], own: &[(&str, &str)]) -> Result<BTreeMap<String, OsString>, ExecError> {
        let pair = |(name, value): &(&str, &str)| (name.to_string(), value.to_string());
        let policy = ExecPolicy { env: policy.iter().map(pair).collect(), ..ExecPolicy::default() };
        let command = Command {
            program: Program::Shell(String::new()),
            cwd: ScopePath::root(),
            env: own.iter().map(pair).collect(),
            stdin: None,
            timeout: Duration::ZERO,
        };
        let places = OwnFolders {
            home: Path::new("/h"),
            user: Some("glovebox"),
            tmp: Path::new("/t"),
            scratch: Path::new("/scratch"),
            kept: Path::new("/k"),
        };
        build(&policy, &command, places, false)
    }

    #[test]
    fn dangerous_names_come_from_the_operator_or_not_at_all() {
        let names = [
            "LD_PRELOAD",
            "BASH_ENV",
            "GIT_SSH_COMMAND",
            "NODE_OPTIONS",
            "PYTHONPATH",
            "PATH",
            "HOME",
            "RUSTC_WRAPPER",
        ];
        for name in names {
            assert!(matches!(build_with(&[], &[(name, "x")]), Err(ExecError::Invalid(_))), "{name}");
        }
        assert!(build_with(&[("CARGO_HOME", "/c")], &[("CARGO_HOME", "/evil")]).is_err());
        let all = build_with(
            &[("CARGO_HOME", "{scratch}/c"), ("LANG", "de"), ("X", "{home}/x"), ("Y", "{kept}/y")],
            &[("MODE", "fast"), ("LANG", "fr")],
        )
        .unwrap();
        let get = |name: &str| all.get(name).and_then(|value| value.to_str());
        assert_eq!((get("CARGO_HOME"), get("MODE"), get("LANG")), (Some("/scratch/c"), Some("fast"), Some("fr")));
        assert_eq!((get("X"), get("Y")), (Some("/h/x"), Some("/k/y")));
        assert!(build_with(&[("PATH", "/x")], &[]).is_err() && build_with(&[], &[("a=b", "x")]).is_err());
    }
}
