//! One `[plugins."ns.name"]` table: where the component is, what it may do, and its role.

use super::field::{Field, Fields, Place};
use super::mcp;
use glovebox_host::grants::Grants;
use glovebox_host::tools::AllowedTools;
use glovebox_pipeline::ir::Role;
use glovebox_registry::reference::{Reference, Repository, Tag};
use semver::Version;
use std::fmt;
use std::path::Path;

/// The fields of the table.
const FIELDS: [&str; 7] = ["path", "registry", "version", "wants", "grants", "role", "tools"];

/// One `[plugins."ns.name"]` table. The default grants nothing.
#[derive(Debug, Clone, PartialEq)]
pub struct PluginEntry {
    /// Where the component is.
    pub source: ComponentSource,
    /// The wants that replace a missing manifest of the component. If the component has a manifest, the intersection
    /// applies.
    pub wants: Option<Grants>,
    /// The grants of the operator. `None` grants nothing.
    pub grants: Option<Grants>,
    /// The role of the plugin's stages. The default is a builder.
    pub role: Role,
    /// The tools that agents may call. The default is none.
    pub tools: AllowedTools,
    /// Line of the table, from 1.
    pub line: usize,
}

/// Where the component of a plugin is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ComponentSource {
    /// A path relative to `glovebox.toml`.
    File(String),
    /// A version in a registry. Its bytes are in the store of plugins.
    Registry(RegistrySource),
}

/// A version of a plugin in a registry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RegistrySource {
    /// The repository.
    pub repository: Repository,
    /// The version.
    pub version: Version,
}

impl RegistrySource {
    /// Returns the reference of the version.
    pub fn reference(&self) -> Reference {
        self.repository.at(Tag::for_version(&self.version))
    }
}

impl fmt::Display for ComponentSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => f.write_str(path),
            Self::Registry(source) => write!(f, "{}", source.reference()),
        }
    }
}

/// The fields of a table that say where the component is.
#[derive(Default)]
struct SourceFields {
    path: Option<Option<String>>,
    registry: Option<(Option<Repository>, Place)>,
    version: Option<(Option<Version>, Place)>,
}

pub(super) fn parse(fields: &mut Fields<'_>, table: &Field<'_, '_>) -> Option<PluginEntry> {
    let mut source = SourceFields::default();
    let (mut wants, mut grants, mut role, mut tools) = (None, None, Role::default(), AllowedTools::default());
    for field in fields.table(table) {
        match field.name {
            "path" => source.path = Some(fields.path(&field)),
            "registry" => source.registry = Some((repository(fields, &field), field.at_key())),
            "version" => source.version = Some((version(fields, &field), field.at_key())),
            "wants" => wants = Some(fields.grants(&field)),
            "grants" => grants = Some(fields.grants(&field)),
            "role" => role = parse_role(fields, &field),
            "tools" => tools = mcp::tools(fields, &field).map_or(AllowedTools::All, AllowedTools::Named),
            _ => fields.unknown(&field, &FIELDS),
        }
    }
    let source = source.finish(fields, table);
    Some(PluginEntry { source: source?, wants, grants, role, tools, line: fields.line(table) })
}

impl SourceFields {
    /// Returns the source. Reports a table that has none, two, or half of one.
    fn finish(self, fields: &mut Fields<'_>, table: &Field<'_, '_>) -> Option<ComponentSource> {
        match self {
            Self { path: Some(_), registry: Some((_, place)), .. } => {
                fields.value_problem(place, format!("`{table}` has `path` and `registry`: exactly one is expected"));
                None
            }
            Self { path: Some(_), version: Some((_, place)), .. } => {
                let message =
                    format!("`{table}` has `path` and `version`: only a plugin of a registry has a version here");
                fields.value_problem(place, message);
                None
            }
            Self { path: Some(path), .. } => path.map(ComponentSource::File),
            Self { registry: Some((repository, _)), version: Some((version, _)), .. } => {
                Some(ComponentSource::Registry(RegistrySource { repository: repository?, version: version? }))
            }
            Self { registry: Some(_), version: None, .. } => {
                fields.missing(table, "version", "add `version = \"1.0.0\"`");
                None
            }
            Self { version: Some(_), .. } => {
                fields.missing(table, "registry", "add `registry = \"ghcr.io/acme/review\"`");
                None
            }
            Self { .. } => {
                fields.missing_path(table, Path::new("target/plugin.wasm"));
                None
            }
        }
    }
}

