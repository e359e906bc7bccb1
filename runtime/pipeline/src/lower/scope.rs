//! Converts statements to nodes and edges, with all defaults resolved (spec §2.9–2.11).
//!
//! Defaults apply to later declarations in their scope. A subgraph inherits the defaults around it, and its own defaults do not
//! apply outside of it. The label of a subgraph becomes a class of its nodes. Values are still text.

use super::reader::Findings;
use crate::attributes::{Carrier, known};
use crate::diagnostic::Diagnostic;
use crate::dot::{Attr, Name, Statement, Target};
use crate::hash::HashMap;
use crate::ir::{Attribute, NodeId, Subgraph};
use crate::key::{self, Key};
pub(super) use crate::keyed::Attributes;
use crate::span::Span;

/// Average bytes of text for each node, including its edges, in a file with short prompts.
const NODE_BYTES: usize = 150;
/// Average bytes of text for each edge, in a file with short prompts.
const EDGE_BYTES: usize = 75;

/// A node whose attributes are still text.
pub(super) struct RawNode {
    pub(super) id: NodeId,
    pub(super) span: Span,
    pub(super) attributes: Attributes,
    /// True if the shape is written on the node itself, and does not come from a defaults block.
    pub(super) own_shape: bool,
    /// Classes of the subgraphs that contain declarations of the node, outermost first.
    pub(super) derived: Vec<String>,
}

/// An edge whose attributes are still text.
pub(super) struct RawEdge {
    pub(super) from: (NodeId, Span),
    pub(super) to: (NodeId, Span),
    pub(super) attributes: Attributes,
}

/// All declarations in a file.
#[derive(Default)]
pub(super) struct Declarations {
    pub(super) graph: Attributes,
    pub(super) nodes: Vec<RawNode>,
    pub(super) edges: Vec<RawEdge>,
    pub(super) subgraphs: Vec<Subgraph>,
    /// Names in the file, each with the index of its node. `None` while only edges mention the name.
    names: HashMap<NodeId, Option<usize>>,
    /// The defaults in the body of the graph itself.
    root: Scope,
}

impl Declarations {
    /// Returns the id of the node that an attribute names. `None` if it is undeclared, which the lint
    /// `retry_target_exists` reports.
    pub(super) fn target(&self, from: &Attributes, key: Key<'_>) -> Option<NodeId> {
        let (id, number) = self.names.get_key_value(from.get(key)?.value.trim())?;
        number.map(|_| id.clone())
    }
}

/// The defaults that apply at one point of the file.
#[derive(Clone, Default)]
struct Scope {
    node: Attributes,
    edge: Attributes,
    classes: Vec<String>,
    /// Index of the innermost subgraph. `None` outside of subgraphs.
    subgraph: Option<usize>,
}

impl Declarations {
    /// Creates empty declarations with capacity for a text of this length. Without this capacity, the growing lists
    /// would be copied several times, which in a short process takes longer than the work itself.
    pub(super) fn with_room_for(text_bytes: usize) -> Self {
        let nodes = text_bytes / NODE_BYTES;
        let names = HashMap::with_capacity_and_hasher(nodes, Default::default());
        let edges = Vec::with_capacity(text_bytes / EDGE_BYTES);
        Self { nodes: Vec::with_capacity(nodes), edges, names, ..Self::default() }
    }

    /// Adds the next statement of the body of the graph itself.
    pub(super) fn add(&mut self, statement: Statement<'_>, findings: &mut Findings<'_>) {
        let mut root = std::mem::take(&mut self.root);
        match statement {
            Statement::Defaults { target: Target::Graph, attributes, .. } => {
                set(&mut self.graph, &attributes, findings)
            }
            Statement::Assign(attribute) => set(&mut self.graph, &[attribute], findings),
            _ => self.statement(statement, &mut root, findings),
        }
        self.root = root;
    }

    fn statement(&mut self, statement: Statement<'_>, scope: &mut Scope, findings: &mut Findings<'_>) {
        match statement {
            Statement::Defaults { target: Target::Node, attributes, .. } => replace(&mut scope.node, &attributes),
            Statement::Defaults { target: Target::Edge, attributes, .. } => replace(&mut scope.edge, &attributes),
            Statement::Defaults { attributes, .. } => {
                attributes.iter().for_each(|given| refuse_without_effect(given, findings))
            }
            Statement::Assign(given) => refuse_without_effect(&given, findings),
            Statement::Node { id, attributes, .. } => self.node(&id, &attributes, scope, findings),
            Statement::Edge { path, attributes, .. } => self.edges(&path, &attributes, scope, findings),
            Statement::Subgraph { name, body, .. } => self.subgraph(name, body, scope, findings),
        }
    }

    fn subgraph(
        &mut self,
        name: Option<Name<'_>>,
        body: Vec<Statement<'_>>,
        scope: &Scope,
        findings: &mut Findings<'_>,
    ) {
        let label = label(&body);
        let mut inner = scope.clone();
        inner.classes.extend(label.as_deref().map(class_name).filter(|class| !class.is_empty()));
        let index = self.subgraphs.len();
        inner.subgraph = Some(index);
        let name = name.map(|name| name.text.into_owned());
        let label = label.filter(|label| !label.trim().is_empty());
        self.subgraphs.push(Subgraph { name, label, parent: scope.subgraph, members: Vec::new() });
        body.into_iter().for_each(|statement| self.statement(statement, &mut inner, findings));
        let members = &mut self.subgraphs[index].members;
        members.sort_unstable();
        members.dedup();
    }

