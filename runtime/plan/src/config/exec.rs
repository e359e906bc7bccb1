//! The `[exec]` table: where commands find their programs and which variables they get.
//!
//! Every variable is named in the file; nothing is inherited from the environment of the process that starts the run.
//! Variables that make a program load code or read files that another person chose are refused, whatever their value is.

use super::field::{Field, Fields, Message};
use std::collections::BTreeMap;
use std::ops::Range;

/// The `[exec]` table. An empty table adds nothing to the default PATH and environment of commands.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ExecSetting {
    /// Toolchains whose folders and variables are added.
    pub toolchains: Vec<Toolchain>,
    /// A Python environment outside of the project.
    pub venv: Option<VenvSetting>,
    /// Absolute folders that are added at the end of the default PATH.
    pub path: Vec<String>,
    /// Byte ranges of the entries of `path` in the file.
    pub path_places: Vec<Range<usize>>,
    /// Environment variables and their values.
    pub env: BTreeMap<String, String>,
}

/// A Python environment outside of the project.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VenvSetting {
    /// The absolute folder.
    pub path: String,
    /// The byte range of the value in the file.
    pub place: Range<usize>,
}

/// A toolchain that the host knows how to find.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, serde::Serialize, serde::Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum Toolchain {
    /// `cargo` and `rustc`: rustup's home and cargo's downloaded packages, nothing else of cargo's home.
    Rust,
    /// `go`: the root of the toolchain and the module cache.
    Go,
    /// `node` and `npm`: the prefix in which they are installed.
    Node,
    /// `python3`: the prefix of the interpreter.
    Python,
    /// `java` and `javac`: the home of the JDK, and the configuration in `/etc` to which it links.
    Java,
    /// `mvn`: the home of Maven, the JDK, and the local repository.
    Maven,
    /// `gradle`: the home of Gradle, the JDK, and the downloaded modules.
    Gradle,
}

impl Toolchain {
    /// All toolchains.
    pub const ALL: [Toolchain; 7] = [
        Toolchain::Rust,
        Toolchain::Go,
        Toolchain::Node,
        Toolchain::Python,
        Toolchain::Java,
        Toolchain::Maven,
        Toolchain::Gradle,
    ];

    /// Returns the folders in which the toolchain keeps build results at the root of a project.
    pub(super) fn build_folders(self) -> &'static [&'static str] {
        match self {
            Toolchain::Rust | Toolchain::Maven => &["target/"],
            Toolchain::Gradle => &[".gradle/", "build/"],
            Toolchain::Go | Toolchain::Node | Toolchain::Python | Toolchain::Java => &[],
        }
    }

    /// Returns the name of the toolchain in `glovebox.toml`.
    pub fn as_str(self) -> &'static str {
        match self {
            Toolchain::Rust => "rust",
            Toolchain::Go => "go",
            Toolchain::Node => "node",
            Toolchain::Python => "python",
            Toolchain::Java => "java",
            Toolchain::Maven => "maven",
            Toolchain::Gradle => "gradle",
        }
    }
}

/// Prefixes of variables that load code or redirect a program. `exec.env` refuses them.
const ENV_PREFIXES_REFUSED: [&str; 5] = ["LD_", "DYLD_", "GIT_", "BASH_FUNC_", "GLOVEBOX_"];

/// Names of variables that `exec.env` refuses for the same reason as the prefixes. `PATH` has its own field.
const ENV_NAMES_REFUSED: [&str; 18] = [
    "PATH",
    "BASH_ENV",
    "ENV",
    "IFS",
    "PS4",
    "SHELLOPTS",
    "BASHOPTS",
    "CDPATH",
    "PROMPT_COMMAND",
    "GLIBC_TUNABLES",
    "GCONV_PATH",
    "PERL5OPT",
    "PERL5LIB",
    "PYTHONSTARTUP",
    "PYTHONPATH",
    "RUBYOPT",
    "NODE_OPTIONS",
    "JAVA_TOOL_OPTIONS",
];

