//! What `init` finds in a project of each kind. Finding needs no tool of the kind; running does.

use super::{Project, bare, check, commit, not_run, place, user};
use crate::workbench::{Workbench, is_on_this_machine};

/// The results of `init` in a project of one kind.
struct Found {
    kind: &'static str,
    /// Folders to create before: environments and installed packages.
    folders: &'static [&'static str],
    /// Parts of its output.
    says: &'static [&'static str],
    /// The commands of the stages, in order.
    commands: &'static [&'static str],
}

const CTEST: &str = "cd build && ctest --no-tests=error --output-on-failure";

#[rustfmt::skip]
const KINDS: [Found; 28] = [
    Found { kind: "rust", folders: &[], says: &["Rust project: Cargo.toml"], commands: &["cargo test --offline"] },
    Found { kind: "rust-workspace", folders: &[], says: &["Rust project: Cargo.toml"],
        commands: &["cargo test --workspace --offline"] },
    Found { kind: "go", folders: &[], says: &["Go project: go.mod"], commands: &["go test ./..."] },
    Found { kind: "go-workspace", folders: &[], says: &["Go project: go.work"],
        commands: &["go list -f '{{.Dir}}/...' -m | xargs go test"] },
    Found { kind: "python", folders: &[".venv/conda-meta"], says: &["(pip, .venv)"],
        commands: &[".venv/bin/python -m pytest"] },
    Found { kind: "uv", folders: &[], says: &["(uv)", "run `uv sync`"], commands: &["python3 -m pytest"] },
    Found { kind: "tox", folders: &[".tox/py3/conda-meta", ".tox/style/conda-meta"],
        says: &["(tox, .tox/py3)", "run `tox run --notest`"], commands: &[".tox/py3/bin/python -m pytest"] },
    Found { kind: "nox", folders: &[], says: &["(nox)", "run `nox --install-only`"], commands: &["python3 -m pytest"] },
    Found { kind: "hatch", folders: &[], says: &["(hatch)", "run `hatch env create`"], commands: &["python3 -m pytest"] },
    Found { kind: "poetry", folders: &[], says: &["(poetry)", "run `poetry install`"], commands: &["python3 -m pytest"] },
    Found { kind: "conda", folders: &[], says: &["(conda)", "run `conda env create`"], commands: &["python3 -m pytest"] },
    Found { kind: "node", folders: &[], says: &["package.json (npm)", "run `npm install`"], commands: &["npm test"] },
    Found { kind: "npm-workspace", folders: &[], says: &["package.json (npm)"],
        commands: &["npm test --workspaces --if-present"] },
    Found { kind: "pnpm", folders: &[], says: &["package.json (pnpm)"], commands: &["npm test"] },
    Found { kind: "pnpm-workspace", folders: &[], says: &["package.json (pnpm)"], commands: &["pnpm --recursive test"] },
    Found { kind: "yarn-workspace", folders: &[], says: &["package.json (yarn)"],
        commands: &["npm test --workspaces --if-present"] },
    Found { kind: "vitest", folders: &["node_modules"], says: &["depends on this test runner"],
        commands: &["npx --no vitest run --passWithNoTests=false"] },
    Found { kind: "jest", folders: &["node_modules"], says: &["depends on this test runner"],
        commands: &["npx --no jest"] },
    Found { kind: "tap", folders: &["node_modules"], says: &["depends on this test runner"],
        commands: &["npx --no tap"] },
    Found { kind: "cmake", folders: &[], says: &["CMake project: CMakeLists.txt", "not taken: `make test` (Makefile)"],
        commands: &["cmake -S . -B build && cmake --build build", CTEST] },
    Found { kind: "meson", folders: &[], says: &["Meson project: meson.build"], commands: &[
        "meson setup --wrap-mode=nodownload build && meson compile -C build",
        "test -n \"$(meson test -C build --no-rebuild --list)\" && meson test -C build --print-errorlogs",
    ] },
    Found { kind: "autotools", folders: &[], says: &["Autotools project: configure.ac"], commands: &[
        "autoreconf --install && mkdir -p build && cd build && sh \"$OLDPWD/configure\" && make",
        "cd build && make check && find . -name test-suite.log | grep -q .",
    ] },
    Found { kind: "c", folders: &[], says: &["plain project: Makefile (target check)"], commands: &["make check"] },
    Found { kind: "bats", folders: &[], says: &["plain project: test/*.bats"], commands: &["bats test"] },
    Found { kind: "shunit2", folders: &[], says: &["plain project: tests/*_test.sh (shunit2)"],
        commands: &["for file in tests/*_test.s[h]; do sh \"$file\" || exit 1; done"] },
    Found { kind: "just", folders: &[], says: &["plain project: justfile (recipe test)"], commands: &["just test"] },
    Found { kind: "task", folders: &[], says: &["plain project: Taskfile.yml (task test)"], commands: &["task test"] },
    Found { kind: "monorepo", folders: &[],
        says: &["Node project: apps/web/package.json", "Python project: services/api/setup.cfg", "not taken: `make test`"],
        commands: &["cd apps/web && npm test", "cd services/api && python3 -m unittest discover -s tests"] },
];

