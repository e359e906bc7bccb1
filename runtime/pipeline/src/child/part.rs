//! Converts the stages of one child pipeline into stages of the outer pipeline: their names, their limits and the
//! settings that they inherit.

use super::fault;
use crate::attributes::known;
use crate::diagnostic::Diagnostic;
use crate::ir::{CHILD_EXIT, Handler, HandlerKind, INTERVAL_DEFAULT, Node, NodeId, Pipeline};
use crate::key::{self, Key};
use crate::transform::SettledGraph;
use glovebox_record::Need;
use glovebox_record::path::ScopePath;
use glovebox_record::placement::ArchConflict;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;

/// The attributes of a node or an edge, by key.
type Values = BTreeMap<String, String>;

/// Known attributes that are allowed on a node that runs a child. Unknown attributes are always allowed.
const OF_OWNER: [Key<'static>; 17] = [
    key::SHAPE,
    key::TYPE,
    key::LABEL,
    key::CLASS,
    key::TIMEOUT,
    key::MAX_VISITS,
    key::RUNS_ON,
    key::ALLOWED_WRITE_PATHS,
    key::STACK_CHILD_DOTFILE,
    key::STACK_CONTEXT_IN,
    key::STACK_CONTEXT_OUT,
    key::LLM_MODEL,
    key::LLM_PROVIDER,
    key::REASONING_EFFORT,
    key::STACK_CHILD_AUTOSTART,
    key::STACK_CHILD_WORKDIR,
    key::RANKDIR,
];
/// Attributes that are also allowed if the node supervises the child.
const OF_SUPERVISOR: [Key<'static>; 5] = [
    key::MANAGER_POLL_INTERVAL,
    key::MANAGER_MAX_CYCLES,
    key::MANAGER_STOP_CONDITION,
    key::MANAGER_ACTIONS,
    key::PROMPT,
];
/// Attributes of the node that apply to the end of the child. They move to the fan-in.
const OF_END: [Key<'static>; 3] = [key::GOAL_GATE, key::RETRY_TARGET, key::FALLBACK_RETRY_TARGET];
/// Attributes of the child's graph that its stages already contain, or that have no effect outside of the child's file.
const SETTLED: [Key<'static>; 10] = [
    key::GOAL,
    key::RUNS_ON,
    key::STACK_CHILD_DOTFILE,
    key::STACK_CHILD_WORKDIR,
    key::LABEL,
    key::MODEL_STYLESHEET,
    key::LLM_MODEL,
    key::LLM_PROVIDER,
    key::REASONING_EFFORT,
    key::RANKDIR,
];
/// Attributes of the child's graph that its stages inherit, each with its key on a stage.
const INHERITED: [(Key<'static>, Key<'static>); 8] = [
    (key::MAX_TURNS, key::MAX_TURNS),
    (key::MAX_VISITS, key::MAX_VISITS),
    (key::DEFAULT_FIDELITY, key::FIDELITY),
    (key::THREAD_ID, key::THREAD_ID),
    (key::TOOL_HOOKS_PRE, key::TOOL_HOOKS_PRE),
    (key::TOOL_HOOKS_POST, key::TOOL_HOOKS_POST),
    (key::MCP, key::MCP),
    (key::TOOLS, key::TOOLS),
];
/// Attributes of the child's graph that move to its exit nodes.
const OF_EXIT: [Key<'static>; 2] = [key::RETRY_TARGET, key::FALLBACK_RETRY_TARGET];
/// Attributes that name the node at which a branch goes on.
const TARGETS: [Key<'static>; 3] = [key::RETRY_TARGET, key::FALLBACK_RETRY_TARGET, key::HUMAN_DEFAULT_CHOICE];
/// Attributes whose values are names of nodes.
const NAMING: [Key<'static>; 6] = [
    key::RETRY_TARGET,
    key::FALLBACK_RETRY_TARGET,
    key::REQUIRED_TOOL_NODE,
    key::HUMAN_DEFAULT_CHOICE,
    key::SINCE,
    key::TEST_SUGGESTED_NEXT_IDS,
];

/// One child pipeline and the node that runs it.
pub(super) struct Part<'a> {
    owner: &'a Node,
    child: &'a Pipeline,
    file: &'a str,
    /// The folder in which the commands of the child start, if it is named.
    workdir: Option<&'a str>,
    /// The names of the child's nodes in its own file.
    names: BTreeSet<&'a str>,
}

impl<'a> Part<'a> {
    /// Checks that the settings of a node and of its child are allowed.
    pub(super) fn new(parent: &'a Pipeline, owner: &'a Node, child: &'a Pipeline) -> Result<Self, Vec<Diagnostic>> {
        let named = |key| {
            let attribute = owner.attributes.get(key).or_else(|| parent.attributes.get(key));
            attribute.map(|attribute| attribute.value.trim()).filter(|value| !value.is_empty())
        };
        let (file, workdir) = (named(key::STACK_CHILD_DOTFILE).unwrap_or_default(), named(key::STACK_CHILD_WORKDIR));
        let names = child.nodes.iter().map(|node| node.id.as_str()).collect();
        let part = Self { owner, child, file, workdir, names };
        let faults: Vec<Diagnostic> = part
            .of_owner()
            .chain(part.of_graph(parent))
            .chain(part.of_stages())
            .chain(part.of_needs())
            .chain(part.of_edges())
            .collect();
        if faults.is_empty() { Ok(part) } else { Err(faults) }
    }

    fn of_owner(&self) -> impl Iterator<Item = Diagnostic> + '_ {
        let is_supervisor = self.is_supervisor();
        let is_read = move |key: &Key<'_>| {
            let is_of_node = OF_OWNER.contains(key) || OF_END.contains(key) || known(*key).is_none();
            is_of_node || is_supervisor && OF_SUPERVISOR.contains(key)
        };
        let unread = self.owner.attributes.keys().filter(move |key| !is_read(key));
        let unread = unread.map(|key| {
            let message =
                format!("`{key}` has no effect on `{}`, which runs the child pipeline `{}`", self.owner.id, self.file);
            fault(self.owner, message, format!("set it on the stages of `{}` instead", self.file))
        });
        let autostart = self.owner.attributes.get(key::STACK_CHILD_AUTOSTART).map(|value| value.value.trim());
        let autostart = autostart.filter(|value| !["true", "false"].contains(value)).map(|value| {
            let message = format!("`stack.child_autostart` is `{value}`, expected `true` or `false`");
            fault(self.owner, message, "with `false`, a person is asked to start the child pipeline")
        });
        let workdir = self.workdir.filter(|folder| ScopePath::parse(folder).is_err());
        let workdir = workdir.map(|folder| {
            let message = format!("`stack.child_workdir` is `{folder}`, expected a folder in the workspace");
            fault(self.owner, message, "write a relative path without `..`, such as `services/api`")
        });
        let actions = self.owner.attributes.get(key::MANAGER_ACTIONS).filter(|list| !are_known(&list.value));
        let actions = actions.map(|list| {
            let message =
                format!("`manager.actions` is `{}`, expected `observe,wait` or `observe,steer,wait`", list.value);
            fault(
                self.owner,
                message,
                "a supervisor always observes its child pipeline and waits; add `steer` if it should also steer",
            )
        });
        unread.chain(autostart).chain(workdir).chain(actions)
    }

    fn is_supervisor(&self) -> bool {
        self.owner.handler.kind() == HandlerKind::Manager
    }

    /// Returns true if the child starts only after a person has said so.
    fn waits_for_person(&self) -> bool {
        let autostart = self.owner.attributes.get(key::STACK_CHILD_AUTOSTART);
        autostart.is_some_and(|value| value.value.trim() == "false")
    }

    fn steers(&self) -> bool {
        let actions = self.owner.attributes.get(key::MANAGER_ACTIONS);
        actions.is_some_and(|list| list.value.split(',').any(|action| action.trim() == "steer"))
    }

    /// Reports settings of the child's graph that apply to a whole run and differ from those of the outer graph.
    fn of_graph(&self, parent: &'a Pipeline) -> impl Iterator<Item = Diagnostic> + '_ {
        let is_taken = |key: &Key<'_>| {
            let inherited = INHERITED.iter().any(|(known, _)| known == key);
            let bound = [key::MAX_STEPS, key::MAX_WALL_TIME].contains(key);
            SETTLED.contains(key) || OF_EXIT.contains(key) || inherited || bound || known(*key).is_none()
        };
        let is_same = move |key: &Key<'_>| {
            let value = |of: &Pipeline| of.attributes.get(*key).map(|attribute| attribute.value.trim().to_owned());
            value(parent) == value(self.child)
        };
        let other = self.child.attributes.keys().filter(move |key| !is_taken(key) && !is_same(key));
        let other = other.map(|key| {
            let message = format!(
                "`{key}` of the graph in `{}` holds for a whole run, but a child pipeline is only a part \
                of a run",
                self.file
            );
            fault(
                self.owner,
                message,
                format!("set it on the stages of the child pipeline, or set the same `{key}` on this graph"),
            )
        });
        let times = [(self.child.attributes.get(key::MAX_WALL_TIME), self.owner.attributes.get(key::TIMEOUT))];
        let twice = times.into_iter().filter(|(wall, timeout)| wall.is_some() && timeout.is_some());
        other.chain(twice.map(|_| {
            let message = format!(
                "`{}` has a `timeout`, and the graph in `{}` has a `max_wall_time`, expected only one of them",
                self.owner.id, self.file
            );
            fault(self.owner, message, "remove one of them")
        }))
    }

    /// Reports stages that may write more than the node that runs them.
    fn of_stages(&self) -> impl Iterator<Item = Diagnostic> + '_ {
        let bound = self.owner.access.allowed_write_paths.as_deref();
        let wider = self.child.nodes.iter().filter_map(move |node| {
            let is_wider = |entry: &&glovebox_record::scope::Entry| {
                !bound.is_some_and(|bound| bound.iter().any(|most| most.covers(entry)))
            };
            let entry = node.access.allowed_write_paths.as_ref().filter(|_| bound.is_some())?.iter().find(is_wider)?;
            Some((node, entry))
        });
        wider.map(|(node, entry)| {
            let message = format!(
                "`{}` in `{}` may write `{entry}`, but `{}`, which runs this child pipeline, may not",
                node.id, self.file, self.owner.id
            );
            fault(
                self.owner,
                message,
                format!(
                    "add `{entry}` to `allowed_write_paths` of this node, or remove it from the \
                stage of the child pipeline"
                ),
            )
        })
    }

    /// Reports stages that need another architecture than the node that runs them.
    fn of_needs(&self) -> impl Iterator<Item = Diagnostic> + '_ {
        let conflict = |node: &Node| self.need(node).err().map(|archs| (node.id.clone(), archs));
        self.child.nodes.iter().filter_map(conflict).map(|(id, archs)| {
            let message = format!(
                "`{}`, which runs this child pipeline, and `{id}` in `{}` need {archs}, and no machine has both",
                self.owner.id, self.file
            );
            fault(self.owner, message, "change `runs_on` of this node or its graph, or of the stage or its graph")
        })
    }

    /// Returns what a stage of the child and the node that runs it ask of a machine. Nothing if the stage makes no attempts.
    fn need(&self, stage: &Node) -> Result<Need, ArchConflict> {
        let of_owner = self.owner.need.as_deref().filter(|_| stage.makes_attempts());
        let of_stage = stage.need.as_deref().cloned().unwrap_or_default();
        of_owner.map_or(Ok(of_stage.clone()), |of_owner| of_stage.and(of_owner))
    }

    fn of_edges(&self) -> impl Iterator<Item = Diagnostic> + '_ {
        self.child.edges.iter().filter(|edge| edge.loop_restart).map(|edge| {
            let message = format!("`{} -> {}` in `{}` would restart the whole run", edge.from, edge.to, self.file);
            fault(self.owner, message, "remove `loop_restart` from this edge: the edge still leads back without it")
        })
    }

    /// Returns the name of a child's node in the outer pipeline.
    fn renamed(&self, name: impl Display) -> NodeId {
        NodeId::from(format!("{}__{name}", self.owner.id))
    }

    /// Inserts the stages into the graph. Returns the names of the stages and of the fan-in.
    pub(super) fn put_into(self, graph: &mut SettledGraph) -> Result<Vec<NodeId>, Vec<Diagnostic>> {
        let own = SettledGraph::from_pipeline(self.child);
        let join = self.free_name("join", graph);
        let taken: BTreeSet<&str> = graph.nodes.iter().map(|node| node["id"].as_str()).collect();
        let twice = self.names.iter().map(|name| self.renamed(name)).find(|name| taken.contains(name.as_str()));
        if let Some(name) = twice {
            let message =
                format!("a stage of `{}` would get the id `{name}`, but another node already has this id", self.file);
            return Err(vec![fault(self.owner, message, "rename that node")]);
        }
        let Some(at) = graph.nodes.iter().position(|node| node["id"] == self.owner.id.as_str()) else {
            return Ok(Vec::new());
        };
        let end = self.make_parallel(&mut graph.nodes[at], &join);
        let stages = own.nodes.into_iter().zip(&self.child.nodes).map(|(values, node)| self.stage(values, node));
        let added: Vec<Values> = stages.chain([end]).collect();
        let mut names: Vec<NodeId> = added.iter().map(|node| NodeId::from(node["id"].as_str())).collect();
        graph.nodes.splice(at + 1..at + 1, added);
        for edge in graph.edges.iter_mut().filter(|edge| edge["from"] == self.owner.id.as_str()) {
            edge.insert("from".to_owned(), join.to_string());
        }
        graph.edges.push(edge(&self.owner.id, &self.renamed(&self.child.start)));
        graph.edges.extend(own.edges.into_iter().map(|edge| self.edge(edge)));
        let exits = self.child.nodes.iter().filter(|node| node.handler == Handler::Exit);
        graph.edges.extend(exits.map(|exit| edge(&self.renamed(&exit.id), &join)));
        if self.waits_for_person() {
            names.push(self.put_gate_before(graph));
        }
        Ok(names)
    }

    /// Inserts a human gate in front of the node, and returns its name. All ways to the node lead through the gate.
    fn put_gate_before(&self, graph: &mut SettledGraph) -> NodeId {
        let gate = self.free_name("confirm", graph);
        let owner = self.owner.id.as_str();
        for edge in graph.edges.iter_mut().filter(|edge| edge["to"] == owner) {
            edge.insert("to".to_owned(), gate.to_string());
        }
        for values in graph.nodes.iter_mut().chain([&mut graph.attributes]) {
            for key in TARGETS {
                if let Some(target) = values.get_mut(key.as_str()).filter(|target| target.trim() == owner) {
                    *target = gate.to_string();
                }
            }
        }
        let question = format!("Start the child pipeline `{}`?", self.file);
        graph.nodes.push(values([
            ("id", gate.as_str()),
            ("shape", "hexagon"),
            ("handler", "wait.human"),
            ("label", &question),
        ]));
        let mut started = edge(&gate, &self.owner.id);
        set(&mut started, key::LABEL, Some("[S] Start"));
        graph.edges.push(started);
        gate
    }

    /// Returns a name for a node at an end of the child that no node has.
    fn free_name(&self, end: &str, graph: &SettledGraph) -> NodeId {
        let is_free = |wanted: &NodeId| {
            !graph.nodes.iter().any(|node| node["id"] == wanted.as_str())
                && !self.names.iter().any(|name| self.renamed(name) == *wanted)
        };
        let numbered = (2..).map(|number| self.renamed(format_args!("{end}_{number}")));
        let mut names = std::iter::once(self.renamed(end)).chain(numbered);
        names.find(is_free).expect("there are more numbers than nodes")
    }

    /// Turns the node into a parallel node, and returns the fan-in.
    fn make_parallel(&self, node: &mut Values, join: &NodeId) -> Values {
        let mut end = values([
            ("id", join.as_str()),
            ("shape", "tripleoctagon"),
            ("handler", "parallel.fan_in"),
            ("merge", "all"),
        ]);
        for key in OF_END {
            end.extend(node.remove_entry(key.as_str()));
        }
        if !self.steers() {
            node.remove(key::PROMPT.as_str());
        }
        if self.is_supervisor() {
            default(node, key::MANAGER_POLL_INTERVAL, Some(INTERVAL_DEFAULT));
        }
        let of_file = [key::TYPE, key::MANAGER_ACTIONS, key::ALLOWED_WRITE_PATHS, key::RUNS_ON];
        let of_child = [key::STACK_CHILD_DOTFILE, key::STACK_CHILD_AUTOSTART, key::STACK_CHILD_WORKDIR];
        for key in of_file.into_iter().chain(of_child) {
            node.remove(key.as_str());
        }
        node.extend(values([("shape", "component"), ("handler", "parallel"), ("stack.child", self.file)]));
        set(node, key::STACK_CHILD_GOAL, Some(self.child.goal.as_str()).filter(|goal| !goal.is_empty()));
        set(node, key::STACK_CHILD_MAX_STEPS, self.of_child(key::MAX_STEPS));
        set(node, key::TIMEOUT, self.of_child(key::MAX_WALL_TIME));
        end
    }

    fn of_child(&self, key: Key<'_>) -> Option<&str> {
        self.child.attributes.get(key).map(|attribute| attribute.value.trim()).filter(|text| !text.is_empty())
    }

    fn stage(&self, mut values: Values, node: &Node) -> Values {
        self.rename(&mut values);
        values.insert("id".to_owned(), self.renamed(&node.id).to_string());
        let owner = match values.get(key::STACK_CHILD_OF.as_str()) {
            Some(inner) => self.renamed(inner).to_string(),
            None => self.owner.id.to_string(),
        };
        values.insert(key::STACK_CHILD_OF.to_string(), owner);
        self.inherit(&mut values, node);
        match node.handler {
            Handler::Start => {
                values.remove(key::TYPE.as_str());
                values.extend(super::part::values([("shape", "diamond"), ("handler", "conditional")]));
            }
            Handler::Exit => {
                values.extend(super::part::values([("type", CHILD_EXIT), ("handler", CHILD_EXIT)]));
                for key in OF_EXIT {
                    set(
                        &mut values,
                        key,
                        self.of_child(key).map(|name| self.renamed(name)).as_ref().map(NodeId::as_str),
                    );
                }
            }
            _ => {}
        }
        values
    }

    /// Fills the missing attributes of a stage from the child's graph and from the node that runs it.
    fn inherit(&self, values: &mut Values, node: &Node) {
        let is_own = node.child_of.is_none();
        if node.handler.component().is_some() {
            let bound = self.owner.attributes.get(key::ALLOWED_WRITE_PATHS).map(|attribute| attribute.value.as_str());
            default(values, key::ALLOWED_WRITE_PATHS, bound);
            default(values, key::CODEX_WORKDIR, self.workdir.filter(|_| is_own));
        }
        // `Part::new` has refused two architectures.
        let need = self.need(node).ok().filter(|need| !need.is_empty());
        set(values, key::RUNS_ON, need.map(|need| need.to_string()).as_deref());
        for (of_graph, of_node) in INHERITED.into_iter().filter(|_| is_own) {
            let is_for_models = of_node != key::MAX_VISITS;
            if node.handler.may_ask_model() || !is_for_models {
                let thread = self.of_child(of_graph).map(|text| {
                    if of_node == key::THREAD_ID { self.renamed(text).to_string() } else { text.to_owned() }
                });
                default(values, of_node, thread.as_deref());
            }
        }
    }

    fn edge(&self, mut values: Values) -> Values {
        self.rename(&mut values);
        for end in ["from", "to"] {
            let name = self.renamed(&values[end]).to_string();
            values.insert(end.to_owned(), name);
        }
        values
    }

    /// Renames nodes and threads in the values of these attributes to their names in the outer pipeline.
    fn rename(&self, values: &mut Values) {
        for key in NAMING {
            if let Some(value) = values.get_mut(key.as_str()) {
                let names = value.split(',').map(|name| match self.names.contains(name.trim()) {
                    true => self.renamed(name.trim()).to_string(),
                    false => name.to_owned(),
                });
                *value = names.collect::<Vec<_>>().join(",");
            }
        }
        if let Some(thread) = values.get_mut(key::THREAD_ID.as_str()).filter(|thread| !thread.trim().is_empty()) {
            *thread = self.renamed(thread.trim()).to_string();
        }
    }
}

/// Returns true if the list contains only supported actions of a supervisor: `observe` and `wait`, and optionally `steer`.
fn are_known(actions: &str) -> bool {
    let actions: BTreeSet<&str> = actions.split(',').map(str::trim).collect();
    ["observe", "wait"].iter().all(|action| actions.contains(action))
        && actions.iter().all(|action| ["observe", "steer", "wait"].contains(action))
}

fn values<const N: usize>(pairs: [(&str, &str); N]) -> Values {
    pairs.into_iter().map(|(key, value)| (key.to_owned(), value.to_owned())).collect()
}

fn edge(from: &NodeId, to: &NodeId) -> Values {
    values([("from", from.as_str()), ("to", to.as_str())])
}

fn set(values: &mut Values, key: Key<'_>, value: Option<&str>) {
    if let Some(value) = value {
        values.insert(key.to_string(), value.to_owned());
    }
}

/// Sets a value if it is missing.
fn default(values: &mut Values, key: Key<'_>, value: Option<&str>) {
    if !values.contains_key(key.as_str()) {
        set(values, key, value);
    }
}
