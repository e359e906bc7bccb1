//! [`Stage`]: the input of a handler, with all that it gets about the node that it executes.
//!
//! It is a read-only view of the contract's `stage-input`. Nothing here calls the host.

use crate::bindings::glovebox::plugin::types::{Attempt, Edge, Failure, Mount, StageInput};
use serde_json::Value;

/// One call of one node: its attributes, its place in the run, and the pipeline's context when the call began.
#[derive(Clone, Debug)]
pub struct Stage {
    input: StageInput,
}

impl From<StageInput> for Stage {
    fn from(input: StageInput) -> Self {
        Self { input }
    }
}

impl Stage {
    /// Returns the ids of the run, the node and the attempt.
    pub fn attempt(&self) -> &Attempt {
        &self.input.attempt
    }

    /// Returns the node's id.
    pub fn node_id(&self) -> &str {
        &self.input.attempt.node_id
    }

    /// Returns the type of the node's handler, such as `codergen`.
    pub fn handler_type(&self) -> &str {
        &self.input.handler_type
    }

    /// Returns the node's label. Without a label it is the node's id.
    pub fn label(&self) -> &str {
        &self.input.label
    }

    /// Returns the node's prompt with `$goal` filled in, or none if the node has no prompt or an empty one.
    pub fn prompt(&self) -> Option<&str> {
        self.input.prompt.as_deref().filter(|prompt| !prompt.is_empty())
    }

    /// Returns the pipeline's goal.
    pub fn goal(&self) -> &str {
        &self.input.goal
    }

    /// Returns an attribute of the node, as the pipeline file has it.
    pub fn attribute(&self, name: &str) -> Option<&str> {
        self.attributes().find(|(key, _)| *key == name).map(|(_, value)| value)
    }

    /// Returns all attributes of the node, in the order of the pipeline file.
    pub fn attributes(&self) -> impl Iterator<Item = (&str, &str)> {
        self.input.attributes.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// Returns a context value. The host checks that it is JSON; any other text is returned as a JSON string.
    pub fn context(&self, key: &str) -> Option<Value> {
        let entry = self.input.context.iter().find(|entry| entry.key == key)?;
        Some(serde_json::from_str(&entry.value).unwrap_or_else(|_| entry.value.as_str().into()))
    }

    /// Returns the keys of the context.
    pub fn context_keys(&self) -> impl Iterator<Item = &str> {
        self.input.context.iter().map(|entry| entry.key.as_str())
    }

    /// Returns the node's outgoing edges.
    pub fn outgoing(&self) -> &[Edge] {
        &self.input.outgoing
    }

    /// Returns the paths of the file tree that this stage sees.
    pub fn mounts(&self) -> &[Mount] {
        &self.input.mounts
    }

    /// Returns the failure of the previous stage, if it failed.
    pub fn last_failure(&self) -> Option<&Failure> {
        self.input.last_failure.as_ref()
    }

    /// Returns an entry of `extra`, where later versions of the contract add values.
    pub fn extra(&self, name: &str) -> Option<&str> {
        self.input.extra.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::bindings::glovebox::plugin::types::Entry;

    pub(crate) fn with_attributes(attributes: Vec<(String, String)>) -> Stage {
        let mut stage = stage(None);
        stage.input.attributes = attributes;
        stage
    }

    fn stage(prompt: Option<&str>) -> Stage {
        let (run_id, branch_id, node_id, attempt_id) = ("r".into(), "main".into(), "n".into(), "a".into());
        let entry = |key: &str, value: &str| Entry { key: key.to_owned(), value: value.to_owned() };
        Stage::from(StageInput {
            attempt: Attempt { run_id, run_generation: 0, branch_id, node_id, attempt_id, ordinal: 1, visit: 1 },
            handler_type: "codergen".to_owned(),
            label: "N".to_owned(),
            prompt: prompt.map(str::to_owned),
            goal: "g".to_owned(),
            attributes: vec![("timeout".to_owned(), "5m".to_owned())],
            context: vec![entry("n", "1"), entry("text", "plain")],
            outgoing: Vec::new(),
            mounts: Vec::new(),
            last_failure: None,
            extra: Vec::new(),
        })
    }

    #[test]
    fn an_empty_prompt_is_none() {
        assert_eq!(stage(Some("")).prompt(), None);
        assert_eq!(stage(None).prompt(), None);
        assert_eq!(stage(Some("do")).prompt(), Some("do"));
    }

    #[test]
    fn values_are_looked_up_by_name() {
        let stage = stage(None);
        assert_eq!((stage.attribute("timeout"), stage.attribute("time")), (Some("5m"), None));
        assert_eq!(stage.context("n"), Some(Value::from(1)));
        assert_eq!(stage.context("text"), Some(Value::from("plain")));
        assert_eq!(stage.context("none"), None);
    }
}
