//! Reads the files with ignore rules. A project may have any number of them.

use super::{EntryKind, IgnoreMatcher, RuleFile, prepared};
use crate::tree::Tree;
use crate::work_tree;
use std::io::Read;
use std::path::{Path, PathBuf};

const FILE_NAME: &str = ".gitignore";
/// Maximum size in bytes of a file with rules, including comments.
const FILE_BYTES_MAX: u64 = 1 << 20;
/// Maximum total size in bytes of the rules in all files of a project, without comments. Compiled rules take about a
/// thousand times as much memory.
const RULE_BYTES_MAX: usize = 256 << 10;
/// Maximum number of rules in all files of a project.
const RULES_MAX: usize = 20_000;

/// The ignore rules exceed a limit.
#[derive(Debug, thiserror::Error)]
#[error(
    "the ignore rules of git have more than {RULES_MAX} lines or {} KiB, at `{file}`: shorten the files, or run in a folder \
     without them",
    RULE_BYTES_MAX >> 10
)]
pub struct RulesTooLong {
    file: String,
}

/// Remaining limits for reading rules.
struct RuleBudget {
    bytes: usize,
    rules: usize,
}

impl RuleBudget {
    const ALL: Self = Self { bytes: RULE_BYTES_MAX, rules: RULES_MAX };

    /// Reads a file with rules. Returns `None` if it does not exist or has no rules.
    fn read(&mut self, tree: &Tree, file: &Path) -> Result<Option<String>, RulesTooLong> {
        let too_long = || RulesTooLong { file: crate::tree::shown(file) };
        let Ok(opened) = tree.file(file) else { return Ok(None) };
        let mut bytes = Vec::new();
        if opened.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes).is_err() {
            return Ok(None);
        }
        if bytes.len() as u64 > FILE_BYTES_MAX {
            return Err(too_long());
        }
        let Ok(text) = String::from_utf8(bytes) else { return Ok(None) };
        let rules = text.lines().filter(|line| !line.trim().is_empty() && !line.starts_with('#'));
        let (mut count, mut length) = (0, 0);
        rules.for_each(|rule| (count, length) = (count + 1, length + rule.len()));
        self.rules = self.rules.checked_sub(count).ok_or_else(too_long)?;
        self.bytes = self.bytes.checked_sub(length).ok_or_else(too_long)?;
        Ok((count > 0).then_some(text))
    }

    /// Reads the rules of one folder of the project.
    fn of_folder(&mut self, tree: &Tree, folder: &Path) -> Result<Option<RuleFile>, RulesTooLong> {
        let text = self.read(tree, &folder.join(FILE_NAME))?;
        Ok(text.map(|text| RuleFile { above: String::new(), folder: folder.to_string_lossy().into_owned(), text }))
    }

    /// Reads the rules of the project's repository that are outside of the project: `info/exclude`, and `.gitignore`
    /// files in the folders above the project.
    fn outer(&mut self, project: &Path) -> Result<Vec<RuleFile>, RulesTooLong> {
        let whole = std::fs::canonicalize(project).unwrap_or_else(|_| project.to_owned());
        let Some(root) = work_tree::root(&whole) else { return Ok(Vec::new()) };
        let above = |folder: &Path| whole.strip_prefix(folder).ok().and_then(Path::to_str).map(str::to_owned);
        let own = work_tree::own_folder(root);
        let exclude = own.map(|own| (root, work_tree::shared_folder(&own).join("info/exclude")));
        let between: Vec<&Path> = whole.ancestors().skip(1).take_while(|folder| folder.starts_with(root)).collect();
        let between = between.into_iter().rev().map(|folder| (folder, folder.join(FILE_NAME)));
        let mut found = Vec::new();
        for (folder, file) in exclude.into_iter().chain(between) {
            let name = file.file_name().map(PathBuf::from).unwrap_or_default();
            let Some(tree) = file.parent().and_then(|folder| Tree::open(folder).ok()) else { continue };
            let text = self.read(&tree, &name)?;
            let rules = text.zip(above(folder)).map(|(text, above)| RuleFile { above, folder: String::new(), text });
            found.extend(rules);
        }
        Ok(found)
    }
}

/// Reads the rules outside of a project and those of these folders of the project, in order of increasing precedence.
pub(super) fn files<'a>(project: &Path, folders: impl Iterator<Item = &'a str>) -> Result<Vec<RuleFile>, RulesTooLong> {
    let mut left = RuleBudget::ALL;
    let mut files = left.outer(project)?;
    if let Ok(tree) = Tree::open(project) {
        for folder in std::iter::once("").chain(folders) {
            files.extend(left.of_folder(&tree, Path::new(folder))?);
        }
    }
    Ok(files)
}

/// The rules that apply during a walk of a project's folders. Each folder must be entered after its parent.
pub(crate) struct RuleReader {
    tree: Option<Tree>,
    left: RuleBudget,
    ignored: IgnoreMatcher,
    /// Number of rule files outside of the project.
    outer: usize,
}

impl RuleReader {
    /// Reads the rules outside of a project and those in its top folder.
    ///
    /// # Errors
    /// [`RulesTooLong`].
    pub(crate) fn new(project: &Path) -> Result<Self, RulesTooLong> {
        let mut left = RuleBudget::ALL;
        let files: Vec<_> = left.outer(project)?.into_iter().filter_map(prepared).collect();
        let outer = files.len();
        let ignored = IgnoreMatcher { files, ..IgnoreMatcher::default() };
        let mut reading = Self { tree: Tree::open(project).ok(), left, ignored, outer };
        reading.enter(Path::new(""))?;
        Ok(reading)
    }

    /// Adds the rules of a folder of the project.
    ///
    /// # Errors
    /// [`RulesTooLong`].
    pub(crate) fn enter(&mut self, folder: &Path) -> Result<(), RulesTooLong> {
        let Some(tree) = &self.tree else { return Ok(()) };
        let file = self.left.of_folder(tree, folder)?;
        self.ignored.files.extend(file.and_then(prepared));
        Ok(())
    }

    /// Returns true for a path that git ignores, if git does not ignore the folder of the path. Drops the rules of
    /// folders that do not contain the path, because the walk does not return to them.
    pub(crate) fn ignores(&mut self, path: &Path, kind: EntryKind) -> bool {
        let files = &mut self.ignored.files;
        let applies = |file: &RuleFile| path.starts_with(&file.folder);
        while files.len() > self.outer && files.last().is_some_and(|(file, _)| !applies(file)) {
            files.pop();
        }
        self.ignored.is_ignored(&path.to_string_lossy(), kind)
    }
}
