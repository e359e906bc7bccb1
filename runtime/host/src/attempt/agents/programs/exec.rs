//! A program of the operator. `agent.command` is its command line, and its whole output is its final message.

use super::{Launch, LaunchRequest};
use glovebox_models::family::Family;
use glovebox_record::program::ProgramOptions;

pub(super) fn launch(options: &ProgramOptions, asked: &LaunchRequest<'_>) -> Launch {
    let filled = |word: &String| {
        let word = word.replace("{model}", asked.model).replace("{gateway}", asked.url).replace("{home}", asked.home);
        word.replace("{prompt}", asked.prompt)
    };
    let mut launch = Launch::new(&[], asked);
    launch.argv = options.command.iter().map(filled).collect();
    let (base, token, path) = match asked.family {
        Family::Anthropic => ("ANTHROPIC_BASE_URL", "ANTHROPIC_AUTH_TOKEN", ""),
        Family::Gemini => ("GOOGLE_GEMINI_BASE_URL", "GEMINI_API_KEY", ""),
        Family::Openai | Family::OpenaiCompatible | Family::Ollama => ("OPENAI_BASE_URL", "OPENAI_API_KEY", "/v1"),
    };
    launch
        .with("MODEL_GATEWAY_URL", asked.url)
        .with("MODEL_GATEWAY_TOKEN", asked.secret)
        .with("MODEL_NAME", asked.model)
        .with(base, format!("{}{path}", asked.url))
        .with(token, asked.secret)
}
