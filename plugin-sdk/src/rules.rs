//! Custom rules: lint or transform a pipeline's graph. Implement [`Rules`], export it with [`export_rules!`](crate::export_rules).
//!
//! A component with custom rules imports nothing, not even WASI, so it has no `std`. Put `#![cfg_attr(target_family = "wasm",
//! no_std)]` at the top of the crate, and use `alloc` for strings and lists. This module provides the allocator. A panic ends the
//! call as a trap without its message. The host reads and lints a changed graph like any pipeline file.
//!
//! ```no_run
//! use glovebox_plugin_sdk::export_rules;
//! use glovebox_plugin_sdk::rules::{Finding, Graph, Rules};
//!
//! struct AcmeRules;
//!
//! impl Rules for AcmeRules {
//!     fn lint(graph: &Graph) -> Vec<Finding> {
//!         let stages = graph.nodes.iter().filter(|node| node.handler() == "codergen");
//!         let unbounded = stages.filter(|node| node.get("timeout").is_none());
//!         unbounded.map(|node| Finding::warning("timeout", "a stage without `timeout`").at_node(&node.id)).collect()
//!     }
//! }
//!
//! export_rules!(AcmeRules, manifest = r#"{"name":"acme.house","version":"0.1.0","description":"Rules of ACME."}"#);
//! # fn main() {}
//! ```

use alloc::borrow::ToOwned;
use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;
use serde_json::{Map, Value};

/// The generated bindings of the world `rules`. They are public because the export macro expands to their paths.
#[doc(hidden)]
#[allow(clippy::all, clippy::unwrap_used, missing_docs, unreachable_pub, unused_qualifications)]
pub mod bindings {
    wit_bindgen::generate!({ world: "rules", path: "../wit", pub_export_macro: true });
}

use bindings::exports::glovebox::plugin::graph_rules::{Finding as RawFinding, Guest};

/// Lints graphs, and may change them. Each call gets a new instance: statics do not survive.
pub trait Rules {
    /// Returns findings about a graph, after all transforms and the built-in lint. The default implementation returns no findings.
    fn lint(graph: &Graph) -> Vec<Finding> {
        let _ = graph;
        Vec::new()
    }

    /// Changes a graph before the lint. By default it stays unchanged.
    ///
    /// # Errors
    /// Why the graph is refused. The check fails with this text.
    fn transform(graph: &mut Graph) -> Result<(), String> {
        let _ = graph;
        Ok(())
    }
}

/// A pipeline's graph. Defaults are applied, and `$goal`, inputs and prompt files are inserted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Graph {
    /// Name of the graph.
    pub name: String,
    /// Graph attributes.
    pub attributes: BTreeMap<String, String>,
    /// Nodes in file order.
    pub nodes: Vec<Node>,
    /// Edges in file order.
    pub edges: Vec<Edge>,
}

/// A node of a [`Graph`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Node {
    /// Id of the node.
    pub id: String,
    /// All attributes of the node. `shape` is always present.
    pub attributes: BTreeMap<String, String>,
    handler: String,
}

/// An edge of a [`Graph`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Edge {
    /// Id of the source node.
    pub from: String,
    /// Id of the target node.
    pub to: String,
    /// All attributes of the edge.
    pub attributes: BTreeMap<String, String>,
}

impl Node {
    /// Creates a node without attributes, which is by default a box that `codergen` executes.
    pub fn new(id: impl Into<String>) -> Self {
        Self { id: id.into(), ..Self::default() }
    }

    /// Returns an attribute.
    pub fn get(&self, key: &str) -> Option<&str> {
        self.attributes.get(key).map(String::as_str)
    }

    /// Sets an attribute.
    pub fn set(&mut self, key: impl Into<String>, value: impl Into<String>) -> &mut Self {
        self.attributes.insert(key.into(), value.into());
        self
    }

    /// Returns the handler that the host determined from type, shape and id. It is empty for a node that was created here.
    pub fn handler(&self) -> &str {
        &self.handler
    }

    /// Returns the classes of the node, including those of its subgraphs.
    pub fn classes(&self) -> impl Iterator<Item = &str> {
        self.get("class").unwrap_or_default().split(',').map(str::trim).filter(|class| !class.is_empty())
    }
}

impl Edge {
    /// Creates an edge without attributes.
    pub fn new(from: impl Into<String>, to: impl Into<String>) -> Self {
        Self { from: from.into(), to: to.into(), attributes: BTreeMap::new() }
    }

    /// Returns an attribute.
    pub fn get(&self, key: &str) -> Option<&str> {
        self.attributes.get(key).map(String::as_str)
    }

    /// Sets an attribute.
    pub fn set(&mut self, key: impl Into<String>, value: impl Into<String>) -> &mut Self {
        self.attributes.insert(key.into(), value.into());
        self
    }
}

impl Graph {
    /// Returns the node with this id.
    pub fn node(&self, id: &str) -> Option<&Node> {
        self.nodes.iter().find(|node| node.id == id)
    }

