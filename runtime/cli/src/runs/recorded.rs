//! Reads what a run recorded when it was started: its pipeline, with the transforms of rule plugins, and what its plan
//! allowed.

use crate::exit::{Exit, Stop};
use crate::runs::RunFolder;
use crate::runs::changes;
use glovebox_journal::event::RunStarted;
use glovebox_pipeline::inputs::Files;
use glovebox_pipeline::transform::{self, RuleReport};
use glovebox_pipeline::{Inputs, Source};
use glovebox_plan::plan::PlanCapabilities;
use glovebox_plan::prepare::source::CheckedPipeline;
use glovebox_record::Digest;
use std::path::PathBuf;
use std::sync::Arc;

/// Reads the pipeline of a run from the run's blobs.
pub fn read(run: &RunFolder, started: &RunStarted) -> Result<CheckedPipeline, Stop> {
    let blobs = changes::open_blobs(run)?;
    read_with(&run.id, started, |digest| changes::read_blob_text(run, &blobs, digest))
}

/// As [`read`], with the texts of blobs from anywhere.
pub fn read_with(
    run: &str,
    started: &RunStarted,
    text_of: impl Fn(&Digest) -> Result<String, Stop>,
) -> Result<CheckedPipeline, Stop> {
    let text = text_of(&started.pipeline.digest)?;
    let files = started.pipeline.files.iter().map(|(path, digest)| Ok((path.clone(), Ok(text_of(digest)?))));
    let files = files.collect::<Result<Files, Stop>>()?;
    let inputs = Inputs { set: started.pipeline.inputs.clone(), files, ..Inputs::default() };
    let mut draft = glovebox_pipeline::parse(Source::new(&text)).lower(&inputs);
    let files = inputs.files.into_iter().filter_map(|(path, text)| Some((path, text.ok()?))).collect();
    draft.pipeline.set_verifiers(started.plan.verifiers.clone());
    let transformed = started.pipeline.transformed_digest.as_ref();
    let transformed = transformed.map(text_of).transpose()?;
    if let Some(transformed) = &transformed {
        draft = transform::reread(Source::new(transformed), &draft.pipeline);
    }
    let pipeline = glovebox_pipeline::validate(draft).pipeline.ok_or_else(|| {
        let message = format!("this version of glovebox refuses the pipeline of run `{run}`");
        Stop::new(Exit::Mismatch, message).with_help("resume it with the version that started it")
    })?;
    let rule_report = RuleReport { rules: started.pipeline.rules.clone(), transformed };
    Ok(CheckedPipeline {
        file: PathBuf::from(&started.pipeline.path),
        text,
        pipeline: Arc::new(pipeline),
        files,
        rule_report,
        trail: Vec::new(),
        diagnostics: Vec::new(),
    })
}

/// Reads the capabilities of a run's plan from the run's blobs.
pub fn allowed(run: &RunFolder, terms: &RunStarted) -> Result<PlanCapabilities, Stop> {
    let digest = &terms.plan.capabilities_digest;
    let text = changes::read_blob_text(run, &changes::open_blobs(run)?, digest)?;
    serde_json::from_str(&text).map_err(|error| {
        Stop::new(
            Exit::Mismatch,
            format!("the record of what the plan of run `{}` allowed is not valid: {error}", run.id),
        )
    })
}
