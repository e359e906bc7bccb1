//! Tests of every wire format against the scripted provider: the requests, the answers that are read, and the refusals.

use glovebox_fake_llm::{Fake, FakeScript};
use glovebox_models::ask::{AskResult, AskStep, ask};
use glovebox_models::chat::{Effort, Finish, Request, Settings, Tool, text_part};
use glovebox_models::deadline::CallDeadline;
use glovebox_models::error::{ERRORS, ErrorKind};
use glovebox_models::family::Family;
use glovebox_models::key::Key;
use glovebox_models::target::{Authorities, Target};
use glovebox_record::session::{Message, MessagePart};
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;
use std::io::Write;
use std::net::TcpListener;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

const KEY: &str = "sk-test-0123456789abcdef";

/// The requests that the provider received.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl Log {
    fn bodies(&self) -> Vec<Value> {
        let text = String::from_utf8(self.0.lock().unwrap().clone()).unwrap();
        text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()["body"].take()).collect()
    }
}

struct Server {
    target: Target,
    log: Log,
}

impl Server {
    fn start(family: Family, script: &str) -> Self {
        let script = FakeScript::parse(&format!("key = \"{KEY}\"\n{script}")).unwrap();
        let log = Log::default();
        let fake = Fake::bind(([127, 0, 0, 1], 0).into(), script, Box::new(log.clone())).unwrap();
        let address = fake.address().unwrap();
        std::thread::spawn(move || fake.serve());
        let target = Target {
            family,
            endpoint: format!("http://{address}/v1").parse().unwrap(),
            model: "pinned-1".into(),
            answers_as: Vec::new(),
            key: Some(Key::parse(KEY).unwrap()),
            authorities: Authorities::default(),
            output_tokens_max: 4096,
            context_tokens: 32_768,
            timeout: Duration::from_secs(20),
            schema_mode: true,
            images: true,
        };
        Self { target, log }
    }

    fn ask(&self, request: &Request) -> AskResult {
        self.ask_watched(request, &mut |_| {})
    }

