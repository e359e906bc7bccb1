//! Projects in C and C++: CMake, Meson and the Autotools. Each is found only if its files declare tests.
//!
//! All of them build in a folder of their own, so that the sources stay as they are.

use super::folder::Folder;
use super::makefile::Makefile;
use super::part::{Part, Step};

/// Folders that are not searched: code of other authors, whose tests are not those of the project, and build results.
const NOT_ENTERED: [&str; 12] = [
    "third_party/",
    "third-party/",
    "thirdparty/",
    "3rdparty/",
    "vendor/",
    "external/",
    "extern/",
    "deps/",
    "subprojects/",
    "node_modules/",
    "build/",
    "target/",
];
/// Calls of CMake that declare tests.
const CMAKE_CALLS: [&str; 6] = [
    "enable_testing(",
    "add_test(",
    "include(ctest)",
    "gtest_discover_tests(",
    "catch_discover_tests(",
    "doctest_discover_tests(",
];
/// The build folder if the project has a folder `build/` of its own.
const OTHER_BUILD_FOLDER: &str = "glovebox-build";

/// Adds the commands of a project with CMake, if it declares tests.
pub(super) fn cmake(folder: &Folder, part: &mut Part) {
    if !declares(folder, &["CMakeLists.txt"], |text| {
        let calls = text.to_lowercase().replace([' ', '\t'], "");
        calls.lines().any(|line| CMAKE_CALLS.iter().any(|call| line.starts_with(call)))
    }) {
        return;
    }
    let build = build_folder(folder, part);
    part.programs.extend(["cmake", "ctest"]);
    part.steps.push(Step::build(
        format!("cmake -S . -B {build} && cmake --build {build}"),
        "CMake configures and builds the project in a folder of its own.",
    ));
    part.steps.push(Step::test(
        format!("cd {build} && ctest --no-tests=error --output-on-failure"),
        "CMakeLists.txt declares tests. `--no-tests=error`: without a test, the command fails.",
    ));
    part.has_tests = true;
}

/// Adds the commands of a project with Meson, if it declares tests.
pub(super) fn meson(folder: &Folder, part: &mut Part) {
    if !declares(folder, &["meson.build"], |text| {
        text.lines()
            .any(|line| line.trim_start().strip_prefix("test").is_some_and(|rest| rest.trim_start().starts_with('(')))
    }) {
        return;
    }
    let build = build_folder(folder, part);
    part.programs.extend(["meson", "ninja"]);
    part.steps.push(Step::build(
        format!("meson setup --wrap-mode=nodownload {build} && meson compile -C {build}"),
        "Meson configures and builds the project in a folder of its own. `nodownload`: stages have no network.",
    ));
    part.steps.push(Step::test(
        format!("test -n \"$(meson test -C {build} --no-rebuild --list)\" && meson test -C {build} --print-errorlogs"),
        "meson.build declares tests. Meson has no option that fails without a test, so the list is checked first.",
    ));
    part.has_tests = true;
}

/// Adds the commands of a project with the Autotools, if it declares tests.
pub(super) fn autotools(folder: &Folder, part: &mut Part) {
    let declares = |is_declared: fn(&str) -> bool| {
        declares(folder, &["Makefile.am"], |text| text.lines().any(|line| is_declared(line.trim_end())))
    };
    let has_harness = declares(|line| {
        let rest = line.strip_prefix("TESTS").map(str::trim_start);
        rest.is_some_and(|rest| rest.starts_with('=') || rest.starts_with("+="))
    });
    let is_serial = declares(|line| line.contains("serial-tests"))
        || ["configure.ac", "configure.in"].iter().any(|name| folder.text(name).contains("serial-tests"));
    if !has_harness && !declares(|line| line.starts_with("check-local:")) {
        own_configure(folder, part);
        return;
    }
    let build = build_folder(folder, part);
    let prepare = if folder.has("configure") && !folder.ignores("configure") { "" } else { "autoreconf --install && " };
    part.programs.push("make");
    if !prepare.is_empty() {
        part.programs.push("autoreconf");
    }
    part.steps.push(Step::build(
        format!("{prepare}mkdir -p {build} && cd {build} && sh \"$OLDPWD/configure\" && make"),
        "The Autotools configure and build the project in a folder of its own.",
    ));
    if has_harness && !is_serial {
        part.steps.push(Step::test(
            format!("cd {build} && make check && find . -name test-suite.log | grep -q ."),
            "Makefile.am declares tests. Automake writes `test-suite.log` only if it had a test to run.",
        ));
    } else {
        part.steps.push(Step::test(format!("cd {build} && make check"), "Makefile.am declares tests."));
    }
    part.has_tests = true;
}

/// Adds the commands of a project with a `configure` and a `Makefile.in` of its own, if the latter has a target that tests.
fn own_configure(folder: &Folder, part: &mut Part) {
    if !folder.has("configure") || folder.has("Makefile.am") {
        return;
    }
    let text = folder.text("Makefile.in");
    let makefile = Makefile::parse(&text);
    let Some(target) = ["check", "test"].into_iter().find(|target| makefile.tests(target)) else { return };
    let build = build_folder(folder, part);
    part.programs.push("make");
    part.steps.push(Step::build(
        format!("mkdir -p {build} && cd {build} && sh \"$OLDPWD/configure\" && make"),
        "`configure` and make build the project in a folder of its own.",
    ));
    part.steps.push(Step::test(format!("cd {build} && make {target}"), "A target of Makefile.in."));
    part.has_tests = true;
}

/// Returns true if a file with one of these names, in the folder or below it, declares tests.
fn declares(folder: &Folder, names: &[&str], is_declared: impl Fn(&str) -> bool) -> bool {
    let is_entered = |name: &str| !NOT_ENTERED.contains(&name);
    folder.has_file(is_entered, |at, name| names.contains(&name) && is_declared(&at.text(name)))
}

/// Returns the name of the build folder. A folder that belongs to the project is not used.
fn build_folder(folder: &Folder, part: &mut Part) -> &'static str {
    if !folder.has("build") || folder.ignores("build/") {
        return "build";
    }
    part.caches = vec![format!("{}{OTHER_BUILD_FOLDER}/", folder.below())];
    part.build_folders = Vec::new();
    OTHER_BUILD_FOLDER
}