    /// Returns a mutable reference to the node with this id.
    pub fn node_mut(&mut self, id: &str) -> Option<&mut Node> {
        self.nodes.iter_mut().find(|node| node.id == id)
    }

    /// Parses a graph from the JSON of the contract.
    ///
    /// # Errors
    /// How the text differs from the contract.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut value: Value = serde_json::from_str(text).map_err(|error| error.to_string())?;
        let name = value["name"].as_str().ok_or("the graph has no `name`")?.to_owned();
        let attributes = texts(value["attributes"].take())?;
        let nodes = list(value["nodes"].take())?.into_iter().map(|node| {
            let mut attributes = texts(node)?;
            let id = attributes.remove("id").ok_or("a node has no `id`")?;
            let handler = attributes.remove("handler").unwrap_or_default();
            Ok(Node { id, attributes, handler })
        });
        let nodes = nodes.collect::<Result<_, String>>()?;
        let edges = list(value["edges"].take())?.into_iter().map(|edge| {
            let mut attributes = texts(edge)?;
            let (from, to) = (attributes.remove("from"), attributes.remove("to"));
            let (from, to) = from.zip(to).ok_or("an edge has no `from` or no `to`")?;
            Ok(Edge { from, to, attributes })
        });
        Ok(Self { name, attributes, nodes, edges: edges.collect::<Result<_, String>>()? })
    }

    /// Returns the JSON of the contract, without handlers, because the host determines them.
    pub fn to_json(&self) -> String {
        let nodes = self.nodes.iter().map(|node| object(&[("id", &node.id)], &node.attributes));
        let edges = self.edges.iter();
        let edges = edges.map(|edge| object(&[("from", &edge.from), ("to", &edge.to)], &edge.attributes));
        let mut graph = Map::new();
        graph.insert("name".to_owned(), self.name.clone().into());
        graph.insert("attributes".to_owned(), object(&[], &self.attributes));
        graph.insert("nodes".to_owned(), nodes.collect());
        graph.insert("edges".to_owned(), edges.collect());
        Value::Object(graph).to_string()
    }
}

fn list(value: Value) -> Result<Vec<Value>, String> {
    match value {
        Value::Array(items) => Ok(items),
        _ => Err("the graph has no list of nodes or no list of edges".to_owned()),
    }
}

fn texts(value: Value) -> Result<BTreeMap<String, String>, String> {
    let Value::Object(entries) = value else { return Err("the attributes are not an object".to_owned()) };
    let entries = entries.into_iter().map(|(key, value)| match value {
        Value::String(text) => Ok((key, text)),
        _ => Err(format!("the attribute `{key}` is not a string")),
    });
    entries.collect()
}

fn object(own: &[(&str, &str)], attributes: &BTreeMap<String, String>) -> Value {
    let given = attributes.iter().map(|(key, value)| (key.clone(), Value::from(value.as_str())));
    let own = own.iter().map(|(key, value)| ((*key).to_owned(), Value::from(*value)));
    Value::Object(given.chain(own).collect())
}

enum Severity {
    Error,
    Warning,
    Info,
}

/// One finding of a rule.
#[derive(Clone, Debug)]
#[must_use]
pub struct Finding {
    raw: RawFinding,
}

impl Finding {
    /// Creates an error, with which the pipeline does not run. `rule` consists of 1 to 64 letters, digits, `_`, `-` and `.`. The host
    /// uses the name `transform` for changes.
    pub fn error(rule: impl Into<String>, message: impl Into<String>) -> Self {
        Self::new(Severity::Error, rule, message)
    }

    /// Creates a warning, with which only a strict check fails.
    pub fn warning(rule: impl Into<String>, message: impl Into<String>) -> Self {
        Self::new(Severity::Warning, rule, message)
    }

    /// Creates a remark, with which no check fails.
    pub fn info(rule: impl Into<String>, message: impl Into<String>) -> Self {
        Self::new(Severity::Info, rule, message)
    }

    fn new(severity: Severity, rule: impl Into<String>, message: impl Into<String>) -> Self {
        let severity = match severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
            Severity::Info => "info",
        };
        let (rule, severity, message) = (rule.into(), severity.to_owned(), message.into());
        Self { raw: RawFinding { rule, severity, message, node: None, edge: None, help: None } }
    }

    /// Sets the node of the finding.
    pub fn at_node(mut self, id: impl Into<String>) -> Self {
        self.raw.node = Some(id.into());
        self
    }

    /// Sets the edge of the finding.
    pub fn at_edge(mut self, from: impl Into<String>, to: impl Into<String>) -> Self {
        self.raw.edge = Some((from.into(), to.into()));
        self
    }

    /// Adds a text that says how to fix the problem.
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.raw.help = Some(help.into());
        self
    }
}

impl<R: Rules> Guest for R {
    fn lint(graph: String) -> Vec<RawFinding> {
        match Graph::parse(&graph) {
            Ok(graph) => R::lint(&graph).into_iter().map(|finding| finding.raw).collect(),
            Err(reason) => vec![Finding::error("graph", reason).raw],
        }
    }

