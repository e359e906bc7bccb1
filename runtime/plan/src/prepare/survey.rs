//! Inspects a project: its kinds of project, their folders, and the commands that build and test them.
//!
//! The survey reads a few files of the project and runs no program. Texts from the project's files never become part of
//! a command. Each command is one of the texts in this module, and contains the name of a folder only if the name has
//! plain characters.

mod entry_point;
mod environment;
mod folder;
pub mod kind;
mod makefile;
mod native;
mod node;
mod part;
mod python;
mod scope;

pub use environment::{Environment, Place};
pub(super) use environment::{in_project as environments_in, is_environment};
pub use part::{Part, Purpose, Step};
pub use scope::sources;

use crate::config::Toolchain;
use entry_point::{EntryPoint, entry_points};
use environment::User;
use folder::Folder;
use kind::{KINDS, Kind};
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// C and C++ build tools, preferred first. If a folder has several, only the first is used.
const NATIVE: [&str; 3] = ["CMake", "Meson", "Autotools"];
/// Folders of a monorepo whose subfolders are projects.
const CONTAINERS: [&str; 8] =
    ["packages/", "apps/", "services/", "crates/", "libs/", "modules/", "projects/", "components/"];
/// Maximum number of parts. A longer pipeline would not help a reader.
const PARTS_MAX: usize = 12;

/// The parts of a project.
#[derive(Debug, PartialEq, Eq)]
pub struct Survey {
    /// The parts of the project; at least one.
    pub parts: Vec<Part>,
    /// Parts without a stage, because nothing was found that tests them.
    pub untested: Vec<Part>,
    /// The folders and files that a stage which repairs the code may write, in the syntax of `allowed_write_paths`.
    pub scope: Vec<String>,
    /// What the user should know or do before the first run.
    pub notes: Vec<String>,
}

impl Survey {
    /// Inspects a project with the environment variables of this process.
    pub fn for_project(project: &Path) -> Self {
        Self::for_user(project, &|name| std::env::var_os(name))
    }

    /// Inspects a project: the root, and the folders directly in it for kinds that the root does not have. The variables show
    /// where tools keep environments outside of the project.
    pub fn for_user(project: &Path, variable: &dyn Fn(&str) -> Option<OsString>) -> Self {
        let root = Folder::root(project);
        let user = User::new(variable);
        let mut found = Found { parts: parts(&root, &user), ..Found::default() };
        found.choose_native(&Installed::of_user(variable));
        found.choose(&root, &user);
        let mut parts = found.parts;
        let of_parts = parts.iter_mut().flat_map(|part| std::mem::take(&mut part.notes));
        let notes = found.notes.into_iter().chain(of_parts).collect();
        Self { scope: scope::write_scope(&root, &parts), parts, untested: found.untested, notes }
    }

    /// Returns the toolchains of all parts, each once.
    pub fn toolchains(&self) -> BTreeSet<Toolchain> {
        self.parts.iter().flat_map(|part| part.toolchains.iter().copied()).collect()
    }

    /// Returns the programs that the commands need and that no toolchain contains, each once.
    pub fn programs(&self) -> BTreeSet<&'static str> {
        self.parts.iter().flat_map(|part| part.programs.iter().copied()).collect()
    }

    /// Returns the first Python environment outside of the project.
    pub fn outer_environment(&self) -> Option<&str> {
        self.parts.iter().filter_map(|part| part.environment.as_ref()).find_map(|environment| {
            match &environment.place {
                Place::Machine(path) => Some(path.as_str()),
                Place::Project(_) => None,
            }
        })
    }
}

/// Returns the parts of a project: those of the root, of the folders in it, and of the folders in a container.
fn parts(root: &Folder, user: &User) -> Vec<Part> {
    let mut parts = parts_in(root, &BTreeSet::new(), user);
    let mut known: BTreeSet<&str> = parts.iter().map(|part| part.kind).collect();
    if !known.is_empty() {
        // A library of another author in a folder is not what the project tests.
        known.extend(NATIVE);
    }
    let folders = |folder: &Folder| {
        let entries = folder.entries().into_iter();
        let inner = entries.filter(|entry| entry.is_folder() && !scope::is_built(&entry.name));
        inner.map(|entry| folder.inner(&entry)).collect::<Vec<_>>()
    };
    for inner in folders(root) {
        let own = parts_in(&inner, &known, user);
        if own.is_empty() && CONTAINERS.contains(&inner.below()) {
            parts.extend(folders(&inner).iter().flat_map(|project| parts_in(project, &known, user)));
        }
        parts.extend(own);
    }
    parts
}

/// Returns the parts of one folder, without the kinds that are known already.
fn parts_in(folder: &Folder, known: &BTreeSet<&str>, user: &User) -> Vec<Part> {
    let is_here = |kind: &&Kind| !known.contains(kind.name) && kind.markers.iter().any(|marker| folder.has(marker));
    KINDS.iter().filter(is_here).filter_map(|kind| part(kind, folder, user)).collect()
}

