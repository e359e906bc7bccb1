//! Reads and checks a pipeline file, and prints the findings.
//!
//! The pipeline crate makes the findings, the terminal module renders them.

use crate::changes;
use crate::children::{self, Children};
use crate::exit::{Exit, Stop};
use crate::references::{self, Referring};
use crate::runs::RunFolder;
use crate::terminal::diagnostics::Findings;
use crate::terminal::{self, diagnostics};
use glovebox_journal::event::RunStarted;
use glovebox_pipeline::Source;
use glovebox_pipeline::diagnostic::{DIAGNOSTICS_MAX, Diagnostic, Severity};
use glovebox_pipeline::files::References;
use glovebox_pipeline::inputs::Files;
use glovebox_pipeline::ir::{Node, Pipeline};
use glovebox_pipeline::span::Span;
use glovebox_pipeline::transform::RuleReport;
use glovebox_pipeline::transform::{self, Applied};
use glovebox_pipeline::{Checked, Inputs, Lowered};
use glovebox_plan::rules::{Linted, TransformStep};
use glovebox_workspace::regular_file::{self, Links};
use std::collections::BTreeMap;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The largest pipeline, configuration or script that is read: a hundred thousand nodes take a third of it.
pub const TEXT_BYTES_MAX: u64 = 64 << 20;

/// The rule about what this version does not execute or enforce.
const NOT_ENFORCED: &str = "not_enforced";

/// True for `-`, which is standard input; a file of that name is `./-`.
pub fn is_stdin(file: &Path) -> bool {
    file.as_os_str() == "-"
}

/// Reads a text file, or standard input for `-`; a byte order mark is left to its parser.
pub fn read_text(file: &Path) -> Result<String, Stop> {
    let name = file.display();
    let failed = |error: std::io::Error| Stop::io(format!("read `{name}`"), &error);
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
        return Err(Stop::new(
            Exit::Invalid,
            format!("`{name}` is too long: at most {TEXT_BYTES_MAX} bytes can be read"),
        ));
    }
    String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        Stop::new(Exit::Invalid, format!("`{name}` is not UTF-8 text at byte {at}"))
    })
}

fn not_a_file(file: &Path, kind: regular_file::Kind) -> Stop {
    let stop = Stop::new(Exit::Usage, format!("`{}` is {kind}, not a file", file.display()));
    match kind {
        regular_file::Kind::Folder => stop.with_help("name its files, such as `pipelines/*.dot`"),
        _ => stop.with_help("`-` reads standard input: `… | glovebox check -`; write other pipes to a file first"),
    }
}

/// Reads a component of at most `bytes_max`; the error is the reason in words. Refuses pipes and devices, because the project's author
/// chooses the path.
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

/// The values of `--set`; the last of two with the same key wins.
pub fn inputs(set: &[(String, String)]) -> Inputs {
    Inputs { set: set.iter().cloned().collect(), ..Inputs::default() }
}

/// A pipeline that has no errors, with its text.
#[derive(Debug)]
pub struct CheckedPipeline {
    /// The file as the user named it.
    pub file: PathBuf,
    /// Its text.
    pub text: String,
    /// The pipeline to run: that of the text, or of the project's rules.
    pub pipeline: Arc<Pipeline>,
    /// The texts of the files it refers to, by path.
    pub files: BTreeMap<String, String>,
    /// The report of the project's rule set.
    pub rule_report: RuleReport,
    /// The pipeline after each rule plugin; empty for the pipeline of a run.
    pub trail: Vec<TransformStep>,
    /// The findings, not printed yet; empty for the pipeline of a run.
    pub diagnostics: Vec<Diagnostic>,
}

/// A file that was read and lowered, but not linted.
pub struct ParsedFile {
    /// The file as the user named it.
    pub file: PathBuf,
    /// Its text.
    pub text: String,
    /// The lowered pipeline.
    pub draft: Lowered,
    /// The files that it refers to.
    pub wanted: References,
    /// The texts of its prompt files.
    files: Files,
    /// The pipeline with the stages of its children as canonical text; none without children.
    with_children: Option<String>,
}

impl ParsedFile {
    /// Reads a file's text with these inputs.
    pub fn of(file: &Path, text: String, inputs: &Inputs) -> Self {
        let Referring { lowered: draft, wanted, files } = references::read(file, Source::new(&text), inputs);
        Self { file: file.to_owned(), text, draft, wanted, files, with_children: None }
    }

