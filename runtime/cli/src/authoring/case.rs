//! A case of a plugin: the files that it sees, the attributes of its node, and the outcome that is expected.
//!
//! A case is a folder with `case.toml`, the folder `files` with the workspace, and `script.toml` with the answers of the model. Each is
//! optional. It is run by this program itself, in a scratch folder.

use super::program::run_to_end;
use crate::exit::{Exit, Stop};
use crate::terminal::inspection::grant_lines;
use crate::terminal::visible;
use glovebox_host::inspect::Manifest;
use glovebox_pipeline::dot::quote;
use glovebox_plan::prepare::source;
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use ulid::Ulid;

/// The node of the pipeline that a case runs.
const NODE: &str = "plugin";
/// The file with the status of a node.
const STATUS: &str = "status.json";
/// Maximum number of log lines that are shown.
const LOG_LINES_MAX: usize = 200;

/// The contents of `case.toml`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct CaseText {
    #[serde(default = "success")]
    status: String,
    reason: Option<String>,
    notes: Option<String>,
    #[serde(default)]
    attributes: BTreeMap<String, toml::Value>,
}

fn success() -> String {
    "success".to_owned()
}

/// A case, as its author wrote it.
#[derive(Debug)]
pub struct Case {
    /// Name of its folder.
    pub name: String,
    folder: PathBuf,
    expected: CaseText,
}

/// How a case ended.
#[derive(Debug)]
pub struct CaseResult {
    /// `success`, `partial_success`, `retry`, `fail` or `skipped`.
    pub status: String,
    /// Reason of a failure; empty otherwise.
    pub reason: String,
    /// Notes of the outcome.
    pub notes: String,
    /// Lines that the plugin logged.
    pub log: Vec<String>,
}

impl Case {
    /// Reads a case.
    ///
    /// # Errors
    /// Exit 3 if `case.toml` is not valid.
    pub fn read(folder: &Path) -> Result<Self, Stop> {
        let file = folder.join("case.toml");
        let text = if file.exists() { source::read_text(&file)? } else { String::new() };
        let expected = toml::from_str(&text).map_err(|error| {
            let problem = error.to_string();
            Stop::new(Exit::Invalid, format!("`{}`: {}", file.display(), visible::block(problem.trim_end())))
        })?;
        let name = folder.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        Ok(Self { name, folder: folder.to_owned(), expected })
    }

    /// Returns what is not as expected. `None` if the case passed.
    pub fn difference(&self, result: &CaseResult) -> Option<String> {
        let CaseText { status, reason, notes, .. } = &self.expected;
        if *status != result.status {
            return Some(format!("expected the status `{status}`"));
        }
        let lacks =
            |wanted: &Option<String>, text: &str| wanted.as_ref().filter(|wanted| !text.contains(*wanted)).cloned();
        if let Some(reason) = lacks(reason, &result.reason) {
            return Some(format!("expected a reason with `{reason}`"));
        }
        lacks(notes, &result.notes).map(|notes| format!("expected notes with `{notes}`"))
    }

    fn script(&self) -> Option<PathBuf> {
        Some(self.folder.join("script.toml")).filter(|file| file.exists())
    }
}

/// A project with a pipeline of one node, removed when it is dropped.
pub struct Scratch {
    folder: PathBuf,
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // A folder that cannot be removed is below the system's folder for temporary files.
        let _ = fs::remove_dir_all(&self.folder);
    }
}

