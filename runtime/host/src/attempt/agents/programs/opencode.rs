//! OpenCode: `opencode run --format json`, with its whole configuration in an environment variable.

use super::{Launch, LaunchRequest, ProgramOutput, ProgramStep, call};
use glovebox_models::family::Family;
use serde_json::{Value, json};

pub(super) fn launch(asked: &LaunchRequest<'_>) -> Launch {
    let (package, path) = match asked.family {
        Family::Anthropic => ("@ai-sdk/anthropic", "/v1"),
        Family::Gemini => ("@ai-sdk/google", "/v1beta"),
        Family::Openai => ("@ai-sdk/openai", "/v1"),
        Family::OpenaiCompatible | Family::Ollama => ("@ai-sdk/openai-compatible", "/v1"),
    };
    let name = format!("glovebox/{}", asked.model);
    let limit = json!({ "context": 128_000, "output": asked.output_tokens_max });
    let provider = json!({
        "npm": package,
        "name": "glovebox",
        "options": { "baseURL": format!("{}{path}", asked.url), "apiKey": "{env:MODEL_GATEWAY_TOKEN}" },
        "models": { asked.model: { "name": asked.model, "limit": limit } },
    });
    let configuration = json!({
        "autoupdate": false, "share": "disabled", "model": name, "small_model": name, "enabled_providers": ["glovebox"],
        "permission": { "*": "allow", "webfetch": "deny", "websearch": "deny" }, "provider": { "glovebox": provider },
    });
    let launch = Launch::new(&["opencode", "run", "--format", "json", "--title", "glovebox", "--model", &name], asked)
        .with("OPENCODE_CONFIG_CONTENT", configuration.to_string())
        .with("MODEL_GATEWAY_TOKEN", asked.secret);
    let off = [
        "OPENCODE_DISABLE_AUTOUPDATE",
        "OPENCODE_DISABLE_MODELS_FETCH",
        "OPENCODE_DISABLE_LSP_DOWNLOAD",
        "OPENCODE_DISABLE_DEFAULT_PLUGINS",
    ];
    off.into_iter().fold(launch, |launch, name| launch.with(name, "1"))
}

pub(super) fn read(reading: &mut ProgramOutput, event: &Value) -> Option<ProgramStep> {
    let part = &event["part"];
    match event["type"].as_str().unwrap_or_default() {
        "text" => reading.says(&part["text"]),
        "tool_use" | "tool" => {
            let state = &part["state"];
            if matches!(state["status"].as_str(), Some("completed" | "error")) {
                reading.answered(state["status"] == "error", &state["error"]);
            }
            call(&part["tool"], &state["input"])
        }
        "error" => {
            let error = &event["error"];
            let message = &error["data"]["message"];
            reading.fails(if message.is_string() { message } else { &error["name"] });
            None
        }
        "step_start" | "step_finish" | "reasoning" => None,
        _ => {
            reading.unknown += 1;
            None
        }
    }
}