    fn ask_watched(&self, request: &Request, on_step: &mut dyn FnMut(AskStep<'_>)) -> AskResult {
        let canceled = AtomicBool::new(false);
        let deadline = Instant::now() + Duration::from_secs(60);
        let deadline = CallDeadline { canceled: &canceled, at: deadline, idle: self.target.timeout };
        ask(&self.target, request, deadline, on_step)
    }

    fn kind(&self) -> ErrorKind {
        self.ask(&question()).answered.unwrap_err().kind
    }
}

fn message(role: &str, parts: Vec<MessagePart>) -> Message {
    Message { role: role.to_owned(), parts }
}

fn question() -> Request {
    let tool = Tool {
        name: "read_file".to_owned(),
        description: "Reads a file".to_owned(),
        parameters: r#"{"type":"object","properties":{"path":{"type":"string"}}}"#.to_owned(),
    };
    Request {
        messages: vec![message("system", vec![text_part("Be brief.")]), message("user", vec![text_part("Hello?")])],
        tools: vec![tool],
        settings: Settings { output_tokens_max: Some(3000), ..Settings::default() },
        schema: None,
        agent: None,
        within: None,
    }
}

fn each(check: impl Fn(Family) + Sync) {
    std::thread::scope(|scope| {
        let check = &check;
        for family in Family::ALL {
            scope.spawn(move || check(family));
        }
    });
}

/// The answer is streamed slowly, and its text quotes the key, in two pieces.
const SLOW: &str = r#"
[[answer]]
thinking = "secret thoughts"
pieces = ["I see", " sk-test-01234", "56789abcdef, s", "k-test-0 and mo", "re"]
pause_ms = 150
tool = [{ name = "read_file", arguments = { path = "a.txt" } }]
"#;

#[test]
fn an_unfinished_answer_is_the_beginning_of_the_finished_one() {
    each(|family| {
        let server = Server::start(family, SLOW);
        let mut texts = Vec::new();
        let answered = server.ask_watched(&question(), &mut |step| {
            if let AskStep::Unfinished(answer) = step {
                texts.push(answer.text());
            }
        });
        texts.dedup();
        let whole = answered.answered.unwrap().text();
        assert_eq!(whole, "I see [key], sk-test-0 and more", "{family}");
        assert!(texts.iter().all(|text| whole.starts_with(text)), "{family}: {texts:?}");
        let seen = ["I see", "I see ", "I see [key], ", "I see [key], sk-test-0 and mo"];
        assert!(seen.iter().all(|text| texts.iter().any(|seen| seen == text)), "{family}: {texts:?}");
    });
}

const TURNS: &str = r#"
[[answer]]
text = "I shall look."
thinking = "secret thoughts"
usage = { input = 120, output = 30, cache_read = 100, reasoning = 8 }
tool = [{ name = "read_file", arguments = { path = "a.txt" } }, { name = "read_file", arguments = { path = "b.txt" } }]
[[answer]]
text = "Done: é ✓"
usage = { input = 200, output = 5 }
"#;

#[test]
fn a_conversation_with_tools_goes_there_and_back() {
    each(|family| {
        let server = Server::start(family, TURNS);
        let mut request = question();
        let answer = server.ask(&request).answered.unwrap();
        assert_eq!((answer.text().as_str(), answer.finish), ("I shall look.", Finish::ToolCalls), "{family}");
        assert_eq!(answer.model.as_ref().unwrap().as_str(), "pinned-1");
        assert_eq!((answer.usage.input, answer.usage.output, answer.is_estimated), (120, 30, false), "{family}");
        let calls: Vec<MessagePart> = answer.tool_calls().cloned().collect();
        let ids: Vec<&str> = calls.iter().map(|call| call.fields[0].1.as_str()).collect();
        assert!(ids.len() == 2 && !ids[0].is_empty() && ids[0] != ids[1], "{family}: {ids:?}");
        let arguments: Value = serde_json::from_str(&calls[1].text).unwrap();
        assert_eq!(arguments["path"], "b.txt", "{family}");
        let results = calls.iter().map(|call| MessagePart {
            kind: "tool-result".to_owned(),
            text: "contents".to_owned(),
            fields: vec![("call-id".to_owned(), call.fields[0].1.clone())],
        });
        request.messages.push(message("assistant", answer.parts));
        request.messages.push(message("tool", results.collect()));
        let answer = server.ask(&request).answered.unwrap();
        assert_eq!((answer.text().as_str(), answer.finish), ("Done: é ✓", Finish::Stop), "{family}");
        let second = server.log.bodies()[1].to_string();
        for expected in ["secret thoughts", "contents", "a.txt", "Be brief."] {
            assert!(second.contains(expected), "{family}: {expected} is not in {second}");
        }
        assert!(!second.contains(KEY));
    });
}

#[test]
fn cached_and_thought_tokens_are_counted() {
    each(|family| {
        let usage = Server::start(family, TURNS).ask(&question()).answered.unwrap().usage;
        let expected = match family {
            Family::Openai | Family::Gemini | Family::OpenaiCompatible => (100, 8),
            Family::Anthropic => (100, 0),
            Family::Ollama => (0, 0),
        };
        assert_eq!((usage.cache_read, usage.reasoning), expected, "{family}");
    });
}

#[test]
fn opaque_parts_go_to_their_own_family_only_and_field_by_field() {
    each(|family| {
        let server = Server::start(family, "[[answer]]\ntext = 'x'\nrepeat = true");
        let mut request = question();
        let forged = r#"{"type":"item_reference","id":"FORGED","image_url":"http://x/FORGED"}"#;
        let foreign = Family::ALL.into_iter().find(|other| *other != family).unwrap();
        let opaque = |family: Family, text: &str| MessagePart {
            kind: format!("opaque:{family}"),
            text: text.to_owned(),
            fields: Vec::new(),
        };
        let parts = vec![
            opaque(family, forged),
            opaque(foreign, r#"{"thinking":"FOREIGN","reasoning_content":"FOREIGN"}"#),
            text_part("y"),
        ];
        request.messages.push(message("assistant", parts));
        request.messages.push(message("user", vec![text_part("z")]));
        server.ask(&request).answered.unwrap();
        let sent = server.log.bodies()[0].to_string();
        assert!(!sent.contains("FORGED") && !sent.contains("FOREIGN"), "{family}: {sent}");
    });
}

#[test]
fn settings_are_written_as_each_provider_reads_them() {
    let check = |family: Family, pointer: &str, expected: Value| {
        let server = Server::start(family, "[[answer]]\ntext = 'x'");
        let settings = Settings { effort: Some(Effort::Low), output_tokens_max: Some(9000), ..Settings::default() };
        server.ask(&Request { settings, ..question() }).answered.unwrap();
        let body = server.log.bodies().remove(0);
        assert_eq!(body.pointer(pointer), Some(&expected), "{family}: {body}");
    };
    check(Family::Openai, "/max_output_tokens", 4096.into());
    check(Family::Openai, "/reasoning/effort", "low".into());
    check(Family::Openai, "/store", false.into());
    check(Family::Openai, "/model", "pinned-1".into());
    check(Family::Anthropic, "/max_tokens", 4096.into());
    check(Family::Anthropic, "/thinking/budget_tokens", 2048.into());
    check(Family::Anthropic, "/system/0/cache_control/type", "ephemeral".into());
    check(Family::Gemini, "/generationConfig/maxOutputTokens", 4096.into());
    check(Family::Gemini, "/generationConfig/thinkingConfig/thinkingBudget", 1024.into());
    check(Family::OpenaiCompatible, "/reasoning_effort", "low".into());
    check(Family::OpenaiCompatible, "/stream_options/include_usage", true.into());
    check(Family::Ollama, "/options/num_ctx", 32_768.into());
    check(Family::Ollama, "/think", "low".into());
}

/// A model's name is sent as written: `-high` at the end does not set an effort, and an unknown name does not select another provider.
#[test]
fn the_name_of_a_model_is_never_edited() {
    each(|family| {
        let mut server = Server::start(family, "[[answer]]\ntext = 'x'");
        server.target.model = "gpt-x-high".into();
        server.ask(&question()).answered.unwrap();
        let log = String::from_utf8(server.log.0.lock().unwrap().clone()).unwrap();
        assert!(log.contains("gpt-x-high") && !log.contains("effort"), "{family}: {log}");
    });
}

#[test]
fn a_cut_answer_is_an_error() {
    each(|family| {
        for cut in ["body", "connection"] {
            let script = format!("[[answer]]\ntext = 'half of it'\ncut = '{cut}'\nrepeat = true");
            let server = Server::start(family, &script);
            let asked = server.ask(&question());
            assert_eq!(asked.answered.unwrap_err().kind, ErrorKind::Stream, "{family} {cut}");
            assert_eq!(asked.tries, 3, "{family} {cut}");
            assert!(
                asked.lost.input > 0 && asked.lost.output > 0,
                "what was begun may have to be paid: {:?}",
                asked.lost
            );
        }
    });
}

#[test]
fn an_error_in_a_stream_has_its_kind() {
    each(|family| {
        for kind in ["server", "rate-limit"] {
            let script =
                format!("[[answer]]\nerror = \"{kind}\"\nin_stream = true\nmessage = 'busy'\n[[answer]]\ntext = 'now'");
            let server = Server::start(family, &script);
            let asked = server.ask(&question());
            assert_eq!((asked.tries, asked.answered.unwrap().text().as_str()), (2, "now"), "{family} {kind}");
        }
    });
}

/// Returns the kinds of errors that a provider can report by status or code.
fn refused() -> impl Iterator<Item = ErrorKind> {
    let local = [
        ErrorKind::Canceled,
        ErrorKind::Network,
        ErrorKind::Stream,
        ErrorKind::InvalidToolCall,
        ErrorKind::UnsupportedToolChoice,
        ErrorKind::NoObjectGenerated,
        ErrorKind::Configuration,
        ErrorKind::PinViolation,
        ErrorKind::AnswerTooLarge,
        ErrorKind::BudgetExceeded,
        ErrorKind::LimitExceeded,
        ErrorKind::NotGranted,
        ErrorKind::HoldoutLeak,
        ErrorKind::Loop,
        ErrorKind::ScriptExhausted,
    ];
    ERRORS.iter().map(|row| row.kind).filter(move |kind| !local.contains(kind))
}

#[test]
fn every_refusal_has_its_kind_and_is_asked_again_only_where_that_helps() {
    each(|family| {
        for kind in refused() {
            // Ollama has statuses but no error codes, so it cannot report these kinds.
            let is_told_apart =
                !matches!(kind, ErrorKind::ContentFilter | ErrorKind::ContextLength | ErrorKind::QuotaExceeded);
            if family == Family::Ollama && !is_told_apart {
                continue;
            }
            let script = format!("[[answer]]\nerror = \"{kind}\"\nretry_after = 0\nrepeat = true");
            let server = Server::start(family, &script);
            let asked = server.ask(&question());
            let error = asked.answered.unwrap_err();
            assert_eq!(error.kind, kind, "{family}: {error}");
            assert_eq!(asked.tries, if error.is_retried() { 3 } else { 1 }, "{family} {kind}");
            assert!(error.message.contains("pinned-1"), "{error}");
        }
    });
}

#[test]
fn a_wait_that_is_too_long_is_a_refusal() {
    let server = Server::start(Family::Openai, "[[answer]]\nerror = \"rate-limit\"\nretry_after = 61\nrepeat = true");
    let began = Instant::now();
    let asked = server.ask(&question());
    assert_eq!((asked.tries, asked.answered.unwrap_err().kind), (1, ErrorKind::RateLimit));
    assert!(began.elapsed() < Duration::from_secs(10));
}

/// Only a refusal because of a quota says when the account may go on, in the way of its provider.
#[test]
fn a_used_up_quota_says_when_it_resumes() {
    let error = |family, kind: &str, more: &str| {
        let script = format!("[[answer]]\nerror = \"{kind}\"\n{more}\nrepeat = true");
        Server::start(family, &script).ask(&question()).answered.unwrap_err()
    };
    let check = |family, more: &str, seconds: i64| {
        let refused = error(family, "quota-exceeded", more);
        assert_eq!((refused.kind, refused.is_retried()), (ErrorKind::QuotaExceeded, false), "{family}");
        let left = refused.resume_at.expect(more).duration_since(Timestamp::now()).as_secs();
        assert!((seconds - 60..=seconds).contains(&left), "{family} {more}: {left}");
    };
    let in_an_hour = Timestamp::now().checked_add(SignedDuration::from_hours(1)).unwrap();
    let reset = format!("headers = {{ \"anthropic-ratelimit-tokens-reset\" = \"{in_an_hour}\" }}");
    check(Family::Anthropic, &reset, 3600);
    check(Family::Openai, "headers = { X-RateLimit-Reset-Tokens = \"6m0s\" }", 360);
    check(Family::OpenaiCompatible, "retry_after = 90", 90);
    check(Family::Gemini, "retry_after = 90", 90);
    assert_eq!(error(Family::Openai, "quota-exceeded", "").resume_at, None);
    assert_eq!(error(Family::Openai, "quota-exceeded", "retry_after = 604801").resume_at, None);
    assert_eq!(error(Family::Openai, "rate-limit", "retry_after = 90").resume_at, None);
}

#[test]
fn another_model_is_found_out_before_its_answer_ends() {
    each(|family| {
        let server = Server::start(family, "[[answer]]\nmodel = \"pinned-1-mini\"\ntext = 'x'\nstall = true");
        let error = server.ask(&question()).answered.unwrap_err();
        assert_eq!(error.kind, ErrorKind::PinViolation, "{family}");
        assert_eq!(error.message, "model `pinned-1` was asked, and `pinned-1-mini` answered");
        let mut server = Server::start(family, "[[answer]]\nmodel = \"other\"\ntext = 'x'");
        server.target.answers_as = vec!["other".into()];
        assert!(server.ask(&question()).answered.is_ok(), "{family}");
    });
}

#[test]
fn a_wrong_key_is_an_error_that_does_not_quote_it() {
    each(|family| {
        let mut server = Server::start(family, "[[answer]]\ntext = 'x'");
        server.target.key = Some(Key::parse("sk-wrong-fedcba9876543210").unwrap());
        let error = server.ask(&question()).answered.unwrap_err();
        assert_eq!(error.kind, ErrorKind::Authentication, "{family}");
        assert!(!error.message.contains("sk-wrong"), "{error}");
    });
}

#[test]
fn a_key_that_a_provider_sends_back_is_taken_out() {
    each(|family| {
        let script = format!(
            "[[answer]]\ntext = 'the key is {KEY}'\ntool = [{{ name = 'read_file', arguments = {{ path = '{KEY}' }} }}]
            [[answer]]\nerror = \"invalid-request\"\nmessage = 'bad key {KEY}'"
        );
        let server = Server::start(family, &script);
        let asked = server.ask(&question());
        let seen = format!("{:?} {}", asked.answered.unwrap(), String::from_utf8_lossy(&asked.exchange.received));
        assert!(seen.contains("[key]") && !seen.contains(KEY), "{family}: {seen}");
        let asked = server.ask(&question());
        let seen = format!("{:?} {}", asked.answered.unwrap_err(), String::from_utf8_lossy(&asked.exchange.received));
        assert!(seen.contains("[key]") && !seen.contains(KEY), "{family}: {seen}");
    });
}

#[test]
fn an_answer_is_bounded_however_it_is_sent() {
    each(|family| {
        let large = "[[answer]]\nfill_bytes = 10_000_000";
        assert_eq!(Server::start(family, large).kind(), ErrorKind::AnswerTooLarge, "{family}");
        let endless = "[[answer]]\nendless = true";
        assert_eq!(Server::start(family, endless).kind(), ErrorKind::AnswerTooLarge, "{family}");
        let arguments = "x".repeat(10_000_000);
        let call = format!("[[answer]]\ntool = [{{ name = 'read_file', arguments = {{ path = '{arguments}' }} }}]");
        assert_eq!(Server::start(family, &call).kind(), ErrorKind::AnswerTooLarge, "{family}");
    });
}

#[test]
fn a_silent_provider_is_given_up() {
    each(|family| {
        let mut server = Server::start(family, "[[answer]]\nstall = true\ntext = 'x'");
        server.target.timeout = Duration::from_millis(300);
        assert_eq!(server.kind(), ErrorKind::RequestTimeout, "{family}");
    });
}

#[test]
fn a_canceled_call_ends_at_once() {
    let server = Server::start(Family::Gemini, "[[answer]]\nstall = true\ntext = 'x'");
    let canceled = AtomicBool::new(false);
    let deadline = Instant::now() + Duration::from_secs(60);
    let deadline = CallDeadline { canceled: &canceled, at: deadline, idle: Duration::from_secs(60) };
    let began = Instant::now();
    let asked = std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(Duration::from_millis(300));
            canceled.store(true, Ordering::Relaxed);
        });
        ask(&server.target, &question(), deadline, &mut |_| {})
    });
    assert_eq!(asked.answered.unwrap_err().kind, ErrorKind::Canceled);
    assert!(began.elapsed() < Duration::from_secs(5));
}

