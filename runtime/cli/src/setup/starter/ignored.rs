//! The `.gitignore` for a project that has none: what the project's tools leave behind, and the runs of Glovebox.
//!
//! Stages may write paths that git ignores, and these are never committed. Without these rules, the first build output
//! would be a write outside of the scope.

use glovebox_plan::prepare::survey::kind::{KINDS, Kind};
use glovebox_plan::prepare::survey::{Part, Place, Survey};
use std::collections::BTreeSet;
use std::path::Path;

/// Name of the file.
pub const IGNORE_FILE_NAME: &str = ".gitignore";

const HEADER: &str = "\
# What tools leave behind, and git leaves out of commits. `glovebox init` wrote it; change it as you like.
.glovebox/
";

/// Dependencies that some projects keep in git.
const OFTEN_TRACKED: [&str; 4] = ["vendor/", ".yarn/", ".pnp.cjs", ".pnp.loader.mjs"];

/// Returns the content of the `.gitignore`; `None` if the project already has a `.gitignore`.
pub fn ignored(survey: &Survey, project: &Path) -> Option<String> {
    let is_there = |name: &str| project.join(name).symlink_metadata().is_ok();
    if is_there(IGNORE_FILE_NAME) {
        return None;
    }
    let rules = survey.parts.iter().chain(&survey.untested).flat_map(|part| rules(part, is_there));
    Some(rules.collect::<BTreeSet<_>>().into_iter().fold(HEADER.to_owned(), |text, rule| text + &rule + "\n"))
}

/// Returns the rules of one part, relative to the project's root. A path that exists belongs to the project and gets no
/// rule, unless it contains installed dependencies.
fn rules(part: &Part, is_there: impl Fn(&str) -> bool) -> Vec<String> {
    let Some(kind) = KINDS.iter().find(|kind| kind.name == part.kind) else { return Vec::new() };
    let Kind { dependencies, caches, byproducts, .. } = kind;
    let installed = dependencies.iter().filter(|name| !OFTEN_TRACKED.contains(name));
    let environment = part.environment.as_ref().and_then(|environment| match &environment.place {
        Place::Project(name) => Some(format!("/{}{name}/", part.folder)),
        Place::Machine(_) => None,
    });
    let below = |name: &&str| format!("/{}{name}", part.folder);
    let built = caches.iter().chain(*byproducts).filter(|name| !is_there(below(name).trim_start_matches('/')));
    // A rule for a folder covers everything below it. A rule with `*` or for Python's caches applies at any depth.
    let is_own = |name: &&&str| !installed.clone().any(|folder| name.starts_with(folder) && *name != folder);
    let is_anywhere = |name: &str| name.contains('*') || name == "__pycache__/";
    let rule = |name: &&str| if is_anywhere(name) { (*name).to_owned() } else { below(name) };
    let mut rules: Vec<String> = installed.clone().chain(built).filter(is_own).map(rule).collect();
    // An environment at an unusual path. A rule for a folder above it covers it already.
    let is_covered = |path: &String| rules.iter().any(|rule| path.starts_with(rule.as_str()));
    rules.extend(environment.filter(|path| !is_covered(path)));
    rules
}
