//! The prompts: role and rules of the model, the task of the stage, and the failure that led to it.

use crate::planned;
use glovebox_plugin_sdk::{Failure, Stage, WriteScope};
use std::fmt;

/// Maximum length of an earlier failure's reason, in characters.
const FEEDBACK_CHARS_MAX: usize = 2200;

const STAGE: &str = "\
You are the worker of one stage in an automated pipeline. No person reads your messages: do the task with your tools, then answer in text.

";

/// Role and rules of a subagent.
const SUBAGENT: &str = "\
You do a part of the work of one stage in an automated pipeline. The agent of the stage gave you a task, and only it reads your answer: do the
task with your tools, then answer in text.

";

const RULES: &str = "\
- Paths are relative to the workspace, with `/` between names. What you cannot see does not exist for you.
- Read before you change. `read_file` puts a line number and a bar before each line; they are not part of the file.
- Prefer `edit_file` for small changes and `write_file` for new files. Leave alone what the task does not ask for.
- A tool that fails says why. Read the reason and try another way; do not repeat the same call.
";

/// The rule about git, for an agent that runs commands.
pub(crate) const GIT: &str = "`git` works on a repository of this stage, with the last commit of the project and nothing before it. \
     Commits, stashes and branches are dropped when the stage ends, also if you are asked to make them. \
     The files of the workspace are the result of the stage: leave all your work in them.";

const ENDING: &str = "\
- The first answer without a tool call ends the stage. End it with a line `OUTCOME: SUCCESS`, or `OUTCOME: FAIL` and the
  reason when the task is not done. Say only what you have seen; claims are checked afterwards.";

/// The rules about the end of a stage whose answer must match a schema.
const OBJECT: &str = "\
- The first answer without a tool call ends the stage. It must be one JSON object that matches the JSON Schema below, without any text
  before or after it. Only if the task cannot be done, answer with a line `OUTCOME: FAIL` and the reason. Say only what you have
  seen; claims are checked afterwards.";

/// Message after an empty answer.
pub(crate) const SILENT: &str = "Your answer was empty. Go on with the task, or end it as the rules say.";

/// Returns the system prompt: the rules, what this stage may do, and the schema of its answer.
pub(crate) fn system(stage: &Stage, schema: Option<&str>) -> String {
    let mut text = STAGE.to_owned() + RULES + if schema.is_some() { OBJECT } else { ENDING };
    if let Some(rule) = write_rule(stage) {
        text.push_str(&format!("\n- {rule}"));
    }
    let commands = stage.commands();
    if commands.any || !commands.prefixes.is_empty() {
        let prefixes = || commands.prefixes.iter().map(|words| words.join(" ")).collect::<Vec<_>>().join(", ");
        let rule = match commands.any {
            true => "`shell` runs any command".to_owned(),
            false => format!("`shell` runs only these commands, without shell syntax: {}", prefixes()),
        };
        text.push_str(&format!("\n- {rule}\n- {GIT}"));
    }
    if let Some(schema) = schema {
        text.push_str(&format!("\n\nJSON Schema of your last answer:\n{schema}"));
    }
    text
}

/// Returns the rule about the stage's write scope, or `None` if the stage may write the whole workspace.
pub(crate) fn write_rule(stage: &Stage) -> Option<String> {
    let scope = stage.write_scope();
    (!scope.is_whole()).then(|| format!("You may write {scope}"))
}

/// Returns the system prompt of a subagent.
pub(crate) fn subagent(bounds: &WriteScope) -> String {
    let ending = "- The first answer without a tool call goes to the agent of the stage. Say what you found or did, and what is left to do.";
    format!("{SUBAGENT}{RULES}{ending}\n- You may write {bounds}")
}

/// Returns the message that asks again for an answer that matches the schema.
pub(crate) fn correction(problem: &str) -> String {
    format!("Your answer does not match the JSON Schema: {problem}\nAnswer only with the whole JSON object.")
}

/// Returns the user prompt: the preamble, the node's prompt or its label, and the failure that led to this stage.
pub(crate) fn user(stage: &Stage) -> String {
    let task = stage.prompt().unwrap_or(stage.label());
    let before = stage.extra("preamble").map(|text| format!("{}\n\nYour task:\n", text.trim_end()));
    let plan = stage.extra(planned::ALLOWED).map(|allowed| format!("\n\n{}", planned::request(allowed)));
    let task = format!("{}{task}{}", before.unwrap_or_default(), plan.unwrap_or_default());
    match stage.last_failure() {
        Some(failure) => {
            let (node, details) = (stage.extra("failed-node"), stage.extra("failure-details"));
            format!("{task}\n\n{}", Feedback { failure, node, details })
        }
        None => task,
    }
}

/// The failure of the previous stage.
struct Feedback<'a> {
    failure: &'a Failure,
    node: Option<&'a str>,
    details: Option<&'a str>,
}

impl fmt::Display for Feedback<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "Failure feedback (from previous failed stage):")?;
        if let Some(node) = self.node {
            writeln!(f, "failed_node: {node}")?;
        }
        let reason: String = self.failure.reason.chars().take(FEEDBACK_CHARS_MAX).collect();
        writeln!(f, "failure_reason: {reason}")?;
        self.details.map_or(Ok(()), |details| write!(f, "details:\n{details}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use glovebox_plugin_sdk::testing::stage;

    #[test]
    fn the_commands_that_are_granted_are_named() {
        let told = |stage: &Stage| system(stage, None).contains("`shell`");
        assert!(!told(&stage("n").attribute("allowed_commands", "*").build()), "an attribute is not a grant");
        let granted = stage("n").command("cargo test").command("git status").build();
        assert!(system(&granted, None).contains("without shell syntax: cargo test, git status"));
        assert!(system(&stage("n").any_command().build(), None).contains("`shell` runs any command"));
    }

    #[test]
    fn feedback_is_headed_and_bounded() {
        let check = |reason: &str, node, details| {
            let failure =
                Failure { class: "deterministic".into(), code: "tool/exit-code".into(), reason: reason.to_owned() };
            Feedback { failure: &failure, node, details }.to_string()
        };
        assert_eq!(
            check("tool_exit_code_101", Some("test"), Some("stderr (its end):\nassertion failed\n")),
            "Failure feedback (from previous failed stage):\nfailed_node: test\nfailure_reason: tool_exit_code_101\n\
             details:\nstderr (its end):\nassertion failed\n"
        );
        let long = check(&"ä".repeat(FEEDBACK_CHARS_MAX + 7), None, None);
        assert_eq!(long.matches('ä').count(), FEEDBACK_CHARS_MAX);
    }
}
