//! Converts the attributes of a node's agent program to types: `agent.backend`, and the options for Codex (decision codex-options).
//!
//! An option without an effect is an error, because the author may mean it as a protection. The read scope of `codex.*` applies
//! to every agent stage; the module `confine` reads it.

use super::reader::Findings;
use super::scope::Attributes;
use crate::diagnostic::Diagnostic;
use crate::ir::{AgentBackend, Attribute, Handler, HandlerKind};
use crate::key::{self, Key};
use crate::nearest::nearest;
use crate::path::entry_of;
use glovebox_record::path::ScopePath;
use glovebox_record::program::{AgentProgram, ProgramOptions};
use glovebox_record::status_place::FALLBACKS;
use std::time::Duration;

/// Options that only Codex reads. `codex.path` is not in this list, because it is also a part of a strict read scope.
const CODEX: [Key<'static>; 9] = [
    key::CODEX_SANDBOX,
    key::CODEX_APPROVAL,
    key::CODEX_SKIP_GIT_REPO_CHECK,
    key::CODEX_DISABLE_MCP,
    key::CODEX_MODEL,
    key::CODEX_TIMEOUT_SECONDS,
    key::CODEX_HEARTBEAT_SECONDS,
    key::CODEX_CONFIG_OVERRIDES,
    key::CODEX_DANGEROUS_BYPASS,
];
/// Default interval of the reports that a silent Codex is still running, in seconds.
const HEARTBEAT_SECONDS: u64 = 15;

/// Returns the agent program of a node. `None` for a stage with Glovebox's own agent.
pub(super) fn lower(handler: &Handler, from: &Attributes, findings: &mut Findings<'_>) -> Option<AgentBackend> {
    let written = from.get(key::AGENT_BACKEND).filter(|attribute| !attribute.value.trim().is_empty());
    let program = written.and_then(|attribute| program(attribute, findings));
    if let Some(attribute) = written.filter(|_| handler.kind() != HandlerKind::Codergen) {
        let message = format!("`{}` is set on a `{}` node, which starts no agent", key::AGENT_BACKEND, handler.name());
        findings.push(fault(attribute, message, "remove it, or make the node a `box`"));
        return None;
    }
    for option in
        CODEX.into_iter().filter(|_| written.is_none() || program.is_some_and(|known| known != AgentProgram::Codex))
    {
        if let Some(attribute) = from.get(option).filter(|attribute| !attribute.value.trim().is_empty()) {
            let message = format!("`{option}` has no effect here: only the agent program `codex` reads it");
            findings.push(fault(attribute, message, "remove it, or set `agent.backend=\"codex\"`"));
        }
    }
    let program = program?;
    let options = match program {
        AgentProgram::Codex => codex(from, findings),
        AgentProgram::Exec => command(from, written?, findings),
        _ => ProgramOptions::default(),
    };
    if let Some(attribute) = from.get(key::AGENT_COMMAND).filter(|_| program != AgentProgram::Exec) {
        let message = format!("`{}` is set, but the agent program is `{program}`", key::AGENT_COMMAND);
        findings.push(fault(attribute, message, "remove it, or set `agent.backend=\"exec\"`"));
    }
    let path = findings.text(from, key::AGENT_PATH).map(|path| path.trim().to_owned());
    Some(AgentBackend { program, options: ProgramOptions { path: path.or(options.path), ..options } })
}

/// Returns true if the stage answers by a status file. Reports the attribute on a stage that starts no program, because a component
/// answers by its return value.
pub(super) fn status_file(handler: &Handler, from: &Attributes, findings: &mut Findings<'_>) -> bool {
    let is_set = findings.boolean(from, key::STATUS_FILE);
    if is_set && !starts_program(handler, from) {
        let message = format!(
            "`{}` is set on a `{}` node, which answers by the return value of its component",
            key::STATUS_FILE,
            handler.name()
        );
        let help = "remove it; only tool stages and agent programs (`agent.backend`) answer by a file";
        if let Some(attribute) = from.get(key::STATUS_FILE) {
            findings.push(fault(attribute, message, help));
        }
    }
    if is_set {
        for folders in [key::SCRATCH, key::CACHE] {
            check_places(folders, from, findings);
        }
    }
    is_set
}

/// Reports a folder whose content is not part of the result of the stage, if the stage's status file could be in it.
fn check_places(folders: Key<'static>, from: &Attributes, findings: &mut Findings<'_>) {
    let Some(attribute) = from.get(folders) else { return };
    for entry in attribute.value.split(',').filter_map(|text| entry_of(text.trim()).ok()) {
        let is_in = |place: &&str| ScopePath::parse(place).is_ok_and(|place| entry.as_folder().contains(&place));
        if let Some(place) = FALLBACKS.into_iter().find(is_in) {
            let message = format!(
                "`{folders}` includes `{entry}`, but the stage has `{}=true`, and its file `{place}` would be lost there",
                key::STATUS_FILE
            );
            let help = "name folders that contain neither `status.json` nor `.ai/status.json`";
            findings.push(fault(attribute, message, help));
        }
    }
}

/// Returns true for a stage whose work is done by a program of the machine: a tool stage, or an agent stage with `agent.backend`.
pub(super) fn starts_program(handler: &Handler, from: &Attributes) -> bool {
    let has_backend = || from.get(key::AGENT_BACKEND).is_some_and(|backend| !backend.value.trim().is_empty());
    match handler.kind() {
        HandlerKind::Tool => true,
        HandlerKind::Codergen => has_backend(),
        _ => false,
    }
}

