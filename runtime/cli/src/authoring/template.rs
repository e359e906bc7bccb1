//! The files of a new plugin's project, one set for each language and world.
//!
//! A project needs no clone of this repository: it gets the WIT package, the SDK of its language and, for C, the bindings. In the
//! templates, `acme.example` stands for the plugin's name and `acme-example` for that of the project.

use super::sdk_files::{self, SdkFile};
use crate::plugin_language::{Language, World};
use std::borrow::Cow;

/// A file of the project: its path and its bytes.
pub type ProjectFile = (Cow<'static, str>, Cow<'static, [u8]>);

macro_rules! template {
    ($path:literal) => {
        include_str!(concat!("../../templates/", $path))
    };
}

/// The name of the world of projects in JavaScript and Python. It has only the imports that the plugin uses: the tools of these
/// languages import every interface of the world, also those that the host never grants.
const OWN_WORLD: &str = "project";

/// The lock files of the repository's examples. A new crate gets the same versions of its dependencies.
const LOCK: &str = include_str!("../../../../examples/quickstart/review-plugin/Cargo.lock");
const RULES_LOCK: &str = include_str!("../../../../examples/house-rules/rules/Cargo.lock");

/// The files of the bindings of one world: names and contents.
type BindingFiles = &'static [(&'static str, &'static [u8])];

/// Files of the C bindings for each world, as `build.rs` generates them.
const BINDINGS: &[(&str, BindingFiles)] = include!(concat!(env!("OUT_DIR"), "/c_bindings.rs"));

/// The handlers of a language, one for each world that it can have.
const HANDLERS: &[(Language, World, &str)] = &[
    (Language::Rust, World::Handler, template!("rust/handler.rs")),
    (Language::Rust, World::Agent, template!("rust/agent.rs")),
    (Language::Rust, World::Verifier, template!("rust/verifier.rs")),
    (Language::Rust, World::Rules, template!("rust/rules.rs")),
    (Language::Rust, World::Policy, template!("rust/policy.rs")),
    (Language::Rust, World::ToolProvider, template!("rust/tool_provider.rs")),
    (Language::JavaScript, World::Handler, template!("js/handler.js")),
    (Language::JavaScript, World::Agent, template!("js/agent.js")),
    (Language::JavaScript, World::Verifier, template!("js/verifier.js")),
    (Language::JavaScript, World::ToolProvider, template!("js/tool_provider.js")),
    (Language::JavaScript, World::Rules, template!("js/rules.js")),
    (Language::JavaScript, World::Policy, template!("js/policy.js")),
    (Language::Python, World::Handler, template!("python/handler.py")),
    (Language::Python, World::Agent, template!("python/agent.py")),
    (Language::Python, World::Verifier, template!("python/verifier.py")),
    (Language::Python, World::ToolProvider, template!("python/tool_provider.py")),
    (Language::Python, World::Rules, template!("python/rules.py")),
    (Language::Python, World::Policy, template!("python/policy.py")),
    (Language::C, World::Handler, template!("c/handler.c")),
    (Language::C, World::Agent, template!("c/agent.c")),
    (Language::C, World::Verifier, template!("c/verifier.c")),
    (Language::C, World::ToolProvider, template!("c/tool_provider.c")),
    (Language::C, World::Rules, template!("c/rules.c")),
    (Language::C, World::Policy, template!("c/policy.c")),
];

/// Returns all files of a project. `None` if the language cannot have the world.
pub fn files(name: &str, language: Language, world: World) -> Option<Vec<ProjectFile>> {
    let (.., handler) = HANDLERS.iter().find(|(own, of, _)| (*own, *of) == (language, world))?;
    let recipe = Recipe { name, project: project_name(name), language, world };
    let mut files = vec![
        recipe.file("plugin.toml", &recipe.project_file()),
        recipe.file("README.md", &recipe.readme()),
        recipe.file(".gitignore", recipe.ignored()),
        recipe.file(recipe.handler_path(), handler),
    ];
    match language {
        Language::Rust => files.extend(recipe.rust_files()?),
        Language::JavaScript => files.extend(recipe.js_files()),
        Language::Python => files.extend(recipe.python_files()),
        Language::C => files.extend(recipe.c_files()?),
    }
    files.extend(sdk_files::WIT.into_iter().chain([sdk_files::WORLDS]).map(constant));
    files.extend(recipe.cases());
    Some(files)
}

/// Returns the name of the project's folder and crate.
pub fn project_name(name: &str) -> String {
    name.replace('.', "-")
}

fn constant((path, text): SdkFile) -> ProjectFile {
    (path.into(), text.as_bytes().into())
}

/// What the files of a project depend on.
struct Recipe<'n> {
    name: &'n str,
    project: String,
    language: Language,
    world: World,
}