/// Returns true if a command may get a variable of this name.
pub fn is_env_name_allowed(name: &str) -> bool {
    let upper = name.to_ascii_uppercase();
    !ENV_NAMES_REFUSED.contains(&upper.as_str()) && !ENV_PREFIXES_REFUSED.iter().any(|prefix| upper.starts_with(prefix))
}

pub(super) fn parse(fields: &mut Fields<'_>, table: &Field<'_, '_>) -> ExecSetting {
    let mut setting = ExecSetting::default();
    for field in fields.table(table) {
        match field.name {
            "toolchains" => setting.toolchains = toolchains(fields, &field),
            "path" => (setting.path, setting.path_places) = folders(fields, &field).into_iter().unzip(),
            "venv" => setting.venv = venv(fields, &field),
            "env" => setting.env = variables(fields, &field),
            _ => fields.unknown(&field, &["toolchains", "venv", "path", "env"]),
        }
    }
    setting
}

fn toolchains(fields: &mut Fields<'_>, field: &Field<'_, '_>) -> Vec<Toolchain> {
    let mut found = Vec::new();
    for (text, place) in fields.texts(field) {
        match Toolchain::ALL.into_iter().find(|toolchain| toolchain.as_str() == text) {
            Some(toolchain) => found.push(toolchain),
            None => {
                let known = Toolchain::ALL.map(|toolchain| format!("`{}`", toolchain.as_str())).join(", ");
                let message = format!("`{field}` names the unknown toolchain `{text}`: expected one of {known}");
                let help = "name the folders of its programs with `path`, its variables with `env`, and what it reads with `[sandbox] read`";
                fields.value_problem(place, Message::from(message).with_help(Some(help.to_owned())));
            }
        }
    }
    found.sort_unstable();
    found.dedup();
    found
}

fn folders(fields: &mut Fields<'_>, field: &Field<'_, '_>) -> Vec<(String, Range<usize>)> {
    let mut found = Vec::new();
    for (text, place) in fields.texts(field) {
        if is_plain(&text) {
            found.push((text, place.span));
        } else {
            let message =
                format!("`{field}` contains `{text}`: an absolute folder without `.`, `..` and `:` is expected");
            fields.value_problem(place, message);
        }
    }
    found
}

fn venv(fields: &mut Fields<'_>, field: &Field<'_, '_>) -> Option<VenvSetting> {
    let text = fields.text(field)?;
    if is_plain(&text) {
        let path = text.trim_end_matches('/').to_owned();
        return Some(VenvSetting { path, place: field.at_value().span });
    }
    let message = format!("`{field}` is `{text}`: an absolute folder without `.`, `..` and `:` is expected");
    let help = "an environment in the project, such as `.venv/`, is found without this setting".to_owned();
    fields.value_problem(field.at_value(), Message::from(message).with_help(Some(help)));
    None
}

/// Returns true for an absolute folder that can be in PATH.
fn is_plain(text: &str) -> bool {
    text.starts_with('/')
        && !text.contains([':', '\0'])
        && text.split('/').all(|segment| segment != ".." && segment != ".")
}

fn variables(fields: &mut Fields<'_>, table: &Field<'_, '_>) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    for field in fields.table(table) {
        let name = field.name;
        let spelled = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
            && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        if !spelled {
            let message = format!("`{field}` is no variable name: letters, digits and `_` are expected");
            fields.value_problem(field.at_key(), message);
        } else if !is_env_name_allowed(name) {
            let message =
                format!("`{field}` is refused: it would let the environment choose what a command loads or reads");
            let help = (name == "PATH").then(|| "add folders with `exec.path = [\"/opt/x/bin\"]`".to_owned());
            fields.value_problem(field.at_key(), Message::from(message).with_help(help));
        } else if let Some(text) = fields.text(&field) {
            if text.contains('\0') {
                fields.value_problem(field.at_value(), format!("`{field}` holds a NUL byte: text is expected"));
            } else {
                found.insert(name.to_owned(), text);
            }
        }
    }
    found
}