impl Scratch {
    /// Writes the project of a case.
    ///
    /// # Errors
    /// A file cannot be read or written.
    pub fn new(manifest: &Manifest, component: &[u8], case: &Case) -> Result<Self, Stop> {
        let folder = std::env::temp_dir().join(format!("glovebox-dev-{}", Ulid::generate()));
        let failed = |error: std::io::Error| Stop::io(format!("write `{}`", folder.display()), &error);
        fs::DirBuilder::new().mode(0o700).create(&folder).map_err(failed)?;
        let scratch = Self { folder: folder.clone() };
        let write = |name: &str, bytes: &[u8]| fs::write(folder.join(name), bytes).map_err(failed);
        write("plugin.wasm", component)?;
        write("glovebox.toml", settings(manifest).as_bytes())?;
        write("pipeline.dot", pipeline(manifest, case).as_bytes())?;
        fs::create_dir(folder.join("files")).map_err(failed)?;
        let files = case.folder.join("files");
        // A link could lead to any folder of the author, and its files would be given to the plugin.
        match fs::symlink_metadata(&files) {
            Ok(found) if found.is_dir() => copy(&files, &folder.join("files")).map_err(failed)?,
            Ok(_) => {
                let message = format!("`{}` is a link or a file: a folder is expected", files.display());
                return Err(Stop::new(Exit::Usage, message).with_help("copy the files of the case into the folder"));
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => return Err(Stop::io(format!("read `{}`", files.display()), &error)),
        }
        Ok(scratch)
    }

    /// Locks the plugin and runs the pipeline.
    ///
    /// # Errors
    /// The run could not be made, or a signal ended it.
    pub fn run(&self, case: &Case) -> Result<CaseResult, Stop> {
        let locked = self.glovebox(&["plugin", "lock", "pipeline.dot"])?;
        if !locked.status.success() {
            return Err(not_run("plugin lock", &locked));
        }
        let script = case.script().map(std::path::absolute).transpose();
        let script = script.map_err(|error| Stop::io("find the script", &error))?;
        let script = script.as_ref().map(|path| path.to_string_lossy().into_owned());
        let answers = script.as_ref().map_or(vec!["--simulate"], |script| vec!["--script", script.as_str()]);
        let fixed = ["run", "pipeline.dot", "--workdir", "files", "--runs-dir", "runs", "--run-id", "case"];
        let ended = self.glovebox(&[&fixed[..], &answers[..]].concat())?;
        // A run that executed the node has its status, even if the plugin trapped or reached a limit.
        if !self.node().join(STATUS).is_file() {
            return Err(not_run("run", &ended));
        }
        self.result()
    }

    /// Runs this program in the folder.
    fn glovebox(&self, words: &[&str]) -> Result<Output, Stop> {
        let own = std::env::current_exe().map_err(|error| Stop::io("find this program", &error))?;
        let mut command = Command::new(own);
        command.args(words).current_dir(&self.folder).stdin(Stdio::null());
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
        run_to_end(child.map_err(|error| Stop::io("start this program", &error))?)
    }

    /// Returns the folder with the files of the node.
    fn node(&self) -> PathBuf {
        self.folder.join("runs/case").join(NODE)
    }

    /// Reads what the run recorded about the node.
    fn result(&self) -> Result<CaseResult, Stop> {
        let node = self.node();
        let text = source::read_text(&node.join(STATUS))?;
        let status: Value =
            serde_json::from_str(&text).map_err(|error| Stop::new(Exit::Internal, error.to_string()))?;
        let field = |name: &str| status[name].as_str().unwrap_or_default().to_owned();
        let log = source::read_text(&node.join("log.ndjson")).unwrap_or_default();
        let lines = log.lines().take(LOG_LINES_MAX).map(log_line);
        Ok(CaseResult {
            status: field("outcome"),
            reason: field("failure_reason"),
            notes: field("notes"),
            log: lines.collect(),
        })
    }
}

/// Returns the error for a case whose node was not executed, with what the command printed.
fn not_run(command: &str, output: &Output) -> Stop {
    let message = format!("the case cannot be run: `glovebox {command}` ended with {}", output.status);
    let details = visible::block(&String::from_utf8_lossy(&output.stderr)).into_owned();
    Stop { details, ..Stop::new(Exit::Plugin, message) }
}

/// Returns a log line as text: level, message and fields.
fn log_line(json: &str) -> String {
    let line: Value = serde_json::from_str(json).unwrap_or_default();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let fields = line["fields"].as_object().into_iter().flatten();
    let fields: String = fields.map(|(name, value)| format!(" {name}={}", text(value))).collect();
    format!("{} {}{fields}", text(&line["level"]), text(&line["message"]))
}

/// Returns a `glovebox.toml` that grants what the plugin wants.
fn settings(manifest: &Manifest) -> String {
    let grants = grant_lines(&manifest.wants).join("\n");
    format!("[plugins.{0:?}]\npath = \"plugin.wasm\"\n\n[plugins.{0:?}.grants]\n{grants}\n", manifest.name)
}

/// Returns a pipeline with one node. The node asks for everything that the plugin wants, unless the case sets other attributes.
fn pipeline(manifest: &Manifest, case: &Case) -> String {
    let wants = &manifest.wants;
    let mut attributes = vec![("type".to_owned(), manifest.name.clone())];
    let mut asks = |name: &str, values: Vec<String>| {
        if !values.is_empty() && !case.expected.attributes.contains_key(name) {
            attributes.push((name.to_owned(), values.join(",")));
        }
    };
    asks("allowed_write_paths", wants.write.iter().map(ToString::to_string).collect());
    asks("allowed_commands", wants.commands.clone());
    for (name, value) in &case.expected.attributes {
        let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        attributes.push((name.clone(), text));
    }
    let attributes: Vec<String> =
        attributes.iter().map(|(name, value)| format!("{}={}", quote(name), quote(value))).collect();
    format!(
        "digraph dev {{\n  graph [goal=\"Run a case\"]\n  start [shape=Mdiamond]\n  {NODE} [{}]\n  done [shape=Msquare]\n  \
         start -> {NODE} -> done\n}}\n",
        attributes.join(", ")
    )
}

/// Copies the files of a case. Links are left out.
fn copy(from: &Path, to: &Path) -> std::io::Result<()> {
    for entry in from.read_dir()? {
        let entry = entry?;
        let (kind, target) = (entry.file_type()?, to.join(entry.file_name()));
        if kind.is_dir() {
            fs::create_dir(&target)?;
            copy(&entry.path(), &target)?;
        } else if kind.is_file() {
            fs::copy(entry.path(), target)?;
        }
    }
    Ok(())
}
