//! What a stage's repository has in common with that of the user's project: the branch, the tags of the commit, and the
//! remotes.
//!
//! Only references and settings are read here, and no object except the objects of tags. A project brings its `.git`,
//! so the size of each file is bounded and each name is checked. An unreadable or invalid entry is left out: programs
//! then behave as in a repository that does not have it.

use super::REPOSITORY_DIR;
use super::digest::{ObjectId, ObjectKind};
use super::objects::Objects;
use crate::canonical::canonical;
use crate::regular_file::{self, Links};
use crate::work_tree;
use glovebox_names::visible::is_deceptive;
use glovebox_record::GitHead;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Maximum size of a file of references or settings, bytes.
const FILE_BYTES_MAX: u64 = 16 << 20;
/// Maximum size of the object of an annotated tag, bytes.
const TAG_BYTES_MAX: usize = 1 << 20;
/// Maximum size of the repository's `info/exclude`, bytes.
const EXCLUDE_BYTES_MAX: u64 = 1 << 20;
/// Maximum number of tags, and of remotes.
const NAMES_MAX: usize = 100;
/// Maximum number of entries that are read from one folder of references.
pub(super) const ENTRIES_MAX: usize = 100_000;
/// Maximum length of a name or a URL, bytes.
const TEXT_BYTES_MAX: usize = 1_000;
/// Author of commits in a stage, if the project's repository names none.
const AUTHOR: (&str, &str) = ("glovebox", "glovebox@localhost");
/// Maximum depth of folders in which tags are looked for.
const DEPTH_MAX: usize = 8;

/// References and settings of a project's repository.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RepositoryFacts {
    /// The current branch; `None` if HEAD is detached.
    pub branch: Option<String>,
    /// Tags of the current commit, without `refs/tags/`.
    pub tags: BTreeMap<String, TagKind>,
    /// URLs of remotes by name, without credentials.
    pub remotes: BTreeMap<String, String>,
    /// Name and e-mail address of the author of commits, if the repository's own settings have them.
    pub author: Option<(String, String)>,
    /// The repository's own ignore rules, from `info/exclude`.
    pub exclude: Vec<u8>,
}

/// The kind of a tag. `git describe` without `--tags` finds only annotated ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TagKind {
    /// A lightweight tag: a reference to the commit.
    Light,
    /// An annotated tag: a reference to a tag object with a message.
    Annotated,
}

impl RepositoryFacts {
    /// Reads the repository of a project whose HEAD was `head`. Values that cannot be read are absent.
    pub fn read(project: &Path, head: &GitHead) -> Self {
        let Some(folders) = Folders::for_project(project) else { return Self::default() };
        let tags = head.commit.as_ref().map(|commit| folders.tags(&folders.packed(), commit));
        let (remotes, author) = folders.settings();
        let exclude =
            regular_file::read(&folders.shared.join("info/exclude"), Links::Within(&folders.shared), EXCLUDE_BYTES_MAX);
        let mut exclude = exclude.unwrap_or_default();
        if exclude.last().is_some_and(|last| *last != b'\n') {
            exclude.push(b'\n');
        }
        Self { branch: head.branch.clone(), tags: tags.unwrap_or_default(), remotes, author, exclude }
    }

    /// Returns the content of `HEAD`.
    pub(super) fn head(&self, commit: ObjectId) -> String {
        self.branch.as_ref().map_or_else(|| format!("{commit}\n"), |branch| format!("ref: refs/heads/{branch}\n"))
    }

    /// Returns the objects of the annotated tags, by name.
    pub(super) fn tag_objects(&self, commit: ObjectId, tagger: &str) -> BTreeMap<&str, String> {
        let annotated = self.tags.iter().filter(|(_, kind)| **kind == TagKind::Annotated);
        let object = |name: &str| format!("object {commit}\ntype commit\ntag {name}\ntagger {tagger}\n\n{name}\n");
        annotated.map(|(name, _)| (name.as_str(), object(name))).collect()
    }

