//! The limits of a node, the files to which the limits apply, and the host's list of changed files.

use crate::NAMED_MAX;
use glovebox_plugin_sdk::Stage;
use glovebox_plugin_sdk::pattern::Pattern;
use serde::Deserialize;

/// The host's list of changed files.
#[derive(Debug, Deserialize)]
pub(crate) struct ChangeList {
    /// Number of changed files, including those that are not listed.
    total: u64,
    files: Vec<ChangedFile>,
}

/// One changed file.
#[derive(Debug, Deserialize)]
struct ChangedFile {
    path: String,
    added: u64,
    removed: u64,
    #[serde(default)]
    binary: bool,
    uncounted: Option<String>,
}

/// The limits of a node.
pub(crate) struct Limits {
    files: Option<u64>,
    lines: Option<u64>,
    binaries: Option<u64>,
    /// Paths of the files to which the limits apply; `None` for all files.
    paths: Option<Vec<Place>>,
    ignore: Vec<Place>,
}

/// A file, a folder or a pattern to which the limits apply or do not apply.
enum Place {
    File(String),
    /// A folder, with its final slash.
    Folder(String),
    Pattern(Pattern),
}

/// Sums over the listed files to which the limits apply.
#[derive(Debug, Default)]
pub(crate) struct Totals {
    pub(crate) files: u64,
    pub(crate) added: u64,
    pub(crate) removed: u64,
    pub(crate) binaries: u64,
}

impl Limits {
    /// Reads the limits from the attributes of a node.
    pub(crate) fn from_stage(stage: &Stage) -> Result<Self, String> {
        let written = |name| stage.attribute(name).map(str::trim).filter(|text: &&str| !text.is_empty());
        let bound = |name| match written(name) {
            None => Ok(None),
            Some(text) => text.parse().map(Some).map_err(|_| format!("`{name}` is `{text}`, expected a whole number")),
        };
        let (files, lines, binaries) = (bound("max_files")?, bound("max_lines")?, bound("max_binaries")?);
        if (files, lines, binaries) == (None, None, None) {
            return Err("no limit is set, expected `max_files`, `max_lines` or `max_binaries` on the node".to_owned());
        }
        let places = |name| {
            let entries = stage.attribute(name).unwrap_or_default().split(',').map(str::trim);
            let entries = entries.filter(|entry| !entry.is_empty());
            entries
                .map(|entry| Place::parse(entry).map_err(|reason| format!("`{name}` is `{entry}`: {reason}")))
                .collect::<Result<Vec<_>, _>>()
        };
        let paths = if stage.attribute("paths").is_some() { Some(places("paths")?) } else { None };
        if paths.as_ref().is_some_and(Vec::is_empty) {
            return Err("`paths` is empty, expected files, folders or patterns".to_owned());
        }
        // A binary file is counted with 0 lines, so a limit on lines alone would not limit the content of binary files.
        let binaries = binaries.or(lines.map(|_| 0));
        Ok(Self { files, lines, binaries, paths, ignore: places("ignore")? })
    }

    /// Compares a list with the limits.
    pub(crate) fn check(&self, list: &ChangeList) -> Result<Totals, Vec<String>> {
        if list.total != list.files.len() as u64 {
            return Err(vec![format!(
                "{} files changed, but the list of changes names only {}",
                list.total,
                list.files.len()
            )]);
        }
        let files: Vec<&ChangedFile> = list.files.iter().filter(|file| self.counts(file)).collect();
        let mut counted = Totals { files: files.len() as u64, ..Totals::default() };
        for file in &files {
            counted.added = counted.added.saturating_add(file.added);
            counted.removed = counted.removed.saturating_add(file.removed);
            counted.binaries += u64::from(file.binary);
        }
        let Totals { added, removed, .. } = counted;
        let (lines, exceeds) =
            (added.saturating_add(removed), |found: u64, most: Option<u64>| most.filter(|most| found > *most));
        let mut reasons = Vec::new();
        if let Some(most) = exceeds(counted.files, self.files) {
            reasons.push(format!("{} files changed, expected at most {most}: {}", counted.files, named(&files)));
        }
        if let Some(most) = exceeds(lines, self.lines) {
            let mut largest = files.clone();
            largest.sort_by_key(|file| std::cmp::Reverse(file.added.saturating_add(file.removed)));
            let sum = format!("{lines} lines changed ({added} added, {removed} removed)");
            reasons.push(format!("{sum}, expected at most {most}: {}", named(&largest)));
        }
        if let Some(most) = exceeds(counted.binaries, self.binaries) {
            let binary: Vec<&ChangedFile> = files.iter().copied().filter(|file| file.binary).collect();
            let count = counted.binaries;
            reasons.push(format!("{count} binary files added or changed, expected at most {most}: {}", named(&binary)));
        }
        let uncounted =
            files.iter().filter(|_| self.lines.is_some()).filter_map(|file| Some((file, file.uncounted.as_ref()?)));
        reasons.extend(
            uncounted
                .take(NAMED_MAX)
                .map(|(file, reason)| format!("the lines of `{}` are not counted: {reason}", file.path)),
        );
        if reasons.is_empty() { Ok(counted) } else { Err(reasons) }
    }

    fn counts(&self, file: &ChangedFile) -> bool {
        let has = |places: &[Place]| places.iter().any(|place| place.has(file));
        self.paths.as_deref().is_none_or(has) && !has(&self.ignore)
    }
}

impl Place {
    fn parse(text: &str) -> Result<Self, String> {
        let path = text.trim_start_matches("./");
        if path.starts_with('/') || path.split('/').any(|name| name == "..") {
            return Err("expected a path in the workspace".to_owned());
        }
        match path.contains(['*', '?', '[', '{']) {
            true => Ok(Self::Pattern(Pattern::parse(path)?)),
            false if path.is_empty() || path.ends_with('/') => Ok(Self::Folder(path.to_owned())),
            false => Ok(Self::File(path.to_owned())),
        }
    }

    fn has(&self, ChangedFile { path, .. }: &ChangedFile) -> bool {
        match self {
            Self::File(own) => own == path,
            Self::Folder(own) => path.starts_with(own.as_str()),
            Self::Pattern(pattern) => pattern.matches(path),
        }
    }
}

/// Returns the names of the first files.
fn named(files: &[&ChangedFile]) -> String {
    let one = |file: &&ChangedFile| match file {
        ChangedFile { path, uncounted: Some(_), .. } => format!("`{path}` (not counted)"),
        ChangedFile { path, binary: true, .. } => format!("`{path}` (binary)"),
        ChangedFile { path, added, removed, .. } => format!("`{path}` (+{added} -{removed})"),
    };
    let mut all: Vec<String> = files.iter().take(NAMED_MAX).map(one).collect();
    let more = files.len().saturating_sub(NAMED_MAX);
    if more > 0 {
        all.push(format!("and {more} more"));
    }
    all.join(", ")
}
