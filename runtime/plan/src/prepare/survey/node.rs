//! Node projects: the scripts of `package.json`, the program that runs them, and the packages of a workspace.
//!
//! From `package.json`, only the names of scripts and packages that are in a table in this file are used. Its texts are never
//! written into the pipeline.

use super::folder::{Folder, is_plain};
use super::part::{Part, Step};
use crate::config::Toolchain;
use crate::prepare::toolchain;
use serde_json::Value;

/// A part of the text that `npm init` writes as the script `test`.
const NO_TESTS: &str = "no test specified";
/// Folders into which build scripts write their results. The test stage may need them.
const RESULTS: [&str; 5] = ["dist/", "build/", "lib/", "out/", ".next/"];
/// Test runners and the commands that start them, if no script does.
const RUNNERS: [(&str, &str); 5] = [
    ("vitest", "npx --no vitest run --passWithNoTests=false"),
    ("jest", "npx --no jest"),
    ("tap", "npx --no tap"),
    ("mocha", "npx --no mocha"),
    ("ava", "npx --no ava"),
];
/// Folders that have no tests of the project.
const NOT_ENTERED: [&str; 5] = ["node_modules/", "dist/", "build/", "vendor/", "coverage/"];

/// The content of a `package.json`.
struct Package(Value);

impl Package {
    fn read(folder: &Folder) -> Self {
        Self(serde_json::from_str(&folder.text("package.json")).unwrap_or_default())
    }

    /// Returns the text of a script that does more than print.
    fn script(&self, name: &str) -> Option<&str> {
        let is_real = |text: &&str| {
            let is_chained = ["&&", "||", ";", "|"].iter().any(|operator| text.contains(operator));
            let first = text.split_whitespace().next().unwrap_or_default();
            !text.contains(NO_TESTS) && !first.is_empty() && (is_chained || first != "echo")
        };
        self.0["scripts"][name].as_str().filter(is_real)
    }

    fn has(&self, field: &str) -> bool {
        self.0[field].as_object().is_some_and(|listed| !listed.is_empty())
    }

    fn depends_on(&self, package: &str) -> bool {
        ["dependencies", "devDependencies"].iter().any(|field| self.0[*field][package].is_string())
    }
}

/// Adds the commands of a Node project.
pub(super) fn look(folder: &Folder, part: &mut Part) {
    let package = Package::read(folder);
    if !package.0.is_object() {
        let file = format!("{}package.json", folder.below());
        part.notes.push(format!(
            "`{file}` could not be read, so its scripts are not used: it is not a JSON object, or larger than 1 MiB"
        ));
    }
    let installer = installer(folder);
    part.found.push_str(&format!(" ({installer})"));
    if package.script("build").is_some() {
        part.steps.push(Step::build("npm run build", "The script `build` of package.json."));
        // A result that a later stage reads must not be discarded.
        let results = RESULTS.map(|name| format!("{}{name}", folder.below()));
        part.scratch.retain(|name| !results.contains(name));
    }
    test(folder, &package, part);
    let is_called =
        ["build", "test"].into_iter().filter_map(|name| package.script(name)).any(|text| text.contains(installer));
    let is_started = part.steps.iter().any(|step| step.command.starts_with(installer));
    if installer != "npm" && (is_called || is_started) && !toolchain::shows(Toolchain::Node, installer) {
        part.notes.push(format!(
            "a script calls `{installer}`, which is not in the folder of node: run `npm install --global {installer}` before the first run"
        ));
    }
    let is_installed = folder.has("node_modules") || folder.has(".pnp.cjs");
    if (package.has("dependencies") || package.has("devDependencies")) && !is_installed {
        part.notes.push(format!(
            "`{}node_modules/` is missing: run `{installer} install` before the first run",
            folder.below()
        ));
    }
}

