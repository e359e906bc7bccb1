//! Codex CLI: `codex exec --json`, with the gateway configured as its model provider on the command line.

use super::{Launch, LaunchRequest, ProgramOutput, ProgramStep, call};
use glovebox_record::program::ProgramOptions;
use serde_json::Value;

pub(super) fn launch(options: &ProgramOptions, asked: &LaunchRequest<'_>) -> Launch {
    let text = |text: &str| Value::from(text).to_string();
    let provider = format!(
        "{{name=\"glovebox\",base_url={},env_key=\"MODEL_GATEWAY_TOKEN\",wire_api=\"responses\",request_max_retries=2,stream_max_retries=2}}",
        text(&format!("{}/v1", asked.url))
    );
    let fixed = [
        "model_provider=\"glovebox\"".to_owned(),
        format!("model_providers.glovebox={provider}"),
        "web_search=\"disabled\"".to_owned(),
        "analytics.enabled=false".to_owned(),
        "check_for_update_on_startup=false".to_owned(),
    ];
    let words =
        ["codex", "exec", "--json", "--ephemeral", "--color", "never", "--dangerously-bypass-approvals-and-sandbox"];
    let mut launch = Launch::new(&words, asked);
    launch.argv.extend(options.skip_git_repo_check.then(|| "--skip-git-repo-check".to_owned()));
    launch.argv.extend(["-m".to_owned(), asked.model.to_owned()]);
    // Glovebox's settings come last, because the last value of a setting applies.
    for setting in options.config_overrides.iter().chain(&fixed) {
        launch.argv.extend(["-c".to_owned(), setting.clone()]);
    }
    launch.argv.push("-".to_owned());
    launch.with("CODEX_HOME", asked.home).with("MODEL_GATEWAY_TOKEN", asked.secret)
}

pub(super) fn read(reading: &mut ProgramOutput, event: &Value) -> Option<ProgramStep> {
    let item = &event["item"];
    match (event["type"].as_str().unwrap_or_default(), item["type"].as_str().unwrap_or_default()) {
        ("item.completed", "agent_message") => reading.says(&item["text"]),
        ("item.started", "command_execution") => call(&"command".into(), &item["command"]),
        ("item.completed", "command_execution" | "mcp_tool_call") => {
            let has_failed = item["status"] == "failed" || item["status"] == "declined";
            reading.answered(has_failed, &item["aggregated_output"]);
            None
        }
        ("item.completed", "file_change") => {
            reading.answered(item["status"] == "failed", &item["changes"]);
            call(&"file_change".into(), &item["changes"])
        }
        ("item.started", "mcp_tool_call") => call(&item["tool"], &item["arguments"]),
        ("turn.failed", _) => {
            reading.fails(&event["error"]["message"]);
            None
        }
        (
            "thread.started" | "turn.started" | "turn.completed" | "item.started" | "item.updated" | "item.completed"
            | "error",
            _,
        ) => None,
        _ => {
            reading.unknown += 1;
            None
        }
    }
}