impl Recipe<'_> {
    /// Returns a file with the names of the plugin and of the project.
    fn file(&self, path: &'static str, text: &str) -> ProjectFile {
        let text = text.replace("acme.example", self.name).replace("acme-example", &self.project);
        (path.into(), text.into_bytes().into())
    }

    fn handler_path(&self) -> &'static str {
        match self.language {
            Language::Rust => "src/lib.rs",
            Language::JavaScript => "plugin.js",
            Language::Python => "plugin.py",
            Language::C => "plugin.c",
        }
    }

    fn project_file(&self) -> String {
        let (world, bindings) = (self.world.name(), self.world.name().replace('-', "_"));
        // The runtime of JavaScript imports WASI, also where nothing uses it.
        let stub = if self.has_imports() { "" } else { "\"--stub-wasi\", " };
        let (command, output) = match self.language {
            Language::Rust => (
                r#"["cargo", "build", "--release", "--locked", "--target", "wasm32-wasip2"]"#.to_owned(),
                format!("target/wasm32-wasip2/release/{}.wasm", self.project.replace('-', "_")),
            ),
            Language::JavaScript => (
                format!(
                    "[\n  \"componentize-qjs\", \"--wit\", \"wit\", \"--world\", \"{OWN_WORLD}\", \"--js\", \"plugin.js\", \"--module-root\", \".\",\n\
                     \x20 \"--sync\", {stub}\"-o\", \"build/plugin.wasm\",\n]"
                ),
                "build/plugin.wasm".to_owned(),
            ),
            Language::Python => (
                format!(
                    "[\n  \"componentize-py\", \"-d\", \"wit\", \"-w\", \"{OWN_WORLD}\", \"componentize\", \"--stub-wasi\",\n\
                     \x20 \"plugin\", \"-o\", \"build/plugin.wasm\",\n]"
                ),
                "build/plugin.wasm".to_owned(),
            ),
            Language::C => (
                format!(
                    "[\n  \"clang\", \"--target=wasm32-wasi\", \"-mexec-model=reactor\", \"-Oz\", \"-s\", \"-Wall\", \"-Ibindings\",\n\
                     \x20 \"plugin.c\", \"bindings/{bindings}.c\", \"bindings/{bindings}_component_type.o\", \"-o\", \"build/plugin.wasm\",\n]"
                ),
                "build/plugin.wasm".to_owned(),
            ),
        };
        let (description, wants, attributes) = match self.world {
            World::Handler => (
                "Looks for TODO in the files of a folder.",
                "filesystem = \"workspace\"\nread = [\"src/\"]\nwrite = [\"report.txt\"]\n",
                "\n# The node attributes that the plugin reads. `glovebox check` checks them, and the host fills in the defaults.\n\
                 [attributes.folder]\ntype = \"path\"\ndoc = \"The folder that is searched.\"\ndefault = \"src\"\n\n\
                 [attributes.output]\ntype = \"path\"\ndoc = \"The file to which the places are written.\"\n",
            ),
            World::Agent => ("Asks the model the prompt of its node.", "model = true\n", ""),
            World::Verifier => (
                "Runs a command and judges its exit code.",
                "filesystem = \"workspace\"\nread = [\"./\"]\ncommands = [\"*\"]\n",
                "\n# The node attributes that the plugin reads. `glovebox check` checks them.\n\
                 [attributes.program]\ntype = \"string\"\ndoc = \"The command, without a shell.\"\nrequired = true\n",
            ),
            World::Rules => ("Reports agents without a timeout.", "", ""),
            World::Policy => ("Refuses a deployment before its review.", "", ""),
            World::ToolProvider => {
                ("Finds a text in the files of a folder.", "filesystem = \"workspace\"\nread = [\"./\"]\n", "")
            }
        };
        template!("plugin.toml")
            .replace("@description@", description)
            .replace("@lang@", self.language.name())
            .replace("@world@", world)
            .replace("@command@", &command)
            .replace("@output@", &output)
            .replace("@wants@\n", wants)
            .replace("@attributes@", attributes)
    }

    fn readme(&self) -> String {
        let needs = self.language.install();
        let test = match self.language {
            Language::Rust => "cargo test",
            Language::JavaScript => "node --test",
            Language::Python => "python3 -m unittest",
            Language::C => "glovebox plugin dev --once",
        };
        let has_test = self.language == Language::Rust && self.has_imports()
            || self.language == Language::C && self.world.is_stage()
            || self.world == World::Handler;
        let test = if has_test { format!("{test}\n") } else { String::new() };
        let dev = if !self.world.is_stage() {
            ""
        } else {
            "glovebox plugin dev    # builds and runs the cases again on every change\n"
        };
        format!(
            "# acme.example\n\nA Glovebox plugin in {}. `plugin.toml` says what it is and what it wants.\n\n```sh\n{needs}\n{test}{dev}\
             glovebox plugin build  # writes the component to dist/\n```\n",
            self.language.title()
        )
    }

    /// Returns true if a component of the world may import something.
    fn has_imports(&self) -> bool {
        !self.world.imports().is_empty()
    }

    fn ignored(&self) -> &'static str {
        match self.language {
            Language::Rust => "/target/\n/dist/\n",
            Language::JavaScript => "/node_modules/\n/build/\n/dist/\n",
            Language::Python => "/.venv/\n__pycache__/\n/build/\n/dist/\n",
            Language::C => "/build/\n/dist/\n",
        }
    }

    fn rust_files(&self) -> Option<Vec<ProjectFile>> {
        let sdk = sdk_files::sdk_manifest().ok()?;
        let (own, lock) = match self.world {
            World::Rules | World::Policy => (
                template!("rust/crate.toml").replace(
                    "{ path = \"sdk\" }",
                    "{ path = \"sdk\", default-features = false, features = [\"rules\"] }",
                ),
                RULES_LOCK.replace("\"acme-house\"", "\"acme-example\""),
            ),
            _ => (template!("rust/crate.toml").to_owned(), LOCK.replace("\"acme-review\"", "\"acme-example\"")),
        };
        let mut files = vec![
            self.file("Cargo.toml", &own),
            self.file("Cargo.lock", &lock),
            ("sdk/Cargo.toml".into(), sdk.into_bytes().into()),
        ];
        files.extend(sdk_files::SDK.map(constant));
        Some(files)
    }

    /// Returns the WIT file with the world of the project.
    fn own_world(&self) -> ProjectFile {
        let world = self.world.name();
        let imports: &[&str] = match self.world {
            World::Agent => &["control", "llm"],
            World::Verifier => &["control", "exec"],
            World::Handler => &["control", "files"],
            World::ToolProvider => &["files"],
            World::Rules | World::Policy => &[],
        };
        let what = match imports {
            [] => format!("What this plugin exports. A component of the world `{world}` imports nothing."),
            _ => format!(
                "What this plugin uses. The component imports all of it, so remove what is not used. The world\n/// `{world}` in worlds.wit \
                 has all that may be added."
            ),
        };
        let imports: String = imports.iter().map(|name| format!("  import {name};\n")).collect();
        let text = format!(
            "package glovebox:plugin@0.1.0;\n\n/// {what}\nworld {OWN_WORLD} {{\n{imports}  export {};\n}}\n",
            self.world.export(),
        );
        self.file("wit/project.wit", &text)
    }

    fn js_files(&self) -> Vec<ProjectFile> {
        let mut files = vec![self.file("package.json", template!("js/package.json")), self.own_world()];
        if self.world == World::Handler {
            files.push(self.file("todo.js", template!("js/todo.js")));
            files.push(self.file("todo.test.js", template!("js/todo.test.js")));
        }
        files
    }

    fn python_files(&self) -> Vec<ProjectFile> {
        let mut files = vec![self.file("requirements.txt", template!("python/requirements.txt")), self.own_world()];
        if self.world == World::Handler {
            files.push(self.file("todo.py", template!("python/todo.py")));
            files.push(self.file("test_todo.py", template!("python/test_todo.py")));
        }
        files
    }

    fn c_files(&self) -> Option<Vec<ProjectFile>> {
        let (_, bindings) = BINDINGS.iter().find(|(world, _)| *world == self.world.name())?;
        let file = |(name, bytes): &(&str, &'static [u8])| (format!("bindings/{name}").into(), (*bytes).into());
        let mut files: Vec<ProjectFile> = bindings.iter().map(file).collect();
        if !self.world.is_stage() {
            files.push(self.file("json.h", template!("c/json.h")));
        }
        Some(files)
    }

    /// Returns the cases of `plugin dev` and `plugin test --cases`.
    fn cases(&self) -> Vec<ProjectFile> {
        let cases: &[(&'static str, &str)] = match self.world {
            World::Handler => &[
                ("cases/clean.json", template!("cases/clean.json")),
                ("cases/found.json", template!("cases/found.json")),
            ],
            World::Agent => &[
                ("cases/answer.json", template!("cases/answer.json")),
                ("cases/no-prompt.json", template!("cases/no-prompt.json")),
            ],
            World::Verifier => &[
                ("cases/fails.json", template!("cases/fails.json")),
                ("cases/passes.json", template!("cases/passes.json")),
            ],
            World::ToolProvider | World::Rules | World::Policy => &[],
        };
        cases.iter().map(|(path, text)| self.file(path, text)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::authoring::project_file::PluginProject;
    use clap::ValueEnum;

    #[test]
    fn every_world_of_a_language_has_a_template() {
        for language in Language::value_variants() {
            for world in World::value_variants() {
                let found = files("acme.todo", *language, *world);
                let found = found.unwrap_or_else(|| panic!("{language:?} {world:?}"));
                let folder = tempfile::tempdir().unwrap();
                for (path, bytes) in &found {
                    let file = folder.path().join(&**path);
                    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
                    assert!(!file.exists(), "{path} twice");
                    std::fs::write(file, bytes).unwrap();
                    assert!(!String::from_utf8_lossy(bytes).contains("acme.example"), "{path}");
                }
                let project = PluginProject::read(folder.path()).unwrap_or_else(|stop| panic!("{}", stop.message));
                assert_eq!((project.language, project.world), (*language, *world));
                assert_eq!(project.manifest.name, "acme.todo");
            }
        }
    }
}
