//! `plugin.toml`: what a plugin is, what it wants, and how it is built.
//!
//! The manifest of the component is made from this file, so that nothing is written twice. Unknown fields are refused.

use crate::exit::{Exit, Stop};
use crate::plugin_language::{Language, World};
use crate::terminal::visible;
use glovebox_host::grants::Wants;
use glovebox_host::inspect::Manifest;
use glovebox_host::inspect::attribute_schema::AttributeSchema;
use glovebox_pipeline::nearest::nearest;
use glovebox_plan::bind::plugin_attributes::declared_by_glovebox;
use glovebox_plan::config::is_plugin_name;
use glovebox_plan::prepare::source;
use glovebox_record::path::ScopePath;
use semver::Version;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// The name of the file.
pub const PROJECT_FILE: &str = "plugin.toml";
/// Maximum length of a version, in bytes. It is part of file names.
const VERSION_BYTES_MAX: usize = 64;

/// The folder of a project with the built components.
pub const DIST: &str = "dist";
/// The fields of the file.
const FIELDS: &[&str] = &[
    "name",
    "version",
    "description",
    "licenses",
    "source",
    "revision",
    "authors",
    "homepage",
    "docs",
    "lang",
    "world",
    "build",
    "wants",
    "attributes",
];

/// The contents of the file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ProjectText {
    name: String,
    version: String,
    #[serde(default)]
    description: String,
    licenses: Option<String>,
    source: Option<String>,
    revision: Option<String>,
    authors: Option<String>,
    homepage: Option<String>,
    docs: Option<String>,
    lang: Language,
    world: World,
    build: Build,
    #[serde(default)]
    wants: Wants,
    attributes: Option<BTreeMap<String, AttributeSchema>>,
}

/// How the component is built.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Build {
    /// The command: a program and its arguments, without a shell.
    pub command: Vec<String>,
    /// The file that the command writes: a component, or a core module that was linked with bindings of the WIT package.
    pub output: ScopePath,
}

/// A plugin's project.
#[derive(Debug)]
pub struct PluginProject {
    /// The language.
    pub language: Language,
    /// The world of the component.
    pub world: World,
    /// How it is built.
    pub build: Build,
    /// The manifest of the component.
    pub manifest: Manifest,
}

impl PluginProject {
    /// Reads the `plugin.toml` of a folder.
    ///
    /// # Errors
    /// Exit 2 if the file does not exist, and exit 3 if it is not valid.
    pub fn read(folder: &Path) -> Result<Self, Stop> {
        let file = folder.join(PROJECT_FILE);
        if let Err(error) = std::fs::metadata(&file)
            && error.kind() == ErrorKind::NotFound
        {
            let stop = Stop::new(Exit::Usage, format!("there is no `{}`", file.display()));
            return Err(
                stop.with_help("make a project with `glovebox plugin new NAME --lang LANG`, or name its folder")
            );
        }
        let text = source::read_text(&file)?;
        let read_docs = |path: &ScopePath| source::read_text(&folder.join(path.as_str())).map_err(Stop::from);
        Self::parse(&text, &file, read_docs)
    }

    fn parse(text: &str, file: &Path, read_docs: impl Fn(&ScopePath) -> Result<String, Stop>) -> Result<Self, Stop> {
        let place = file.display();
        let invalid = |problem: String| Stop::new(Exit::Invalid, format!("`{place}`: {problem}"));
        let written: ProjectText = toml::from_str(text).map_err(|error| {
            let problem = error.to_string();
            let stop = invalid(visible::block(problem.trim_end()).into_owned());
            Stop { help: meant_field(text).or_else(|| stop.help.clone()), ..stop }
        })?;
        if !is_plugin_name(&written.name) {
            let stop = invalid(format!("`{}` is not a plugin name", visible::line(&written.name)));
            return Err(
                stop.with_help("write two or more words of a-z, 0-9 and `-`, joined by `.`, such as `acme.review`")
            );
        }
        check_version(&written.version).map_err(|expected| {
            invalid(format!("`version` is `{}`", visible::line(&written.version))).with_help(expected)
        })?;
        if written.build.command.first().is_none_or(String::is_empty) {
            return Err(invalid("`build.command` is empty, expected a program and its arguments".to_owned()));
        }
        let docs = match &written.docs {
            None => None,
            Some(path) => {
                let path = ScopePath::parse(path).map_err(|problem| invalid(format!("`docs`: {problem}")))?;
                Some(read_docs(&path)?)
            }
        };
        let ProjectText { lang: language, world, build, .. } = written;
        let manifest = Manifest {
            description: written.description,
            licenses: written.licenses,
            source: written.source,
            revision: written.revision,
            authors: written.authors,
            homepage: written.homepage,
            docs,
            attributes: written.attributes,
            ..Manifest::new(&written.name, &written.version, written.wants)
        };
        let manifest = manifest.validated().map_err(invalid)?;
        if let Some(name) = declared_by_glovebox(&manifest) {
            let stop = invalid(format!("`[attributes.{name}]` declares an attribute that Glovebox itself reads"));
            return Err(stop.with_help("choose another name, such as one with the plugin's own prefix"));
        }
        Ok(Self { language, world, build, manifest })
    }
}

/// Returns the file of the component that `plugin build` writes.
pub fn built_file(folder: &Path, manifest: &Manifest) -> PathBuf {
    folder.join(DIST).join(format!("{}-{}.wasm", manifest.name, manifest.version))
}

/// Returns the file with what `plugin inspect --json` prints about the component.
pub fn described_file(folder: &Path, manifest: &Manifest) -> PathBuf {
    folder.join(DIST).join(format!("{}-{}.json", manifest.name, manifest.version))
}

