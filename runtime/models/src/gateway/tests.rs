//! Tests of the requests that the gateway accepts and refuses, in every family.

use super::*;
use crate::target::{CONTEXT_TOKENS, TIMEOUT};

fn check(target: &Target, incoming: &IncomingRequest) -> Result<CheckedRequest, ModelError> {
    let pools = InFlight::default();
    super::check(target, incoming, &mut pools.reserve(incoming.body.len()).unwrap())
}

fn target(family: Family) -> Target {
    Target {
        family,
        endpoint: "http://127.0.0.1:9/v1".parse().unwrap(),
        model: "m-1".into(),
        answers_as: Vec::new(),
        key: None,
        authorities: crate::target::Authorities::default(),
        output_tokens_max: 100,
        context_tokens: CONTEXT_TOKENS,
        timeout: TIMEOUT,
        schema_mode: true,
        images: true,
    }
}

fn post(path: &str, body: &Value) -> IncomingRequest {
    IncomingRequest {
        method: "POST".into(),
        path: path.into(),
        body: body.to_string().into_bytes(),
        ..IncomingRequest::default()
    }
}

fn path_of(family: Family) -> &'static str {
    match family {
        Family::Openai => "/v1/responses",
        Family::Anthropic => "/v1/messages",
        Family::Gemini => "/v1beta/models/m-1:streamGenerateContent",
        Family::OpenaiCompatible | Family::Ollama => "/v1/chat/completions",
    }
}

/// Checks a request with additional fields, and returns the result.
fn asked(family: Family, more: Value) -> Result<Box<Question>, ModelError> {
    let mut body = match family {
        Family::Openai => json!({ "model": "m-1", "input": "x", "stream": true }),
        Family::Gemini => json!({ "contents": [{ "role": "user", "parts": [{ "text": "x" }] }] }),
        _ => json!({ "model": "m-1", "messages": [{ "role": "user", "content": "x" }], "stream": true }),
    };
    for (name, value) in more.as_object().unwrap() {
        body[name] = value.clone();
    }
    match check(&target(family), &post(path_of(family), &body))? {
        CheckedRequest::Answer(question) => Ok(question),
        CheckedRequest::Models => panic!("a list of models"),
    }
}

fn refused(family: Family, more: Value, expected: &str) {
    let shown = more.to_string();
    let error = asked(family, more).expect_err(&shown);
    assert!(error.message.contains(expected), "{shown}: {}", error.message);
}

const ALL: [Family; 4] = [Family::Openai, Family::Anthropic, Family::Gemini, Family::OpenaiCompatible];

#[test]
fn a_usual_request_passes_with_a_bound_on_its_answer() {
    for family in ALL {
        let question = asked(family, json!({})).unwrap();
        assert!(question.is_streamed, "{family}");
        assert_eq!(question.output_tokens_max, 100);
        assert!(question.texts().contains(&"x"));
    }
    let body = |family, more| String::from_utf8(asked(family, more).unwrap().body()).unwrap();
    assert!(body(Family::Anthropic, json!({ "max_tokens": 32_000 })).contains("\"max_tokens\":100"));
    assert!(body(Family::Anthropic, json!({ "max_tokens": 7 })).contains("\"max_tokens\":7"));
    assert!(body(Family::Openai, json!({ "store": true })).contains("\"store\":false"));
    assert!(
        body(Family::OpenaiCompatible, json!({ "max_completion_tokens": 900, "max_tokens": 900 }))
            .contains("\"max_completion_tokens\":100")
    );
    assert!(body(Family::Gemini, json!({ "generationConfig": { "maxOutputTokens": 900 } })).contains(":100"));
}

#[test]
fn another_path_or_model_is_refused() {
    for family in ALL {
        let target = target(family);
        for path in
            ["/v1/files", "/v1/../v1/files", "/", "/v1/models/m-1/x", "/v1/responses/r_1", "/v1/messages/batches"]
        {
            assert!(check(&target, &post(path, &json!({ "model": "m-1" }))).is_err(), "{family} {path}");
        }
        let delete = IncomingRequest { method: "DELETE".into(), ..post(path_of(family), &json!({ "model": "m-1" })) };
        assert!(check(&target, &delete).is_err());
        let list = IncomingRequest { method: "GET".into(), ..post("/v1/models", &json!({})) };
        assert!(matches!(check(&target, &list), Ok(CheckedRequest::Models)));
    }
    for family in [Family::Openai, Family::Anthropic, Family::OpenaiCompatible] {
        let error = asked(family, json!({ "model": "m-2" })).unwrap_err();
        assert_eq!((error.kind, error.message.contains("`m-2`")), (ErrorKind::PinViolation, true));
        assert_eq!(asked(family, json!({ "model": 1 })).unwrap_err().kind, ErrorKind::PinViolation);
    }
    let other = post("/v1beta/models/m-2:generateContent", &json!({}));
    assert_eq!(check(&target(Family::Gemini), &other).unwrap_err().kind, ErrorKind::PinViolation);
}