    /// Returns the content of `packed-refs`: the branch and the tags, which all refer to `commit`. `objects` has the
    /// ids of the objects of annotated tags.
    pub(super) fn packed_refs(&self, commit: ObjectId, objects: &BTreeMap<&str, ObjectId>) -> String {
        let branch = self.branch.iter().map(|branch| (format!("refs/heads/{branch}"), format!("{commit}")));
        let tag = |name: &String| match objects.get(name.as_str()) {
            Some(object) => (format!("refs/tags/{name}"), format!("{object}\n^{commit}")),
            None => (format!("refs/tags/{name}"), format!("{commit}")),
        };
        let references: BTreeMap<String, String> = branch.chain(self.tags.keys().map(tag)).collect();
        // The commit of an annotated tag is on the line after the tag.
        let lines = references.iter().map(|(name, ids)| match ids.split_once('\n') {
            Some((object, peeled)) => format!("{object} {name}\n{peeled}\n"),
            None => format!("{ids} {name}\n"),
        });
        ["# pack-refs with: peeled fully-peeled sorted \n".to_owned()].into_iter().chain(lines).collect()
    }

    /// Returns the lines of the configuration for the author and the remotes.
    pub(super) fn settings(&self) -> String {
        let (name, email) = self.author.as_ref().map_or(AUTHOR, |(name, email)| (name.as_str(), email.as_str()));
        let section = |(name, url): (&String, &String)| {
            format!("[remote \"{name}\"]\n\turl = {url}\n\tfetch = +refs/heads/*:refs/remotes/{name}/*\n")
        };
        let author = format!("[user]\n\tname = {name}\n\temail = {email}\n");
        [author].into_iter().chain(self.remotes.iter().map(section)).collect()
    }
}

/// Returns the branch and the commit of a project's repository. Both are absent if the project has no repository of its
/// own, or one that cannot be read.
pub fn head(project: &Path) -> GitHead {
    let Some(folders) = Folders::for_project(project) else { return GitHead::default() };
    let head = folders.text(&folders.own, "HEAD").unwrap_or_default();
    let reference = head.trim().strip_prefix("ref: ");
    let branch = reference.and_then(|name| name.strip_prefix("refs/heads/")).filter(|name| is_plain(name));
    let commit = match reference {
        None => Some(head.trim().to_owned()),
        Some(name) if is_plain(name) => folders.text(&folders.shared, name).map(|text| text.trim().to_owned()),
        Some(_) => None,
    };
    let packed = || reference.and_then(|name| folders.packed().get(name).map(|packed| packed.id.clone()));
    let commit = commit.or_else(packed).filter(|commit| is_id(commit));
    GitHead { commit, branch: branch.map(str::to_owned) }
}

/// The folders of a work tree's repository.
pub(super) struct Folders {
    /// The git directory of the work tree (`$GIT_DIR`), which contains HEAD.
    pub(super) own: PathBuf,
    /// The common directory (`$GIT_COMMON_DIR`), which contains references, objects and settings.
    pub(super) shared: PathBuf,
}

/// A line of `packed-refs`.
pub(super) struct PackedRef {
    pub(super) id: String,
    /// The commit of an annotated tag.
    peeled: Option<String>,
}

impl Folders {
    /// Returns the folders of the repository of a work tree. `None` if its `.git` leads to a repository that does not
    /// name this work tree: a project must not show a stage what another repository of the user contains.
    pub(super) fn for_project(project: &Path) -> Option<Self> {
        let at = project.join(REPOSITORY_DIR);
        let own = work_tree::own_folder(project)?;
        let shared = work_tree::shared_folder(&own);
        if own == at {
            let is_ordinary = shared == own && at.symlink_metadata().is_ok_and(|found| found.is_dir());
            return is_ordinary.then_some(Self { own, shared });
        }
        let (own, shared) = (canonical(&own).ok()?, canonical(&shared).ok()?);
        if own == shared {
            // The repository of a submodule names its work tree in its settings.
            let named = own.join(Self { own: own.clone(), shared: shared.clone() }.work_tree()?);
            let names_project = canonical(&named).ok()? == canonical(project).ok()?;
            return names_project.then_some(Self { own, shared });
        }
        let back = work_tree::back_link(&own).filter(|back| back.ends_with(REPOSITORY_DIR))?;
        let names_project = canonical(back.parent()?).ok()? == canonical(project).ok()?;
        let is_linked = own.parent() == Some(&shared.join("worktrees"));
        (names_project && is_linked).then_some(Self { own, shared })
    }

    /// Returns the work tree that the settings name.
    fn work_tree(&self) -> Option<String> {
        let text = self.text(&self.shared, "config")?;
        let mut is_core = false;
        let mut named = None;
        for line in text.lines().map(str::trim) {
            if line.starts_with('[') {
                is_core = line.eq_ignore_ascii_case("[core]");
            } else if let (true, Some((key, value))) = (is_core, line.split_once('=')) {
                let is_named = key.trim().eq_ignore_ascii_case("worktree");
                named = is_named.then(|| value.trim().to_owned()).or(named);
            }
        }
        named
    }