    fn transform(graph: String) -> Result<Option<String>, String> {
        let before = Graph::parse(&graph)?;
        let mut graph = before.clone();
        R::transform(&mut graph)?;
        Ok((graph != before).then(|| graph.to_json()))
    }
}

/// Exports [`Rules`] as the component's `graph-rules` interface, and writes its manifest into the custom section `glovebox:manifest`:
/// JSON with `name`, `version` and `description`. Without `manifest`, `glovebox plugin build` writes the manifest. On targets other than
/// WebAssembly, the macro exports nothing.
#[macro_export]
macro_rules! export_rules {
    ($rules:ident) => {
        const _: fn(&$crate::rules::Graph) -> $crate::rules::Findings = <$rules as $crate::rules::Rules>::lint;
        #[cfg(target_family = "wasm")]
        const _: () = {
            #[unsafe(export_name = "cabi_realloc")]
            extern "C" fn realloc(_: *mut u8, bytes_before: usize, align: usize, bytes: usize) -> *mut u8 {
                $crate::rules::argument(bytes_before, align, bytes)
            }
        };
        #[cfg(target_family = "wasm")]
        $crate::rules::bindings::export!($rules with_types_in $crate::rules::bindings);
    };
    ($rules:ident, manifest = $manifest:expr) => {
        #[cfg(target_family = "wasm")]
        const _: () = {
            const TEXT: &str = $manifest;
            #[unsafe(link_section = "glovebox:manifest")]
            static MANIFEST: [u8; TEXT.len()] = $crate::section_bytes(TEXT);
        };
        $crate::export_rules!($rules);
    };
}

/// The result of [`Rules::lint`]. Used by [`export_rules!`](crate::export_rules).
#[doc(hidden)]
pub type Findings = Vec<Finding>;

/// Allocates memory for a text from the host. The receiver of the text owns the memory. Used by
/// [`export_rules!`](crate::export_rules). The contract has only texts, so the bytes need no alignment and never move.
#[doc(hidden)]
pub fn argument(bytes_before: usize, align: usize, bytes: usize) -> *mut u8 {
    assert!(bytes_before == 0 && align == 1, "the host must pass only strings");
    Box::leak(vec![0_u8; bytes].into_boxed_slice()).as_mut_ptr()
}

/// The allocator and the panic handler, which `std` would otherwise provide.
#[cfg(all(target_family = "wasm", not(feature = "stage")))]
mod alone {
    #[global_allocator]
    static ALLOCATOR: dlmalloc::GlobalDlmalloc = dlmalloc::GlobalDlmalloc;

    #[panic_handler]
    fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
        core::arch::wasm32::unreachable()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = r#"{"schema_version":1,"name":"g","attributes":{"goal":"a \"b\""},
        "nodes":[{"id":"a","shape":"box","handler":"codergen","class":"x, y,"},{"id":"b","shape":"Msquare","handler":"exit"}],
        "edges":[{"from":"a","to":"b","weight":"2"}],"layout":{"width":1.5}}"#;

    struct TimeoutRule;

    impl Rules for TimeoutRule {
        fn transform(graph: &mut Graph) -> Result<(), String> {
            match graph.node_mut("a") {
                Some(node) => drop(node.set("timeout", "5m")),
                None => return Err("no `a`".to_owned()),
            }
            Ok(())
        }
    }

    #[test]
    fn a_graph_is_read_and_written() {
        let graph = Graph::parse(TEXT).unwrap();
        let a = graph.node("a").unwrap();
        assert_eq!((a.handler(), a.get("shape"), a.get("id")), ("codergen", Some("box"), None));
        assert_eq!(a.classes().collect::<Vec<_>>(), ["x", "y"]);
        assert_eq!((graph.edges[0].get("weight"), graph.attributes["goal"].as_str()), (Some("2"), "a \"b\""));
        let again = Graph::parse(&graph.to_json()).unwrap();
        assert_eq!(again.node("a").unwrap().handler(), "", "what executes a node is not ours to say");
        assert_eq!((again.edges, again.attributes, again.name), (graph.edges, graph.attributes, graph.name));
        for (text, said) in
            [("[]", "no `name`"), ("{\"name\":\"g\",\"attributes\":{\"a\":1}}", "`a` is not a string"), ("{", "EOF")]
        {
            let reason = Graph::parse(text).unwrap_err();
            assert!(reason.contains(said), "{reason}");
        }
    }

    #[test]
    fn only_a_graph_that_was_changed_is_answered() {
        let changed = <TimeoutRule as Guest>::transform(TEXT.to_owned()).unwrap().expect("changed");
        assert_eq!(Graph::parse(&changed).unwrap().node("a").unwrap().get("timeout"), Some("5m"));
        assert_eq!(<TimeoutRule as Guest>::transform(changed), Ok(None));
        assert_eq!(<TimeoutRule as Guest>::transform(TEXT.replace("\"a\"", "\"c\"")), Err("no `a`".to_owned()));
        assert!(<TimeoutRule as Guest>::lint(TEXT.to_owned()).is_empty());
        assert_eq!(<TimeoutRule as Guest>::lint("x".to_owned())[0].severity, "error");
    }
}