/// The parts of a project before it is decided which of them the pipeline has.
#[derive(Default)]
struct Found {
    parts: Vec<Part>,
    /// Parts without a stage.
    untested: Vec<Part>,
    notes: Vec<String>,
    /// Commands that also test the project and are not used, with the file that shows each.
    not_taken: Vec<(String, String)>,
}

impl Found {
    /// Keeps only one of the tools that build the same folder: the first one that is installed, or else the first.
    fn choose_native(&mut self, installed: &Installed) {
        let missing = |part: &Part| part.programs.iter().copied().find(|program| !installed.has(program));
        let mut chosen: BTreeMap<String, &'static str> = BTreeMap::new();
        let native = || self.parts.iter().filter(|part| NATIVE.contains(&part.kind));
        for part in native().filter(|part| missing(part).is_none()).chain(native()) {
            chosen.entry(part.folder.clone()).or_insert(part.kind);
        }
        let is_kept = |part: &Part| !NATIVE.contains(&part.kind) || chosen.get(&part.folder) == Some(&part.kind);
        let (kept, dropped): (Vec<Part>, _) = std::mem::take(&mut self.parts).into_iter().partition(is_kept);
        self.parts = kept;
        for mut part in dropped {
            if let Some(program) = missing(&part) {
                part.found = format!("{}, `{program}` is not installed", part.found);
            }
            self.not_taken.extend(part.test_command().map(|command| (command, part.found)));
        }
    }

    /// Keeps the parts that have tests. If no part has any, uses the first entry point of the project.
    fn choose(&mut self, root: &Folder, user: &User) {
        let entry_points = entry_points(root);
        if self.parts.is_empty() && entry_points.is_empty() {
            self.parts.extend(python_without_a_marker(root, user));
        }
        let taken = if self.parts.iter().any(|part| part.has_tests) {
            self.drop_parts_without_tests();
            let is_root_tested = self.parts.iter().any(|part| part.folder.is_empty() && part.has_tests);
            entry_points.iter().position(|entry_point| !is_root_tested && !entry_point.is_task)
        } else {
            (!entry_points.is_empty()).then_some(0)
        };
        for (index, entry_point) in entry_points.into_iter().enumerate() {
            if Some(index) == taken {
                self.take(entry_point);
            } else {
                self.not_taken.push((entry_point.command, entry_point.place));
            }
        }
        self.report_missing_tests();
        self.report_not_taken();
        if self.parts.len() > PARTS_MAX {
            let dropped = self.parts.split_off(PARTS_MAX);
            let folders: Vec<String> = dropped.iter().map(|part| format!("`./{}`", part.folder)).collect();
            self.notes
                .push(format!("only {PARTS_MAX} parts are tested; add a stage for each of {}", folders.join(", ")));
        }
    }

    fn drop_parts_without_tests(&mut self) {
        for part in self.parts.iter_mut().filter(|part| !part.has_tests) {
            part.steps.retain(|step| step.purpose == Purpose::Build);
            let note = format!("no tests found in `./{}` ({}): nothing is verified there", part.folder, part.kind);
            self.notes.push(note);
        }
        self.drop_parts_without_stages();
    }

    fn drop_parts_without_stages(&mut self) {
        let (kept, dropped) = std::mem::take(&mut self.parts).into_iter().partition(|part| !part.steps.is_empty());
        self.parts = kept;
        self.untested.extend::<Vec<Part>>(dropped);
    }

    /// Uses an entry point. If no part has tests, the entry point replaces all parts. It keeps their toolchains,
    /// scratch folders and environment, because its command may need them.
    fn take(&mut self, entry_point: EntryPoint) {
        let EntryPoint { command, place, program, why, script, is_task: _, build_folders } = entry_point;
        let mut part = Part { found: place, build_folders, ..Part::plain("plain") };
        part.steps.push(Step::test(command, why));
        part.programs.extend(program);
        part.scripts.extend(script);
        part.has_tests = true;
        if !self.parts.iter().any(|part| part.has_tests) {
            for mut other in std::mem::take(&mut self.parts) {
                part.toolchains.append(&mut other.toolchains);
                part.scratch.append(&mut other.scratch);
                part.environment = part.environment.or_else(|| other.environment.clone());
                self.untested.push(other);
            }
        }
        self.parts.push(part);
    }

    /// Notes parts without tests. If there is no test command at all, adds one that fails.
    fn report_missing_tests(&mut self) {
        if self.parts.is_empty() {
            self.parts.push(Part { found: "no tests".to_owned(), ..Part::plain("plain") });
            self.notes.push(
                "no tests found, so nothing is verified yet: the stage `test` fails until it has the command that tests your project"
                    .to_owned(),
            );
        } else {
            let untested = self.parts.iter().filter(|part| !part.has_tests && part.test_command().is_some());
            let note =
                |part: &Part| format!("no tests found in `./{}`: nothing is verified until it has tests", part.folder);
            self.notes.extend(untested.map(note));
        }
        if self.parts.iter().any(|part| part.test_command().is_some()) {
            self.drop_parts_without_stages();
            return;
        }
        let first = &mut self.parts[0];
        first.steps.push(Step::missing());
        if first.kind != "plain" {
            self.notes.push(format!(
                "no tests found in `./{}`, so nothing is verified yet: the stage `test` fails until it has the command that \
                 tests your project",
                first.folder
            ));
        }
        self.drop_parts_without_stages();
    }

