//! Decides which stages share a cache, and whether a verdict begins with files that builders left.
//!
//! Builders and the stages that judge them share no cache. A stage that may read less than others does not share a cache with
//! them. Code of builders runs in stages that judge, so the next verdict records that its cache may contain files of that
//! code.

use super::AttemptError;
use super::paths::AttemptPaths;
use glovebox_jail::jail::{Bind, HOME_INSIDE};
use glovebox_plan::plan::{Binding, HoldoutAccess, Plan};
use glovebox_plan::prepare::executor::SandboxEnv;
use glovebox_record::path::ScopePath;
use glovebox_record::scope::Entry;
use glovebox_workspace::cache::{self, CacheSet, Domain};
use glovebox_workspace::cache_reuse;
use std::collections::{BTreeSet, HashMap};
use std::path::Path;

/// Returns the trust domain with which a stage shares its caches. `None` if the stage shares no caches: builders' code
/// could run in it while hold-outs are readable, or each visit gets its own copy of filled caches. A builder that may
/// read hold-outs has no `separation`, so an isolated verdict never begins with caches of such a builder.
fn domain(binding: &Binding) -> Option<Domain> {
    let is_isolated = binding.separation.as_ref().is_some_and(|separation| separation.is_isolated);
    match (binding.holdouts, binding.is_builder()) {
        (HoldoutAccess::ReadOnly, _) => is_isolated.then_some(Domain::Verifier),
        (HoldoutAccess::Absent, true) => Some(Domain::Builder),
        // Each visit gets its own copy of the caches that were filled when the run began.
        (HoldoutAccess::Absent, false) if binding.command_access.cache_from_base => None,
        (HoldoutAccess::Absent, false) => Some(Domain::Checker),
    }
}

/// Returns true for a stage that shares caches with the stages that judge without hold-outs in reach.
pub(crate) fn is_checker(binding: &Binding) -> bool {
    domain(binding) == Some(Domain::Checker)
}

/// Returns true if a stage judges and begins with caches in which code of builders may have left files. No diff shows such
/// files. If builders' code can run in the stage, marks the cache set for later stages.
pub(super) fn begins_with_builders(
    env: &SandboxEnv,
    binding: &Binding,
    paths: &AttemptPaths,
    set: Option<&CacheSet>,
    has_content: impl FnOnce(Option<&Path>) -> bool,
) -> Result<bool, AttemptError> {
    // No builders' code runs in an isolated verdict, and builders cannot write its caches.
    let judges = !binding.is_builder() && binding.holdouts == HoldoutAccess::Absent && binding.runs_commands();
    let Some(set) = set.filter(|_| judges) else { return Ok(false) };
    if set.is_marked(&paths.kept) {
        return Ok(has_content(env.policy.compiled.as_deref()));
    }
    if paths.has_builders_code {
        if let Some(folders) = paths.plan.folders.reuse.as_ref().filter(|_| paths.kept == paths.run) {
            cache_reuse::snapshot(&paths.kept, set, folders)?;
        }
        set.mark(&paths.kept)?;
    }
    Ok(false)
}

/// Mounts Python's compiled modules read-only. Every Python program executes them, so only code from the beginning of
/// the run may add modules.
pub(super) fn protect_compiled(env: &SandboxEnv, kept: &mut Vec<Bind>) {
    let Some(compiled) = env.policy.compiled.as_ref().map(|compiled| Path::new(HOME_INSIDE).join(compiled)) else {
        return;
    };
    // If there are no compiled modules yet, each command gets a folder for them that is removed with the stage.
    kept.retain(|bind| !bind.at.starts_with(&compiled) || cache::has_content(&bind.source));
    kept.iter_mut().filter(|bind| bind.at.starts_with(&compiled)).for_each(|bind| bind.writable = false);
}

/// Returns the cache set of a stage. A stage that may read less than other stages of its trust domain has its own set,
/// because files of the other stages could contain text that it may not read.
pub(super) fn set(binding: &Binding, paths: &AttemptPaths) -> Option<CacheSet> {
    let domain = domain(binding)?;
    let scope = &binding.scope;
    let hidden = paths.plan.hidden.get_or_init(|| hidden(&paths.plan));
    let is_hidden_from_all = |entry: &Entry| {
        let hides = |hidden: &Vec<Entry>| hidden.iter().any(|other| entry.path().starts_with(other.path()));
        hidden.get(&domain).is_none_or(|lists| lists.iter().all(hides))
    };
    let reads_all = scope.grants_all_below(&ScopePath::root()) && scope.hidden.iter().all(is_hidden_from_all);
    Some(if reads_all { domain.into() } else { CacheSet::for_node(domain, &paths.node) })
}

/// Returns the hidden paths of the stages of each trust domain, each list once. Most stages of a large plan have the
/// same list.
fn hidden(plan: &Plan) -> HashMap<Domain, BTreeSet<Vec<Entry>>> {
    let mut found: HashMap<Domain, BTreeSet<Vec<Entry>>> = HashMap::new();
    for binding in plan.bindings.values() {
        let Some(domain) = domain(binding) else { continue };
        let lists = found.entry(domain).or_default();
        if !lists.contains(&binding.scope.hidden) {
            lists.insert(binding.scope.hidden.clone());
        }
    }
    found
}
