//! The provenance of a plugin: an in-toto statement that says from which source, with which command and by whom a component was
//! built. The predicate is SLSA provenance v1.
//!
//! A file of provenance is the statement itself, or a signed envelope with it. The builder wrote the statement, so it proves nothing
//! without a signature. A fact that the builder did not know is absent. A statement has no time, as those of [`crate::plugin`].

use crate::envelope::{Envelope, PayloadType, UncheckedPayload};
use crate::key::{PublicKey, SigningKey};
use crate::plugin::{PluginIdentity, STATEMENT_TYPE, SignatureFault, SubjectDigests};
use schemars::JsonSchema;
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The media type of a file of provenance, where it is attached to a component in a registry.
pub const MEDIA_TYPE: &str = "application/vnd.glovebox.plugin.provenance.v1+json";
/// What is added to the name of a component's file for the file of its provenance.
pub const FILE_SUFFIX: &str = ".provenance.json";
/// Maximum size of a file of provenance, in bytes.
pub const FILE_BYTES_MAX: u64 = 64 << 10;
/// The type of the predicate.
pub const PREDICATE_TYPE: &str = "https://slsa.dev/provenance/v1";
/// The only type of build that this program writes and reads.
pub const BUILD_TYPE: &str = "glovebox:build/plugin/v1";
/// The builder, if none was named: the machine of a person.
pub const LOCAL_BUILDER: &str = "glovebox:builder/local";

/// Maximum number of words of a build command.
const WORDS_MAX: usize = 256;
/// Maximum number of tools.
const TOOLS_MAX: usize = 16;
/// Maximum length of a text, in bytes.
const TEXT_BYTES_MAX: usize = 4096;
/// The name of the source among the dependencies of a build.
const SOURCE: &str = "source";

/// How a component was built, as its builder says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Provenance {
    /// The build command: a program and its arguments, without a shell.
    pub command: Vec<String>,
    /// The file that the command writes, relative to the folder of the project.
    pub output: String,
    /// The source. `None` if the builder did not know it.
    pub source: Option<SourceRevision>,
    /// Who built it: a URI.
    pub builder: String,
    /// The versions of the tools, by name.
    pub tools: BTreeMap<String, String>,
}

/// A revision of the source of a plugin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceRevision {
    /// The commit of git: 40 or 64 lower-case hexadecimal digits.
    pub commit: String,
    /// Where the repository is, such as `git+https://git.example/acme/review`. `None` if the builder did not know it.
    pub repository: Option<String>,
    /// The folder of the project in the repository; empty if it is the repository itself.
    pub folder: String,
    /// True if all files were as in the commit. Files that git ignores do not count.
    pub is_clean: bool,
}

/// The statement about how a plugin was built.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(title = "plugin-provenance.json")]
pub struct ProvenanceStatement {
    /// Always `https://in-toto.io/Statement/v1`.
    #[serde(rename = "_type")]
    statement_type: String,
    /// The component. There is exactly one.
    subject: Vec<BuiltSubject>,
    /// Always `https://slsa.dev/provenance/v1`.
    #[serde(rename = "predicateType")]
    predicate_type: String,
    /// How the component was built.
    predicate: Predicate,
}

/// A component and its digests.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct BuiltSubject {
    /// The name of the plugin.
    name: String,
    /// The digests of the bytes.
    digest: SubjectDigests,
}

/// SLSA provenance v1.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Predicate {
    /// The inputs of the build.
    build_definition: BuildDefinition,
    /// Who built it.
    run_details: RunDetails,
}

/// The inputs of a build.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct BuildDefinition {
    /// Always `glovebox:build/plugin/v1`: the command of `plugin.toml` writes a component or a core module, and Glovebox embeds the
    /// manifest.
    build_type: String,
    /// What the author chose.
    external_parameters: ExternalParameters,
    /// What the builder found out.
    internal_parameters: InternalParameters,
    /// The source; absent if it is not known.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    resolved_dependencies: Vec<Dependency>,
}

/// What the author of the project chose.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ExternalParameters {
    /// The build command: a program and its arguments, without a shell.
    command: Vec<String>,
    /// The file that the command writes, relative to the project.
    output: String,
    /// The folder of the project in the repository; absent if the source is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    folder: Option<String>,
}

/// What the builder found out.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct InternalParameters {
    /// The files of the project, compared with the commit.
    source: SourceState,
}

/// The files of the project, compared with the commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum SourceState {
    /// All files were as in the commit. Files that git ignores do not count.
    Clean,
    /// There were changes that the commit does not have.
    Dirty,
    /// The project was in no repository.
    Unknown,
}

/// A dependency of the build.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Dependency {
    /// Always `source`.
    name: String,
    /// Where the repository is; absent if it is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    uri: Option<String>,
    /// The commit.
    digest: CommitDigest,
}

/// The commit of a source, in the words of in-toto.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct CommitDigest {
    /// The commit: 40 or 64 hexadecimal digits.
    git_commit: String,
}

