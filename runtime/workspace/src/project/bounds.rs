//! Checks a list of files that another machine made of its project.
//!
//! The lists of this machine come from a copy, which has these limits and rules. A list from elsewhere may be invented: with
//! more than a disk holds, with links that lead out of the workspace, or with a repository that makes programs run.

use super::{Base, Include, NEVER};
use crate::link;
use glovebox_record::path::ScopePath;
use std::path::Path;

impl Base {
    /// Returns why no copy of a project can have this list. `None` if one can.
    pub fn fault(&self) -> Option<String> {
        let Include { files_max, bytes_max, .. } = Include::default();
        if self.files.len() as u64 > files_max {
            return Some(format!("it has {} files, the most is {files_max}", self.files.len()));
        }
        let bytes = self.files.values().try_fold(0_u64, |sum, fact| sum.checked_add(fact.bytes));
        if bytes.is_none_or(|bytes| bytes > bytes_max) {
            return Some(format!("its files have more than {bytes_max} bytes"));
        }
        let paths = self.files.keys().chain(&self.directories).chain(self.closed.keys());
        paths.map(|path| entry(path)).find_map(Result::err).or_else(|| self.symlinks.iter().find_map(link_fault))
    }
}

/// Parses the path of an entry.
fn entry(path: &str) -> Result<ScopePath, String> {
    let parsed = ScopePath::parse(path).map_err(|problem| format!("`{}`: {problem}", path.escape_debug()))?;
    let is_never = parsed.is_root() || path.split('/').any(|name| NEVER.contains(&name));
    if is_never { Err(format!("`{}` is never copied", path.escape_debug())) } else { Ok(parsed) }
}

fn link_fault((path, target): (&String, &String)) -> Option<String> {
    let at = match entry(path) {
        Ok(at) => at,
        Err(fault) => return Some(fault),
    };
    let fault = link::destination(&at, Path::new(target)).err()?;
    Some(format!("the link `{}`: {fault}", path.escape_debug()))
}

#[cfg(test)]
mod tests {
    use super::super::{Base, FileFact};
    use glovebox_record::Digest;

    fn fact(bytes: u64) -> FileFact {
        FileFact { digest: Digest::hash(b""), bytes, executable: false }
    }

    #[test]
    fn a_list_that_no_copy_makes_is_refused() {
        let base = |change: &dyn Fn(&mut Base)| {
            let mut base = Base::default();
            base.files.insert("src/a".to_owned(), fact(5));
            base.symlinks.insert("src/l".to_owned(), "../x".to_owned());
            change(&mut base);
            base.fault()
        };
        assert_eq!(base(&|_| {}), None);
        let files = |names: &'static [&'static str], bytes| {
            base(&move |base| base.files.extend(names.iter().map(|name| ((*name).to_owned(), fact(bytes)))))
        };
        let link =
            |target: &'static str| base(&move |base| drop(base.symlinks.insert("l".to_owned(), target.to_owned())));
        let many = base(&|base| {
            base.files = (0..200_001).map(|number| (number.to_string(), fact(0))).collect();
        });
        for (found, expected) in [
            (many, "200001 files"),
            (files(&["a"], (8 << 30) + 1), "more than 8589934592 bytes"),
            (files(&["a", "b"], u64::MAX), "more than 8589934592 bytes"),
            (files(&["../a"], 1), "`..` segment"),
            (files(&["/a"], 1), "absolute"),
            (files(&[""], 1), "never copied"),
            (files(&["sub/.git/config"], 1), "never copied"),
            (files(&[".glovebox/runs"], 1), "never copied"),
            (link("/etc/passwd"), "absolute"),
            (link("../x"), "outside the workspace"),
            (base(&|base| _ = base.directories.insert("a/..".to_owned())), "`..` segment"),
            (base(&|base| _ = base.closed.insert(".git".to_owned(), 0)), "never copied"),
        ] {
            assert!(found.as_ref().is_some_and(|found| found.contains(expected)), "{expected}: {found:?}");
        }
    }
}
