//! Every pipeline of this repository, and with `GLOVEBOX_CORPUS=<folder>` every pipeline of that folder, has a picture.
//!
//! A picture must be well-formed and must be the same if it is drawn twice. The lint of the pipeline does not matter
//! here.

use crate::well_formed;
use glovebox_drawing::{draw, to_json, to_list, to_svg};
use glovebox_pipeline::Source;
use glovebox_pipeline::ir::Pipeline;
use glovebox_pipeline::{Inputs, dot, lower};
use std::path::{Path, PathBuf};

const EXTENSIONS: [&str; 3] = ["dot", "gv", "fabro"];

/// Returns the pipeline files below a folder, sorted.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut entries: Vec<PathBuf> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    entries.sort();
    let mut found = Vec::new();
    for path in entries.into_iter().filter(|path| !path.is_symlink() && !path.ends_with("target")) {
        if path.is_dir() {
            found.extend(files(&path));
        } else if path.extension().is_some_and(|extension| EXTENSIONS.iter().any(|known| extension == *known)) {
            found.push(path);
        }
    }
    found
}

fn check(pipeline: &Pipeline) -> Result<(), &'static str> {
    let drawn = || {
        let drawing = draw(pipeline, None);
        (to_svg(&drawing), to_list(pipeline, None), to_json(pipeline, &drawing))
    };
    let (first, second) = (drawn(), drawn());
    well_formed::check(&first.0);
    if first != second {
        return Err("two drawings of one pipeline differ");
    }
    // The title, then an empty line for each node, then one line for each node and edge.
    if first.1.lines().count() != 1 + 2 * pipeline.nodes.len() + first.2.layout.edges.len() {
        return Err("a node or an edge is missing in the list");
    }
    Ok(())
}

/// Draws every file that can be parsed. Returns the number of these files.
fn check_all(folder: &Path) -> usize {
    let (mut faults, mut count) = (Vec::new(), 0);
    for path in files(folder) {
        let source = std::fs::read_to_string(&path).unwrap();
        let (ast, syntax) = dot::parse(Source::new(&source));
        if syntax.is_empty() {
            count += 1;
            let (pipeline, _) = lower::lower(Source::new(&source), ast, &Inputs::default());
            faults.extend(check(&pipeline).err().map(|fault| format!("{}: {fault}", path.display())));
        }
    }
    assert!(faults.is_empty(), "{} faults:\n{}", faults.len(), faults.join("\n"));
    count
}

#[test]
fn every_pipeline_has_a_picture() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let own = ["examples", "runtime/drawing/tests", "runtime/pipeline/tests"].map(|folder| root.join(folder));
    let count: usize = own.iter().map(|folder| check_all(folder)).sum();
    assert!(count > 25, "the pipelines have moved: {count}");
    if let Some(folder) = std::env::var_os("GLOVEBOX_CORPUS") {
        assert!(check_all(Path::new(&folder)) > 0, "no pipeline in {folder:?}");
    }
}
