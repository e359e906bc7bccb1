//! The verification plan that an agent writes for a later stage (decision verification-plan): the request in the prompt, and finding
//! the plan in the answer.

use glovebox_plugin_sdk::{Outcome, Stage, Value};

/// Entry with the command prefixes that the following verification stages allow, one on each line.
pub(crate) const ALLOWED: &str = "verification-allowed";
/// Entry with the context keys that those stages read, one on each line.
const KEYS: &str = "verification-keys";
/// Name of a plan in an answer.
const PLAN: &str = "verification_plan";

/// Returns the section of the prompt about the plan.
pub(crate) fn request(allowed: &str) -> String {
    let list: String = allowed.lines().map(|prefix| format!("- {prefix}\n")).collect();
    format!(
        "Verification plan command allowlist (hard requirement):\n{list}\
         A later stage runs your plan without a shell: one program on each line, no pipes, no `&&`, no assignments. \
         End your last answer with the plan:\n\
         ```json\n{{\"verification_plan\": {{\"files\": [\"path/that/must/exist\"], \"commands\": [\"a command\"]}}}}\n```\n\
         Use only these command families in verification_plan.commands."
    )
}

/// Sets the context keys from which the verification stages read the plan. A value that the model set itself is kept.
pub(crate) fn hand_on(stage: &Stage, plan: Option<Value>, outcome: Outcome) -> Outcome {
    let (Some(plan), Some(keys)) = (plan, stage.extra(KEYS)) else { return outcome };
    let set = |outcome: Outcome, key: &str| match outcome.value(key) {
        Some(_) => outcome,
        None => outcome.set(key, plan.clone()),
    };
    keys.lines().fold(outcome, set)
}

/// The plan in an answer.
#[derive(Debug, PartialEq)]
pub(crate) enum PlanInAnswer {
    /// There is nothing that looks like a plan.
    Nothing,
    /// There is a text that looks like a plan and cannot be read, for this reason.
    Unreadable(String),
    /// There is a plan, of any form.
    Plan(Value),
}

impl PlanInAnswer {
    /// Returns the plan, if there is one.
    pub(crate) fn into_plan(self) -> Option<Value> {
        if let Self::Plan(plan) = self { Some(plan) } else { None }
    }
}

/// Returns the last plan of an answer: a JSON object with `verification_plan`, as the whole answer or as a code block.
pub(crate) fn from_answer(text: &str) -> PlanInAnswer {
    let blocks = text.split("```").skip(1).step_by(2).map(|block| match block.split_once('\n') {
        Some((language, rest)) if !language.trim_start().starts_with('{') => rest,
        _ => block,
    });
    let mut candidates: Vec<&str> = std::iter::once(text).chain(blocks).collect();
    candidates.reverse();
    let plan = candidates.iter().find_map(|text| match text.trim().parse::<Value>().ok()? {
        Value::Object(mut object) => object.remove(PLAN),
        _ => None,
    });
    let names_plan = |text: &&&str| text.contains(&format!("\"{PLAN}\""));
    match (plan, candidates.iter().find(names_plan)) {
        (Some(plan), _) => PlanInAnswer::Plan(plan),
        (None, Some(text)) => PlanInAnswer::Unreadable(match text.trim().parse::<Value>() {
            Ok(_) => format!("it is not the field `{PLAN}` of a JSON object"),
            Err(error) => format!("it is not one JSON object, alone or in a code block: {error}"),
        }),
        (None, None) => PlanInAnswer::Nothing,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use glovebox_plugin_sdk::json;

    #[test]
    fn an_answer_has_its_last_plan() {
        let plan = || json!({ "commands": ["go test"] });
        let whole = json!({ "verification_plan": plan() }).to_string();
        assert_eq!(from_answer(&whole), PlanInAnswer::Plan(plan()));
        let text =
            format!("First:\n```json\n{{\"verification_plan\": 1}}\n```\nBetter:\n```\n{whole}\n```\nOUTCOME: SUCCESS");
        assert_eq!(from_answer(&text), PlanInAnswer::Plan(plan()));
        assert_eq!(from_answer(&format!("```{whole}```")), PlanInAnswer::Plan(plan()));
        for text in ["", "```json\n{}\n```", "verification_plan: go test", "[1]"] {
            assert_eq!(from_answer(text), PlanInAnswer::Nothing, "{text}");
        }
    }

    #[test]
    fn what_is_meant_as_a_plan_says_why_it_cannot_be_read() {
        let check = |text: &str, expected: &str| match from_answer(text) {
            PlanInAnswer::Unreadable(reason) => assert!(reason.contains(expected), "{text}: {reason}"),
            found => panic!("{text}: {found:?}"),
        };
        check("```json\n{\"verification_plan\": \n```", "EOF while parsing");
        check("{\"verification_plan\": {}}\nOUTCOME: SUCCESS", "trailing characters");
        check("[\"verification_plan\"]", "not the field `verification_plan`");
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
