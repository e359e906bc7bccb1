//! What a plugin may do now, and could not do when it was locked.
//!
//! Pure. A change that only takes something away is no growth. A limit is an exception in grants and offers: without it the
//! default applies, which may be higher, so that a limit must neither be removed nor added.

use super::line::Line;
use super::locked::LockedPlugin;
use glovebox_signing::trust::Signer;
use std::fmt;

/// Interfaces of WASI that the standard libraries of all languages import, without files and without network. They allow
/// nothing that a stage could notice, and a toolchain adds and removes them with each version.
const BASE_PACKAGES: [&str; 4] = ["wasi:cli/", "wasi:clocks/", "wasi:io/", "wasi:random/"];

/// One thing that grew.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Growth {
    /// The plugin gets more.
    Granted(Line),
    /// The operator offers more, whether or not the plugin wants it.
    Offered(Line),
    /// The author asks for more, whether or not it is granted.
    Wanted(Line),
    /// A limit of the lock file is no longer set.
    Unlimited(Line),
    /// The component imports another interface. Its version does not count.
    Import(String),
    /// The component is of another world.
    World(String),
    /// Another key signed the component than before, or no trusted key does.
    Signer {
        /// The signer of the lock file.
        before: Signer,
        /// The signer now.
        after: Option<Signer>,
    },
}

impl fmt::Display for Growth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Granted(line) => write!(f, "is granted `{line}`, but the lock does not have this grant"),
            Self::Offered(line) => {
                write!(f, "is offered `{line}` in `glovebox.toml`, but the lock does not have this offer")
            }
            Self::Wanted(line) => write!(f, "wants `{line}`, but the lock does not have this want"),
            Self::Unlimited(Line::Limit(name, amount)) => {
                write!(f, "no longer has the `limit {name} {amount}` of the lock")
            }
            Self::Unlimited(line) => write!(f, "no longer has `{line}`, which the lock has"),
            Self::Import(name) => write!(f, "imports `{name}`, which it did not import when it was locked"),
            Self::Signer { before, after: Some(after) } => {
                write!(f, "is signed by {after}, but the lock has the signer {before}")
            }
            Self::Signer { before, after: None } => {
                write!(f, "is not signed by a trusted key any more, but the lock has the signer {before}")
            }
            Self::World(world) => write!(f, "is of the world `{world}`, which it was not when it was locked"),
        }
    }
}

/// Returns what grew. Empty if the plugin may do nothing that it could not do before.
pub fn growth(before: &LockedPlugin, after: &LockedPlugin) -> Vec<Growth> {
    let mut found = Vec::new();
    found.extend(added(&before.grants, &after.grants).map(Growth::Granted));
    found.extend(added(&before.offered, &after.offered).map(Growth::Offered));
    // A limit of the author only lowers a limit.
    let is_limit = |line: &Line| matches!(line, Line::Limit(name, _) if !has_limit(&before.wants, *name));
    found.extend(added(&before.wants, &after.wants).filter(|line| !is_limit(line)).map(Growth::Wanted));
    for (before, after) in
        [(&before.grants, &after.grants), (&before.offered, &after.offered), (&before.wants, &after.wants)]
    {
        let removed = parsed(before).filter(|line| matches!(line, Line::Limit(name, _) if !has_limit(after, *name)));
        found.extend(removed.map(Growth::Unlimited));
    }
    let known = |name: &str| before.imports.iter().any(|import| interface(import) == interface(name));
    let imports = after.imports.iter().filter(|name| !is_base(name) && !known(name));
    found.extend(imports.cloned().map(Growth::Import));
    found.extend((before.world != after.world).then(|| Growth::World(after.world.clone())));
    // A signature where there was none takes nothing away from the operator.
    if let Some(signer) =
        before.signer.as_ref().filter(|signer| after.signer.as_ref().map(|it| it.key) != Some(signer.key))
    {
        found.push(Growth::Signer { before: signer.clone(), after: after.signer.clone() });
    }
    let mut once = Vec::new();
    for growth in found {
        if !once.contains(&growth) {
            once.push(growth);
        }
    }
    once
}

/// Returns true for an interface of WASI that every component may import without anyone noticing.
pub fn is_base(import: &str) -> bool {
    BASE_PACKAGES.iter().any(|package| import.starts_with(package))
}

fn added<'a>(before: &'a [String], after: &'a [String]) -> impl Iterator<Item = Line> + 'a {
    let agreed: Vec<Line> = parsed(before).collect();
    parsed(after).filter(move |line| !agreed.iter().any(|agreed| agreed.covers(line)))
}

fn parsed(lines: &[String]) -> impl Iterator<Item = Line> + '_ {
    lines.iter().map(|line| Line::parse(line))
}

fn has_limit(lines: &[String], name: glovebox_record::LimitName) -> bool {
    parsed(lines).any(|line| matches!(line, Line::Limit(other, _) if other == name))
}

/// Returns the name of an import without its version.
fn interface(import: &str) -> &str {
    import.split_once('@').map_or(import, |(name, _)| name)
}

#[cfg(test)]
mod tests;
