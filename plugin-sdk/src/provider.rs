//! Tools for agents: implement [`ToolProvider`], export it with [`export_tools!`](crate::export_tools).
//!
//! A tool provider reads files and writes to the log of the stage, and has no commands, no model and no network. Each call gets a new
//! instance: statics do not survive.
//!
//! ```no_run
//! use glovebox_plugin_sdk::provider::{Tool, ToolProvider};
//! use glovebox_plugin_sdk::{Value, export_tools, json};
//!
//! struct Counter;
//!
//! impl ToolProvider for Counter {
//!     fn tools() -> Vec<Tool> {
//!         let text = json!({ "type": "object", "properties": { "text": { "type": "string" } }, "required": ["text"] });
//!         vec![Tool::new("count_words", "Counts the words of a text.", text)]
//!     }
//!
//!     fn call(_name: &str, arguments: &Value) -> Result<String, String> {
//!         Ok(arguments["text"].as_str().unwrap_or_default().split_whitespace().count().to_string())
//!     }
//! }
//!
//! export_tools!(Counter, manifest = r#"{"name":"acme.counter","version":"0.1.0","description":"Counts.","wants":{}}"#);
//! # fn main() {}
//! ```

use serde_json::Value;

/// The generated bindings of the world `tool-provider`. They are public because the export macro expands to their paths.
#[doc(hidden)]
#[allow(clippy::all, clippy::unwrap_used, missing_docs, unreachable_pub, unused_qualifications)]
pub mod bindings {
    wit_bindgen::generate!({ world: "tool-provider", path: "../wit", pub_export_macro: true });
}

use bindings::exports::glovebox::plugin::tool::{Guest, Output};
use bindings::glovebox::plugin::chat::ToolDef;

/// Provides tools to agents.
pub trait ToolProvider {
    /// Returns the tools. An agent has the tools that are returned at the first question of an attempt.
    fn tools() -> Vec<Tool>;

    /// Executes a tool. The host has checked that the arguments match the schema of the tool.
    ///
    /// # Errors
    /// Why the tool failed, as a sentence for the model.
    fn call(name: &str, arguments: &Value) -> Result<String, String>;
}

/// A tool, as the model gets it.
#[derive(Debug, Clone, PartialEq)]
pub struct Tool {
    name: String,
    description: String,
    parameters: Value,
}

impl Tool {
    /// Creates a tool. The name has letters, digits, `_` and `-`. `parameters` is the JSON Schema of an object, with keywords that the host
    /// enforces.
    pub fn new(name: impl Into<String>, description: impl Into<String>, parameters: Value) -> Self {
        Self { name: name.into(), description: description.into(), parameters }
    }

    /// Returns the name.
    pub fn name(&self) -> &str {
        &self.name
    }
}

impl<P: ToolProvider> Guest for P {
    fn definitions() -> Vec<ToolDef> {
        let definition = |Tool { name, description, parameters }| ToolDef {
            name,
            description,
            parameters: Value::to_string(&parameters),
        };
        P::tools().into_iter().map(definition).collect()
    }

    fn call(name: String, arguments: String) -> Output {
        let read = serde_json::from_str(&arguments).map_err(|error| format!("the arguments are not JSON: {error}"));
        let answer = read.and_then(|arguments| <P as ToolProvider>::call(&name, &arguments));
        let is_error = answer.is_err();
        Output { content: answer.unwrap_or_else(|reason| reason), is_error, extra: Vec::new() }
    }
}

/// Exports a [`ToolProvider`] as the component's `tool` interface, and writes its manifest into the custom section `glovebox:manifest`, as
/// [`export!`](crate::export) does. On targets other than WebAssembly, the macro exports nothing.
#[macro_export]
macro_rules! export_tools {
    ($provider:ident) => {
        const _: fn() -> ::std::vec::Vec<$crate::provider::Tool> =
            <$provider as $crate::provider::ToolProvider>::tools;
        #[cfg(target_family = "wasm")]
        $crate::provider::bindings::export!($provider with_types_in $crate::provider::bindings);
    };
    ($provider:ident, manifest = $manifest:expr) => {
        #[cfg(target_family = "wasm")]
        const _: () = {
            const TEXT: &str = $manifest;
            #[unsafe(link_section = "glovebox:manifest")]
            static MANIFEST: [u8; TEXT.len()] = $crate::section_bytes(TEXT);
        };
        $crate::export_tools!($provider);
    };
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    struct Echo;

    impl ToolProvider for Echo {
        fn tools() -> Vec<Tool> {
            vec![Tool::new("echo", "Repeats.", json!({ "type": "object" }))]
        }

        fn call(name: &str, arguments: &Value) -> Result<String, String> {
            if name == "echo" { Ok(arguments["text"].to_string()) } else { Err("no such tool".to_owned()) }
        }
    }

    #[test]
    fn answers_and_errors_are_outputs() {
        let definitions = <Echo as Guest>::definitions();
        assert_eq!(
            (definitions[0].name.as_str(), definitions[0].parameters.as_str()),
            ("echo", r#"{"type":"object"}"#)
        );
        let call = |name: &str, arguments: &str| <Echo as Guest>::call(name.to_owned(), arguments.to_owned());
        let output = call("echo", r#"{"text":1}"#);
        assert_eq!((output.content.as_str(), output.is_error), ("1", false));
        assert!(call("other", "{}").is_error && call("echo", "{").is_error);
    }
}
