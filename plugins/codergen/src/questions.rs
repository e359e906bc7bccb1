//! Questions about a plan. The model is asked again if no verification stage could run the plan in its last answer
//! (decision plan-questions).
//!
//! The engine decides how often, and how long an answer may take. The host enforces the time limit and records the result. This module
//! uses no clock: the same answers always lead to the same questions.

use crate::planned::{self, PlanInAnswer};
use glovebox_plugin_sdk::plan::{AllowedCommands, Plan};
use glovebox_plugin_sdk::{Stage, Value};

/// Entry with the engine's rules for questions, as JSON.
const QUESTIONS: &str = "verification-questions";
/// Maximum length of the problems that a question lists, in characters.
const PROBLEM_CHARS_MAX: usize = 4000;

/// The questions that the engine allows.
pub(crate) struct Questions {
    /// Maximum number of questions.
    pub(crate) count_max: u64,
    /// Time limit in seconds for an answer to a question about a missing plan.
    plan_seconds: u64,
    /// Time limit in seconds for an answer to a question for a better plan.
    reconcile_seconds: u64,
    /// True if a plan may have no commands.
    may_be_empty: bool,
    /// Prefixes of the allowed commands, separated by commas.
    allowed: String,
}

/// One question.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Question {
    pub(crate) text: String,
    /// Time limit of the answer, in seconds.
    pub(crate) seconds: u64,
}

impl Questions {
    /// Reads the questions that the engine allows for a stage, or `None` if it allows none.
    pub(crate) fn for_stage(stage: &Stage) -> Option<Self> {
        let told: Value = stage.extra(QUESTIONS)?.parse().ok()?;
        let number = |name: &str| told[name].as_u64().unwrap_or_default();
        Some(Self {
            count_max: number("count_max"),
            plan_seconds: number("plan_seconds"),
            reconcile_seconds: number("reconcile_seconds"),
            may_be_empty: told["may_be_empty"].as_bool().unwrap_or_default(),
            allowed: stage.extra(planned::ALLOWED)?.replace('\n', ","),
        })
    }

    /// Returns the question about the plan in an answer, or `None` if a verification stage could run this plan.
    pub(crate) fn about(&self, found: &PlanInAnswer) -> Option<Question> {
        let problems = match found {
            PlanInAnswer::Nothing => {
                let text = format!("Your answer has no verification plan. {}", self.form());
                return Some(Question { text, seconds: self.plan_seconds });
            }
            PlanInAnswer::Unreadable(reason) => vec![format!("the verification plan cannot be read: {reason}")],
            PlanInAnswer::Plan(plan) => self.problems(plan),
        };
        if problems.is_empty() {
            return None;
        }
        let shown: String = problems.join("\n- ").chars().take(PROBLEM_CHARS_MAX).collect();
        let text = format!("Your verification plan cannot be used:\n- {shown}\n\n{}", self.form());
        Some(Question { text, seconds: self.reconcile_seconds })
    }

    fn form(&self) -> String {
        let list: String = self.allowed.split(',').map(|prefix| format!("\n- {prefix}")).collect();
        format!(
            "Answer only with the whole plan, as one JSON object and without calling tools:\n\
             {{\"verification_plan\": {{\"files\": [\"path/that/must/exist\"], \"commands\": [\"a command\"]}}}}\n\
             Each command must begin with one of these, and runs without a shell:{list}"
        )
    }

    /// Returns all problems of a plan.
    fn problems(&self, plan: &Value) -> Vec<String> {
        let plan = match Plan::read(plan, self.may_be_empty) {
            Ok(plan) => plan,
            Err(problem) => return vec![problem.reason().to_owned()],
        };
        match AllowedCommands::parse(&self.allowed) {
            Ok(allowed) => {
                let wrong = plan.commands.iter().filter_map(|line| allowed.check(line).err());
                wrong.map(|problem| problem.reason().to_owned()).collect()
            }
            Err(_) => Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use glovebox_plugin_sdk::json;
    use glovebox_plugin_sdk::testing::stage;

    fn questions(may_be_empty: bool) -> Questions {
        let told = json!({ "count_max": 2, "plan_seconds": 7, "reconcile_seconds": 9, "may_be_empty": may_be_empty });
        let stage = stage("build").extra(QUESTIONS, told.to_string()).extra(planned::ALLOWED, "go test\ntest -f");
        Questions::for_stage(&stage.build()).unwrap()
    }

    #[test]
    fn each_question_names_what_is_wrong_and_has_its_time() {
        let check = |found: PlanInAnswer, seconds: u64, says: &[&str]| {
            let asked = questions(false).about(&found).unwrap();
            assert_eq!(asked.seconds, seconds, "{}", asked.text);
            for says in says.iter().chain(&["- go test\n- test -f", "without calling tools"]) {
                assert!(asked.text.contains(says), "{says}: {}", asked.text);
            }
        };
        check(PlanInAnswer::Nothing, 7, &["Your answer has no verification plan."]);
        check(PlanInAnswer::Unreadable("it ends too early".to_owned()), 9, &["cannot be read: it ends too early"]);
        check(PlanInAnswer::Plan(json!([])), 9, &["the verification plan is not a JSON object"]);
        check(PlanInAnswer::Plan(json!({ "commands": [] })), 9, &["must contain at least one command"]);
        let plan = json!({ "commands": ["go test", "go vet", "go test | tee x"] });
        check(PlanInAnswer::Plan(plan), 9, &["not allowed: go vet\n- ", "unsupported_format: `|` needs a shell"]);
    }

    #[test]
    fn a_plan_that_can_run_is_asked_about_no_more() {
        let about = |may_be_empty, plan| questions(may_be_empty).about(&PlanInAnswer::Plan(plan));
        assert_eq!(about(false, json!({ "commands": ["go test ./x"] })), None);
        assert_eq!(about(true, json!({ "commands": [] })), None);
        let long = about(false, json!({ "commands": ["x".repeat(9000)] })).unwrap();
        assert!(long.text.len() < PROBLEM_CHARS_MAX + 500, "{}", long.text.len());
        assert!(Questions::for_stage(&stage("build").build()).is_none());
    }
}
