//! The verification plan that an agent hands to a later stage (seed 2): what the model is told, and where its answer has the plan.

use glovebox_plugin_sdk::{Outcome, Stage, Value};

/// What the engine tells of the verification stages that follow: the prefixes they allow, one on each line.
pub(crate) const ALLOWED: &str = "verification-allowed";
/// The context keys that they read, one on each line.
const KEYS: &str = "verification-keys";
/// The name of a plan in an answer.
const PLAN: &str = "verification_plan";

/// The part of the prompt about the plan.
pub(crate) fn request(allowed: &str) -> String {
    let list: String = allowed.lines().map(|prefix| format!("- {prefix}\n")).collect();
    format!(
        "Verification plan command allowlist (hard requirement):\n{list}\
         A later stage runs your plan without a shell: one program on each line, no pipes, no `&&`, no assignments. End your last answer with it:\n\
         ```json\n{{\"verification_plan\": {{\"files\": [\"path/that/must/exist\"], \"commands\": [\"a command\"]}}}}\n```\n\
         Use only these command families in verification_plan.commands."
    )
}

/// Puts the plan where the verification stages read it; a value that the model declared itself stays.
pub(crate) fn hand_on(stage: &Stage, plan: Option<Value>, outcome: Outcome) -> Outcome {
    let (Some(plan), Some(keys)) = (plan, stage.extra(KEYS)) else { return outcome };
    let set = |outcome: Outcome, key: &str| match outcome.value(key) {
        Some(_) => outcome,
        None => outcome.set(key, plan.clone()),
    };
    keys.lines().fold(outcome, set)
}

/// The last plan of an answer: a JSON object with `verification_plan`, as the whole answer or as a code block.
pub(crate) fn of_answer(text: &str) -> Option<Value> {
    let blocks = text.split("```").skip(1).step_by(2).map(|block| match block.split_once('\n') {
        Some((language, rest)) if !language.trim_start().starts_with('{') => rest,
        _ => block,
    });
    let mut candidates: Vec<&str> = std::iter::once(text).chain(blocks).collect();
    candidates.reverse();
    candidates.into_iter().find_map(|text| match text.trim().parse::<Value>().ok()? {
        Value::Object(mut object) => object.remove(PLAN),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use glovebox_plugin_sdk::json;

    #[test]
    fn an_answer_has_its_last_plan() {
        let plan = json!({ "commands": ["go test"] });
        let whole = json!({ "verification_plan": plan }).to_string();
        assert_eq!(of_answer(&whole), Some(plan.clone()));
        let text =
            format!("First:\n```json\n{{\"verification_plan\": 1}}\n```\nBetter:\n```\n{whole}\n```\nOUTCOME: SUCCESS");
        assert_eq!(of_answer(&text), Some(plan.clone()));
        assert_eq!(of_answer(&format!("```{whole}```")), Some(plan));
        for text in
            ["", "```json\n{}\n```", "```json\n{\"verification_plan\": \n```", "verification_plan: go test", "[1]"]
        {
            assert_eq!(of_answer(text), None, "{text}");
        }
    }

    #[test]
    fn the_model_is_told_what_it_may_plan() {
        let text = request("go test\ntest -f");
        assert!(
            text.starts_with("Verification plan command allowlist (hard requirement):\n- go test\n- test -f\n"),
            "{text}"
        );
        assert!(text.ends_with("Use only these command families in verification_plan.commands."), "{text}");
    }
}