    /// Notes which of several test commands is used.
    fn report_not_taken(&mut self) {
        if self.not_taken.is_empty() {
            return;
        }
        let taken: Vec<String> =
            self.parts.iter().filter_map(Part::test_command).map(|command| format!("`{command}`")).collect();
        let other = |(command, place): &(String, String)| {
            format!("`{command}` ({})", place.split(" (").next().unwrap_or_default())
        };
        let others: Vec<String> = self.not_taken.iter().map(other).collect();
        self.notes.insert(0, format!("took {}; not taken: {}", taken.join(", "), others.join(", ")));
    }
}

/// The folders of `PATH`.
struct Installed(Option<Vec<PathBuf>>);

impl Installed {
    fn of_user(variable: &dyn Fn(&str) -> Option<OsString>) -> Self {
        Self(variable("PATH").map(|path| std::env::split_paths(&path).collect()))
    }

    /// Returns true if a program is in a folder of `PATH`, or if nothing is known about `PATH`.
    fn has(&self, program: &str) -> bool {
        self.0.as_ref().is_none_or(|folders| folders.iter().any(|folder| folder.join(program).is_file()))
    }
}

/// Returns the Python part of a project that shows its kind only by the names of its test files.
fn python_without_a_marker(root: &Folder, user: &User) -> Option<Part> {
    let kind = KINDS.iter().find(|kind| kind.name == "Python")?;
    let mut part = Part { found: python::test_file(root)?, ..Part::new(kind, root) };
    python::look(root, &mut part, user);
    Some(part)
}

/// Returns the part of a kind. `None` for a kind that counts only with tests, if there are none.
fn part(kind: &'static Kind, folder: &Folder, user: &User) -> Option<Part> {
    let mut part = Part::new(kind, folder);
    match kind.name {
        "Rust" => rust(folder, &mut part),
        "Go" => go(folder, &mut part),
        "Node" => node::look(folder, &mut part),
        "Python" => python::look(folder, &mut part, user),
        "Maven" => maven(folder, &mut part),
        "CMake" => native::cmake(folder, &mut part),
        "Meson" => native::meson(folder, &mut part),
        "Autotools" => native::autotools(folder, &mut part),
        _ => gradle(&mut part),
    }
    (part.has_tests || !NATIVE.contains(&kind.name)).then_some(part)
}

fn rust(folder: &Folder, part: &mut Part) {
    let text = folder.text("Cargo.toml");
    let is_table = |line: &str| line.trim_start().starts_with("[workspace]");
    // In a workspace whose root is a package, cargo tests only that package. With `default-members`, its author has
    // chosen what cargo tests.
    let is_workspace = text.lines().any(is_table) && text.contains("members") && !text.contains("default-members");
    let mut test = Step::test(
        if is_workspace { "cargo test --workspace --offline" } else { "cargo test --offline" },
        "`--offline`: stages have no network. `cargo fetch` brings new crates before a run.",
    );
    if !folder.has("Cargo.lock") {
        test.writes.push("Cargo.lock");
    }
    part.steps.push(test);
    part.has_tests = true;
}

fn go(folder: &Folder, part: &mut Part) {
    // Without a module in the root, `./...` names no package: the modules of the workspace are listed instead.
    let command = match folder.has("go.mod") {
        true => "go test ./...",
        false => "go list -f '{{.Dir}}/...' -m | xargs go test",
    };
    part.steps.push(Step::test(command, "Stages have no network. `go mod download` brings new modules before a run."));
    part.has_tests =
        folder.has_file(|name| !matches!(name, "vendor/" | "testdata/"), |_, name| name.ends_with("_test.go"));
}

fn maven(folder: &Folder, part: &mut Part) {
    let program = if folder.has("mvnw") && !folder.text("mvnw").is_empty() { "sh mvnw" } else { "mvn" };
    let text = folder.text("pom.xml");
    // A project of several modules may have modules without tests.
    let is_single = !text.contains("<modules>") && !text.contains("<packaging>pom</packaging>");
    let option = if is_single { " -DfailIfNoTests=true" } else { "" };
    part.steps.push(Step::test(
        format!("{program} --offline --batch-mode{option} test"),
        "`--offline`: stages have no network. `mvn dependency:go-offline` brings what is missing before a run.",
    ));
    part.has_tests = true;
}

fn gradle(part: &mut Part) {
    part.steps.push(Step::test(
        "gradle --offline --no-daemon test",
        "`--offline`: stages have no network. `gradle` is the version of the wrapper, if that version has been downloaded.",
    ));
    part.has_tests = true;
}
