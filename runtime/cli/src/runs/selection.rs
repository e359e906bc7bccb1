//! Selects changes of a run by the paths that the user names: a file, or a folder with everything below it. Without a
//! path, all are selected.

use crate::exit::{Exit, Stop};
use crate::terminal::visible;
use glovebox_record::FileChange;
use glovebox_record::path::ScopePath;

/// Maximum number of paths that a message lists.
const LISTED_MAX: usize = 5;

/// Returns the changes at or below the named paths, which are relative to the project. A path that selects nothing is
/// an error.
pub fn select(changes: &[FileChange], names: &[String]) -> Result<Vec<FileChange>, Stop> {
    let paths = names.iter().map(|name| parse(name)).collect::<Result<Vec<ScopePath>, Stop>>()?;
    if paths.is_empty() {
        return Ok(changes.to_vec());
    }
    for path in &paths {
        if !changes.iter().any(|change| change.path.starts_with(path)) {
            let message = format!("the run did not change `{}`", visible::line(path.as_str()));
            let mut known: Vec<&str> = changes.iter().map(|change| change.path.as_str()).collect();
            known.sort_unstable();
            known.dedup();
            let more = if known.len() > LISTED_MAX { ", …" } else { "" };
            let known: Vec<String> =
                known.iter().take(LISTED_MAX).map(|path| format!("`{}`", visible::line(path))).collect();
            let stop = Stop::new(Exit::Usage, message);
            return Err(match known.is_empty() {
                true => stop,
                false => stop.with_help(format!(
                    "paths are relative to the project; the run changed {}{more}",
                    known.join(", ")
                )),
            });
        }
    }
    let is_selected = |change: &&FileChange| paths.iter().any(|path| change.path.starts_with(path));
    Ok(changes.iter().filter(is_selected).cloned().collect())
}

fn parse(name: &str) -> Result<ScopePath, Stop> {
    let trimmed = name.strip_prefix("./").unwrap_or(name).trim_end_matches('/');
    let trimmed = if trimmed == "." { "" } else { trimmed };
    ScopePath::parse(trimmed).map_err(|problem| {
        let message = format!("`{}` is not a path in the project: {problem}", visible::line(name));
        Stop::new(Exit::Usage, message).with_help("name it relative to the project: `src/main.rs` or `src/`")
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use glovebox_record::ChangeOp;

    #[test]
    fn a_name_selects_a_file_or_a_folder() {
        let change = |path: &str| FileChange::bare(ScopePath::parse(path).unwrap(), ChangeOp::Delete);
        let changes = [change("src/a"), change("src/b/c"), change("srcs"), change("x")];
        let check = |names: &[&str], expected: Result<&[&str], &str>| {
            let names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
            match (select(&changes, &names), expected) {
                (Ok(found), Ok(expected)) => {
                    assert_eq!(found.iter().map(|change| change.path.as_str()).collect::<Vec<_>>(), expected);
                }
                (Err(stop), Err(part)) => assert!(stop.message.contains(part), "{}", stop.message),
                (found, expected) => panic!("{names:?}: {found:?}, expected {expected:?}"),
            }
        };
        check(&[], Ok(&["src/a", "src/b/c", "srcs", "x"]));
        check(&["."], Ok(&["src/a", "src/b/c", "srcs", "x"]));
        check(&["./src/"], Ok(&["src/a", "src/b/c"]));
        check(&["src/a", "x"], Ok(&["src/a", "x"]));
        check(&["src/a", "sr"], Err("did not change `sr`"));
        check(&["../x"], Err("not a path in the project"));
        check(&["/etc"], Err("not a path in the project"));
    }
}
