//! Gemini CLI: `gemini -p` with a stream of JSON events. Its settings are a file in its private home.

use super::{Launch, LaunchRequest, ProgramOutput, ProgramStep, call};
use serde_json::{Value, json};

pub(super) fn launch(asked: &LaunchRequest<'_>) -> Launch {
    let settings = json!({
        "security": { "auth": { "selectedType": "gemini-api-key" } },
        "privacy": { "usageStatisticsEnabled": false },
        "telemetry": { "enabled": false },
        "general": { "enableAutoUpdate": false, "enableAutoUpdateNotification": false },
        "model": { "name": asked.model },
    });
    let words = ["gemini", "-o", "stream-json", "--yolo", "-m", asked.model];
    let mut launch = Launch::new(&words, asked)
        .with("GEMINI_CLI_HOME", asked.home)
        .with("GEMINI_API_KEY", asked.secret)
        .with("GOOGLE_GEMINI_BASE_URL", asked.url)
        .with("GEMINI_CLI_TRUST_WORKSPACE", "true");
    launch.files.push((".gemini/settings.json", settings.to_string()));
    launch
}

pub(super) fn read(reading: &mut ProgramOutput, event: &Value) -> Option<ProgramStep> {
    match (event["type"].as_str().unwrap_or_default(), event["role"].as_str().unwrap_or_default()) {
        ("message", "assistant") => reading.goes_on(&event["content"]),
        ("tool_use", _) => {
            reading.message.clear();
            call(&event["tool_name"], &event["parameters"])
        }
        ("tool_result", _) => {
            let answer = if event["error"].is_null() { &event["output"] } else { &event["error"] };
            reading.answered(event["status"] == "error", answer);
            None
        }
        ("result", _) if event["status"] != "success" => {
            reading.fails(if event["error"]["message"].is_string() {
                &event["error"]["message"]
            } else {
                &event["status"]
            });
            None
        }
        ("init" | "message" | "result" | "error", _) => None,
        _ => {
            reading.unknown += 1;
            None
        }
    }
}