fn program(attribute: &Attribute, findings: &mut Findings<'_>) -> Option<AgentProgram> {
    let text = attribute.value.trim();
    text.parse()
        .map_err(|error| {
            let message = format!("`{}` is `{text}`, {error}", key::AGENT_BACKEND);
            let names = AgentProgram::ALL.map(AgentProgram::as_str);
            findings.corrected(attribute, message, nearest(text, names));
        })
        .ok()
}

fn codex(from: &Attributes, findings: &mut Findings<'_>) -> ProgramOptions {
    let sandbox = word(from, findings, key::CODEX_SANDBOX, &["workspace-write", "read-only", "danger-full-access"]);
    word(from, findings, key::CODEX_APPROVAL, &["never"]);
    // Both settings always apply: the program has its own home directory, and the jail replaces the program's sandbox.
    findings.boolean(from, key::CODEX_DISABLE_MCP);
    findings.boolean(from, key::CODEX_DANGEROUS_BYPASS);
    let seconds = |key, findings: &mut Findings<'_>| {
        let number = findings.integer(from, key, 0, i64::from(u32::MAX));
        number.and_then(|number| u64::try_from(number).ok())
    };
    let timeout = seconds(key::CODEX_TIMEOUT_SECONDS, findings);
    let heartbeat = seconds(key::CODEX_HEARTBEAT_SECONDS, findings).unwrap_or(HEARTBEAT_SECONDS);
    let overrides = findings.text(from, key::CODEX_CONFIG_OVERRIDES).unwrap_or_default();
    let overrides: Vec<String> =
        overrides.split(";;").map(str::trim).filter(|text| !text.is_empty()).map(str::to_owned).collect();
    if let Some(attribute) = from.get(key::CODEX_CONFIG_OVERRIDES)
        && let Some(wrong) = overrides.iter().find(|setting| !setting.contains('='))
    {
        findings.invalid(
            attribute,
            format!("`{}` expects `key=value`, separated by `;;`, found `{wrong}`", key::CODEX_CONFIG_OVERRIDES),
        );
    }
    ProgramOptions {
        path: findings.text(from, key::CODEX_PATH).map(|path| path.trim().to_owned()),
        config_overrides: overrides,
        skip_git_repo_check: findings.boolean(from, key::CODEX_SKIP_GIT_REPO_CHECK),
        is_read_only: sandbox == Some("read-only"),
        timeout: timeout.filter(|seconds| *seconds > 0).map(Duration::from_secs),
        heartbeat: Some(heartbeat).filter(|seconds| *seconds > 0).map(Duration::from_secs),
        ..ProgramOptions::default()
    }
}

/// Returns the value of an attribute if it is one of `words`. Reports any other value.
fn word(
    from: &Attributes,
    findings: &mut Findings<'_>,
    key: Key<'static>,
    words: &[&'static str],
) -> Option<&'static str> {
    let attribute = from.get(key).filter(|attribute| !attribute.value.trim().is_empty())?;
    let text = attribute.value.trim();
    let found = words.iter().find(|word| **word == text).copied();
    if found.is_none() {
        let listed = words.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", ");
        findings.corrected(
            attribute,
            format!("`{key}` is `{text}`, expected {listed}"),
            nearest(text, words.iter().copied()),
        );
    }
    found
}

/// Returns the options of the agent program `exec`, which is started with the command line in `agent.command`.
fn command(from: &Attributes, backend: &Attribute, findings: &mut Findings<'_>) -> ProgramOptions {
    let written = from.get(key::AGENT_COMMAND).filter(|attribute| !attribute.value.trim().is_empty());
    let Some(attribute) = written else {
        let message = format!("the agent program `exec` needs `{}`", key::AGENT_COMMAND);
        let help = "set it to the command line of the program, such as `agent.command=\"my-agent --model {model}\"`";
        findings.push(fault(backend, message, help));
        return ProgramOptions::default();
    };
    match split(&attribute.value) {
        Some(command) => ProgramOptions { command, ..ProgramOptions::default() },
        None => {
            findings.invalid(attribute, format!("a quote in `{}` is not closed", key::AGENT_COMMAND));
            ProgramOptions::default()
        }
    }
}

/// Splits a text into arguments at white space. Single and double quotes keep white space. No shell reads the text.
/// `None` if a quote is not closed.
fn split(text: &str) -> Option<Vec<String>> {
    let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None);
    for character in text.chars() {
        match (quote, character) {
            (Some(open), _) if character == open => quote = None,
            (None, '"' | '\'') => {
                quote = Some(character);
                word.get_or_insert_default();
            }
            (None, _) if character.is_whitespace() => words.extend(word.take()),
            _ => word.get_or_insert_default().push(character),
        }
    }
    words.extend(word);
    quote.is_none().then_some(words)
}

fn fault(attribute: &Attribute, message: String, help: &'static str) -> Diagnostic {
    Diagnostic::error("attribute_value", message, attribute.span).with_help(help)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_split_at_white_space_outside_of_quotes() {
        let check = |text: &str, expected: &[&str]| assert_eq!(split(text).unwrap(), expected, "{text}");
        check("a  b\tc", &["a", "b", "c"]);
        check("a 'b c' \"d 'e\"", &["a", "b c", "d 'e"]);
        check("a '' b", &["a", "", "b"]);
        check("--x='y z'", &["--x=y z"]);
        assert_eq!(split("a 'b"), None);
    }
}