    /// Puts the stages of its child pipelines into the draft. What is wrong with them is added to its findings. False if a child is
    /// missing then.
    pub fn put_children_in(&mut self, children: &mut Children) -> bool {
        if !self.draft.pipeline.nodes.iter().any(Node::wants_child) {
            return true;
        }
        if self.draft.has_errors() {
            return false;
        }
        match children.splice(&self.file, &self.draft.pipeline, &self.wanted) {
            Ok(Applied { text, mut lowered }) => {
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

    /// True for a file with syntax errors.
    pub fn is_broken(&self) -> bool {
        self.draft.diagnostics.iter().any(|found| found.is_error() && found.rule == "dot_syntax")
    }

    /// Lints the draft. With an error, prints the findings and stops with exit 3; else the caller prints them, together with those of
    /// the binding.
    pub fn finish(self, lint: impl FnOnce(Lowered) -> Linted) -> Result<CheckedPipeline, Stop> {
        let Linted { checked: Checked { pipeline, mut diagnostics, .. }, report: mut rule_report, trail } =
            lint(self.draft);
        diagnostics.retain(|found| !children::is_told_there(pipeline.as_ref(), found));
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
                report(&findings, Severity::Warning);
                Err(invalid(&findings))
            }
        }
    }
}

/// Adds the findings of a binding to those of a file. What a run refuses is an error in both, and each finding is listed once.
pub fn merged(of_file: Vec<Diagnostic>, of_binding: Vec<Diagnostic>) -> Vec<Diagnostic> {
    let mut all = of_file;
    let most = DIAGNOSTICS_MAX.max(all.len());
    for found in all.iter_mut().filter(|found| found.rule == NOT_ENFORCED) {
        found.severity = Severity::Error;
    }
    for found in of_binding {
        let is_same =
            |known: &Diagnostic| (&known.rule, known.span, &known.message) == (&found.rule, found.span, &found.message);
        if !all.iter().any(is_same) {
            all.push(found);
        }
    }
    // The binding knows which types exist; the language alone can only guess.
    let unknown: Vec<Span> = all.iter().filter(|found| found.rule == "type_unknown").map(|found| found.span).collect();
    all.retain(|found| found.rule != "type_known" || !unknown.contains(&found.span));
    all.sort_by_key(|found| (found.severity, found.span));
    all.truncate(most);
    all.sort_by_key(|found| (found.span.start, found.severity));
    all
}

/// The pipeline that a run keeps, with the transforms of the run. The file may have changed since.
pub fn of_run(run: &RunFolder, started: &RunStarted) -> Result<CheckedPipeline, Stop> {
    let blobs = changes::open_blobs(run)?;
    let text = changes::read_blob_text(run, &blobs, &started.pipeline_digest)?;
    let files = started.files.iter().map(|(path, digest)| {
        let text = changes::read_blob_text(run, &blobs, digest)?;
        Ok((path.clone(), Ok(text)))
    });
    let files = files.collect::<Result<Files, Stop>>()?;
    let inputs = Inputs { set: started.inputs.clone(), files, ..Inputs::default() };
    let mut draft = glovebox_pipeline::parse(Source::new(&text)).lower(&inputs);
    let files = inputs.files.into_iter().filter_map(|(path, text)| Some((path, text.ok()?))).collect();
    draft.pipeline.set_verifiers(started.verifiers.clone());
    let transformed = started.transformed_digest.as_ref();
    let transformed = transformed.map(|digest| changes::read_blob_text(run, &blobs, digest)).transpose()?;
    if let Some(transformed) = &transformed {
        draft = transform::reread(Source::new(transformed), &draft.pipeline);
    }
    let pipeline = glovebox_pipeline::validate(draft).pipeline.ok_or_else(|| {
        let message = format!("this version of glovebox refuses the pipeline of run `{}`", run.id);
        Stop::new(Exit::Mismatch, message).with_help("resume it with the version that started it")
    })?;
    let rule_report = RuleReport { rules: started.rules.clone(), transformed };
    Ok(CheckedPipeline {
        file: PathBuf::from(&started.pipeline_path),
        text,
        pipeline: Arc::new(pipeline),
        files,
        rule_report,
        trail: Vec::new(),
        diagnostics: Vec::new(),
    })
}

/// Prints the findings with at least this severity.
pub fn report(findings: &Findings, at_least: Severity) {
    terminal::say(diagnostics::render(findings, at_least, terminal::message_look()));
}

/// The stop after errors have been printed.
pub fn invalid(findings: &Findings) -> Stop {
    let count = findings.count(Severity::Error);
    let noun = if count == 1 { "error" } else { "errors" };
    Stop::new(Exit::Invalid, format!("`{}` has {count} {noun}", findings.file))
}
