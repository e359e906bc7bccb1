//! Finds the living descendants of this process in `/proc`.
//!
//! Descendants are found by their parents, so the search works with any `/proc`. Their resources are measured by the
//! host.
#![forbid(unsafe_code)]

use glovebox_jail_helper::process;
pub(crate) use glovebox_jail_helper::process::{ProcessStat, stat};
use std::collections::{HashMap, HashSet};
use std::fs;

/// Returns all living descendants of this process, without zombies.
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
            // Ids can be reused during the search, which could form a cycle.
            if known.insert(child.pid) {
                from.push(child.pid);
                found.push(**child);
            }
        }
    }
    found.retain(|one| one.threads > 0);
    found
}

/// Returns the living direct children, if the kernel can list them.
#[expect(clippy::disallowed_methods, reason = "the kernel's own file")]
pub(crate) fn children() -> impl Iterator<Item = ProcessStat> {
    let listed = own_id().and_then(|own| fs::read_to_string(format!("/proc/self/task/{own}/children")).ok());
    let ids: Vec<i32> = listed.iter().flat_map(|ids| ids.split_whitespace()).flat_map(str::parse).collect();
    ids.into_iter().filter_map(stat).filter(|one| one.threads > 0)
}

/// Returns the id of this process as `/proc` shows it, which can differ from the id in its namespace.
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
