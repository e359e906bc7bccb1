//! Statements to nodes and edges with every default spread out (spec §2.9–2.11).
//!
//! Defaults speak to what is declared later in their scope; a subgraph inherits its surroundings' defaults and keeps its own to
//! itself; its label becomes a class of the nodes declared in it. Values stay text here.

use super::reader::Findings;
use crate::diagnostic::Diagnostic;
use crate::dot::{Ast, Attr, Name, Statement, Target};
use crate::ir::Attribute;
use crate::span::Span;
use std::collections::{BTreeMap, HashMap};

/// Attributes by key.
pub(super) type Attributes = BTreeMap<String, Attribute>;

/// A node before its attributes have types.
pub(super) struct RawNode {
    pub(super) id: String,
    pub(super) span: Span,
    pub(super) attributes: Attributes,
    /// The shape stands on the node itself and not in a defaults block.
    pub(super) own_shape: bool,
    /// Classes of the subgraphs it is declared in, outermost first.
    pub(super) derived: Vec<String>,
}

/// An edge before its attributes have types.
pub(super) struct RawEdge {
    pub(super) from: (String, Span),
    pub(super) to: (String, Span),
    pub(super) attributes: Attributes,
}

/// Everything a file declares.
#[derive(Default)]
pub(super) struct Declared<'a> {
    pub(super) graph: Attributes,
    pub(super) nodes: Vec<RawNode>,
    pub(super) edges: Vec<RawEdge>,
    index: HashMap<&'a str, usize>,
}

impl<'a> Declared<'a> {
    /// True for a declared node.
    pub(super) fn has(&self, id: &str) -> bool {
        self.index.contains_key(id)
    }
}

/// What is in force at one place of the file.
#[derive(Clone, Default)]
struct Scope {
    node: Attributes,
    edge: Attributes,
    classes: Vec<String>,
}

/// Walks over the file once.
pub(super) fn declare<'a>(ast: &'a Ast<'_>, findings: &mut Findings<'_>) -> Declared<'a> {
    let mut declared = Declared::default();
    declared.body(&ast.body, Scope::default(), true, findings);
    declared
}

impl<'a> Declared<'a> {
    fn body(&mut self, body: &'a [Statement<'_>], mut scope: Scope, root: bool, findings: &mut Findings<'_>) {
        for statement in body {
            match statement {
                Statement::Defaults { target: Target::Graph, attributes, .. } if root => {
                    set(&mut self.graph, attributes, findings)
                }
                Statement::Assign(attribute) if root => set(&mut self.graph, std::slice::from_ref(attribute), findings),
                Statement::Defaults { target: Target::Node, attributes, .. } => replace(&mut scope.node, attributes),
                Statement::Defaults { target: Target::Edge, attributes, .. } => replace(&mut scope.edge, attributes),
                Statement::Defaults { .. } | Statement::Assign(_) => {}
                Statement::Node { id, attributes, .. } => self.node(id, attributes, &scope, findings),
                Statement::Edge { path, attributes, .. } => self.edges(path, attributes, &scope, findings),
                Statement::Subgraph { body, .. } => {
                    let mut inner = scope.clone();
                    inner.classes.extend(label(body).map(|label| class_name(&label)).filter(|class| !class.is_empty()));
                    self.body(body, inner, false, findings);
                }
            }
        }
    }

    fn node(&mut self, id: &'a Name<'_>, attributes: &[Attr<'_>], scope: &Scope, findings: &mut Findings<'_>) {
        let index = *self.index.entry(&id.text).or_insert_with(|| {
            self.nodes.push(RawNode {
                id: id.text.to_string(),
                span: id.span,
                attributes: Attributes::new(),
                own_shape: false,
                derived: Vec::new(),
            });
            self.nodes.len() - 1
        });
        let node = &mut self.nodes[index];
        let first = node.span == id.span;
        set(&mut node.attributes, attributes, findings);
        node.own_shape |= attributes.iter().any(|attribute| attribute.key == "shape");
        if first {
            for (key, value) in &scope.node {
                node.attributes.entry(key.clone()).or_insert_with(|| value.clone());
            }
        }
        for class in &scope.classes {
            if !node.derived.contains(class) {
                node.derived.push(class.clone());
            }
        }
    }

    fn edges(&mut self, path: &[Name<'_>], attributes: &[Attr<'_>], scope: &Scope, findings: &mut Findings<'_>) {
        let mut own = Attributes::new();
        set(&mut own, attributes, findings);
        for (key, value) in &scope.edge {
            own.entry(key.clone()).or_insert_with(|| value.clone());
        }
        for pair in path.windows(2) {
            let end = |name: &Name<'_>| (name.text.to_string(), name.span);
            self.edges.push(RawEdge { from: end(&pair[0]), to: end(&pair[1]), attributes: own.clone() });
        }
    }
}

/// Sets attributes; a key that is set twice to different values is remarked on, the later one wins.
fn set(attributes: &mut Attributes, given: &[Attr<'_>], findings: &mut Findings<'_>) {
    for attr in given {
        let before = attributes.insert(attr.key.to_string(), attribute(attr));
        if let Some(before) = before.filter(|before| before.value != attr.value.text) {
            let message = format!("`{}` is set twice; the later value holds", attr.key);
            let warning = Diagnostic::warning("duplicate_attribute", message, attr.span());
            findings.push(
                warning.with_label(before.key_span.to(before.span), "set here first").with_help("keep one of the two"),
            );
        }
    }
}

fn replace(attributes: &mut Attributes, given: &[Attr<'_>]) {
    attributes.extend(given.iter().map(|attr| (attr.key.to_string(), attribute(attr))));
}

fn attribute(attr: &Attr<'_>) -> Attribute {
    Attribute { value: attr.value.text.to_string(), key_span: attr.key_span, span: attr.value.span }
}

/// The label a subgraph's body sets, wherever it stands in the body.
fn label(body: &[Statement<'_>]) -> Option<String> {
    body.iter()
        .rev()
        .find_map(|statement| match statement {
            Statement::Assign(attr) => Some(attr).filter(|attr| attr.key == "label"),
            Statement::Defaults { target: Target::Graph, attributes, .. } => {
                attributes.iter().rfind(|attr| attr.key == "label")
            }
            _ => None,
        })
        .map(|attr| attr.value.text.to_string())
}

/// A label as a class: lower case, spaces to hyphens, other marks left out (spec §2.10).
fn class_name(label: &str) -> String {
    let letters = label.to_lowercase().replace(char::is_whitespace, "-");
    letters.chars().filter(|letter| letter.is_ascii_alphanumeric() || *letter == '-').collect()
}
