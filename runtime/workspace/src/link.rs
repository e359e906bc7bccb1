//! Symbolic links that may exist in a workspace: relative ones that cannot lead out of it.
//!
//! `..` is accepted only at the beginning of a target. There it is safe, because the directories above a link are not
//! links. A later name may be another link, and `..` after a link can lead anywhere.

use glovebox_record::path::ScopePath;
use std::path::{Component, Path};

/// Returns the path to which a link at `path` with this target leads, or the reason why the link must not exist.
pub(crate) fn destination(path: &ScopePath, target: &Path) -> Result<ScopePath, &'static str> {
    let Some(text) = target.to_str() else { return Err("its target is not valid UTF-8") };
    if text.chars().any(glovebox_names::visible::is_deceptive) {
        return Err("its target has characters that could deceive a reader");
    }
    let mut at = path.parent().unwrap_or_default();
    let mut named = false;
    for component in target.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir if named => return Err("its target has `..` after a name"),
            Component::ParentDir => at = at.parent().ok_or("its target is outside the workspace")?,
            Component::Normal(name) => {
                named = true;
                let name = name.to_str().unwrap_or_default();
                at = at.join(name).map_err(|_| "its target is not a valid path of the workspace")?;
            }
            Component::RootDir | Component::Prefix(_) => return Err("its target is absolute"),
        }
    }
    Ok(at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_links_that_stay_inside_have_a_destination() {
        let check = |path: &str, target: &str, expected: Option<&str>| {
            let path = ScopePath::parse(path).unwrap();
            let got = destination(&path, Path::new(target)).ok();
            assert_eq!(got.as_ref().map(ScopePath::as_str), expected, "{path} -> {target}");
        };
        check("a/b", "c", Some("a/c"));
        check("a/b", "../c/d", Some("c/d"));
        check("a/b", "./../c", Some("c"));
        check("a/b", "..", Some(""));
        check("a/b", "../../c", None);
        check("a/b", "/etc/passwd", None);
        check("a/b", "c/../../..", None);
        check("a/b", "c/../d", None);
        check("b", "..", None);
        check("b", "c\u{1b}[2J", None);
    }
}