/// Who built the component.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct RunDetails {
    /// The builder.
    builder: Builder,
}

/// The builder.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Builder {
    /// A URI. `glovebox:builder/local` is the machine of a person.
    id: String,
    /// The versions of the tools, by name.
    #[serde(default)]
    version: BTreeMap<String, String>,
}

impl Provenance {
    /// Returns the content of a file of provenance that is not signed.
    pub fn to_json(&self, plugin: &PluginIdentity) -> String {
        let state = match &self.source {
            None => SourceState::Unknown,
            Some(source) if source.is_clean => SourceState::Clean,
            Some(_) => SourceState::Dirty,
        };
        let dependency = |source: &SourceRevision| Dependency {
            name: SOURCE.to_owned(),
            uri: source.repository.clone(),
            digest: CommitDigest { git_commit: source.commit.clone() },
        };
        let statement = ProvenanceStatement {
            statement_type: STATEMENT_TYPE.to_owned(),
            subject: vec![BuiltSubject { name: plugin.name.clone(), digest: SubjectDigests::for_plugin(plugin) }],
            predicate_type: PREDICATE_TYPE.to_owned(),
            predicate: Predicate {
                build_definition: BuildDefinition {
                    build_type: BUILD_TYPE.to_owned(),
                    external_parameters: ExternalParameters {
                        command: self.command.clone(),
                        output: self.output.clone(),
                        folder: self.source.as_ref().map(|source| source.folder.clone()),
                    },
                    internal_parameters: InternalParameters { source: state },
                    resolved_dependencies: self.source.iter().map(dependency).collect(),
                },
                run_details: RunDetails { builder: Builder { id: self.builder.clone(), version: self.tools.clone() } },
            },
        };
        serde_json::to_string(&statement).expect("a statement holds texts only") + "\n"
    }
}

impl ProvenanceStatement {
    fn read(payload: &[u8]) -> Result<Self, SignatureFault> {
        let wrong = |what: &str| Err(SignatureFault::Provenance(what.to_owned()));
        let read: Self =
            serde_json::from_slice(payload).map_err(|error| SignatureFault::Provenance(error.to_string()))?;
        let definition = &read.predicate.build_definition;
        if read.statement_type != STATEMENT_TYPE {
            return wrong("it is of another type than an in-toto statement of version 1");
        }
        if read.predicate_type != PREDICATE_TYPE {
            return wrong("its predicate is not SLSA provenance v1");
        }
        if definition.build_type != BUILD_TYPE {
            return wrong("it is about another type of build");
        }
        if read.subject.len() != 1 {
            return wrong("it has several subjects or none, and one is expected");
        }
        Ok(read)
    }

    fn require(&self, plugin: &PluginIdentity) -> Result<(), SignatureFault> {
        let same = |field, signed: &str, found: &str| match signed == found {
            true => Ok(()),
            false => Err(SignatureFault::OtherBuild { field, stated: signed.to_owned(), found: found.to_owned() }),
        };
        for subject in &self.subject {
            same("plugin", &subject.name, &plugin.name)?;
            subject.digest.require(plugin, same)?;
        }
        Ok(())
    }

    /// Returns the facts. All texts are those of a stranger, so each is limited.
    fn provenance(self) -> Result<Provenance, SignatureFault> {
        let wrong = |what: &str| SignatureFault::Provenance(what.to_owned());
        let Predicate { build_definition: definition, run_details: RunDetails { builder } } = self.predicate;
        let ExternalParameters { command, output, folder } = definition.external_parameters;
        let dependencies = definition.resolved_dependencies;
        let source = match (dependencies.len(), definition.internal_parameters.source, folder) {
            (0, SourceState::Unknown, None) => None,
            (1, state @ (SourceState::Clean | SourceState::Dirty), Some(folder)) => {
                let found = dependencies.into_iter().next().filter(|found| found.name == SOURCE);
                let Dependency { uri, digest, .. } = found.ok_or_else(|| wrong("its dependency is not the source"))?;
                let is_clean = state == SourceState::Clean;
                Some(SourceRevision { commit: digest.git_commit, repository: uri, folder, is_clean })
            }
            _ => return Err(wrong("what it says about the source contradicts itself")),
        };
        if command.first().is_none_or(String::is_empty) || command.len() > WORDS_MAX {
            return Err(wrong("its command does not have 1 to 256 words"));
        }
        if builder.version.len() > TOOLS_MAX {
            return Err(wrong("it names more than 16 tools"));
        }
        if let Some(source) = &source {
            if !is_commit(&source.commit) {
                return Err(wrong("its commit is not 40 or 64 lower-case hexadecimal digits"));
            }
            if !source.folder.is_empty() && !is_below(&source.folder) {
                return Err(wrong("its folder is not a path in the repository"));
            }
        }
        if !is_below(&output) {
            return Err(wrong("its output is not a path in the project"));
        }
        let repository = source.iter().flat_map(|source| &source.repository);
        let tools = builder.version.iter().flat_map(|(name, version)| [name, version]);
        let texts = command.iter().chain([&output, &builder.id]).chain(repository).chain(tools);
        if texts.into_iter().any(|text| text.len() > TEXT_BYTES_MAX || text.contains('\0')) {
            return Err(wrong("one of its texts has more than 4096 bytes, or a null character"));
        }
        Ok(Provenance { command, output, source, builder: builder.id, tools: builder.version })
    }
}

