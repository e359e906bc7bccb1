//! The settings for a project: a `glovebox.toml` with what the commands of its stages need from this machine.

use glovebox_plan::config::Toolchain;
use glovebox_plan::prepare::survey::{Part, Survey};

const HEADER: &str = "\
# What the stages of this project may use of your machine. `glovebox init` wrote it; change it as you like.
# A stage gets only what is named here: no network, no home, no other programs.
";

/// An entry for a model, commented out.
const MODEL: &str = "
# The model of stages with a prompt; its key is in ANTHROPIC_API_KEY. Also openai, gemini, ollama, openai-compatible (docs/models.md).
# [models.claude-sonnet-4-5]
# provider = \"anthropic\"
";

/// Returns the content of `glovebox.toml`.
pub fn settings(survey: &Survey) -> String {
    let mut text = HEADER.to_owned();
    let toolchains: Vec<&str> = survey.toolchains().into_iter().map(Toolchain::as_str).collect();
    let is_node = survey.toolchains().contains(&Toolchain::Node);
    let venv = survey.outer_environment();
    if !toolchains.is_empty() || venv.is_some() {
        text.push_str("\n[exec]\n");
    }
    if !toolchains.is_empty() {
        text.push_str("# Found on this machine, shown to commands read-only, and first in their PATH.\n");
        text.push_str(&format!("toolchains = {}\n", list(&toolchains)));
    }
    if let Some(venv) = venv {
        text.push_str("# The environment of Python, outside of the project: shown read-only, and first in PATH.\n");
        text.push_str(&format!("venv = \"{venv}\"\n"));
    }
    if is_node {
        text.push_str("# Makes test runners run once instead of watching files.\nenv = { CI = \"true\" }\n");
    }
    if is_node || survey.toolchains().contains(&Toolchain::Python) {
        text.push_str("# Installed dependencies, `node_modules/` and `.venv/`, are shown to commands read-only without a line here.\n");
    }
    let all = |names: fn(&Part) -> &Vec<String>| survey.parts.iter().flat_map(names).collect::<Vec<_>>();
    let (caches, scratch) = (all(|part| &part.caches), all(|part| &part.scratch));
    let reuse = reused(survey);
    if !caches.is_empty() || !scratch.is_empty() || !reuse.is_empty() {
        text.push_str("\n[sandbox]\n");
    }
    if !caches.is_empty() {
        text.push_str(
            "# Build results that git does not ignore. They are kept between the stages of a run, and never come into your project.\n",
        );
        text.push_str(&format!("cache = {}\n", list(&caches)));
    }
    if !scratch.is_empty() {
        text.push_str("# By-products of tools, deleted after each stage.\n");
        text.push_str(&format!("scratch = {}\n", list(&scratch)));
    }
    if !reuse.is_empty() {
        text.push_str("# Build results that git ignores. The next run begins with those of the last one.\n");
        text.push_str(&format!("reuse = {}\n", list(&reuse)));
    }
    text + MODEL
}

/// Returns the folders of build results that git ignores; empty if they are only the usual folders of the toolchains.
fn reused(survey: &Survey) -> Vec<&String> {
    let is_usual = |part: &Part| part.folder.is_empty() && !part.toolchains.is_empty();
    let folders = |part| -> &Vec<String> {
        let part: &Part = part;
        &part.build_folders
    };
    match survey.parts.iter().all(|part| is_usual(part) || part.build_folders.is_empty()) {
        true => Vec::new(),
        false => survey.parts.iter().flat_map(folders).collect(),
    }
}

/// Returns a list of plain names in TOML, without duplicates.
fn list(names: &[impl AsRef<str>]) -> String {
    let names: std::collections::BTreeSet<String> = names.iter().map(|name| format!("\"{}\"", name.as_ref())).collect();
    format!("[{}]", names.into_iter().collect::<Vec<_>>().join(", "))
}
