//! Checks agent programs before the first stage: each must be on this machine, and a version that was not tested gives a warning.
//!
//! The search starts no program. The version of a program is that of the npm package that contains it. A program outside of
//! an npm package has no known version.

use super::refusal::{Class, Refusal, Warning};
use crate::plan::{Plan, PlannedProgram};
use glovebox_host::agents::programs::{TestedVersion, tested_version};
use glovebox_jail::jail::ExecPolicy;
use glovebox_names::visible;
use glovebox_workspace::regular_file::{self, Links};
use serde::Deserialize;
use std::path::{Path, PathBuf};

/// Maximum number of folders above a program in which its package is looked for.
const FOLDERS_MAX: usize = 8;
const PACKAGE_BYTES_MAX: u64 = 1 << 20;

/// Checks that the agent program of each stage with a chosen model exists. Returns a warning for each version that was
/// not tested.
pub fn require(plan: &Plan, policy: &ExecPolicy) -> Result<Vec<Warning>, Refusal> {
    let mut warnings: Vec<Warning> = Vec::new();
    for (node, binding) in plan.bindings.iter().filter(|(node, _)| plan.models.by_node.contains_key(*node)) {
        let Some(planned) = &binding.program else { continue };
        let Some(file) = find(planned, policy) else {
            let (program, name) = (planned.program, visible::line(name_of(planned)));
            let message = format!("configured {program} executable not found: {name}, which node `{node}` starts");
            return Err(Refusal::new(Class::Invalid, message).with_help(how_to_install(planned)));
        };
        let problem = file.and_then(|file| warning(planned, &file));
        if let Some(problem) = problem.filter(|problem| warnings.iter().all(|known| known.problem != *problem)) {
            warnings.push(Warning { problem, help: how_to_install(planned) });
        }
    }
    Ok(warnings)
}

fn name_of(planned: &PlannedProgram) -> &str {
    let named = planned.options.path.as_ref().or_else(|| planned.options.command.first());
    named.map_or(planned.program.as_str(), String::as_str)
}

/// Returns the file of a program. `None` if the program is not on this machine. `Some(None)` for a path in the workspace,
/// where a stage may create the program.
fn find(planned: &PlannedProgram, policy: &ExecPolicy) -> Option<Option<PathBuf>> {
    let name = name_of(planned);
    let path = Path::new(name);
    if path.is_absolute() {
        return path.is_file().then(|| Some(path.to_owned()));
    }
    if name.contains('/') {
        return Some(None);
    }
    policy.path.iter().map(|folder| folder.join(name)).find(|file| file.is_file()).map(Some)
}

fn how_to_install(planned: &PlannedProgram) -> String {
    let program = planned.program;
    let place = format!("name its file: `path = \"…\"` under `[agents.{program}]` in glovebox.toml");
    match tested_version(program) {
        None => format!("install it in a folder of the system, or {place}"),
        Some(TestedVersion { package, version }) => {
            format!("install it: `npm install -g {package}@{version}`, or {place}")
        }
    }
}

/// Returns the warning about a program's version. `None` if the version was tested, or is later with the same major version.
fn warning(planned: &PlannedProgram, file: &Path) -> Option<String> {
    let tested = tested_version(planned.program)?;
    let found = installed(file, tested)?;
    let (numbers, known) = (numbers(&found)?, numbers(tested.version)?);
    let is_fine = numbers[0] == known[0] && numbers >= known;
    let (program, found) = (planned.program, visible::line(&found).into_owned());
    (!is_fine).then(|| {
        format!(
            "`{program}` is version {found}, and {} was tested: Glovebox may not understand the output of this version",
            tested.version
        )
    })
}

/// Returns the version of the package that contains a program.
fn installed(file: &Path, tested: TestedVersion) -> Option<String> {
    #[derive(Deserialize)]
    struct Package {
        name: String,
        version: String,
    }
    let file = std::fs::canonicalize(file).ok()?;
    file.ancestors().skip(1).take(FOLDERS_MAX).find_map(|folder| {
        let text = regular_file::read(&folder.join("package.json"), Links::Follow, PACKAGE_BYTES_MAX).ok()?;
        let found: Package = serde_json::from_slice(&text).ok()?;
        (found.name == tested.package).then_some(found.version)
    })
}

/// Returns the three numbers of a version.
fn numbers(version: &str) -> Option<[u64; 3]> {
    let release = version.split(['-', '+']).next()?;
    let numbers: Result<Vec<u64>, _> = release.split('.').map(str::parse).collect();
    numbers.ok()?.try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_compared_as_numbers() {
        assert_eq!(numbers("0.169.0"), Some([0, 169, 0]));
        assert_eq!(numbers("2.1.197-beta.1+x"), Some([2, 1, 197]));
        assert!(numbers("0.90.0") < numbers("0.169.0"));
        assert_eq!((numbers("1.2"), numbers("x.y.z"), numbers("")), (None, None, None));
    }
}
