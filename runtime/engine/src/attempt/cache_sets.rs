//! Which stages share what lasts from one stage to the next, and what a verdict begins with.
//!
//! Builders and those who judge them share nothing, and a stage that may read less than others shares nothing with those. Code of
//! builders runs in stages that judge, so what such a stage leaves is told with the next verdict.

use super::AttemptError;
use super::paths::AttemptPaths;
use glovebox_jail::jail::{Bind, HOME_INSIDE};
use glovebox_plan::plan::{Binding, HoldoutAccess, Plan};
use glovebox_plan::prepare::executor::SandboxEnv;
use glovebox_record::path::ScopePath;
use glovebox_record::scope::Entry;
use glovebox_workspace::cache::{self, CacheSet, Domain};
use std::collections::{BTreeSet, HashMap};
use std::path::Path;

/// The stages with which a stage shares what lasts from one to the next; none for a stage that shares nothing: builders' code could run
/// in it beside hold-outs. A builder that was given hold-outs has no `separation`; an isolated verdict must not begin with what it left.
fn domain(binding: &Binding) -> Option<Domain> {
    let is_isolated = binding.separation.as_ref().is_some_and(|separation| separation.is_isolated);
    match (binding.holdouts, binding.is_builder()) {
        (HoldoutAccess::ReadOnly, _) => is_isolated.then_some(Domain::Verifier),
        (HoldoutAccess::Absent, true) => Some(Domain::Builder),
        // Each visit begins with what the base made.
        (HoldoutAccess::Absent, false) if binding.command_access.cache_from_base => None,
        (HoldoutAccess::Absent, false) => Some(Domain::Checker),
    }
}

/// True when a stage judges and begins with what code of builders left in a stage before, which no diff shows. Notes that such code
/// can run in a stage of this set, where that is so.
pub(super) fn begins_with_builders(
    env: &SandboxEnv,
    binding: &Binding,
    paths: &AttemptPaths,
    set: Option<&CacheSet>,
    holds_anything: impl FnOnce(Option<&Path>) -> bool,
) -> Result<bool, AttemptError> {
    // An isolated verdict runs no code of builders, and a builder reaches none.
    let judges = !binding.is_builder() && binding.holdouts == HoldoutAccess::Absent && binding.runs_commands();
    let Some(set) = set.filter(|_| judges) else { return Ok(false) };
    if set.is_marked(&paths.kept) {
        return Ok(holds_anything(env.policy.compiled.as_deref()));
    }
    if paths.has_builders_code {
        set.mark(&paths.kept)?;
    }
    Ok(false)
}

/// Compiled modules of the interpreter decide what every program does. So only code that the run began with adds to them.
pub(super) fn protect_compiled(env: &SandboxEnv, kept: &mut Vec<Bind>) {
    let Some(compiled) = env.policy.compiled.as_ref().map(|compiled| Path::new(HOME_INSIDE).join(compiled)) else {
        return;
    };
    // Where there are none, each command has a folder for them that ends with the stage.
    kept.retain(|bind| !bind.at.starts_with(&compiled) || cache::holds_anything(&bind.source));
    kept.iter_mut().filter(|bind| bind.at.starts_with(&compiled)).for_each(|bind| bind.writable = false);
}

/// The set that a stage uses. One that may read less than others of its domain has a set of its own: what they leave could hold what it
/// may not read.
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

/// The hidden paths of the stages of each domain. Most of thousands of stages have the same list.
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