#[test]
fn what_runs_or_is_stored_at_the_provider_is_refused() {
    use Family as F;
    refused(F::Openai, json!({ "tools": [{ "type": "web_search" }] }), "`web_search`, which runs at the provider");
    refused(F::Openai, json!({ "tools": [{ "type": "mcp", "server_url": "https://x" }] }), "`mcp`");
    refused(
        F::Openai,
        json!({ "tools": [{ "type": "namespace", "tools": [{ "type": "web_search" }] }] }),
        "`web_search`",
    );
    refused(F::Openai, json!({ "previous_response_id": "r" }), "`previous_response_id`");
    refused(F::Openai, json!({ "input": [{ "type": "item_reference", "id": "x" }] }), "stored");
    refused(F::Openai, json!({ "background": true }), "`background`");
    refused(F::Openai, json!({ "service_tier": "priority" }), "`priority`");
    refused(F::Anthropic, json!({ "tools": [{ "type": "web_fetch_20250910", "name": "f" }] }), "`web_fetch_20250910`");
    refused(F::Anthropic, json!({ "mcp_servers": [] }), "`mcp_servers`");
    refused(F::Gemini, json!({ "tools": [{ "googleSearch": {} }] }), "`googleSearch`");
    refused(F::Gemini, json!({ "cachedContent": "c" }), "`cachedContent`");
    refused(F::Gemini, json!({ "generationConfig": { "candidateCount": 2 } }), "more than one");
    refused(F::OpenaiCompatible, json!({ "models": ["a", "b"] }), "`models`");
    refused(F::OpenaiCompatible, json!({ "plugins": [{ "id": "web" }] }), "`plugins`");
    refused(F::OpenaiCompatible, json!({ "n": 2 }), "more than one");
    let own = json!({ "tools": [{ "type": "function", "name": "f" }, { "type": "custom", "name": "g" }] });
    assert!(asked(F::Openai, own).is_ok());
    assert!(asked(F::Anthropic, json!({ "tools": [{ "name": "WebFetch", "input_schema": {} }] })).is_ok());
}

/// Codex lists its tools in the conversation for the models that it knows. Tools that a hostile program lists there must be checked too.
#[test]
fn tools_in_the_conversation_are_checked() {
    use Family as F;
    let listed =
        |tool: Value| json!({ "input": [{ "type": "additional_tools", "role": "developer", "tools": [tool] }] });
    let grouped = |tool: Value| json!({ "type": "namespace", "name": "functions", "tools": [tool] });
    for hosted in [
        json!({ "type": "web_search" }),
        json!({ "type": "mcp", "server_url": "https://x" }),
        json!({ "type": "shell", "environment": { "type": "container_auto" } }),
        json!({ "type": "shell" }),
        json!({ "type": "tool_search" }),
        json!({ "type": "tool_search", "execution": "server" }),
    ] {
        refused(F::Openai, json!({ "tools": [hosted.clone()] }), "runs at the provider");
        refused(F::Openai, listed(hosted.clone()), "runs at the provider");
        refused(F::Openai, listed(grouped(grouped(hosted.clone()))), "runs at the provider");
        let found = json!({ "input": [{ "type": "tool_search_output", "call_id": "c", "tools": [hosted] }] });
        refused(F::Openai, found, "runs at the provider");
    }
    refused(F::Openai, json!({ "tools": { "type": "web_search" } }), "not a list");
    refused(F::Openai, json!({ "input": [{ "type": "additional_tools", "tools": "web_search" }] }), "not a list");
    for own in [
        json!({ "type": "custom", "name": "exec", "format": { "type": "grammar" } }),
        json!({ "type": "tool_search", "execution": "client", "parameters": {} }),
        json!({ "type": "shell", "environment": { "type": "local" } }),
    ] {
        assert!(asked(F::Openai, json!({ "tools": [own.clone()] })).is_ok(), "{own}");
        assert!(asked(F::Openai, listed(grouped(own.clone()))).is_ok(), "{own}");
    }
    // A tool of the program may have an argument named `tools`.
    let call =
        json!({ "type": "tool_use", "id": "1", "name": "f", "input": { "tools": [{ "type": "web_search_x" }] } });
    assert!(asked(F::Anthropic, json!({ "messages": [{ "role": "assistant", "content": [call] }] })).is_ok());
}