/// Returns the commands of a pipeline, in the order of the file.
fn commands(pipeline: &str) -> Vec<String> {
    let mut found = Vec::new();
    for rest in pipeline.split("tool_command=\"").skip(1) {
        let mut command = String::new();
        let mut characters = rest.chars();
        while let Some(character) = characters.next().filter(|character| *character != '"') {
            command.extend(if character == '\\' { characters.next() } else { Some(character) });
        }
        found.push(command);
    }
    found
}

#[test]
fn every_kind_is_found_without_its_tools() {
    for Found { kind, folders, says, commands: expected } in KINDS {
        let bench = place(kind);
        for folder in folders {
            std::fs::create_dir_all(bench.project().join(folder)).unwrap();
        }
        commit(&bench);
        let init = bench.glovebox(&["init"]);
        init.ends(0);
        says.iter().for_each(|text| _ = init.says(text));
        assert_eq!(commands(&bench.read("pipeline.dot")), expected, "{kind}");
        bench.glovebox(&["check", "--strict", "pipeline.dot"]).ends(0);
        bench.glovebox(&["fmt", "--check", "pipeline.dot"]).ends(0);
        assert!(!bench.read("glovebox.toml").contains("\ncache = "), "{kind}: git ignores the build results");
    }
}

/// A project whose program is not in the sandbox: the note says what to do.
#[test]
fn a_missing_program_is_named() {
    for (kind, program) in
        [("cmake", "ctest"), ("meson", "meson"), ("bats", "bats"), ("just", "just"), ("task", "task")]
    {
        let bench = place(kind);
        let init = bench.glovebox(&["init"]);
        match is_on_this_machine(program) {
            true => init.ends(0).never_says(&format!("`{program}` is not on this machine")),
            false => init.ends(0).says(&format!("`{program}` is not on this machine: install it before the first run")),
        };
    }
}

#[test]
fn a_workspace_of_cargo_with_a_build_script_succeeds() {
    check(&Project {
        install: |folder| user(folder, &["cargo", "generate-lockfile", "--offline"]),
        ..Project::new(
            "rust-workspace",
            "cargo",
            "found    Rust project: Cargo.toml",
            "cargo test --workspace --offline",
        )
    });
}

#[test]
fn a_workspace_of_go_succeeds() {
    check(&Project::new("go-workspace", "go", "found    Go project: go.work", "go list -f "));
}

#[test]
fn a_workspace_of_npm_succeeds() {
    check(&Project {
        install: |folder| user(folder, &["npm", "install", "--offline"]),
        ..Project::new(
            "npm-workspace",
            "npm",
            "found    Node project: package.json (npm)",
            "npm test --workspaces --if-present",
        )
    });
}

#[test]
fn a_project_in_c_succeeds() {
    check(&Project::new("c", "cc", "found    plain project: Makefile (target check)", "make check"));
}

#[test]
fn a_cmake_project_succeeds() {
    check(&Project::new(
        "cmake",
        "ctest",
        "found    CMake project: CMakeLists.txt",
        "cd build && ctest --no-tests=error",
    ));
}

#[test]
fn a_meson_project_succeeds() {
    check(&Project::new("meson", "meson", "found    Meson project: meson.build", "test -n \"$(meson test -C build"));
}

#[test]
fn a_project_of_the_autotools_succeeds() {
    check(&Project::new("autotools", "automake", "found    Autotools project: configure.ac", "cd build && make check"));
}

#[test]
fn a_bats_project_succeeds() {
    check(&Project::new("bats", "bats", "found    plain project: test/*.bats", "bats test"));
}

#[test]
fn a_shunit2_project_succeeds() {
    check(&Project::new(
        "shunit2",
        "shunit2",
        "found    plain project: tests/*_test.sh",
        "for file in tests/*_test.s[h]",
    ));
}

#[test]
fn a_project_with_a_justfile_succeeds() {
    check(&Project::new("just", "just", "found    plain project: justfile (recipe test)", "just test"));
}

#[test]
fn a_project_with_a_taskfile_succeeds() {
    check(&Project::new("task", "task", "found    plain project: Taskfile.yml (task test)", "task test"));
}

