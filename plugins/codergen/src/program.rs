//! An agent program in the place of the loop: it gets the same question, and its last words are the answer.

use crate::artifact::Artifact;
use crate::ending::{self, Answered};
use crate::planned;
use crate::prompt;
use glovebox_plugin_sdk::llm::Message;
use glovebox_plugin_sdk::{Outcome, Stage, agents, control, json};

/// What every program is told behind its task.
const ENDING: &str = "End your last message with a line `OUTCOME: SUCCESS`, or `OUTCOME: FAIL` and the reason when the task is not done.";

/// The program that the node names, where it is started in this run.
pub(crate) fn of(stage: &Stage) -> Option<String> {
    let named = stage.attribute("agent.backend")?;
    agents::backends().into_iter().find(|program| program == named.trim())
}

/// Has the program do the stage's work.
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
            let answered = Answered { stage, response: &said };
            let outcome = declared.unwrap_or_default().into_outcome(answered);
            planned::hand_on(stage, planned::of_answer(&said).into_plan(), outcome)
        }
        Err(reason) => Outcome::fail("agent/outcome-syntax", reason).class("contract"),
    }
}

/// What the program may do, and how it ends.
fn rules(stage: &Stage) -> String {
    let paths = stage.attribute("allowed_write_paths").filter(|text| !text.trim().is_empty());
    let paths = paths
        .map(|paths| format!("You may write only here: {paths}. Other changes are set aside and fail the stage.\n"));
    format!("{}{}\n{ENDING}", paths.unwrap_or_default(), prompt::GIT)
}