/// Requests of a client of the Responses API are accepted. References to content that the provider stores or executes are refused.
#[test]
fn items_of_a_conversation_come_from_a_list() {
    let with = |item: Value| json!({ "input": [{ "role": "user", "content": "x" }, item] });
    for usual in [
        json!({ "type": "message", "role": "user", "content": [{ "type": "input_text", "text": "x" }] }),
        json!({ "type": "message", "id": "msg_1", "role": "assistant", "content": [{ "type": "output_text", "text": "x" }] }),
        json!({ "role": "developer", "content": [{ "type": "input_text", "text": "x" }] }),
        json!({ "type": "reasoning", "summary": [], "content": null, "encrypted_content": "gAAA" }),
        json!({ "type": "function_call", "name": "f", "arguments": "{\"url\":\"http://x\"}", "call_id": "c" }),
        json!({ "type": "function_call_output", "call_id": "c", "output": "x" }),
        json!({ "type": "function_call_output", "call_id": "c", "output": [{ "type": "input_image", "image_url": "data:image/png;base64,AA" }] }),
        json!({ "type": "local_shell_call", "call_id": "c", "status": "completed", "action": { "type": "exec", "command": ["ls"] } }),
        json!({ "type": "custom_tool_call", "call_id": "c", "name": "apply_patch", "input": "*** Begin Patch" }),
        json!({ "type": "custom_tool_call_output", "call_id": "c", "output": "x" }),
        json!({ "type": "tool_search_call", "call_id": "c", "execution": "client", "arguments": { "url": "x", "type": ["a"] } }),
        json!({ "type": "additional_tools", "role": "developer", "tools": [{ "type": "function", "name": "f",
            "parameters": { "type": "object", "properties": { "url": { "type": ["string", "null"] } } } }] }),
    ] {
        assert!(asked(Family::Openai, with(usual.clone())).is_ok(), "{usual}");
    }
    for (item, expected) in [
        (json!({ "id": "msg_68" }), "stored"),
        (json!({ "id": "msg_68", "role": "user" }), "stored"),
        (json!({ "type": null, "id": "msg_68" }), "`type` is not a string"),
        (json!({ "type": ["item_reference"], "id": "msg_68" }), "`type` is not a string"),
        (json!({ "type": "message", "id": "msg_68" }), "stored"),
        (json!({ "type": "message", "id": "msg_68", "content": null }), "stored"),
        (json!({ "type": "reasoning", "id": "rs_1" }), "stored"),
        (json!("msg_68"), "not an object"),
        (json!({ "type": "compaction", "encrypted_content": "x" }), "`compaction`"),
        (
            json!({ "type": "mcp_approval_response", "approval_request_id": "a", "approve": true }),
            "`mcp_approval_response`",
        ),
        (json!({ "type": "code_interpreter_call", "container_id": "c", "code": "1" }), "`code_interpreter_call`"),
        (json!({ "type": "image_generation_call", "id": "ig_1" }), "`image_generation_call`"),
        (
            json!({ "type": "shell_call", "action": {}, "environment": { "type": "container_reference", "container_id": "c" } }),
            "`environment`",
        ),
        (
            json!({ "type": "message", "role": "user", "content": [{ "type": "input_file", "file_id": ["f"] }] }),
            "`file_id`",
        ),
        (
            json!({ "type": "message", "role": "user", "content": [{ "type": "input_image", "image_url": ["http://x"] }] }),
            "`image_url`",
        ),
        (
            json!({ "type": "message", "role": "user", "content": [{ "type": ["input_text"], "text": "x" }] }),
            "`type` is not a string",
        ),
    ] {
        refused(Family::Openai, with(item), expected);
    }
    refused(Family::Openai, json!({ "input": { "id": "msg_68" } }), "neither text nor a list");
    refused(Family::Openai, json!({ "input": null }), "neither text nor a list");
}