/// Adds the test command: the script of the project, the scripts of its packages, an installed test runner, or node's
/// own test runner.
fn test(folder: &Folder, package: &Package, part: &mut Part) {
    let step = if let Some(script) = package.script("test") {
        if script.contains("passWithNoTests") && !script.contains("passWithNoTests=false") {
            part.notes.push(
                "the script `test` of package.json passes without any test (`passWithNoTests`): remove this option"
                    .to_owned(),
            );
        }
        Some(of_script(folder, script))
    } else if has_packages_with_tests(folder, package) {
        Some(of_packages(folder))
    } else {
        let runner = RUNNERS.into_iter().find(|(name, _)| package.depends_on(name));
        runner.map(|(_, command)| {
            Step::test(command, "No script `test` was found in package.json, but it depends on this test runner.")
        })
    };
    part.has_tests = step.is_some() || has_tests(folder);
    part.steps.extend(step.or_else(|| {
        part.has_tests.then(|| {
            Step::test(
                "node --test",
                "No script `test` was found in package.json: node's own runner finds `*.test.js` and `test/`.",
            )
        })
    }));
}

fn of_script(folder: &Folder, script: &str) -> Step {
    // With Plug'n'Play, only yarn finds the dependencies.
    let command = if folder.has(".pnp.cjs") { "yarn run test" } else { "npm test" };
    let mut words = script.split_whitespace();
    let is_vitest = words.next() == Some("vitest") && !script.contains(['&', '|', ';', '<', '>', '$']);
    if is_vitest && !script.contains("passWithNoTests") && command == "npm test" {
        return Step::test(
            "npm test -- --passWithNoTests=false",
            "The script `test` of package.json. `--passWithNoTests=false`: without a test, vitest fails.",
        );
    }
    Step::test(
        command,
        "The script `test` of package.json. npm can run it without a network, whichever tool installed the dependencies.",
    )
}

fn of_packages(folder: &Folder) -> Step {
    let command = if folder.has(".pnp.cjs") {
        "yarn workspaces foreach --all run test"
    } else if folder.has("pnpm-workspace.yaml") {
        "pnpm --recursive test"
    } else {
        "npm test --workspaces --if-present"
    };
    Step::test(command, "The scripts `test` of the packages of this workspace.")
}

/// Returns true if a package of the workspace has a script `test`.
fn has_packages_with_tests(folder: &Folder, package: &Package) -> bool {
    let listed = package.0["workspaces"].as_array().or_else(|| package.0["workspaces"]["packages"].as_array());
    let of_npm = listed.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned);
    let text = folder.text("pnpm-workspace.yaml");
    let lines = text.lines().skip_while(|line| line.trim_end() != "packages:").skip(1);
    let items = lines.map_while(|line| line.trim_start().strip_prefix('-'));
    let of_pnpm = items.map(|item| item.trim().trim_matches(['"', '\'']).to_owned());
    of_npm.chain(of_pnpm).any(|pattern| {
        let pattern = pattern.trim_start_matches("./").trim_end_matches('/');
        let (folders, is_list) = match pattern.trim_end_matches("/**").strip_suffix("/*") {
            Some(folders) => (folders, true),
            None => (pattern.trim_end_matches("/**"), pattern.ends_with("/**")),
        };
        if !folders.split('/').all(is_plain) {
            return false;
        }
        let at = folder.at(&format!("{folders}/"));
        let has_script = |folder: &Folder| Package::read(folder).script("test").is_some();
        match is_list {
            false => has_script(&at),
            true => at.entries().iter().filter(|entry| entry.is_folder()).any(|entry| has_script(&at.inner(entry))),
        }
    })
}

/// Returns true if the test runner of Node would find a test in the folder or below it.
fn has_tests(folder: &Folder) -> bool {
    let is_test = |at: &Folder, name: &str| {
        let Some(stem) = [".js", ".mjs", ".cjs"].iter().find_map(|ending| name.strip_suffix(ending)) else {
            return false;
        };
        let ends = [".test", "-test", "_test"].iter().any(|end| stem.ends_with(end));
        stem == "test" || stem.starts_with("test-") || ends || at.below() == "test/" || at.below().ends_with("/test/")
    };
    folder.has_file(|name| !NOT_ENTERED.contains(&name), is_test)
}

/// Returns the package manager, derived from its lock file.
fn installer(folder: &Folder) -> &'static str {
    let locks = [
        ("pnpm-lock.yaml", "pnpm"),
        ("pnpm-workspace.yaml", "pnpm"),
        ("yarn.lock", "yarn"),
        ("bun.lock", "bun"),
        ("bun.lockb", "bun"),
    ];
    locks.into_iter().find(|(lock, _)| folder.has(lock)).map_or("npm", |(_, installer)| installer)
}
