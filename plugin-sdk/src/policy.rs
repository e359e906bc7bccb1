//! Policies: judge tool calls of agents and edges of a run. Implement [`Policy`], export it with
//! [`export_policy!`](crate::export_policy).
//!
//! A policy imports nothing, not even WASI, so it has no `std`: see the module [`rules`](crate::rules), whose allocator it shares. A
//! panic ends the call, and the host then refuses the action.
//!
//! ```no_run
//! use glovebox_plugin_sdk::export_policy;
//! use glovebox_plugin_sdk::policy::{Edge, Policy};
//!
//! struct AcmePolicy;
//!
//! impl Policy for AcmePolicy {
//!     fn judge_edge(edge: &Edge) -> Result<(), String> {
//!         let is_reviewed = edge.has_succeeded("review");
//!         if edge.to() == "deploy" && !is_reviewed { Err("a deployment needs a review".into()) } else { Ok(()) }
//!     }
//! }
//!
//! export_policy!(AcmePolicy, manifest = r#"{"name":"acme.policy","version":"0.1.0","description":"Policy of ACME."}"#);
//! # fn main() {}
//! ```

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::String;
use serde_json::Value;

/// The generated bindings of the world `policy`. They are public because the export macro expands to their paths.
#[doc(hidden)]
#[allow(clippy::all, clippy::unwrap_used, missing_docs, unreachable_pub, unused_qualifications)]
pub mod bindings {
    wit_bindgen::generate!({ world: "policy", path: "../wit", pub_export_macro: true });
}

use bindings::exports::glovebox::plugin::policy_rules::Guest;

/// Judges actions of a run. An error refuses the action, and its text is the reason. Each call gets a new instance: statics do not
/// survive.
pub trait Policy {
    /// Judges a tool call of an agent's model. By default every call is allowed.
    ///
    /// # Errors
    /// Why the call is refused. The model gets this text.
    fn judge_call(call: &Call) -> Result<(), String> {
        let _ = call;
        Ok(())
    }

    /// Judges an edge that the run is about to take. By default every edge is allowed.
    ///
    /// # Errors
    /// Why the edge is refused. The run ends with this text.
    fn judge_edge(edge: &Edge) -> Result<(), String> {
        let _ = edge;
        Ok(())
    }
}

/// A tool call of an agent's model.
#[derive(Debug, Clone, PartialEq)]
pub struct Call(Value);

/// An edge that a run is about to take.
#[derive(Debug, Clone, PartialEq)]
pub struct Edge(Value);

impl Call {
    /// Creates a call from its JSON, as the host passes it. For tests.
    pub fn from_value(value: Value) -> Self {
        Self(value)
    }

    /// Returns the node's id.
    pub fn node(&self) -> &str {
        text(&self.0, "node")
    }

    /// Returns the type of the node's handler, such as `codergen`.
    pub fn handler(&self) -> &str {
        text(&self.0, "handler")
    }

    /// Returns an attribute of the node.
    pub fn attribute(&self, name: &str) -> Option<&str> {
        self.0["attributes"].get(name)?.as_str()
    }

    /// Returns the name by which the model calls the tool.
    pub fn tool(&self) -> &str {
        text(&self.0, "tool")
    }

    /// Returns an argument. `None` for all arguments if the stage can read hold-outs.
    pub fn argument(&self, name: &str) -> Option<&Value> {
        self.0["arguments"].get(name)
    }

    /// Returns true if the policy gets no arguments, because the stage can read hold-outs.
    pub fn is_withheld(&self) -> bool {
        self.0["arguments"].is_null()
    }
}

impl Edge {
    /// Creates an edge from its JSON, as the host passes it. For tests.
    pub fn from_value(value: Value) -> Self {
        Self(value)
    }

    /// Returns the id of the node that the run leaves.
    pub fn from(&self) -> &str {
        text(&self.0, "from")
    }

    /// Returns the id of the next node.
    pub fn to(&self) -> &str {
        text(&self.0, "to")
    }

    /// Returns the status of the last stage, such as `success`.
    pub fn status(&self) -> &str {
        text(&self.0, "status")
    }

