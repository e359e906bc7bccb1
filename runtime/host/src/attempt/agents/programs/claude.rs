//! Claude Code: `claude -p` with a stream of JSON events.

use super::{Launch, LaunchRequest, ProgramOutput, ProgramStep, call};
use serde_json::Value;

pub(super) fn launch(asked: &LaunchRequest<'_>) -> Launch {
    let turns = asked.turns_max.to_string();
    let words = [
        "claude",
        "-p",
        "--output-format",
        "stream-json",
        "--verbose",
        "--model",
        asked.model,
        "--permission-mode",
        "bypassPermissions",
        "--max-turns",
        &turns,
        "--strict-mcp-config",
    ];
    let launch = Launch::new(&words, asked)
        .with("CLAUDE_CONFIG_DIR", asked.home)
        .with("ANTHROPIC_BASE_URL", asked.url)
        .with("ANTHROPIC_AUTH_TOKEN", asked.secret)
        .with("CLAUDE_CODE_MAX_OUTPUT_TOKENS", asked.output_tokens_max.to_string());
    // Claude Code asks smaller models for titles and summaries, unless all of these variables name the same model.
    let names = [
        "ANTHROPIC_DEFAULT_HAIKU_MODEL",
        "ANTHROPIC_DEFAULT_SONNET_MODEL",
        "ANTHROPIC_DEFAULT_OPUS_MODEL",
        "ANTHROPIC_SMALL_FAST_MODEL",
        "CLAUDE_CODE_SUBAGENT_MODEL",
    ];
    let launch = names.into_iter().fold(launch, |launch, name| launch.with(name, asked.model));
    let off = [
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC",
        "DISABLE_TELEMETRY",
        "DISABLE_AUTOUPDATER",
        "DISABLE_ERROR_REPORTING",
    ];
    off.into_iter().fold(launch, |launch, name| launch.with(name, "1"))
}

pub(super) fn read(reading: &mut ProgramOutput, event: &Value) -> Option<ProgramStep> {
    match event["type"].as_str().unwrap_or_default() {
        "assistant" => {
            let parts = event["message"]["content"].as_array()?;
            parts
                .iter()
                .filter_map(|part| match part["type"].as_str() {
                    Some("text") => reading.says(&part["text"]),
                    Some("tool_use") => call(&part["name"], &part["input"]),
                    _ => None,
                })
                .last()
        }
        "result" => {
            if event["is_error"] == true {
                reading.fails(if event["result"].is_string() { &event["result"] } else { &event["subtype"] });
            } else {
                reading.says(&event["result"]);
            }
            None
        }
        "user" => {
            let parts = event["message"]["content"].as_array()?;
            let results = parts.iter().filter(|part| part["type"] == "tool_result");
            results.for_each(|result| reading.answered(result["is_error"] == true, &result["content"]));
            None
        }
        "system" | "stream_event" | "rate_limit_event" => None,
        _ => {
            reading.unknown += 1;
            None
        }
    }
}