#[test]
fn the_choice_of_a_tool_names_one_of_the_program() {
    use Family as F;
    for (family, choice) in [
        (F::Openai, json!("auto")),
        (F::Openai, json!({ "type": "function", "name": "f" })),
        (F::Openai, json!({ "type": "allowed_tools", "mode": "auto", "tools": [{ "type": "function", "name": "f" }] })),
        (F::Anthropic, json!({ "type": "tool", "name": "f" })),
        (F::OpenaiCompatible, json!({ "type": "function", "function": { "name": "f" } })),
        (F::OpenaiCompatible, Value::Null),
    ] {
        assert!(asked(family, json!({ "tool_choice": choice.clone() })).is_ok(), "{family} {choice}");
    }
    for choice in [
        json!("web_search"),
        json!(["auto"]),
        json!({ "name": "f" }),
        json!({ "type": "web_search_preview" }),
        json!({ "type": "mcp", "server_label": "s" }),
        json!({ "type": "allowed_tools", "tools": [{ "type": "mcp", "server_label": "s" }] }),
        json!({ "type": "allowed_tools", "tools": "mcp" }),
        json!({ "type": "allowed_tools", "allowed_tools": { "tools": [{ "type": "mcp" }] } }),
    ] {
        for family in [F::Openai, F::Anthropic, F::OpenaiCompatible] {
            refused(family, json!({ "tool_choice": choice.clone() }), "tool choice");
        }
    }
    assert!(asked(F::Gemini, json!({ "toolConfig": { "functionCallingConfig": { "mode": "AUTO" } } })).is_ok());
    refused(F::Gemini, json!({ "toolConfig": { "retrievalConfig": {} } }), "`toolConfig` with another field");
}

#[test]
fn what_is_checked_has_the_type_that_the_check_reads() {
    use Family as F;
    for tier in [json!(["priority"]), json!({ "a": 1 }), json!("fast"), json!("scale"), json!("another"), json!(1)] {
        refused(F::Openai, json!({ "service_tier": tier }), "`service_tier`");
    }
    assert!(asked(F::Openai, json!({ "service_tier": null })).is_ok());
    assert!(asked(F::Anthropic, json!({ "service_tier": "standard_only" })).is_ok());
    for kind in [json!(["web_search_20250305"]), json!(1), json!({})] {
        for family in [F::Openai, F::Anthropic, F::OpenaiCompatible] {
            refused(family, json!({ "tools": [{ "type": kind.clone(), "name": "f" }] }), "`type` is not a string");
        }
    }
    refused(F::Openai, json!({ "tools": [{ "name": "f" }] }), "`type` is not a string");
    refused(F::Gemini, json!({ "tools": ["googleSearch"] }), "not an object");
    for more in [json!({ "file_ids": ["f"] }), json!({ "skills": [{ "id": "s" }] })] {
        let mut shell = json!({ "type": "shell", "environment": more });
        shell["environment"]["type"] = "local".into();
        refused(F::Openai, json!({ "tools": [shell] }), "runs at the provider");
    }
    for (family, field) in [
        (F::Openai, json!({ "stream": "true" })),
        (F::Openai, json!({ "instructions": ["x"] })),
        (F::Anthropic, json!({ "messages": {} })),
        (F::Anthropic, json!({ "system": { "a": 1 } })),
        (F::Anthropic, json!({ "max_tokens": "900" })),
        (F::OpenaiCompatible, json!({ "max_completion_tokens": [900] })),
        (F::Gemini, json!({ "generationConfig": [] })),
    ] {
        refused(family, field, "whose type differs");
    }
}

