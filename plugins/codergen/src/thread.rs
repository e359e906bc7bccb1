//! The conversation that a stage continues: the recorded messages of the earlier stages of its thread.

use glovebox_plugin_sdk::llm::{Message, Part};
use glovebox_plugin_sdk::{Stage, Value, log};

/// Reads the messages. Empty if the stage begins a new conversation.
pub(crate) fn earlier(stage: &Stage) -> Vec<Message> {
    let Some(text) = stage.extra("conversation") else { return Vec::new() };
    let read = serde_json::from_str::<Value>(text).ok();
    let messages = read.as_ref().and_then(|value| value["messages"].as_array()?.iter().map(message).collect());
    messages.unwrap_or_else(|| {
        log::warn("the earlier conversation could not be read", &[]);
        Vec::new()
    })
}

fn message(value: &Value) -> Option<Message> {
    let parts = value["parts"].as_array()?.iter().map(part).collect::<Option<_>>()?;
    Some(Message { role: value["role"].as_str()?.to_owned(), parts })
}

fn part(value: &Value) -> Option<Part> {
    let none = Vec::new();
    let fields = value["fields"].as_array().unwrap_or(&none).iter().map(|pair| {
        let text = |at: usize| pair.get(at)?.as_str().map(str::to_owned);
        Some((text(0)?, text(1)?))
    });
    let mut part = Part::new(value["kind"].as_str()?, value["text"].as_str()?);
    part.fields = fields.collect::<Option<_>>()?;
    Some(part)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_come_back_with_their_fields() {
        let text = r#"{"role":"assistant","parts":[{"kind":"tool-call","text":"{}","fields":[["id","c1"],["name","glob"]]},{"kind":"text","text":"x"}]}"#;
        let read = message(&serde_json::from_str::<Value>(text).unwrap()).unwrap();
        assert_eq!((read.role.as_str(), read.parts.len()), ("assistant", 2));
        assert_eq!((read.parts[0].field("name"), read.parts[1].text.as_str()), (Some("glob"), "x"));
        assert!(message(&serde_json::from_str::<Value>(r#"{"role":"user"}"#).unwrap()).is_none());
    }
}
