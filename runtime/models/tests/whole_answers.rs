//! Tests of the scripted provider's answers that are not streamed, in every wire format.

use glovebox_fake_llm::{Fake, FakeScript};
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};

const SCRIPT: &str = r#"
[[answer]]
when = "tools"
repeat = true
text = "I shall look."
thinking = "hm"
tool = [{ name = "read_file", arguments = { path = "a.txt" } }]
usage = { input = 120, output = 40, cache_read = 100, reasoning = 8 }

[[answer]]
when = "long"
repeat = true
text = "too mu"
length = true

[[answer]]
when = "lost"
text = "never whole"
cut = "connection"

[[answer]]
when = "short"
text = "never whole"
cut = "body"

[[answer]]
error = "rate-limit"
in_stream = true
repeat = true
"#;

fn serve() -> SocketAddr {
    let fake =
        Fake::bind(([127, 0, 0, 1], 0).into(), FakeScript::parse(SCRIPT).unwrap(), Box::new(std::io::sink())).unwrap();
    let address = fake.address().unwrap();
    std::thread::spawn(move || fake.serve());
    address
}

/// Returns status and body of an answer, as far as they were received.
fn post(address: SocketAddr, path: &str, body: &Value) -> (u16, String) {
    let mut stream = TcpStream::connect(address).unwrap();
    let body = body.to_string();
    write!(stream, "POST {path} HTTP/1.1\r\ncontent-length: {}\r\n\r\n{body}", body.len()).unwrap();
    let mut bytes = Vec::new();
    let _ = stream.read_to_end(&mut bytes);
    let text = String::from_utf8(bytes).unwrap();
    let (head, mut rest) = text.split_once("\r\n\r\n").unwrap();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    if !head.contains("chunked") {
        return (status, rest.to_owned());
    }
    assert!(head.contains("content-type: application/json"), "{head}");
    let mut body = String::new();
    while let Some((length, more)) = rest.split_once("\r\n") {
        let length = usize::from_str_radix(length, 16).unwrap().min(more.len());
        body.push_str(&more[..length]);
        rest = more.get(length + 2..).unwrap_or_default();
    }
    (status, body)
}

/// Returns the path of each format with a request for an answer that is not streamed.
fn requests(text: &str) -> Vec<(&'static str, Value)> {
    let messages = json!([{ "role": "user", "content": text }]);
    vec![
        ("/v1/responses", json!({ "model": "m-1", "input": text })),
        ("/v1/messages", json!({ "model": "m-1", "messages": messages, "stream": false })),
        (
            "/v1beta/models/m-1:generateContent",
            json!({ "contents": [{ "role": "user", "parts": [{ "text": text }] }] }),
        ),
        ("/v1/chat/completions", json!({ "model": "m-1", "messages": messages })),
        ("/api/chat", json!({ "model": "m-1", "messages": messages, "stream": false })),
    ]
}

fn answers(text: &str) -> Vec<Value> {
    let address = serve();
    let asked = requests(text).into_iter().map(|(path, body)| post(address, path, &body));
    asked.map(|(status, body)| (assert_eq!(status, 200), serde_json::from_str(&body).unwrap()).1).collect()
}

#[test]
fn a_text_thoughts_calls_and_usage_are_in_one_object() {
    let [openai, anthropic, gemini, compatible, ollama] = answers("tools").try_into().unwrap();
    let [thought, message, call] = [0, 1, 2].map(|at| openai["output"][at].clone());
    assert_eq!(
        (&openai["status"], &openai["model"], &openai["usage"]["total_tokens"]),
        (&json!("completed"), &json!("m-1"), &json!(160))
    );
    assert_eq!(
        (&thought["encrypted_content"], &message["content"][0]["text"]),
        (&json!("hm"), &json!("I shall look."))
    );
    assert_eq!((&call["name"], &call["arguments"]), (&json!("read_file"), &json!("{\"path\":\"a.txt\"}")));

    assert_eq!(anthropic["content"][0]["thinking"], "hm");
    assert_eq!(anthropic["content"][1], json!({ "type": "text", "text": "I shall look." }));
    assert_eq!(
        (&anthropic["content"][2]["input"], &anthropic["stop_reason"]),
        (&json!({ "path": "a.txt" }), &json!("tool_use"))
    );
    assert_eq!((&anthropic["usage"]["input_tokens"], &anthropic["usage"]["output_tokens"]), (&json!(20), &json!(40)));

    let parts = &gemini["candidates"][0]["content"]["parts"];
    assert_eq!(
        (&parts[0]["text"], &parts[1]["functionCall"]["args"]),
        (&json!("I shall look."), &json!({ "path": "a.txt" }))
    );
    assert_eq!(
        (&gemini["candidates"][0]["finishReason"], &gemini["usageMetadata"]["promptTokenCount"]),
        (&json!("STOP"), &json!(120))
    );

    let choice = &compatible["choices"][0];
    assert_eq!(
        (&choice["message"]["content"], &choice["finish_reason"]),
        (&json!("I shall look."), &json!("tool_calls"))
    );
    assert_eq!(choice["message"]["tool_calls"][0]["function"]["arguments"], "{\"path\":\"a.txt\"}");
    assert_eq!(
        (&compatible["object"], &compatible["usage"]["completion_tokens"]),
        (&json!("chat.completion"), &json!(40))
    );

    assert_eq!((&ollama["message"]["content"], &ollama["done"]), (&json!("I shall look."), &json!(true)));
    assert_eq!(ollama["message"]["tool_calls"][0]["function"]["arguments"], json!({ "path": "a.txt" }));
}

#[test]
fn an_answer_that_reached_its_most_tokens_says_so() {
    let [openai, anthropic, gemini, compatible, ollama] = answers("long").try_into().unwrap();
    assert_eq!(
        (&openai["status"], &openai["incomplete_details"]["reason"]),
        (&json!("incomplete"), &json!("max_output_tokens"))
    );
    assert_eq!(
        (&anthropic["stop_reason"], &gemini["candidates"][0]["finishReason"]),
        (&json!("max_tokens"), &json!("MAX_TOKENS"))
    );
    assert_eq!(
        (&compatible["choices"][0]["finish_reason"], &ollama["done_reason"]),
        (&json!("length"), &json!("length"))
    );
}

#[test]
fn bad_days_are_bad_without_a_stream_too() {
    let address = serve();
    let (path, lost) = requests("lost").swap_remove(1);
    assert!(serde_json::from_str::<Value>(&post(address, path, &lost).1).is_err(), "the connection was lost");
    let (path, short) = requests("short").swap_remove(1);
    let (status, body) = post(address, path, &short);
    assert_eq!((status, serde_json::from_str::<Value>(&body).is_err()), (200, true));
    for (path, body) in requests("anything") {
        assert_eq!(post(address, path, &body).0, 429, "{path}");
    }
}
