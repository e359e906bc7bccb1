//! Fuzz target of the reader of a tool server's lines, with the properties that must hold for any bytes.
//!
//! Used only by the target in `fuzz/` and by the test below, which reads the stored corpus.

use super::message::{self, DESCRIPTION_BYTES_MAX, NAME_BYTES_MAX, SCHEMA_BYTES_MAX, ServerMessage, Tool};
use super::{ANSWER_BYTES_MAX, TOOLS_MAX};
use glovebox_names::visible;
use glovebox_schema::document;
use serde_json::Value;

/// Id of the pending request.
const ID: u64 = 7;
/// Maximum length of a message to people about a server, in bytes. The server's text is cut, and an escape takes up to ten bytes for
/// one character.
const REASON_BYTES_MAX: usize = 6_000;

/// Reads a line of a server, and reads an answer in it as the answer to each kind of request.
///
/// # Panics
/// Panics if a text of the server exceeds its bound or contains a deceptive character, or if a reply is not exactly one message.
pub fn message(line: &[u8]) {
    match message::read(line, ID) {
        Ok(ServerMessage::Answer(Ok(answer))) => {
            message::check_version(&answer).unwrap_or_else(|reason| check_reason(&reason));
            check_page(&answer);
            check_said(&answer);
        }
        Ok(ServerMessage::Answer(Err(reason))) | Err(reason) => check_reason(&reason),
        Ok(ServerMessage::Request(reply)) => check_reply(&reply, line),
        Ok(ServerMessage::Notification) => {}
    }
}

/// Checks that a reason is one line without deceptive characters.
fn check_reason(reason: &str) {
    assert!(visible::line(reason) == reason && reason.len() <= REASON_BYTES_MAX, "{reason:?}");
}

fn check_page(answer: &Value) {
    let page = match message::page(answer, TOOLS_MAX) {
        Ok(page) => page,
        Err(reason) => return check_reason(&reason),
    };
    assert!(page.tools.len() <= TOOLS_MAX && page.next.as_deref() != Some(""), "{page:?}");
    for tool in page.tools {
        match tool {
            Ok(tool) => check_tool(&tool),
            Err(reason) => check_reason(&reason),
        }
    }
}

fn check_tool(tool: &Tool) {
    let Tool { name, description, parameters } = tool;
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    assert!((1..=NAME_BYTES_MAX).contains(&name.len()) && name.bytes().all(is_plain), "{name:?}");
    assert!(description.len() <= DESCRIPTION_BYTES_MAX + '…'.len_utf8(), "{} bytes", description.len());
    assert!(!description.contains(hides), "{description:?}");
    assert!(parameters.len() <= SCHEMA_BYTES_MAX && !parameters.contains(hides), "{parameters:?}");
    let parameters = document::read(parameters.as_bytes()).unwrap_or_else(|error| panic!("{parameters:?}: {error}"));
    assert_eq!(parameters["type"], "object");
}

fn check_said(answer: &Value) {
    match message::read_result(answer) {
        Ok(result) => {
            let text = result.cut().text;
            assert!(!text.contains(hides), "{text:?}");
            assert!(text.len() <= ANSWER_BYTES_MAX + 64, "{} bytes", text.len());
        }
        Err(reason) => check_reason(&reason),
    }
}

/// Returns true for a character that must be escaped in a text of several lines.
fn hides(character: char) -> bool {
    !matches!(character, '\n' | '\t') && visible::is_deceptive(character)
}

/// Checks that a reply is one line and answers the server's request.
fn check_reply(reply: &str, line: &[u8]) {
    assert!(!reply.contains(['\n', '\r']), "{reply:?}");
    let read = |text: &[u8]| document::read(text).unwrap_or_else(|error| panic!("{}: {error}", text.escape_ascii()));
    let (reply, asked) = (read(reply.as_bytes()), read(line));
    assert_eq!((&reply["jsonrpc"], &reply["id"]), (&asked["jsonrpc"], &asked["id"]));
    assert!(reply.get("result").is_some() != reply.get("error").is_some(), "{reply}");
}

#[cfg(test)]
mod tests {
    use glovebox_short_run::{Counting, run_within};

    #[global_allocator]
    static COUNTING: Counting = Counting;

    /// Memory bound: a JSON value takes up to 80 times the bytes of its text, a schema is copied, and the checks read an answer again.
    #[test]
    fn message() {
        run_within("message", |length| (64 << 10) + 200 * length, super::message);
    }
}