#[test]
fn a_repository_of_several_projects_tests_each() {
    if !is_on_this_machine("npm") || !is_on_this_machine("python3") {
        return not_run("monorepo", "`npm` or `python3` is not on this machine");
    }
    let bench = place("monorepo");
    commit(&bench);
    bench.glovebox(&["init"]).ends(0);
    let run = bare(&bench, &["run", "--run-id", "first"]);
    run.ends(0)
        .says("verified     test_node_apps_web: sh -c 'cd apps/web && npm test' exit 0")
        .says("verified     test_python_services_api: sh -c 'cd services/api && python3 -m unittest discover -s tests' exit 0");
    assert_eq!(bench.glovebox(&["diff", "first"]).ends(0).stdout, "");
}

/// A build may delete the folder of its results, which a mount point would forbid.
#[test]
fn a_build_that_deletes_its_results_succeeds() {
    if !is_on_this_machine("npm") {
        return not_run("node", "`npm` is not on this machine");
    }
    let bench = Workbench::new();
    bench.write(".gitignore", "dist/\n");
    let build = "rm -rf dist && mkdir dist && echo 1 > dist/x";
    let package = format!(r#"{{ "name": "x", "scripts": {{ "build": "{build}", "test": "cat dist/x" }} }}"#);
    bench.write("package.json", &package);
    commit(&bench);
    bench.glovebox(&["init"]).ends(0);
    assert!(!bench.read("glovebox.toml").contains("dist"));
    bare(&bench, &["run", "--run-id", "first"]).ends(0).says("verified     test: sh -c 'npm test' exit 0");
    bare(&bench, &["run"]).ends(0);
}

/// In every template, a test command that passes without a test fails the run.
#[test]
fn a_command_that_ran_no_test_is_never_green() {
    if !is_on_this_machine("cargo") {
        return not_run("rust", "`cargo` is not on this machine");
    }
    for (template, code) in [("default", 1), ("check", 4)] {
        let bench = Workbench::new();
        bench.write("Cargo.toml", "[package]\nname = \"clock\"\nversion = \"0.1.0\"\nedition = \"2024\"\n");
        bench.write("src/lib.rs", "//! Nothing is tested.\n");
        bench.glovebox(&["init", template]).ends(0);
        bench.glovebox(&["check", "--strict", "pipeline.dot"]).ends(0);
        let run = bare(&bench, &["run"]);
        run.ends(code).says("not verified test: sh -c 'cargo test --offline'").says("ran no test");
    }
}

/// A test that starts the tool again must not look for a network either. The operator may allow one.
#[test]
fn tools_that_a_test_starts_are_offline_too() {
    let bench = Workbench::new();
    bench.write(
        "pipeline.dot",
        "digraph show { start; done; show [shape=parallelogram, allowed_write_paths=\"\", tool_command=\"echo \
         $CARGO_NET_OFFLINE $npm_config_offline $PIP_NO_INDEX $UV_OFFLINE\"]; start -> show -> done }",
    );
    let mut expected = Vec::new();
    let mut toolchains = Vec::new();
    for (program, toolchain, values) in
        [("cargo", "rust", "true"), ("node", "node", "true"), ("python3", "python", "1 1")]
    {
        if is_on_this_machine(program) {
            toolchains.push(format!("\"{toolchain}\""));
            expected.push(values);
        }
    }
    let run = |id: &str, sandbox: &str, expected: &str| {
        let text = format!("[exec]\ntoolchains = [{}]\n[sandbox]\n{sandbox}\n", toolchains.join(", "));
        bench.write("glovebox.toml", &text);
        bare(&bench, &["run", "--run-id", id]).ends(0);
        assert_eq!(bench.run_text(id, "show/tool.stdout.txt").trim(), expected, "{sandbox}");
    };
    run("none", "network = \"none\"", &expected.join(" "));
    run("proxy", "network = { proxy = [\"crates.io\"] }", "");
}

/// A makefile builds again what is older than its sources, so its folder is reused if git ignores it.
#[test]
fn folders_of_a_makefile_that_git_ignores_are_reused() {
    let makefile = "test: build/demo\n\t./build/demo\n\nbuild/demo: demo.c\n\tmkdir -p build && cc -o $@ $<\n";
    for (ignored, line) in [("/build\nobj/\n", Some("reuse = [\"build/\"]")), ("*.o\n", None)] {
        let bench = Workbench::new();
        bench.write("Makefile", makefile);
        bench.write("demo.c", "int main(void) { return 0; }\n");
        bench.write(".gitignore", ignored);
        commit(&bench);
        bench.glovebox(&["init"]).ends(0);
        let written = bench.read("glovebox.toml");
        assert_eq!(written.lines().find(|text| text.starts_with("reuse")), line, "{ignored}");
    }
}
