//! `glovebox graph`: a pipeline's nodes and edges, for programs and for Graphviz.

use crate::arguments::{GraphArguments, GraphFormat};
use crate::exit::{Ended, Exit};
use crate::{source, terminal};
use glovebox_pipeline::graph::{to_dot, to_json};

/// Prints the graph of a valid pipeline.
pub fn graph(arguments: &GraphArguments) -> Ended {
    let source = source::read_pipeline(&arguments.file, &source::inputs(&arguments.inputs))?;
    match arguments.format {
        GraphFormat::Json => terminal::print_json(&to_json(&source.pipeline))?,
        GraphFormat::Dot => terminal::print(&to_dot(&source.pipeline)),
    }
    Ok(Exit::Ok)
}
