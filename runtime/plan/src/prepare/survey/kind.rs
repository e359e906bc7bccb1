//! The kinds of projects: the files that show a kind, its toolchain, and the folders that its tools fill.
//!
//! One row per kind, and no control flow. A new kind is a row here, and a toolchain if it needs another one. Folders are as git ignores
//! them: a name without a parent is meant at any depth.

use crate::config::Toolchain;

/// A kind of project.
#[derive(Debug, PartialEq, Eq)]
pub struct Kind {
    /// Its name in messages.
    pub name: &'static str,
    /// Files of the project's folder; one of them is sufficient.
    pub markers: &'static [&'static str],
    /// The toolchains that can build it, preferred first.
    pub toolchains: &'static [Toolchain],
    /// Folders of installed dependencies. Commands need them, git ignores them, and no stage has a reason to change them.
    pub dependencies: &'static [&'static str],
    /// Folders of build results. A later stage is faster with them.
    pub caches: &'static [&'static str],
    /// Folders and files that tools leave behind, of no use to a later stage.
    pub byproducts: &'static [&'static str],
}

/// Every kind, in the order in which a project's stages are listed.
pub const KINDS: [Kind; 6] = [
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
        markers: &["pyproject.toml", "setup.py", "setup.cfg", "requirements.txt", "Pipfile", "tox.ini", "pytest.ini"],
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
];