fn is_commit(text: &str) -> bool {
    matches!(text.len(), 40 | 64) && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

/// Returns true for a relative path that leads to no folder above.
fn is_below(path: &str) -> bool {
    path.len() <= TEXT_BYTES_MAX && path.split('/').all(|part| !matches!(part, "" | "." | "..") && !part.contains('\0'))
}

/// A file of provenance. No signature of it was checked.
#[derive(Debug, Clone)]
pub enum ProvenanceFile {
    /// The statement itself. Anyone could have written it.
    Unsigned(Vec<u8>),
    /// A signed envelope with the statement.
    Signed(UncheckedPayload),
}

/// The field that only an envelope has.
#[derive(Deserialize)]
struct EnvelopeField {
    #[serde(rename = "payloadType")]
    payload_type: Option<IgnoredAny>,
}

impl ProvenanceFile {
    /// Reads a file of provenance: its form, and nothing about its truth.
    ///
    /// # Errors
    ///
    /// The file is too long, or is neither a statement about a build nor an envelope with one.
    pub fn read(bytes: &[u8]) -> Result<Self, SignatureFault> {
        if bytes.len() as u64 > FILE_BYTES_MAX {
            return Err(SignatureFault::Provenance(format!("it has more than {FILE_BYTES_MAX} bytes")));
        }
        let field: EnvelopeField =
            serde_json::from_slice(bytes).map_err(|error| SignatureFault::Provenance(error.to_string()))?;
        let read = match field.payload_type {
            None => Self::Unsigned(bytes.to_vec()),
            Some(_) => Self::Signed(Envelope::read(PayloadType::IN_TOTO, bytes)?),
        };
        read.provenance()?;
        Ok(read)
    }

    /// Returns the same statement, signed with each key.
    ///
    /// # Errors
    ///
    /// As [`ProvenanceFile::read`].
    pub fn sign(&self, keys: &[&SigningKey]) -> Result<String, SignatureFault> {
        Ok(Envelope::sign(PayloadType::IN_TOTO, self.statement()?, keys).to_line())
    }

    /// Returns the ids of the keys that the signatures name. Anyone can write any id.
    pub fn named_keys(&self) -> impl Iterator<Item = &str> {
        let signed = match self {
            Self::Unsigned(_) => None,
            Self::Signed(payload) => Some(payload.named_keys()),
        };
        signed.into_iter().flatten()
    }

    /// Returns true if the file has signatures, whatever they are worth.
    pub fn is_signed(&self) -> bool {
        matches!(self, Self::Signed(_))
    }

    /// Returns true if both files have the same statement, signed or not.
    pub fn is_same_statement(&self, other: &Self) -> bool {
        self.statement().is_ok_and(|own| other.statement().is_ok_and(|found| own == found))
    }

    /// Returns what the builder says.
    ///
    /// # Errors
    ///
    /// As [`ProvenanceFile::read`].
    pub fn provenance(&self) -> Result<Provenance, SignatureFault> {
        ProvenanceStatement::read(self.statement()?)?.provenance()
    }

    /// Checks that the statement is about this plugin. No signature is checked.
    ///
    /// # Errors
    ///
    /// The statement is about another plugin or other bytes.
    pub fn require_about(&self, plugin: &PluginIdentity) -> Result<(), SignatureFault> {
        ProvenanceStatement::read(self.statement()?)?.require(plugin)
    }

    /// Returns the positions of the keys that signed the provenance of this plugin. Empty if the signatures name none of the keys, and
    /// for a file without signatures.
    ///
    /// # Errors
    ///
    /// A signature that names one of the keys does not match, or the statement is not about this plugin.
    pub fn verify<'k>(
        &self,
        plugin: &PluginIdentity,
        keys: impl IntoIterator<Item = &'k PublicKey>,
    ) -> Result<Vec<usize>, SignatureFault> {
        self.require_about(plugin)?;
        match self {
            Self::Unsigned(_) => Ok(Vec::new()),
            Self::Signed(payload) => Ok(payload.verify(keys)?.1),
        }
    }

    fn statement(&self) -> Result<&[u8], SignatureFault> {
        match self {
            Self::Unsigned(bytes) => Ok(bytes),
            Self::Signed(payload) => Ok(payload.verify(std::iter::empty())?.0),
        }
    }
}

#[cfg(test)]
mod tests;
