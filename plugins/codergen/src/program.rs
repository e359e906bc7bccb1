//! Runs an agent program instead of the loop. It gets the same prompt, and its final message is the answer.

use crate::artifact::Artifact;
use crate::ending::{self, StageAnswer};
use crate::planned;
use crate::prompt;
use glovebox_plugin_sdk::llm::Message;
use glovebox_plugin_sdk::{Outcome, Stage, agents, control, json};

/// End of the prompt for every program.
const ENDING: &str = "End your last message with a line `OUTCOME: SUCCESS`, or `OUTCOME: FAIL` and the reason when the task is not done.";

/// Returns the program that the node names, if it can be started in this run.
pub(crate) fn for_stage(stage: &Stage) -> Option<String> {
    let named = stage.attribute("agent.backend")?;
    agents::backends().into_iter().find(|program| program == named.trim())
}

/// Lets the program do the work of the stage.
pub(crate) fn run(stage: &Stage, program: &str) -> Outcome {
    let asked = format!("{}\n\n{}", prompt::user(stage), rules(stage));
    Artifact { name: "prompt.md", text: &asked }.keep();
    let said = agents::run(program, &asked, |step| {
        let kind = if step.data.is_some() { "tool-call-start" } else { "assistant-text" };
        control::emit(kind, &json!({ "text": step.text, "data": step.data }));
    });
    let said = match said {
        Ok(said) => said,
        Err(failure) => return Outcome::fail(failure.code, failure.reason).class(failure.class),
    };
    Artifact { name: "response.md", text: &said }.keep();
    match ending::declared(&Message::text("assistant", said.as_str())) {
        Ok(declared) => {
            let answered = StageAnswer { stage, response: &said };
            let outcome = declared.unwrap_or_default().into_outcome(answered);
            planned::hand_on(stage, planned::from_answer(&said).into_plan(), outcome)
        }
        Err(reason) => Outcome::fail("agent/outcome-syntax", reason).class("contract"),
    }
}

/// Returns the rules for the program: its write scope, the use of git, and how to end.
fn rules(stage: &Stage) -> String {
    let scope =
        prompt::write_rule(stage).map(|rule| format!("{rule}. Other changes are set aside and fail the stage.\n"));
    format!("{}{}\n{ENDING}", scope.unwrap_or_default(), prompt::GIT)
}
