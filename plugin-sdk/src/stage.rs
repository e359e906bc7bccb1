//! [`Stage`]: the input of a handler, with everything that it gets about the node.
//!
//! A read-only view of the contract's `stage-input`. No function here calls the host.

use crate::bindings::glovebox::plugin::types::{Attempt, CommandScope, Edge, Failure, Mount, StageInput};
use crate::scope::WriteScope;
use serde_json::Value;

/// One call of one node: attributes of the node, its place in the run, and the pipeline's context when the call began.
#[derive(Clone, Debug)]
pub struct Stage {
    input: StageInput,
    write_scope: WriteScope,
}

impl From<StageInput> for Stage {
    fn from(input: StageInput) -> Self {
        let write_scope = WriteScope::from_paths(input.write_paths.iter().map(String::as_str));
        Self { input, write_scope }
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

    /// Returns the node's label, which is the node's id by default.
    pub fn label(&self) -> &str {
        &self.input.label
    }

    /// Returns the node's prompt with `$goal` inserted, or `None` if the prompt is missing or empty.
    pub fn prompt(&self) -> Option<&str> {
        self.input.prompt.as_deref().filter(|prompt| !prompt.is_empty())
    }

    /// Returns the pipeline's goal.
    pub fn goal(&self) -> &str {
        &self.input.goal
    }

    /// Returns an attribute of the node as it is in the pipeline file.
    pub fn attribute(&self, name: &str) -> Option<&str> {
        self.attributes().find(|(key, _)| *key == name).map(|(_, value)| value)
    }

    /// Returns all attributes of the node, in the order of the pipeline file.
    pub fn attributes(&self) -> impl Iterator<Item = (&str, &str)> {
        self.input.attributes.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// Returns a context value. A value that is not JSON is returned as a JSON string; the host passes only JSON.
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

    /// Returns the paths of the file tree that this stage can see.
    pub fn mounts(&self) -> &[Mount] {
        &self.input.mounts
    }

    /// Returns the paths that the stage may write: those that the node asks for and the operator grants.
    pub fn write_scope(&self) -> &WriteScope {
        &self.write_scope
    }

    /// Returns the commands that the stage may run: those that the node asks for and the operator grants.
    pub fn commands(&self) -> &CommandScope {
        &self.input.commands
    }

    /// Returns the failure of the previous stage, if it failed.
    pub fn last_failure(&self) -> Option<&Failure> {
        self.input.last_failure.as_ref()
    }

    /// Returns the value of a key in `extra`. Later versions of the contract may add keys.
    pub fn extra(&self, name: &str) -> Option<&str> {
        self.input.extra.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bindings::glovebox::plugin::types::Entry;
    use crate::testing;

    fn stage(prompt: Option<&str>) -> Stage {
        let stage = testing::stage("n").attribute("timeout", "5m").context("n", 1);
        let mut stage = prompt.into_iter().fold(stage, |stage, prompt| stage.prompt(prompt)).build();
        stage.input.context.push(Entry { key: "text".to_owned(), value: "plain".to_owned() });
        stage
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
