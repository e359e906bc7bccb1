//! A path inside a scope: relative, separated by `/`, normalised.
//!
//! A [`ScopePath`] is text; this module does not access the file system. It has no `.`, `..`, doubled slash or NUL, and
//! it is not absolute. Lexical resolution is exact, because no component of a view may be a symbolic link.

use serde::{Deserialize, Serialize};
use std::borrow::Borrow;
use std::fmt;

/// Maximum length of a path in bytes, as `PATH_MAX` on Linux.
pub const PATH_BYTES_MAX: usize = 4096;
/// Maximum length of a name in bytes, as `NAME_MAX` on Linux.
pub const NAME_BYTES_MAX: usize = 255;

/// Why a text is not a path inside a scope.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ScopePathProblem {
    /// The path begins with `/`.
    #[error("the path is absolute, expected one relative to the workspace")]
    Absolute,
    /// The path contains a NUL byte.
    #[error("the path contains a NUL byte")]
    Nul,
    /// The path has two slashes in a row, or one at the end.
    #[error("the path has an empty segment")]
    EmptySegment,
    /// The path is empty.
    #[error("the path is empty")]
    Empty,
    /// The path contains `.`, where only names are allowed.
    #[error("the path has a `.` segment")]
    DotSegment,
    /// The path contains `..`, where only names are allowed.
    #[error("the path has a `..` segment")]
    ParentSegment,
    /// A `..` leads above the base of the path.
    #[error("the path climbs above its base")]
    ClimbsAbove,
    /// The path is not valid UTF-8.
    #[error("the path is not valid UTF-8")]
    NotUtf8,
    /// The path is longer than [`PATH_BYTES_MAX`], or one of its names is longer than [`NAME_BYTES_MAX`].
    #[error("the path or one of its names is too long")]
    TooLong,
}

impl ScopePathProblem {
    /// Returns a noun phrase for messages of the form "`read_paths` contains …" (decision workspace-relative-paths).
    pub fn fault(self) -> &'static str {
        match self {
            Self::Absolute => "absolute path",
            Self::Nul => "NUL character",
            Self::Empty => "empty entry",
            Self::EmptySegment => "empty segment",
            Self::DotSegment => "`.` segment",
            Self::ParentSegment => "parent segment",
            Self::ClimbsAbove => "path above its base",
            Self::NotUtf8 => "text that is not UTF-8",
            Self::TooLong => "path that is too long",
        }
    }
}

/// A normalised path relative to the root of a view. The empty path is the root itself.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ScopePath(String);

impl ScopePath {
    /// Returns the path of the root.
    pub fn root() -> Self {
        Self::default()
    }

    /// Parses names that are separated by single slashes. The empty text is the root. Returns an error for a text that
    /// is not normalised.
    pub fn parse(text: &str) -> Result<Self, ScopePathProblem> {
        check_whole(text)?;
        if text.is_empty() {
            return Ok(Self::root());
        }
        for segment in text.split('/') {
            match segment {
                "" => return Err(ScopePathProblem::EmptySegment),
                "." => return Err(ScopePathProblem::DotSegment),
                ".." => return Err(ScopePathProblem::ParentSegment),
                name => check_name(name)?,
            }
        }
        Ok(Self(text.to_owned()))
    }

    /// As [`ScopePath::parse`], but for bytes from the operating system.
    pub fn parse_bytes(bytes: &[u8]) -> Result<Self, ScopePathProblem> {
        Self::parse(std::str::from_utf8(bytes).map_err(|_| ScopePathProblem::NotUtf8)?)
    }

    /// Resolves a guest's path against this base. Ignores `.`, empty segments and a final slash. A `..` removes a name of the
    /// guest's own path, and never a name of the base.
    pub fn resolve(&self, relative: &str) -> Result<Self, ScopePathProblem> {
        check_whole(relative)?;
        let mut names: Vec<&str> = Vec::new();
        for segment in relative.split('/') {
            match segment {
                "" | "." => {}
                ".." => {
                    names.pop().ok_or(ScopePathProblem::ClimbsAbove)?;
                }
                name => {
                    check_name(name)?;
                    names.push(name);
                }
            }
        }
        let joined = names.iter().fold(self.clone(), |base, name| base.child(name));
        if joined.0.len() > PATH_BYTES_MAX { Err(ScopePathProblem::TooLong) } else { Ok(joined) }
    }

    /// Appends one or more plain names.
    pub fn join(&self, names: &str) -> Result<Self, ScopePathProblem> {
        let below = Self::parse(names)?;
        if below.is_root() { Ok(self.clone()) } else { self.resolve(&below.0) }
    }

    /// Appends a name that has already been checked.
    fn child(&self, name: &str) -> Self {
        if self.0.is_empty() { Self(name.to_owned()) } else { Self(format!("{}/{name}", self.0)) }
    }

    /// Returns the directory that contains this path. `None` for the root.
    pub fn parent(&self) -> Option<Self> {
        if self.is_root() {
            return None;
        }
        Some(self.0.rsplit_once('/').map_or_else(Self::root, |(parent, _)| Self(parent.to_owned())))
    }