    fn node(&mut self, name: &Name<'_>, attributes: &[Attr<'_>], scope: &Scope, findings: &mut Findings<'_>) {
        let (id, known) = match self.names.get_key_value(&*name.text) {
            Some((id, number)) => (id.clone(), *number),
            None => (NodeId::new(&*name.text), None),
        };
        let index = known.unwrap_or_else(|| {
            self.names.insert(id.clone(), Some(self.nodes.len()));
            self.nodes.push(RawNode {
                id,
                span: name.span,
                attributes: Attributes::with_capacity(attributes.len() + scope.node.len()),
                own_shape: false,
                derived: Vec::new(),
            });
            self.nodes.len() - 1
        });
        let node = &mut self.nodes[index];
        let first = node.span == name.span;
        set(&mut node.attributes, attributes, findings);
        node.own_shape |= attributes.iter().any(|attribute| attribute.key == key::SHAPE.as_str());
        if first {
            inherit(&mut node.attributes, &scope.node);
        }
        if let Some(subgraph) = scope.subgraph {
            self.subgraphs[subgraph].members.push(index);
        }
        for class in &scope.classes {
            if !node.derived.contains(class) {
                node.derived.push(class.clone());
            }
        }
    }

    fn edges(&mut self, path: &[Name<'_>], attributes: &[Attr<'_>], scope: &Scope, findings: &mut Findings<'_>) {
        let mut own = Attributes::with_capacity(attributes.len() + scope.edge.len());
        set(&mut own, attributes, findings);
        inherit(&mut own, &scope.edge);
        let Some((first, rest)) = path.split_first() else { return };
        let mut from = (self.mentioned(first), first.span);
        for (number, name) in rest.iter().enumerate() {
            let to = (self.mentioned(name), name.span);
            if number + 1 == rest.len() {
                self.edges.push(RawEdge { from, to, attributes: own });
                return;
            }
            self.edges.push(RawEdge { from: std::mem::replace(&mut from, to.clone()), to, attributes: own.clone() });
        }
    }

    /// Returns the id for a name. Creates it if this is the first mention.
    fn mentioned(&mut self, name: &Name<'_>) -> NodeId {
        if let Some((id, _)) = self.names.get_key_value(&*name.text) {
            return id.clone();
        }
        let id = NodeId::new(&*name.text);
        self.names.insert(id.clone(), None);
        id
    }
}

/// Adds the defaults for attributes that are not set.
fn inherit(attributes: &mut Attributes, defaults: &Attributes) {
    for (key, value) in defaults {
        attributes.get_or_insert_with(key, || value.clone());
    }
}

/// Sets attributes. Reports a key that is set to two different values; the later value wins.
fn set(attributes: &mut Attributes, given: &[Attr<'_>], findings: &mut Findings<'_>) {
    for attr in given {
        let before = attributes.insert(Key::new(&attr.key), attribute(attr));
        if let Some(before) = before.filter(|before| *before.value != *attr.value.text) {
            let message = format!("`{}` is set twice; the later value wins", attr.key);
            let warning = Diagnostic::warning("duplicate_attribute", message, attr.span());
            findings.push(
                warning
                    .with_label(before.key_span.to(before.span), "first set here")
                    .with_help("remove one of the two"),
            );
        }
    }
}

fn replace(attributes: &mut Attributes, given: &[Attr<'_>]) {
    for attr in given {
        attributes.insert(Key::new(&attr.key), attribute(attr));
    }
}

fn attribute(attr: &Attr<'_>) -> Attribute {
    Attribute { value: (&*attr.value.text).into(), key_span: attr.key_span, span: attr.value.span }
}

/// Reports an attribute that is set on a subgraph itself but has an effect only on the graph, a node or an edge. The author may
/// mean it as a limit or a protection.
fn refuse_without_effect(given: &Attr<'_>, findings: &mut Findings<'_>) {
    const OF_SUBGRAPHS: [Key<'static>; 3] = [key::LABEL, key::CLASS, key::RANKDIR];
    let key = Key::new(&given.key);
    let Some(known) = known(key).filter(|_| !OF_SUBGRAPHS.contains(&key)) else { return };
    let message = format!("`{key}` has no effect on a subgraph");
    let help = match known.on.contains(&Carrier::Node) {
        true => format!("write `node [\"{key}\"=…]` before the nodes that it should apply to"),
        false => format!("write `graph [\"{key}\"=…]` outside of the subgraph: it applies to the whole run"),
    };
    findings.push(Diagnostic::error("subgraph_attribute", message, given.key_span).with_help(help));
}

/// Returns the label that the body of a subgraph sets last.
fn label(body: &[Statement<'_>]) -> Option<String> {
    body.iter()
        .rev()
        .find_map(|statement| match statement {
            Statement::Assign(attr) => Some(attr).filter(|attr| attr.key == key::LABEL.as_str()),
            Statement::Defaults { target: Target::Graph, attributes, .. } => {
                attributes.iter().rfind(|attr| attr.key == key::LABEL.as_str())
            }
            _ => None,
        })
        .map(|attr| attr.value.text.to_string())
}

/// Converts a label to a class: lower case, spaces as hyphens, other characters removed (spec §2.10).
fn class_name(label: &str) -> String {
    let lower = label.to_lowercase().replace(char::is_whitespace, "-");
    lower.chars().filter(|c| c.is_ascii_alphanumeric() || *c == '-').collect()
}
