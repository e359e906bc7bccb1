//! `glovebox graph`: prints a pipeline as a picture, as a list, as JSON or for Graphviz; for a run, also what happened
//! in it.

use crate::arguments::{GraphArguments, GraphFormat};
use crate::exit::{CommandResult, Exit, Stop};
use crate::prepare;
use crate::runs::journal;
use crate::runs::overlay;
use crate::runs::recorded;
use crate::runs::{self, RunFolder};
use crate::terminal;
use crate::terminal::diagnostics::Findings;
use crate::terminal::visible;
use glovebox_drawing::{Overlay, draw, to_json, to_list, to_svg};
use glovebox_pipeline::diagnostic::Severity;
use glovebox_pipeline::graph::{to_dot, with_undeclared};
use glovebox_pipeline::ir::Pipeline;
use glovebox_pipeline::{Inputs, validate};
use glovebox_plan::prepare::source::{self, ParsedFile};
use glovebox_plan::rules::lint_builtin;
use std::path::Path;
use std::sync::Arc;

/// Prints the graph of a pipeline or of a run, or writes it to a file.
pub fn graph(arguments: &GraphArguments) -> CommandResult {
    let (pipeline, overlay) = read(arguments)?;
    let text = text(&pipeline, overlay.as_ref(), arguments.format)?;
    match &arguments.output {
        Some(file) => {
            std::fs::write(file, text).map_err(|error| Stop::io(format!("write `{}`", file.display()), &error))?
        }
        None => terminal::print(text),
    }
    Ok(Exit::Ok)
}

/// Returns the pipeline of a file, or the pipeline of a run with what happened in it. If a file and a run have the same
/// name, the file is used.
fn read(arguments: &GraphArguments) -> Result<(Arc<Pipeline>, Option<Overlay>), Stop> {
    let target = &arguments.target;
    let is_path = source::is_stdin(Path::new(target))
        || Path::new(target).exists()
        || target.contains('/')
        || target.ends_with(".dot");
    if is_path {
        return Ok((read_file(Path::new(target), &source::inputs(&arguments.inputs))?, None));
    }
    if !arguments.inputs.is_empty() {
        return Err(Stop::new(Exit::Usage, format!("`{target}` is a run, and the inputs of a run cannot be changed"))
            .with_help("remove `--set`, or name a pipeline file"));
    }
    let run = runs::select(&arguments.runs.runs_dir, &target.clone().into())?;
    of_run(&run).map(|(pipeline, overlay)| (pipeline, Some(overlay)))
}

/// Returns the pipeline of a run with what happened in it.
fn of_run(run: &RunFolder) -> Result<(Arc<Pipeline>, Overlay), Stop> {
    let records = journal::read_to_show(run)?;
    let source = recorded::read(run, journal::beginning(run, &records)?)?;
    Ok((source.pipeline, overlay::from_records(&records)))
}

/// Returns the graph of a run, as `graph` prints it.
pub fn document(run: &RunFolder, format: GraphFormat) -> Result<String, Stop> {
    let (pipeline, overlay) = of_run(run)?;
    text(&pipeline, Some(&overlay), format)
}

fn text(pipeline: &Pipeline, overlay: Option<&Overlay>, format: GraphFormat) -> Result<String, Stop> {
    Ok(match format {
        GraphFormat::Svg => to_svg(&draw(pipeline, overlay)),
        GraphFormat::Png => return Err(no_png()),
        GraphFormat::Text => to_list(pipeline, overlay),
        GraphFormat::Dot => visible::dot(&to_dot(pipeline)).into_owned(),
        GraphFormat::Json => terminal::json(&to_json(pipeline, &draw(pipeline, overlay)))? + "\n",
    })
}

/// Returns the pipeline of a file. Findings are printed to standard error. Only a file that cannot be parsed is
/// refused.
fn read_file(file: &Path, inputs: &Inputs) -> Result<Arc<Pipeline>, Stop> {
    let opened = ParsedFile::parse(file, source::read_text(file)?, inputs);
    if opened.is_broken() {
        return Ok(opened.finish(lint_builtin)?.pipeline);
    }
    let pipeline = with_undeclared(opened.draft.pipeline.clone());
    let diagnostics = validate(opened.draft).diagnostics;
    prepare::report(
        &Findings { file: file.display().to_string(), source: opened.text, diagnostics },
        Severity::Warning,
    );
    Ok(Arc::new(pipeline))
}

/// Returns the error for PNG, which Glovebox does not write. Its help has a command that converts an SVG.
fn no_png() -> Stop {
    Stop::new(Exit::Usage, "`--format png` is not supported")
        .with_help("write an SVG with `--format svg -o graph.svg`, then convert it: `resvg graph.svg graph.png`")
}