/// Refuses a version that no registry could have: a plugin with it could be built, but neither published nor updated.
///
/// # Errors
/// Returns what was expected.
pub fn check_version(text: &str) -> Result<(), String> {
    if text.len() <= VERSION_BYTES_MAX && Version::parse(text).is_ok() {
        return Ok(());
    }
    // `1`, `1.2` and `v1.2.0` are the usual mistakes.
    let numbers = text.strip_prefix('v').unwrap_or(text);
    let meant =
        ["", ".0", ".0.0"].iter().map(|rest| format!("{numbers}{rest}")).find(|full| Version::parse(full).is_ok());
    let example = meant.filter(|full| full.len() <= VERSION_BYTES_MAX).unwrap_or_else(|| "0.1.0".to_owned());
    Err(format!(
        "write three numbers, such as `{example}`, with at most {VERSION_BYTES_MAX} bytes (https://semver.org)"
    ))
}

/// Returns the field that is probably meant by an unknown one, at the top or in `[wants]`.
fn meant_field(text: &str) -> Option<String> {
    let table: toml::Table = text.parse().ok()?;
    let wants = table.get("wants").and_then(toml::Value::as_table);
    let unknown = |table: &toml::Table, known: &'static [&'static str]| {
        let found = table.keys().find(|key| !known.contains(&key.as_str()))?;
        nearest(found, known.iter().copied())
    };
    unknown(&table, FIELDS)
        .map(|meant| format!("did you mean `{meant}`?"))
        .or_else(|| Some(format!("did you mean `{}` in `[wants]`?", unknown(wants?, Wants::FIELDS)?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "name = 'acme.todo'\nversion = '0.1.0'\nlang = 'c'\nworld = 'handler'\n\
                        [build]\ncommand = ['clang']\noutput = 'build/core.wasm'\n";

    fn parse(text: &str) -> Result<PluginProject, Stop> {
        PluginProject::parse(text, Path::new("plugin.toml"), |_| Ok("# Todo\n".to_owned()))
    }

    #[test]
    fn a_project_becomes_a_manifest() {
        let text = GOOD.replacen("lang", "docs = 'README.md'\nlicenses = 'MIT'\nlang", 1)
            + "[wants]\nmodel = true\n[attributes.folder]\ntype = 'path'\ndefault = 'src'\n";
        let project = parse(&text).unwrap();
        assert_eq!((project.language, project.world), (Language::C, World::Handler));
        let manifest = project.manifest;
        assert_eq!((manifest.name.as_str(), manifest.docs.as_deref()), ("acme.todo", Some("# Todo\n")));
        assert!(manifest.wants.model && manifest.attributes.is_some_and(|all| all.contains_key("folder")));
        assert_eq!(parse(GOOD).unwrap().manifest.attributes, None);
    }

    #[test]
    fn what_was_meant_is_named() {
        let check = |from: &str, to: &str, expected: &str| {
            let help = parse(&GOOD.replacen(from, to, 1)).unwrap_err().help.unwrap_or_default();
            assert!(help.contains(expected), "{to}: {help}");
        };
        check("0.1.0", "1.0", "such as `1.0.0`");
        check("0.1.0", "v1.2.3", "such as `1.2.3`");
        check("0.1.0", "2", "such as `2.0.0`");
        check("0.1.0", "newest", "such as `0.1.0`");
        check("lang", "licence = 'MIT'\nlang", "did you mean `licenses`?");
        check("[build]", "[wants]\nraed = ['src/']\n[build]", "did you mean `read` in `[wants]`?");
        check("[build]", "[wants]\ncomands = ['ls']\n[build]", "did you mean `commands` in `[wants]`?");
    }

    #[test]
    fn the_fields_that_can_be_meant_are_those_that_are_read() {
        let mut text = GOOD.to_owned() + "[unknown]\n";
        let problem = parse(&text).unwrap_err().message;
        assert!(FIELDS.iter().all(|field| problem.contains(&format!("`{field}`"))), "{problem}");
        text = GOOD.to_owned() + "[wants]\nunknown = 1\n";
        let problem = parse(&text).unwrap_err().message;
        assert!(Wants::FIELDS.iter().all(|field| problem.contains(&format!("`{field}`"))), "{problem}");
    }

    #[test]
    fn what_is_wrong_is_named() {
        let check = |from: &str, to: &str, expected: &str| {
            let stop = parse(&GOOD.replacen(from, to, 1)).unwrap_err();
            assert_eq!(stop.exit, Exit::Invalid);
            assert!(stop.message.contains(expected), "{to}: {}", stop.message);
        };
        check("acme.todo", "todo", "`todo` is not a plugin name");
        for version in ["../0.1.0", "1.0", "v1.2.0", "", "1.0.0.0", "latest"] {
            check("0.1.0", version, &format!("`version` is `{version}`"));
        }
        check("'c'", "'go'", "unknown variant `go`");
        check("'handler'", "'planner'", "unknown variant `planner`");
        check("['clang']", "[]", "`build.command` is empty");
        check("build/core.wasm", "/etc/passwd", "the path is absolute");
        check("lang", "licence = 'MIT'\nlang", "unknown field `licence`");
        check("lang", "source = 'here'\nlang", "`source` is not an address");
        check("lang", "docs = '../secret'\nlang", "`docs`: the path has a `..` segment");
        check("[build]", "[attributes.prompt]\ntype = 'string'\n[build]", "an attribute that Glovebox itself reads");
        check("[build]", "[attributes.Folder]\ntype = 'string'\n[build]", "the attribute `Folder` has no valid name");
        check("[build]", "[wants]\nnetwork = true\n[build]", "the host cannot enforce `network`");
    }
}