    /// Returns the rule that chose the next node, such as `condition` or `retry_target`.
    pub fn how(&self) -> &str {
        text(&self.0, "how")
    }

    /// Returns an attribute of the edge.
    pub fn attribute(&self, name: &str) -> Option<&str> {
        self.0["attributes"].get(name)?.as_str()
    }

    /// Returns an attribute of the next node.
    pub fn target_attribute(&self, name: &str) -> Option<&str> {
        self.0["target"].get(name)?.as_str()
    }

    /// Returns true if the last visit of a node on this branch succeeded.
    pub fn has_succeeded(&self, node: &str) -> bool {
        self.0["succeeded"].as_array().is_some_and(|nodes| nodes.iter().any(|known| known == node))
    }
}

fn text<'v>(value: &'v Value, name: &str) -> &'v str {
    value[name].as_str().unwrap_or_default()
}

fn parsed(json: &str) -> Result<Value, String> {
    serde_json::from_str(json).map_err(|error| format!("the question of the host is not JSON: {error}").to_owned())
}

impl<P: Policy> Guest for P {
    fn judge_call(call: String) -> Result<(), String> {
        P::judge_call(&Call(parsed(&call)?))
    }

    fn judge_edge(edge: String) -> Result<(), String> {
        P::judge_edge(&Edge(parsed(&edge)?))
    }
}

/// Exports a [`Policy`] as the component's `policy-rules` interface, and writes its manifest into the custom section
/// `glovebox:manifest`: JSON with `name`, `version` and `description`. Without `manifest`, `glovebox plugin build` writes the manifest.
/// On targets other than WebAssembly, the macro exports nothing.
#[macro_export]
macro_rules! export_policy {
    ($policy:ident) => {
        const _: fn(&$crate::policy::Edge) -> ::core::result::Result<(), $crate::policy::Reason> =
            <$policy as $crate::policy::Policy>::judge_edge;
        #[cfg(target_family = "wasm")]
        const _: () = {
            #[unsafe(export_name = "cabi_realloc")]
            extern "C" fn realloc(_: *mut u8, bytes_before: usize, align: usize, bytes: usize) -> *mut u8 {
                $crate::rules::argument(bytes_before, align, bytes)
            }
        };
        #[cfg(target_family = "wasm")]
        $crate::policy::bindings::export!($policy with_types_in $crate::policy::bindings);
    };
    ($policy:ident, manifest = $manifest:expr) => {
        #[cfg(target_family = "wasm")]
        const _: () = {
            const TEXT: &str = $manifest;
            #[unsafe(link_section = "glovebox:manifest")]
            static MANIFEST: [u8; TEXT.len()] = $crate::section_bytes(TEXT);
        };
        $crate::export_policy!($policy);
    };
}

/// Why an action is refused. Used by [`export_policy!`](crate::export_policy).
#[doc(hidden)]
pub type Reason = String;

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn questions_are_read_by_name() {
        let edge = Edge::from_value(json!({ "from": "a", "to": "b", "status": "success", "how": "weight",
            "attributes": { "label": "ok" }, "target": { "type": "tool" }, "succeeded": ["a"] }));
        assert_eq!((edge.from(), edge.to(), edge.status(), edge.how()), ("a", "b", "success", "weight"));
        assert_eq!((edge.attribute("label"), edge.target_attribute("type")), (Some("ok"), Some("tool")));
        assert!(edge.has_succeeded("a") && !edge.has_succeeded("b"));
        let call = Call::from_value(json!({ "node": "n", "handler": "codergen", "attributes": { "x": "1" },
            "tool": "shell", "arguments": { "command": "ls" } }));
        assert_eq!(
            (call.node(), call.handler(), call.tool(), call.attribute("x")),
            ("n", "codergen", "shell", Some("1"))
        );
        assert_eq!(call.argument("command"), Some(&json!("ls")));
        assert!(!call.is_withheld() && Call::from_value(json!({ "arguments": null })).is_withheld());
        assert!(parsed("{").is_err());
    }
}
