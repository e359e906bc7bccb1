//! Names of branches. A name is the path of parallel nodes and first nodes that leads to the branch, such as
//! `parallel-left` or `parallel-2-left-inner-a`, and in a later generation `1-parallel-left`. The branch of a child
//! pipeline has the name of the node that runs it, such as `build` or `build-2`.
//!
//! Every name is a valid folder name on any file system. No id contains a hyphen or begins with a digit, so different
//! paths have different names. Ids that differ only in case get a number with a leading zero.

use glovebox_pipeline::ir::{NodeId, Pipeline};
use glovebox_record::BranchId;
use std::collections::HashMap;

/// Maximum length of a name, bytes. A longer name is cut and ends with a digest of the whole name.
const BYTES_MAX: usize = 100;
/// Number of hexadecimal digits of the digest at the end of a shortened name.
const DIGEST_DIGITS: usize = 20;

/// Returns the names of the branches of a parallel node, in order.
pub(super) fn of<'a>(
    pipeline: &Pipeline,
    parent: &BranchId,
    parallel: &NodeId,
    visit: u32,
    generation: u32,
    targets: impl Iterator<Item = &'a NodeId>,
) -> Vec<BranchId> {
    let mut base = match (*parent == BranchId::main(), generation) {
        (true, 0) => String::new(),
        (true, generation) => format!("{generation}-"),
        // The name of the parent branch already contains the generation.
        (false, _) => format!("{parent}-"),
    };
    base += &part(pipeline, parallel);
    if visit > 1 {
        base += &format!("-{visit}");
    }
    // A child pipeline has one branch, with the name of the node that runs it. No parallel node has that name.
    if pipeline.node(parallel).is_some_and(|node| node.child.is_some()) {
        return targets.take(1).map(|_| BranchId::new(shortened(base.clone()))).collect();
    }
    let mut parts: HashMap<&NodeId, (String, u32)> = HashMap::new();
    let named = targets.map(|target| {
        let (part, times) = parts.entry(target).or_insert_with(|| (part(pipeline, target), 0));
        *times += 1;
        let name = if *times > 1 { format!("{base}-{part}-{times}") } else { format!("{base}-{part}") };
        BranchId::new(shortened(name))
    });
    named.collect()
}

/// Returns a node's part of a name: the id in lower case, with a number if an earlier id differs only in case.
fn part(pipeline: &Pipeline, id: &NodeId) -> String {
    let lower = id.as_str().to_ascii_lowercase();
    let alike = pipeline.nodes.iter().filter(|node| node.id.as_str().eq_ignore_ascii_case(&lower));
    match alike.take_while(|node| node.id != *id).count() {
        0 => lower,
        before => format!("{lower}-0{}", before + 1),
    }
}

fn shortened(name: String) -> String {
    // An id that is not valid as a folder name stays distinct through the digest.
    let is_safe = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'));
    if name.len() <= BYTES_MAX && is_safe {
        return name;
    }
    let digest = blake3::hash(name.as_bytes()).to_hex();
    let safe =
        name.bytes().map(|byte| if byte.is_ascii_alphanumeric() || byte == b'-' { char::from(byte) } else { '_' });
    let begin: String = safe.take(BYTES_MAX - DIGEST_DIGITS - 2).collect();
    format!("{begin}-0{}", &digest[..DIGEST_DIGITS])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulation::pipeline;

    fn check(graph: &str, parent: &str, parallel: (&str, u32, u32), expected: &[&str]) {
        let pipeline = pipeline(&format!("digraph g {{ {graph} }}"));
        let id = NodeId::from(parallel.0);
        let targets = pipeline.outgoing(&id).map(|(_, edge)| &edge.to);
        let names = of(&pipeline, &parent.into(), &id, parallel.1, parallel.2, targets);
        assert_eq!(names.iter().map(BranchId::as_str).collect::<Vec<_>>(), expected, "{graph}");
        for name in &names {
            let json = serde_json::to_string(name).unwrap();
            assert_eq!(serde_json::from_str::<BranchId>(&json).unwrap(), *name);
        }
    }

    #[test]
    fn different_branches_have_different_names() {
        check("f; a; b; f -> a; f -> b", "main", ("f", 1, 0), &["f-a", "f-b"]);
        check("f; a; b; f -> a; f -> b", "main", ("f", 2, 0), &["f-2-a", "f-2-b"]);
        check("f; a; b; f -> a; f -> b", "main", ("f", 2, 3), &["3-f-2-a", "3-f-2-b"]);
        check("g; c; g -> c", "3-f-a", ("g", 1, 3), &["3-f-a-g-c"]);
        check("f; a; f -> a; f -> a", "main", ("f", 1, 0), &["f-a", "f-a-2"]);
        check("g; c; g -> c", "f-a", ("g", 1, 0), &["f-a-g-c"]);
        check("F; f; a; A; F -> a; F -> A", "main", ("F", 1, 0), &["f-a", "f-a-02"]);
        check("F; f; a; A; f -> a; f -> A", "main", ("f", 1, 0), &["f-02-a", "f-02-a-02"]);
    }

    #[test]
    fn a_long_name_is_cut_and_stays_its_own() {
        let (one, other) = ("a".repeat(300), "a".repeat(301));
        let pipeline = pipeline(&format!("digraph g {{ f; {one}; {other}; f -> {one}; f -> {other} }}"));
        let id = NodeId::from("f");
        let names = of(&pipeline, &BranchId::main(), &id, 1, 0, pipeline.outgoing(&id).map(|(_, edge)| &edge.to));
        assert_ne!(names[0], names[1]);
        for name in &names {
            let name = name.as_str();
            assert!(name.len() == BYTES_MAX && name.starts_with("f-aaaa"), "the beginning stays readable: {name}");
        }
    }
}