#[test]
fn a_provider_that_is_not_there_is_a_network_error() {
    let mut server = Server::start(Family::Ollama, "");
    server.target.endpoint = "http://127.0.0.1:1".parse().unwrap();
    let asked = server.ask(&question());
    assert_eq!((asked.tries, asked.answered.unwrap_err().kind), (3, ErrorKind::Network));
}

#[test]
fn a_key_never_crosses_a_network_in_the_clear() {
    let mut server = Server::start(Family::Openai, "[[answer]]\ntext = 'x'");
    server.target.endpoint = "http://models.example.com/v1".parse().unwrap();
    assert_eq!(server.kind(), ErrorKind::Configuration);
}

#[test]
fn an_answer_without_a_count_is_estimated() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut server = Server::start(Family::OpenaiCompatible, "");
    server.target.endpoint = format!("http://{}", listener.local_addr().unwrap()).parse().unwrap();
    let written = "HTTP/1.0 200 OK\r\n\r\ndata: {\"model\":\"pinned-1\",\"choices\":[{\"delta\":{\"content\":\"abcdef\"},\
        \"finish_reason\":\"stop\"}]}\n\n";
    std::thread::spawn(move || listener.accept().unwrap().0.write_all(written.as_bytes()));
    let answer = server.ask(&question()).answered.unwrap();
    assert_eq!((answer.text().as_str(), answer.is_estimated, answer.usage.output), ("abcdef", true, 2));
    assert!(answer.usage.input > 10, "{:?}", answer.usage);
}