#[test]
fn an_address_that_the_provider_would_fetch_is_refused() {
    let image =
        |source: Value| json!({ "messages": [{ "role": "user", "content": [{ "type": "image", "source": source }] }] });
    refused(Family::Anthropic, image(json!({ "type": "url", "url": "https://evil.example/?d=x" })), "`url`");
    refused(Family::Anthropic, image(json!({ "type": "file", "file_id": "f" })), "`file_id`");
    assert!(asked(Family::Anthropic, image(json!({ "type": "base64", "data": "AA==" }))).is_ok());
    let part = |url: &str| json!({ "messages": [{ "role": "user", "content": [{ "type": "image_url", "image_url": { "url": url } }] }] });
    refused(Family::OpenaiCompatible, part("https://evil.example/x.png"), "`url`");
    assert!(asked(Family::OpenaiCompatible, part("data:image/png;base64,AA==")).is_ok());
    refused(
        Family::Openai,
        json!({ "input": [{ "role": "user", "content": [{ "type": "input_image", "image_url": "http://x/" }] }] }),
        "`image_url`",
    );
    refused(
        Family::Gemini,
        json!({ "contents": [{ "parts": [{ "fileData": { "fileUri": "gs://x" } }] }] }),
        "`fileUri`",
    );
    // Arguments of the program's own tools are not fetched.
    let call = json!({ "type": "tool_use", "id": "1", "name": "WebFetch", "input": { "url": "https://x" } });
    assert!(asked(Family::Anthropic, json!({ "messages": [{ "role": "assistant", "content": [call] }] })).is_ok());
    let call = json!({ "functionCall": { "name": "web_fetch", "args": { "url": "https://x" } } });
    assert!(asked(Family::Gemini, json!({ "contents": [{ "role": "model", "parts": [call] }] })).is_ok());
}

#[test]
fn features_are_passed_on_only_as_names() {
    let body = json!({ "model": "m-1", "messages": [] });
    let with = |features: &str| {
        let incoming = IncomingRequest { features: vec![features.into()], ..post("/v1/messages", &body) };
        check(&target(Family::Anthropic), &incoming)
    };
    let passed = |features: &str| match with(features).unwrap() {
        CheckedRequest::Answer(question) => question.headers.into_iter().map(|header| header.value).collect::<Vec<_>>(),
        CheckedRequest::Models => panic!("a list of models"),
    };
    let usual = "claude-code-20250219,interleaved-thinking-2025-05-14, mcp-client-2025-04-04 ,x";
    assert_eq!(passed(usual), ["claude-code-20250219,interleaved-thinking-2025-05-14"]);
    assert_eq!(passed("files-api-2025-04-14"), Vec::<String>::new());
    for costly in ["context-1m-2025-08-07", "claude-code-20250219, context-1m-2026-01-01", "fast-mode-2026-02-01"] {
        assert!(with(costly).unwrap_err().message.contains("price differs"), "{costly}");
    }
    assert!(with("a\u{7f}b").is_err() && with(&"a".repeat(5000)).is_err());
}

#[test]
fn a_refusal_is_json_that_no_client_repeats() {
    let (status, body) = refusal(&ModelError::new(ErrorKind::PinViolation, "no"));
    assert_eq!((status, body["error"]["code"].as_str()), (400, Some("pin-violation")));
    assert_eq!(refusal(&ModelError::new(ErrorKind::RateLimit, "slow")).0, 429);
}

#[test]
fn a_whole_answer_is_read_like_a_streamed_one() {
    use crate::ask::AnswerReader;
    use crate::provider::Draft;
    let read = |family: Family, answer: Value| {
        let target = target(family);
        let receiving = AnswerReader { target: &target, provider: family.provider(), draft: Draft::default() };
        let answer = receiving.read_events(whole::events(family, answer)).unwrap();
        assert_eq!((answer.text().as_str(), answer.usage.input, answer.usage.output), ("hi", 3, 2), "{family}");
    };
    let message = json!([{ "type": "message", "content": [{ "type": "output_text", "text": "hi" }] }]);
    read(
        Family::Openai,
        json!({ "model": "m-1", "output": message, "usage": { "input_tokens": 3, "output_tokens": 2 } }),
    );
    read(
        Family::Anthropic,
        json!({ "model": "m-1", "content": [{ "type": "text", "text": "hi" }], "stop_reason": "end_turn",
            "usage": { "input_tokens": 3, "output_tokens": 2 } }),
    );
    read(
        Family::OpenaiCompatible,
        json!({ "model": "m-1", "choices": [{ "message": { "content": "hi" }, "finish_reason": "stop" }],
            "usage": { "prompt_tokens": 3, "completion_tokens": 2 } }),
    );
    read(
        Family::Gemini,
        json!({ "modelVersion": "m-1", "candidates": [{ "content": { "parts": [{ "text": "hi" }] }, "finishReason": "STOP" }],
            "usageMetadata": { "promptTokenCount": 3, "candidatesTokenCount": 2 } }),
    );
}
