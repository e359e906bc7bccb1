//! Reads and checks a pipeline file.

use super::children::{self, Children};
use super::findings::{Findings, merged};
use super::references::{self, Referring};
use super::refusal::{Class, Refusal};
use crate::rules::{Linted, TransformStep};
use glovebox_names::visible;
use glovebox_pipeline::Source;
use glovebox_pipeline::diagnostic::Diagnostic;
use glovebox_pipeline::files::References;
use glovebox_pipeline::inputs::Files;
use glovebox_pipeline::ir::{Node, Pipeline};
use glovebox_pipeline::nearest::nearest;
use glovebox_pipeline::transform::{RuleReport, TransformedGraph};
use glovebox_pipeline::{CheckResult, Inputs, LoweredFile};
use glovebox_workspace::regular_file::{self, Links};
use std::collections::BTreeMap;
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Maximum size of a pipeline, configuration or script, in bytes. A pipeline of a hundred thousand nodes is a third as
/// large.
pub const TEXT_BYTES_MAX: u64 = 64 << 20;

/// Returns true for `-`, which stands for standard input. A file with this name is `./-`.
pub fn is_stdin(file: &Path) -> bool {
    file.as_os_str() == "-"
}

/// Reads a text file, or standard input for `-`. A byte order mark is left for the parser.
pub fn read_text(file: &Path) -> Result<String, Refusal> {
    let name = file.display();
    let failed = |error: std::io::Error| {
        let stop = Refusal::io(format!("read `{name}`"), &error);
        match Some(error.kind()).filter(|kind| *kind == ErrorKind::NotFound).and_then(|_| meant(file)) {
            Some(meant) => stop.with_help(format!("did you mean `{meant}`?")),
            None => stop,
        }
    };
    let mut bytes = Vec::new();
    if is_stdin(file) {
        std::io::stdin().lock().take(TEXT_BYTES_MAX + 1).read_to_end(&mut bytes).map_err(failed)?;
    } else {
        let opened = regular_file::open(file, Links::Follow).map_err(|error| match regular_file::not_file(&error) {
            Some(kind) => not_a_file(file, kind),
            None => failed(error),
        })?;
        let found = opened.metadata().map_err(failed)?;
        bytes.reserve(found.len().min(TEXT_BYTES_MAX) as usize + 1);
        opened.take(TEXT_BYTES_MAX + 1).read_to_end(&mut bytes).map_err(failed)?;
    }
    if bytes.len() as u64 > TEXT_BYTES_MAX {
        return Err(Refusal::new(
            Class::Invalid,
            format!("`{name}` is too long: at most {TEXT_BYTES_MAX} bytes can be read"),
        ));
    }
    String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        Refusal::new(Class::Invalid, format!("`{name}` is not UTF-8 text at byte {at}"))
    })
}

/// Maximum number of names in a folder that are compared with the name of a missing file.
const NAMES_MAX: usize = 2_000;

/// Returns the path of an existing file that the user probably meant: one with a similar name in the same folder.
fn meant(file: &Path) -> Option<String> {
    let name = file.file_name()?.to_str()?;
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty());
    let entries = std::fs::read_dir(folder.unwrap_or(Path::new("."))).ok()?.flatten().take(NAMES_MAX);
    let files = entries.filter(|entry| entry.path().is_file());
    let mut names: Vec<String> = files.filter_map(|entry| entry.file_name().into_string().ok()).collect();
    names.sort();
    let with_ending = format!("{name}.dot");
    let similar = || nearest(name, names.iter().map(String::as_str));
    let found = names.iter().find(|known| **known == with_ending).map(String::as_str).or_else(similar)?;
    let path = folder.map_or_else(|| PathBuf::from(found), |folder| folder.join(found));
    Some(visible::line(&path.display().to_string()).into_owned())
}

fn not_a_file(file: &Path, kind: regular_file::NonFileKind) -> Refusal {
    let stop = Refusal::new(Class::Usage, format!("`{}` is {kind}, not a file", file.display()));
    match kind {
        regular_file::NonFileKind::Folder => stop.with_help("name its files, such as `pipelines/*.dot`"),
        _ => stop.with_help("`-` reads standard input: `… | glovebox check -`; write other pipes to a file first"),
    }
}

