//! `glovebox graph`: a pipeline as a picture, as letters, for programs and for Graphviz; of a run, with what happened in it.

use crate::arguments::{GraphArguments, GraphFormat, GraphTheme};
use crate::exit::{Ended, Exit, Stop};
use crate::terminal::visible;
use crate::{journal, overlay, png, runs, source, terminal};
use glovebox_drawing::{CharSet, Overlay, PIXELS_MAX, Theme, draw, to_image, to_json, to_svg, to_text};
use glovebox_pipeline::graph::to_dot;
use glovebox_pipeline::ir::Pipeline;
use std::path::Path;

/// Prints the graph of a valid pipeline or of a run, or writes it to a file.
pub fn graph(arguments: &GraphArguments) -> Ended {
    let (pipeline, overlay) = read(arguments)?;
    let overlay = overlay.as_ref();
    let bytes = match arguments.format {
        GraphFormat::Svg => to_svg(&draw(&pipeline, overlay)).into_bytes(),
        GraphFormat::Png => pixels(arguments, &pipeline, overlay)?,
        GraphFormat::Ascii => to_text(&pipeline, overlay, CharSet::Ascii).into_bytes(),
        GraphFormat::Unicode => to_text(&pipeline, overlay, CharSet::Unicode).into_bytes(),
        GraphFormat::Dot => visible::dot(&to_dot(&pipeline)).into_owned().into_bytes(),
        GraphFormat::Json => {
            let mut text = terminal::json(&to_json(&pipeline, &draw(&pipeline, overlay)))?;
            text.push('\n');
            text.into_bytes()
        }
    };
    match &arguments.output {
        Some(file) => {
            std::fs::write(file, bytes).map_err(|error| Stop::io(format!("write `{}`", file.display()), &error))?
        }
        None => terminal::print_bytes(&bytes),
    }
    Ok(Exit::Ok)
}

/// The pipeline a file holds, or that of a run with what happened in it. A file comes before a run of the same name.
fn read(arguments: &GraphArguments) -> Result<(Pipeline, Option<Overlay>), Stop> {
    let target = &arguments.target;
    let is_path = source::is_stdin(Path::new(target))
        || Path::new(target).exists()
        || target.contains('/')
        || target.ends_with(".dot");
    if is_path {
        let source = source::read_pipeline(Path::new(target), &source::inputs(&arguments.inputs))?;
        return Ok((source.pipeline, None));
    }
    if !arguments.inputs.is_empty() {
        return Err(Stop::new(Exit::Usage, format!("`{target}` is a run, and a run has its inputs already"))
            .with_help("leave out `--set`, or name a pipeline's file"));
    }
    let run = runs::select(&arguments.runs.runs_dir, target)?;
    let records = journal::read_to_show(&run)?;
    let source = source::of_run(&run, journal::beginning(&run, &records)?)?;
    Ok((source.pipeline, Some(overlay::of(&records))))
}

fn pixels(arguments: &GraphArguments, pipeline: &Pipeline, overlay: Option<&Overlay>) -> Result<Vec<u8>, Stop> {
    if arguments.output.is_none() && terminal::is_stdout_terminal() {
        return Err(Stop::new(Exit::Usage, "a PNG is nothing for a terminal")
            .with_help("name a file with `--output F`, or look at it with `--format ascii`"));
    }
    let theme = match arguments.theme {
        GraphTheme::Light => Theme::Light,
        GraphTheme::Dark => Theme::Dark,
    };
    let image = to_image(&draw(pipeline, overlay), theme).ok_or_else(|| {
        let message = format!("the picture would have more than {PIXELS_MAX} pixels");
        Stop::new(Exit::Usage, message).with_help("an SVG has no such limit: `--format svg`")
    })?;
    if image.absent > 0 {
        let characters = terminal::counted(image.absent, "character");
        terminal::say(&format!("note: {characters} without a letter in a PNG became empty boxes; an SVG shows all\n"));
    }
    Ok(png::encode(&image))
}