    pub(super) fn text(&self, folder: &Path, name: &str) -> Option<String> {
        regular_file::read_text(&folder.join(name), Links::Within(folder), FILE_BYTES_MAX).ok()
    }

    pub(super) fn packed(&self) -> BTreeMap<String, PackedRef> {
        let text = self.text(&self.shared, "packed-refs").unwrap_or_default();
        let mut found: BTreeMap<String, PackedRef> = BTreeMap::new();
        let mut last = None;
        for line in text.lines() {
            if let Some(peeled) = line.strip_prefix('^') {
                if let Some(packed) = last.as_ref().and_then(|name: &String| found.get_mut(name)) {
                    packed.peeled = Some(peeled.trim().to_owned());
                }
                continue;
            }
            let Some((id, name)) = line.split_once(' ').filter(|(id, name)| is_id(id) && is_plain(name)) else {
                continue;
            };
            found.insert(name.to_owned(), PackedRef { id: id.to_owned(), peeled: None });
            last = Some(name.to_owned());
        }
        found
    }

    /// Returns true if these are folders of the repository itself, not links.
    pub(super) fn has_folders(&self, names: &[&str]) -> bool {
        names.iter().all(|name| self.shared.join(name).symlink_metadata().is_ok_and(|found| found.is_dir()))
    }

    /// Returns the tags of a commit. A loose reference takes precedence over a line of `packed-refs`.
    fn tags(&self, packed: &BTreeMap<String, PackedRef>, commit: &str) -> BTreeMap<String, TagKind> {
        let mut objects = Objects::open(&self.shared).ok();
        let mut kind = |id: &str, peeled: Option<&str>| match peeled {
            Some(peeled) => (peeled == commit).then_some(TagKind::Annotated),
            None if id == commit => Some(TagKind::Light),
            None => (peel(objects.as_mut()?, id)? == commit).then_some(TagKind::Annotated),
        };
        let mut all: BTreeMap<String, Option<TagKind>> = BTreeMap::new();
        for (name, packed) in packed {
            if let Some(name) = name.strip_prefix("refs/tags/") {
                all.insert(name.to_owned(), kind(&packed.id, packed.peeled.as_deref()));
            }
        }
        let mut pending = Vec::from_iter(self.has_folders(&["refs", "refs/tags"]).then(|| (String::new(), 0)));
        while let Some((folder, depth)) = pending.pop().filter(|_| all.len() < ENTRIES_MAX) {
            let at = self.shared.join("refs/tags").join(&folder);
            for entry in std::fs::read_dir(at).into_iter().flatten().flatten().take(ENTRIES_MAX) {
                let Some(name) = entry.file_name().to_str().map(|name| format!("{folder}{name}")) else { continue };
                let Ok(entry) = entry.file_type() else { continue };
                if entry.is_dir() && depth < DEPTH_MAX {
                    pending.push((format!("{name}/"), depth + 1));
                } else if entry.is_file() && is_plain(&name) {
                    let text = self.text(&self.shared, &format!("refs/tags/{name}")).unwrap_or_default();
                    all.insert(name, kind(text.trim(), None));
                }
            }
        }
        all.into_iter().filter_map(|(name, kind)| Some((name, kind?))).take(NAMES_MAX).collect()
    }

    /// Returns the remotes and the author from the repository's own settings. Included files (`include.path`) are not
    /// read.
    fn settings(&self) -> (BTreeMap<String, String>, Option<(String, String)>) {
        let text = self.text(&self.shared, "config").unwrap_or_default();
        let (mut found, mut current) = (BTreeMap::new(), None);
        let (mut is_user, mut user) = (false, BTreeMap::new());
        for line in text.lines().map(str::trim) {
            if line.starts_with('[') {
                let name = line.strip_prefix("[remote \"").and_then(|rest| rest.strip_suffix("\"]"));
                current = name.filter(|name| is_plain(name) && !name.contains('/'));
                is_user = line == "[user]";
            } else if let (true, Some((key, value))) = (is_user, line.split_once('=')) {
                let value = Some(value.trim()).filter(|value| is_author(value));
                user.extend(value.map(|value| (key.trim().to_ascii_lowercase(), value.to_owned())));
            } else if let (Some(name), Some((key, url))) = (current, line.split_once('=')) {
                let url = without_credentials(url.trim()).filter(|_| key.trim().eq_ignore_ascii_case("url"));
                if let Some(url) = url.filter(|_| found.len() < NAMES_MAX) {
                    found.entry(name.to_owned()).or_insert(url);
                }
            }
        }
        (found, user.remove("name").zip(user.remove("email")))
    }
}