    /// Returns the last name of the path. `None` for the root.
    pub fn name(&self) -> Option<&str> {
        self.0.rsplit('/').next().filter(|name| !name.is_empty())
    }

    /// Returns true for `base` itself and every path below it. Compares whole names.
    pub fn starts_with(&self, base: &Self) -> bool {
        match self.0.strip_prefix(&base.0) {
            Some(rest) => base.is_root() || rest.is_empty() || rest.starts_with('/'),
            None => false,
        }
    }

    /// Returns true for every path below `base`, but not for `base` itself.
    pub fn is_below(&self, base: &Self) -> bool {
        self != base && self.starts_with(base)
    }

    /// Returns the path relative to `base`. `None` unless it is below `base`.
    pub fn below(&self, base: &Self) -> Option<Self> {
        let rest = self.0.strip_prefix(&base.0).filter(|_| self.is_below(base))?;
        Self::parse(rest.trim_start_matches('/')).ok()
    }

    /// Returns the names in the path, beginning at the root.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.split('/').filter(|name| !name.is_empty())
    }

    /// Returns true for the root.
    pub fn is_root(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the path as text. Empty for the root.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

fn check_whole(text: &str) -> Result<(), ScopePathProblem> {
    if text.contains('\0') {
        return Err(ScopePathProblem::Nul);
    }
    if text.starts_with('/') {
        return Err(ScopePathProblem::Absolute);
    }
    if text.len() > PATH_BYTES_MAX { Err(ScopePathProblem::TooLong) } else { Ok(()) }
}

fn check_name(name: &str) -> Result<(), ScopePathProblem> {
    if name.len() > NAME_BYTES_MAX { Err(ScopePathProblem::TooLong) } else { Ok(()) }
}

impl Borrow<str> for ScopePath {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ScopePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.is_root() { "." } else { &self.0 })
    }
}

impl TryFrom<String> for ScopePath {
    type Error = ScopePathProblem;

    fn try_from(text: String) -> Result<Self, ScopePathProblem> {
        Self::parse(&text)
    }
}

impl From<ScopePath> for String {
    fn from(path: ScopePath) -> Self {
        path.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(text: &str) -> ScopePath {
        ScopePath::parse(text).unwrap()
    }

    #[test]
    fn parse_takes_plain_names_only() {
        let check = |text: &str, expected: Result<&str, ScopePathProblem>| {
            assert_eq!(ScopePath::parse(text).as_ref().map(ScopePath::as_str), expected.as_ref().copied(), "{text:?}");
        };
        check("", Ok(""));
        check("a/b.rs", Ok("a/b.rs"));
        check("..a/b..", Ok("..a/b.."));
        check("/etc", Err(ScopePathProblem::Absolute));
        check("a//b", Err(ScopePathProblem::EmptySegment));
        check("a/", Err(ScopePathProblem::EmptySegment));
        check("./a", Err(ScopePathProblem::DotSegment));
        check("a/../b", Err(ScopePathProblem::ParentSegment));
        check("a\0b", Err(ScopePathProblem::Nul));
        check(&"n".repeat(256), Err(ScopePathProblem::TooLong));
        check(&"n/".repeat(3000), Err(ScopePathProblem::TooLong));
    }

    #[test]
    fn resolve_never_leaves_the_base() {
        let check = |base: &str, text: &str, expected: Result<&str, ScopePathProblem>| {
            let got = path(base).resolve(text);
            assert_eq!(got.as_ref().map(ScopePath::as_str), expected.as_ref().copied(), "{base:?} {text:?}");
        };
        check("", "a/./b//c/", Ok("a/b/c"));
        check("src", "x/../y", Ok("src/y"));
        check("src", ".", Ok("src"));
        check("src", "..", Err(ScopePathProblem::ClimbsAbove));
        check("src", "x/../../holdout", Err(ScopePathProblem::ClimbsAbove));
        check("", "/etc/passwd", Err(ScopePathProblem::Absolute));
        check("", "a\0", Err(ScopePathProblem::Nul));
    }

    proptest::proptest! {
        #[test]
        fn whatever_resolves_stays_below_the_base_and_is_normal(text in "[a./\\x00é]{0,24}") {
            if let Ok(resolved) = path("base/dir").resolve(&text) {
                assert!(resolved.starts_with(&path("base/dir")), "{text:?}");
                assert_eq!(ScopePath::parse(resolved.as_str()).unwrap(), resolved, "{text:?}");
            }
        }
    }

    #[test]
    fn relations_go_by_whole_names() {
        assert!(path("src/a").starts_with(&path("src")));
        assert!(!path("src2").starts_with(&path("src")));
        assert!(path("src").starts_with(&path("src")) && !path("src").is_below(&path("src")));
        assert!(path("a").is_below(&ScopePath::root()));
        assert_eq!(path("a/b").parent(), Some(path("a")));
        assert_eq!(path("a").parent(), Some(ScopePath::root()));
        assert_eq!(ScopePath::root().parent(), None);
        assert_eq!((path("a/b").name(), ScopePath::root().name()), (Some("b"), None));
        assert_eq!(path("a").join("b/c").unwrap(), path("a/b/c"));
        assert!(path("a").join("../b").is_err());
    }
}