fn repository(fields: &mut Fields<'_>, field: &Field<'_, '_>) -> Option<Repository> {
    let text = fields.text(field)?;
    let parsed = text.parse();
    parsed.map_err(|error| fields.value_problem(field.at_value(), format!("`{field}` is no repository: {error}"))).ok()
}

fn version(fields: &mut Fields<'_>, field: &Field<'_, '_>) -> Option<Version> {
    let text = fields.text(field)?;
    let message = || format!("`{field}` is no version: three numbers such as `1.2.0` are expected");
    Version::parse(&text).map_err(|_| fields.value_problem(field.at_value(), message())).ok()
}

fn parse_role(fields: &mut Fields<'_>, field: &Field<'_, '_>) -> Role {
    let named = field.value.as_str();
    let found = [Role::Builder, Role::Verifier].into_iter().find(|role| named == Some(role.as_str()));
    found.unwrap_or_else(|| {
        fields.value_problem(field.at_value(), format!("`{field}` must be `\"builder\"` or `\"verifier\"`"));
        Role::default()
    })
}

#[cfg(test)]
mod tests {
    use crate::config::{ComponentSource, Config};

    fn check(fields: &str, expected: Result<&str, (usize, &str)>) {
        let text = format!("# glovebox\n[plugins.\"acme.review\"]\n{fields}\n");
        match (Config::parse(&text, "glovebox.toml"), expected) {
            (Ok(config), Ok(expected)) => assert_eq!(config.plugins["acme.review"].source.to_string(), expected),
            (Err(problems), Err((line, expected))) => {
                assert_eq!((problems.len(), problems[0].line), (1, line), "{problems:?}");
                assert!(problems[0].message.contains(expected), "{}", problems[0].message);
            }
            (found, expected) => panic!("{fields}: {found:?}, expected {expected:?}"),
        }
    }

    #[test]
    fn a_component_is_in_a_file_or_in_a_registry() {
        check("path = \"a.wasm\"", Ok("a.wasm"));
        check("registry = \"ghcr.io/acme/review\"\nversion = \"1.2.0+b\"", Ok("ghcr.io/acme/review:1.2.0_b"));
        check("path = \"a.wasm\"\nregistry = \"ghcr.io/a\"\nversion = \"1.0.0\"", Err((4, "exactly one is expected")));
        check("path = \"a.wasm\"\nversion = \"1.0.0\"", Err((4, "only a plugin of a registry")));
        check("registry = \"ghcr.io/a\"", Err((2, "has no `version`")));
        check("version = \"1.0.0\"", Err((2, "has no `registry`")));
        check("role = \"builder\"", Err((2, "has no `path`")));
        check("registry = \"acme/review\"\nversion = \"1.0.0\"", Err((3, "it names no registry")));
        check("registry = \"ghcr.io/a:1.0.0\"\nversion = \"1.0.0\"", Err((3, "its path")));
        check("registry = \"oci://ghcr.io/a\"\nversion = \"1.0.0\"", Err((3, "is no repository")));
        check("registry = \"ghcr.io/a\"\nversion = \"^1.0\"", Err((4, "is no version")));
        check("registry = \"ghcr.io/a\"\nversion = 1", Err((4, "a string is expected")));
    }

    #[test]
    fn the_source_is_kept() {
        let text = "[plugins.\"a.b\"]\nregistry = \"localhost:5000/a\"\nversion = \"1.0.0\"\n";
        let config = Config::parse(text, "glovebox.toml").expect("valid");
        assert!(
            matches!(&config.plugins["a.b"].source, ComponentSource::Registry(found) if found.repository.path() == "a")
        );
    }
}
