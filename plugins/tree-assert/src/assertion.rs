//! Assertions about the tree, and the part of the tree that was needed to decide them.
//!
//! An assertion that cannot be decided is not met. The tree is searched at most once, and only if there is a pattern.

use glovebox_plugin_sdk::pattern::Pattern;
use glovebox_plugin_sdk::{Stage, files};
use regex_lite::Regex;

/// Maximum length of a file that `matches` reads, in bytes.
pub(crate) const FILE_BYTES_MAX: usize = 4 << 20;
/// Maximum number of files and folders that are searched for a pattern.
const ENTRIES_MAX: usize = 50_000;

/// An assertion about the tree.
pub(crate) enum Assertion {
    Exists(Place),
    Absent(Place),
    Matches { path: String, expression: Regex },
}

/// The path or pattern of an assertion. A path with a final slash is a folder.
pub(crate) enum Place {
    Path(String),
    Pattern(String, Pattern),
}

/// The paths of the tree, which are listed when they are first needed. Folders end with a slash.
#[derive(Default)]
pub(crate) struct Tree {
    walked: Option<Result<Vec<String>, String>>,
}

impl Assertion {
    /// Reads all assertions from the attributes of a node.
    pub(crate) fn all_of(stage: &Stage) -> Result<Vec<Assertion>, String> {
        // A comma within braces is part of a pattern: `{a,b}.key`.
        let texts = |name| {
            let mut depth = 0_usize;
            let is_border = move |character: char| {
                match character {
                    '{' => depth += 1,
                    '}' => depth = depth.saturating_sub(1),
                    _ => {}
                }
                character == ',' && depth == 0
            };
            let list = stage.attribute(name).unwrap_or_default();
            list.split(is_border).map(str::trim).filter(|text| !text.is_empty())
        };
        let mut all = Vec::new();
        for text in texts("exists") {
            all.push(Assertion::Exists(Place::parse(text)?));
        }
        for text in texts("absent") {
            all.push(Assertion::Absent(Place::parse(text)?));
        }
        let lines = stage.attribute("matches").unwrap_or_default().lines().map(str::trim);
        for line in lines.filter(|line| !line.is_empty()) {
            let Some((path, expression)) = line.split_once(": ") else {
                return Err(format!("`matches` is `{line}`, expected `path: regular expression`"));
            };
            let expression =
                Regex::new(expression.trim()).map_err(|error| format!("`matches` is `{line}`: {error}"))?;
            all.push(Assertion::Matches { path: path.trim().to_owned(), expression });
        }
        Ok(all)
    }

    /// Returns a description of the problem if the assertion is not met.
    pub(crate) fn check(&self, tree: &mut Tree) -> Result<(), String> {
        match self {
            Self::Exists(Place::Path(path)) => match kind(path)? {
                None => Err(format!("`{path}` does not exist")),
                Some(kind) if path.ends_with('/') && kind != "directory" => Err(format!("`{path}` is not a folder")),
                Some(_) => Ok(()),
            },
            Self::Absent(Place::Path(path)) => match kind(path)? {
                None => Ok(()),
                Some(_) => Err(format!("`{path}` exists, but must be absent")),
            },
            Self::Exists(Place::Pattern(text, pattern)) => match tree.first(pattern)? {
                Some(_) => Ok(()),
                None => Err(format!("no file matches `{text}`")),
            },
            Self::Absent(Place::Pattern(text, pattern)) => match tree.first(pattern)? {
                Some(path) => Err(format!("`{path}` exists, but `{text}` must be absent")),
                None => Ok(()),
            },
            Self::Matches { path, expression } => {
                let text = files::read_text(path, FILE_BYTES_MAX).map_err(|error| error.message)?;
                let met = expression.is_match(&text);
                met.then_some(()).ok_or_else(|| format!("`{path}` does not match `{}`", expression.as_str()))
            }
        }
    }
}

impl Place {
    /// Refuses a pattern that cannot match anything, since `absent` would always be met.
    fn parse(text: &str) -> Result<Self, String> {
        let count = |sign: char| text.matches(sign).count();
        let classes = text.split('[').skip(1).filter_map(|rest| rest.split(']').next());
        let mut ranges = classes.flat_map(|class| class.as_bytes().windows(3)).filter(|range| range[1] == b'-');
        let is_open = count('{') != count('}') || count('[') != count(']');
        if is_open || ranges.any(|range| range[0] > range[2]) {
            return Err(format!("`{text}`: a brace or a bracket is not closed, or a range is reversed"));
        }
        match text.contains(['*', '?', '[', '{']) {
            true => Ok(Self::Pattern(text.to_owned(), Pattern::parse(text)?)),
            false => Ok(Self::Path(text.to_owned())),
        }
    }
}

/// Returns the kind of the node at a path, or `None` if there is none. A path that the host refuses is an error and never an absent file.
fn kind(path: &str) -> Result<Option<String>, String> {
    match files::stat(path.trim_end_matches('/')) {
        Ok(node) => Ok(Some(node.kind)),
        // A path below a file does not exist.
        Err(error) if matches!(error.code.as_str(), "not-found" | "not-a-directory") => Ok(None),
        Err(error) => Err(error.message),
    }
}

impl Tree {
    /// Returns the first path that matches a pattern, in the order of the search.
    fn first(&mut self, pattern: &Pattern) -> Result<Option<&str>, String> {
        let paths = self.walked.get_or_insert_with(walk).as_ref().map_err(|reason| reason.to_owned())?;
        let matched = paths.iter().find(|path| pattern.matches(path.trim_end_matches('/')));
        Ok(matched.map(String::as_str))
    }
}

fn walk() -> Result<Vec<String>, String> {
    let (mut paths, mut folders) = (Vec::new(), vec![String::new()]);
    while let Some(folder) = folders.pop() {
        let found = files::list(folder.trim_end_matches('/')).map_err(|error| error.message)?;
        for node in found {
            let slash = if node.kind == "directory" { "/" } else { "" };
            let path = format!("{folder}{}{slash}", node.name);
            if node.kind == "directory" {
                folders.push(format!("{folder}{}/", node.name));
            }
            paths.push(path);
        }
        if paths.len() > ENTRIES_MAX {
            return Err(format!(
                "the tree has more than {ENTRIES_MAX} files; set `read_paths` on the node to read fewer folders"
            ));
        }
    }
    Ok(paths)
}