/// Reads a component of at most `bytes_max` bytes. The error is the reason as text. Pipes and devices are refused, because
/// the project's author chooses the path.
pub fn read_component(file: &Path, bytes_max: u64) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    let opened = regular_file::open(file, Links::Follow)
        .and_then(|opened| opened.take(bytes_max.saturating_add(1)).read_to_end(&mut bytes));
    opened.map_err(|error| error.to_string())?;
    if bytes.len() as u64 > bytes_max {
        return Err(format!("it has more than {bytes_max} bytes (limit `component_bytes`)"));
    }
    Ok(bytes)
}

/// Returns the values of `--set`. If a key occurs more than once, its last value is used.
pub fn inputs(set: &[(String, String)]) -> Inputs {
    Inputs { set: set.iter().cloned().collect(), ..Inputs::default() }
}

/// A pipeline without errors, with its text.
#[derive(Debug)]
pub struct CheckedPipeline {
    /// The file as the user named it.
    pub file: PathBuf,
    /// The text of the file.
    pub text: String,
    /// The pipeline to run: from the text, or as the project's rules changed it.
    pub pipeline: Arc<Pipeline>,
    /// The texts of the files that the pipeline refers to, by path.
    pub files: BTreeMap<String, String>,
    /// The report of the project's rule set.
    pub rule_report: RuleReport,
    /// The pipeline after each rule plugin. Empty for the pipeline of an existing run.
    pub trail: Vec<TransformStep>,
    /// The findings that are not printed yet. Empty for the pipeline of an existing run.
    pub diagnostics: Vec<Diagnostic>,
}

/// A file that was read and lowered, but not linted.
pub struct ParsedFile {
    /// The file as the user named it.
    pub file: PathBuf,
    /// The text of the file.
    pub text: String,
    /// The lowered pipeline.
    pub draft: LoweredFile,
    /// The files that the pipeline refers to.
    pub wanted: References,
    /// The texts of the pipeline's prompt files.
    files: Files,
    /// The pipeline with the stages of its children, as canonical text. `None` without children.
    with_children: Option<String>,
}

impl ParsedFile {
    /// Parses a file's text with these inputs.
    pub fn parse(file: &Path, text: String, inputs: &Inputs) -> Self {
        let Referring { lowered: draft, wanted, files } = references::read(file, Source::new(&text), inputs);
        Self { file: file.to_owned(), text, draft, wanted, files, with_children: None }
    }

    /// Puts the stages of child pipelines into the draft, and adds their errors to its findings. Returns false if a child is
    /// missing in the draft afterwards.
    pub fn put_children_in(&mut self, children: &mut Children) -> bool {
        if !self.draft.pipeline.nodes.iter().any(Node::wants_child) {
            return true;
        }
        if self.draft.has_errors() {
            return false;
        }
        match children.splice(&self.file, &self.draft.pipeline, &self.wanted) {
            Ok(TransformedGraph { text, mut lowered }) => {
                lowered.diagnostics.splice(0..0, std::mem::take(&mut self.draft.diagnostics));
                (self.draft, self.with_children) = (lowered, Some(text));
                true
            }
            Err(faults) => {
                self.draft.diagnostics.extend(faults);
                false
            }
        }
    }

    /// Returns true for a file with syntax errors.
    pub fn is_broken(&self) -> bool {
        self.draft.diagnostics.iter().any(|found| found.is_error() && found.rule == "dot_syntax")
    }

    /// Lints the draft. Refuses it if there is an error; other findings are kept in the checked pipeline.
    pub fn finish(self, lint: impl FnOnce(LoweredFile) -> Linted) -> Result<CheckedPipeline, Refusal> {
        let Linted { checked: CheckResult { pipeline, mut diagnostics, .. }, report: mut rule_report, trail } =
            lint(self.draft);
        if let Some(pipeline) = &pipeline {
            children::remove_findings_of_children(&mut diagnostics, pipeline);
        }
        rule_report.transformed = rule_report.transformed.or(self.with_children);
        match pipeline.filter(|_| !diagnostics.iter().any(Diagnostic::is_error)) {
            Some(pipeline) => {
                let files = self.files.into_iter().filter_map(|(path, text)| Some((path, text.ok()?))).collect();
                let (file, text, pipeline) = (self.file, self.text, Arc::new(pipeline));
                Ok(CheckedPipeline { file, text, pipeline, files, rule_report, trail, diagnostics })
            }
            None => {
                let diagnostics = merged(diagnostics, Vec::new());
                let findings = Findings { file: self.file.display().to_string(), source: self.text, diagnostics };
                Err(Refusal::for_findings(findings))
            }
        }
    }
}
