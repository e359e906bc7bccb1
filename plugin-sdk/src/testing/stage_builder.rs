//! [`StageBuilder`]: creates the input of a handler for a test.
//!
//! Everything that a test does not set is empty, as for a node without attributes on the first visit.

use crate::bindings::glovebox::plugin::types::{Attempt, CommandScope, Edge, Entry, Failure, Mount, StageInput};
use crate::{Stage, Value};

/// Builds a [`Stage`].
#[derive(Clone, Debug)]
#[must_use]
pub struct StageBuilder {
    input: StageInput,
}

/// Begins a stage for the node with this id.
pub fn stage(node_id: impl Into<String>) -> StageBuilder {
    let node_id = node_id.into();
    let (run_id, branch_id, attempt_id) = ("test".to_owned(), "main".to_owned(), "test-1".to_owned());
    let attempt = Attempt { run_id, run_generation: 1, branch_id, node_id, attempt_id, ordinal: 1, visit: 1 };
    StageBuilder {
        input: StageInput {
            label: attempt.node_id.clone(),
            attempt,
            handler_type: "test.plugin".to_owned(),
            prompt: None,
            goal: String::new(),
            attributes: Vec::new(),
            context: Vec::new(),
            outgoing: Vec::new(),
            mounts: Vec::new(),
            write_paths: Vec::new(),
            commands: CommandScope { any: false, prefixes: Vec::new() },
            last_failure: None,
            extra: Vec::new(),
        },
    }
}

impl StageBuilder {
    /// Sets the type of the node's handler.
    pub fn handler_type(mut self, name: impl Into<String>) -> Self {
        self.input.handler_type = name.into();
        self
    }

    /// Sets the node's label.
    pub fn label(mut self, label: impl Into<String>) -> Self {
        self.input.label = label.into();
        self
    }

    /// Sets the node's prompt.
    pub fn prompt(mut self, prompt: impl Into<String>) -> Self {
        self.input.prompt = Some(prompt.into());
        self
    }

    /// Sets the pipeline's goal.
    pub fn goal(mut self, goal: impl Into<String>) -> Self {
        self.input.goal = goal.into();
        self
    }

    /// Adds an attribute of the node.
    pub fn attribute(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.input.attributes.push((name.into(), value.into()));
        self
    }

    /// Adds a value of the context.
    pub fn context(mut self, key: impl Into<String>, value: impl Into<Value>) -> Self {
        self.input.context.push(Entry { key: key.into(), value: value.into().to_string() });
        self
    }

    /// Adds an outgoing edge. An empty label stands for an edge without a label.
    pub fn outgoing(mut self, to: impl Into<String>, label: impl Into<String>) -> Self {
        self.input.outgoing.push(Edge { to: to.into(), label: label.into(), condition: String::new(), weight: 0 });
        self
    }

    /// Adds a path of the file tree; `access` is `read` or `write`.
    pub fn mount(mut self, guest_path: impl Into<String>, access: impl Into<String>) -> Self {
        self.input.mounts.push(Mount { guest_path: guest_path.into(), access: access.into() });
        self
    }

    /// Adds a path that the stage may write, such as `src/`, `src/a.rs`, or `./` for everything.
    pub fn write_path(mut self, path: impl Into<String>) -> Self {
        self.input.write_paths.push(path.into());
        self
    }

    /// Allows commands that begin with these words, such as `cargo test`.
    pub fn command(mut self, prefix: &str) -> Self {
        let words = prefix.split_whitespace().map(str::to_owned).collect();
        self.input.commands.prefixes.push(words);
        self
    }

    /// Allows any shell text and any argument list.
    pub fn any_command(mut self) -> Self {
        self.input.commands.any = true;
        self
    }

    /// Sets the failure of the previous stage.
    pub fn last_failure(mut self, failure: Failure) -> Self {
        self.input.last_failure = Some(failure);
        self
    }

    /// Sets the number of this arrival at the node, counted from 1.
    pub fn visit(mut self, visit: u32) -> Self {
        self.input.attempt.visit = visit;
        self
    }

    /// Adds a key and its value, which [`Stage::extra`] returns.
    pub fn extra(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.input.extra.push((name.into(), value.into()));
        self
    }

    /// Returns the stage. [`Host::execute`](super::Host::execute) also accepts the builder.
    pub fn build(self) -> Stage {
        Stage::from(self.input)
    }
}

impl From<StageBuilder> for Stage {
    fn from(builder: StageBuilder) -> Self {
        builder.build()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_set_is_what_a_handler_sees() {
        let failure = Failure { class: "deterministic".to_owned(), code: "a/b".to_owned(), reason: "r".to_owned() };
        let stage = stage("n")
            .handler_type("acme.x")
            .label("L")
            .prompt("p")
            .goal("g")
            .attribute("k", "v")
            .context("c", 7)
            .outgoing("m", "fix")
            .mount("src/", "read")
            .write_path("src/a/")
            .last_failure(failure)
            .visit(2)
            .extra("failed-node", "m")
            .build();
        assert_eq!((stage.node_id(), stage.label(), stage.prompt(), stage.goal()), ("n", "L", Some("p"), "g"));
        assert_eq!((stage.attribute("k"), stage.context("c"), stage.attempt().visit), (Some("v"), Some(7.into()), 2));
        assert_eq!((stage.outgoing()[0].label.as_str(), stage.mounts().len()), ("fix", 1));
        assert_eq!(stage.write_scope().to_string(), "only here: src/a/");
        assert_eq!((stage.extra("failed-node"), stage.handler_type()), (Some("m"), "acme.x"));
        assert_eq!(stage.last_failure().map(|failure| failure.code.as_str()), Some("a/b"));
    }
}
