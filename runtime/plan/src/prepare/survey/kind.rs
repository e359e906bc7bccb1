//! The kinds of projects: the files that show a kind, its toolchain, and the folders that its tools fill.
//!
//! One row per kind, and no control flow. A new kind needs a row here, and a new toolchain if no existing one fits. Folders
//! follow the rules of `.gitignore`: a name without a parent matches at any depth.

use crate::config::Toolchain;

/// A kind of project.
#[derive(Debug, PartialEq, Eq)]
pub struct Kind {
    /// The name of the kind in messages.
    pub name: &'static str,
    /// Files that show the kind. One of them in the project's folder is sufficient.
    pub markers: &'static [&'static str],
    /// The toolchains that can build the project, preferred first.
    pub toolchains: &'static [Toolchain],
    /// Folders of installed dependencies. Commands need them, git ignores them, and no stage has a reason to change them.
    pub dependencies: &'static [&'static str],
    /// Folders of build results. They make later stages faster.
    pub caches: &'static [&'static str],
    /// Folders and files that tools leave behind and that later stages do not need.
    pub byproducts: &'static [&'static str],
}

/// All kinds, in the order in which a project's stages are listed.
pub const KINDS: [Kind; 9] = [
    Kind {
        name: "Rust",
        markers: &["Cargo.toml"],
        toolchains: &[Toolchain::Rust],
        dependencies: &["vendor/"],
        caches: &["target/"],
        byproducts: &[],
    },
    Kind {
        name: "Go",
        markers: &["go.mod", "go.work"],
        toolchains: &[Toolchain::Go],
        dependencies: &["vendor/"],
        caches: &[],
        byproducts: &["coverage.out"],
    },
    Kind {
        name: "Node",
        markers: &["package.json"],
        toolchains: &[Toolchain::Node],
        dependencies: &["node_modules/", ".yarn/", ".pnp.cjs", ".pnp.loader.mjs"],
        caches: &[],
        byproducts: &[
            "node_modules/.cache/",
            "node_modules/.vite/",
            "node_modules/.vitest/",
            "coverage/",
            ".nyc_output/",
            ".turbo/",
            ".next/",
            ".parcel-cache/",
            "dist/",
            "build/",
            "*.tsbuildinfo",
        ],
    },
    Kind {
        name: "Python",
        markers: &[
            "pyproject.toml",
            "setup.py",
            "setup.cfg",
            "requirements.txt",
            "Pipfile",
            "tox.ini",
            "pytest.ini",
            "noxfile.py",
            "environment.yml",
        ],
        toolchains: &[Toolchain::Python],
        dependencies: &[".venv/", "venv/", "env/", ".tox/", ".nox/"],
        caches: &[],
        byproducts: &[
            "__pycache__/",
            ".pytest_cache/",
            ".mypy_cache/",
            ".ruff_cache/",
            ".hypothesis/",
            ".coverage",
            "htmlcov/",
            "*.egg-info/",
            "build/",
            "dist/",
        ],
    },
    Kind {
        name: "Maven",
        markers: &["pom.xml"],
        toolchains: &[Toolchain::Maven],
        dependencies: &[],
        caches: &["target/"],
        byproducts: &[],
    },
    Kind {
        name: "Gradle",
        markers: &["build.gradle", "build.gradle.kts", "settings.gradle", "settings.gradle.kts"],
        toolchains: &[Toolchain::Gradle],
        dependencies: &[],
        caches: &["build/", ".gradle/"],
        byproducts: &[".kotlin/"],
    },
    Kind {
        name: "CMake",
        markers: &["CMakeLists.txt"],
        toolchains: &[],
        dependencies: &[],
        caches: &["build/"],
        byproducts: &[],
    },
    Kind {
        name: "Meson",
        markers: &["meson.build"],
        toolchains: &[],
        dependencies: &[],
        caches: &["build/"],
        byproducts: &[],
    },
    Kind {
        name: "Autotools",
        markers: &["configure.ac", "configure.in", "Makefile.in"],
        toolchains: &[],
        dependencies: &[],
        caches: &["build/"],
        byproducts: &["autom4te.cache/"],
    },
];
