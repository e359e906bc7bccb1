//! Asks the model the prompt of the node, and fails if the answer is empty.

use glovebox_plugin_sdk::llm::{self, Message, Request};
use glovebox_plugin_sdk::{Handler, Outcome, Stage, export, log};

struct Plugin;

impl Handler for Plugin {
    fn execute(stage: Stage) -> Outcome {
        let Some(prompt) = stage.prompt() else {
            return Outcome::fail("ask/prompt", format!("the node `{}` has no prompt", stage.node_id()));
        };
        let request = Request { messages: vec![Message::text("user", prompt)], tools: Vec::new(), options: Vec::new() };
        match llm::complete(&request) {
            Err(error) => Outcome::fail("ask/model", error.message),
            Ok(response) => {
                let answer = response.message.whole_text();
                log::info("answered", &[("bytes", &answer.len().to_string())]);
                if answer.trim().is_empty() {
                    Outcome::fail("ask/empty", "the model gave no answer")
                } else {
                    Outcome::success().notes(answer)
                }
            }
        }
    }
}

export!(Plugin);

#[cfg(test)]
mod tests {
    use super::Plugin;
    use glovebox_plugin_sdk::testing::{Host, stage};

    #[test]
    fn a_node_without_a_prompt_fails() {
        let outcome = Host::new().execute::<Plugin>(stage("ask"));
        assert_eq!(outcome.failure().map(|failure| failure.code.as_str()), Some("ask/prompt"));
    }
}