/// Returns the id of the object to which an annotated tag points.
fn peel(objects: &mut Objects, id: &str) -> Option<String> {
    let object = objects.read(ObjectId::from_hex(id)?, ObjectKind::Tag, TAG_BYTES_MAX).ok()?;
    let line = object.split(|byte| *byte == b'\n').next()?.strip_prefix(b"object ")?;
    Some(std::str::from_utf8(line).ok()?.to_owned())
}

/// Returns true for a name or an address that a setting and a commit can safely contain.
fn is_author(text: &str) -> bool {
    let is_allowed = |c: char| !c.is_control() && !is_deceptive(c) && !"\"\\#;<>[]".contains(c);
    !text.is_empty() && text.len() <= TEXT_BYTES_MAX && text.chars().all(is_allowed)
}

pub(super) fn is_id(text: &str) -> bool {
    matches!(text.len(), 40 | 64) && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Returns true for the name of a reference that is safe in a file of references and in a setting. Git's own rules are
/// wider.
pub(super) fn is_plain(name: &str) -> bool {
    let is_part = |part: &str| {
        !part.is_empty() && !part.starts_with(['.', '-']) && !part.ends_with('.') && !part.ends_with(".lock")
    };
    let is_allowed =
        |c: char| !c.is_whitespace() && !c.is_control() && !is_deceptive(c) && !"\"\\~^:?*[{#;".contains(c);
    name.len() <= TEXT_BYTES_MAX && name.chars().all(is_allowed) && !name.contains("..") && name.split('/').all(is_part)
}

/// Returns a URL or path of a remote without a user name or password for HTTP, or `None` for a text that a setting
/// cannot safely contain.
fn without_credentials(url: &str) -> Option<String> {
    let is_allowed = |c: char| c.is_ascii_graphic() && !"\"\\#;".contains(c);
    if url.is_empty() || url.len() > TEXT_BYTES_MAX || !url.chars().all(is_allowed) {
        return None;
    }
    let Some((scheme, rest)) = url.split_once("://") else { return Some(url.to_owned()) };
    let (host, path) = rest.split_once('/').map_or((rest, ""), |(host, path)| (host, path));
    let (user, host) = host.rsplit_once('@').map_or((None, host), |(user, host)| (Some(user), host));
    // For SSH, the user name is part of the address. A password is never kept.
    let user = user.filter(|_| scheme.contains("ssh")).map(|user| user.split(':').next().unwrap_or(user));
    let path = path.split(['?']).next().unwrap_or(path);
    let user = user.map(|user| format!("{user}@")).unwrap_or_default();
    Some(format!("{scheme}://{user}{host}{}{path}", if rest.contains('/') { "/" } else { "" }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::process::Command;

    fn git(at: &Path, words: &[&str]) {
        let settings = ["-c", "user.name=x", "-c", "user.email=x@localhost", "-c", "init.defaultBranch=work"];
        let output = Command::new("git").args(settings).args(words).current_dir(at).output().unwrap();
        assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
    }

    fn read(project: &Path) -> RepositoryFacts {
        RepositoryFacts::read(project, &head(project))
    }

    #[test]
    fn branch_tags_and_remotes_are_those_of_the_project() {
        let folder = tempfile::tempdir().unwrap();
        let at = folder.path();
        git(at, &["init", "-q"]);
        git(at, &["commit", "-q", "--allow-empty", "-m", "a"]);
        git(at, &["tag", "old"]);
        git(at, &["commit", "-q", "--allow-empty", "-m", "b"]);
        git(at, &["tag", "light"]);
        git(at, &["tag", "-a", "-m", "x", "release/v1"]);
        git(at, &["remote", "add", "origin", "https://me:token@example.com/a/b.git?key=1"]);
        git(at, &["remote", "add", "backup", "ssh://git@example.com/a"]);
        git(at, &["config", "user.name", "Ada L"]);
        git(at, &["config", "user.email", "ada@example.org"]);
        let check = |branch: Option<&str>| {
            let facts = read(at);
            assert_eq!(facts.branch.as_deref(), branch);
            assert_eq!(facts.author, Some(("Ada L".to_owned(), "ada@example.org".to_owned())));
            let tags: Vec<_> = facts.tags.iter().map(|(name, kind)| (name.as_str(), *kind)).collect();
            assert_eq!(tags, [("light", TagKind::Light), ("release/v1", TagKind::Annotated)]);
            let remotes: Vec<_> = facts.remotes.iter().map(|(name, url)| (name.as_str(), url.as_str())).collect();
            assert_eq!(remotes, [("backup", "ssh://git@example.com/a"), ("origin", "https://example.com/a/b.git")]);
        };
        check(Some("work"));
        git(at, &["repack", "-adq"]);
        check(Some("work"));
        git(at, &["pack-refs", "--all"]);
        check(Some("work"));
        git(at, &["gc", "-q"]);
        check(Some("work"));
        git(at, &["checkout", "-q", "--detach"]);
        check(None);
    }

    #[test]
    fn a_linked_work_tree_has_its_own_branch() {
        let folder = tempfile::tempdir().unwrap();
        let main = folder.path().join("main");
        fs::create_dir(&main).unwrap();
        git(&main, &["init", "-q"]);
        git(&main, &["commit", "-q", "--allow-empty", "-m", "a"]);
        git(&main, &["tag", "v1"]);
        git(&main, &["worktree", "add", "-q", "../other", "-b", "feature/x"]);
        let facts = read(&folder.path().join("other"));
        assert_eq!((facts.branch.as_deref(), facts.tags.len()), (Some("feature/x"), 1));
    }

    #[test]
    fn names_that_would_change_the_meaning_of_a_file_are_left_out() {
        for name in
            ["a b", "a\nb", "../x", "a..b", "/a", "a//b", "-x", ".x", "x.lock", "a\u{202e}b", "a\"]", "a\\", "", "a/"]
        {
            assert!(!is_plain(name), "{name:?}");
        }
        for name in ["main", "feature/x-1", "v1.2.3", "\u{fc}ml", "a@b"] {
            assert!(is_plain(name), "{name:?}");
        }
        for (url, expected) in [
            ("https://u:p@h/x", Some("https://h/x")),
            ("https://h", Some("https://h")),
            ("git@h:a/b.git", Some("git@h:a/b.git")),
            ("ssh://u:p@h:22/x", Some("ssh://u@h:22/x")),
            ("ext::sh -c x", None),
            ("a\"\n[core]", None),
        ] {
            assert_eq!(without_credentials(url).as_deref(), expected, "{url}");
        }
    }

    #[test]
    fn a_project_does_not_show_another_repository_of_the_user() {
        let folder = tempfile::tempdir().unwrap();
        let (private, evil) = (folder.path().join("private"), folder.path().join("evil"));
        fs::create_dir(&private).unwrap();
        git(&private, &["init", "-q"]);
        git(&private, &["commit", "-q", "--allow-empty", "-m", "a"]);
        git(&private, &["tag", "secret"]);
        git(&private, &["worktree", "add", "-q", "../linked", "-b", "hidden"]);
        let of_private = private.join(".git");
        let check = |make: &dyn Fn(&Path)| {
            fs::create_dir(&evil).unwrap();
            make(&evil.join(".git"));
            assert_eq!((read(&evil), head(&evil)), Default::default());
            fs::remove_dir_all(&evil).unwrap();
        };
        check(&|at| fs::write(at, format!("gitdir: {}\n", of_private.display())).unwrap());
        check(&|at| fs::write(at, format!("gitdir: {}\n", of_private.join("worktrees/linked").display())).unwrap());
        check(&|at| std::os::unix::fs::symlink(&of_private, at).unwrap());
        git(&private, &["config", "core.worktree", private.to_str().unwrap()]);
        check(&|at| fs::write(at, format!("gitdir: {}\n", of_private.display())).unwrap());
        check(&|at| {
            fs::create_dir(at).unwrap();
            fs::write(at.join("HEAD"), "ref: refs/heads/work\n").unwrap();
            fs::write(at.join("commondir"), format!("{}\n", of_private.display())).unwrap();
        });
    }

    #[test]
    fn a_hostile_repository_yields_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let git = folder.path().join(".git");
        fs::create_dir_all(git.join("refs/tags")).unwrap();
        fs::write(git.join("HEAD"), "ref: refs/heads/../../../x\n").unwrap();
        fs::write(git.join("config"), "[remote \"a\\\"]\"]\n\turl = x\n[remote \"ok\"]\n\turl = \"quoted\"\n").unwrap();
        std::os::unix::fs::symlink("/etc/hostname", git.join("packed-refs")).unwrap();
        assert_eq!((read(folder.path()), head(folder.path())), Default::default());
    }
}
