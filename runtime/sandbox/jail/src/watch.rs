//! Who is alive of what this process started, read from `/proc`.
//!
//! Descendants are found by their parents, so that it makes no difference whose `/proc` is seen. What they use the host measures.
#![forbid(unsafe_code)]

use glovebox_jail::process;
pub(crate) use glovebox_jail::process::{ProcessStat, stat};
use std::collections::{HashMap, HashSet};
use std::fs;

/// Everything this process started, and what that started, zombies left out.
pub(crate) fn descendants() -> Vec<ProcessStat> {
    let Some(own) = own_id() else { return Vec::new() };
    let all = process::all();
    let mut children: HashMap<i32, Vec<&ProcessStat>> = HashMap::new();
    for one in &all {
        children.entry(one.parent).or_default().push(one);
    }
    let (mut found, mut from, mut known) = (Vec::new(), vec![own], HashSet::from([own]));
    while let Some(parent) = from.pop() {
        for child in children.get(&parent).into_iter().flatten() {
            // Ids may be taken anew while they are read; a circle would be one of those.
            if known.insert(child.pid) {
                from.push(child.pid);
                found.push(**child);
            }
        }
    }
    found.retain(|one| one.threads > 0);
    found
}

/// Those of our children that the kernel can list; without what they started.
pub(crate) fn children() -> impl Iterator<Item = ProcessStat> {
    let listed = own_id().and_then(|own| fs::read_to_string(format!("/proc/self/task/{own}/children")).ok());
    let ids: Vec<i32> = listed.iter().flat_map(|ids| ids.split_whitespace()).flat_map(str::parse).collect();
    ids.into_iter().filter_map(stat).filter(|one| one.threads > 0)
}

/// Our id in the numbers of `/proc`, which need not be those of our namespace.
fn own_id() -> Option<i32> {
    fs::read_link("/proc/self").ok()?.to_str()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_child_is_a_descendant_and_the_parent_is_not() {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().expect("a child");
        let found = descendants();
        child.kill().expect("alive");
        child.wait().expect("ours");
        assert!(found.iter().any(|one| one.pid == child.id() as i32));
        assert!(found.iter().all(|one| one.pid != std::process::id() as i32));
    }
}
