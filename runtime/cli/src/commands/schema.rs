//! `glovebox schema`: the published JSON Schemas of everything that Glovebox writes for programs.

use crate::arguments::SchemaArguments;
use crate::exit::{CommandResult, Exit, Stop};
use crate::terminal;
use glovebox_pipeline::nearest::nearest;

/// A published schema.
struct Published {
    name: &'static str,
    /// The document that it describes.
    document: &'static str,
    text: &'static str,
}

macro_rules! published {
    ($($name:literal: $document:literal,)*) => {
        &[$(Published {
            name: $name,
            document: $document,
            text: include_str!(concat!("../../../../docs/schemas/", $name, ".schema.json")),
        }),*]
    };
}

const PUBLISHED: &[Published] = published! {
    "answer": "`glovebox answer --json`",
    "apply": "`glovebox apply --json`",
    "attacks": "`glovebox doctor --attack --json`",
    "attestation": "the envelope of everything that is signed: attestations, signatures of plugins, lists of revocations",
    "branch": "`glovebox apply --branch --json`",
    "check": "`glovebox check --format json`",
    "checkpoint": "`checkpoint.json` of a run",
    "control": "`glovebox cancel --json`, `glovebox pause --json` and `glovebox wait --json`",
    "conversation": "the conversation of a stage with a model",
    "diff": "`glovebox diff --json`",
    "doctor": "`glovebox doctor --json`",
    "doctor-fleet": "`glovebox doctor --nats URL --json`",
    "event": "an event of the journal",
    "evidence": "`glovebox evidence --json`",
    "final": "`final.json` of a run",
    "gates": "`glovebox gates --json`",
    "graph": "`glovebox graph --json`",
    "holdout-status": "`glovebox holdout status --json`",
    "holdout-verify": "`glovebox holdout verify --json`",
    "liveness": "a line of `liveness.ndjson` of a run",
    "log-line": "a line of `GET /logs/all` of `glovebox serve`",
    "logs": "a line of `glovebox logs --json`",
    "ls": "`glovebox ls --json`",
    "manifest": "`manifest.json` of a run",
    "models": "`glovebox models ls --json`",
    "models-test": "`glovebox models test --json`",
    "ordinary": "`glovebox doctor --ordinary --json`",
    "plan": "`glovebox plan --json`",
    "plugin-inspect": "`glovebox plugin inspect --json`",
    "plugin-lock": "`glovebox plugin lock --json`",
    "plugin-outdated": "`glovebox plugin outdated --json`",
    "plugin-provenance": "the statement about how a plugin was built",
    "plugin-revocations": "`glovebox plugin revocations --json`",
    "plugin-stage": "a stage file of `glovebox plugin test --input` and `--cases`",
    "plugin-statement": "the statement in the signatures of a plugin",
    "plugin-test": "`glovebox plugin test --json`",
    "plugin-verify": "`glovebox plugin verify --json`",
    "policy-call": "a tool call that a policy judges",
    "policy-edge": "an edge that a policy judges",
    "receipts": "`receipts.json` of a stage",
    "record": "a line of `progress.ndjson`, of `glovebox run --json` and of `glovebox attach --json`",
    "removed": "`glovebox rm --json` and `glovebox gc --json`",
    "revocations": "`glovebox plugin revoke --list --json`, and the document in a signed list",
    "run-plan": "`glovebox plan --run RUN --json`",
    "serve": "`glovebox serve --json`",
    "serve-event": "an event of `GET /pipelines/{id}/events` of `glovebox serve`",
    "serve-health": "`GET /health` of `glovebox serve`",
    "serve-output": "an event of `GET /runs/{id}/stages/{node}/output` of `glovebox serve`",
    "serve-problem": "why `glovebox serve` refused a request",
    "serve-session": "`POST /session` of `glovebox serve`",
    "serve-start": "`POST /pipelines` of `glovebox serve`",
    "show-node": "`glovebox show RUN NODE --json`",
    "statement": "the statement in an attestation",
    "status": "`status.json` of a stage",
    "steer": "`glovebox steer --json`",
    "task": "`GET /tasks/{id}` of `glovebox serve`",
    "tasks": "`glovebox tasks --json`",
    "tokens": "`glovebox tokens ls --json`",
    "tool-hook": "the input of a hook of tool calls",
    "trace": "a line of `trace.jsonl`",
    "transcript": "a line of `glovebox transcript --json`",
    "trust": "`glovebox trust ls --json`",
    "verdict": "the verdict: `glovebox show --json`, and the last line of `glovebox run --json`",
    "version": "`glovebox version --json`",
    "why": "`glovebox why --json`",
};

/// Prints a schema, or lists all.
pub fn schema(arguments: &SchemaArguments) -> CommandResult {
    let Some(name) = &arguments.name else {
        let width = PUBLISHED.iter().map(|schema| schema.name.len()).max().unwrap_or_default();
        terminal::print(
            PUBLISHED.iter().map(|schema| format!("{:width$}  {}\n", schema.name, schema.document)).collect::<String>(),
        );
        return Ok(Exit::Ok);
    };
    let Some(found) = PUBLISHED.iter().find(|schema| schema.name == name) else {
        let stop = Stop::new(Exit::Usage, format!("unknown schema `{name}`"));
        return Err(match nearest(name, PUBLISHED.iter().map(|schema| schema.name)) {
            Some(meant) => stop.with_help(format!("did you mean `glovebox schema {meant}`?")),
            None => stop.with_help("list all schemas: `glovebox schema`"),
        });
    };
    terminal::print(found.text);
    Ok(Exit::Ok)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    fn each_published_file_is_listed() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/schemas");
        let files = std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().file_name().into_string().unwrap());
        let mut files: Vec<String> = files.map(|file| file.strip_suffix(".schema.json").unwrap().to_owned()).collect();
        files.sort();
        assert_eq!(PUBLISHED.iter().map(|schema| schema.name).collect::<Vec<_>>(), files);
    }
}
