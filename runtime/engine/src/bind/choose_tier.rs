//! Which walls the commands of a plan get, or why they get none: what the machine has against what the operator requires.
//!
//! A tier is never lowered: below what is required nothing runs, except without any walls and by the operator's word for this
//! one run. The machine is not asked here; who calls has asked it.

use super::BindOptions;
use crate::config::sandbox::{Network, SandboxSetting, Tier};
use crate::plan::{Binding, Confinement, PolicyKind, PolicyProblem, SandboxPlan};
use glovebox_pipeline::ir::NodeId;
use std::collections::BTreeMap;

/// What the machine can enforce, as the caller found out. The default is nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HostCapability {
    /// The highest tier that passed its self-test.
    pub tier: Option<Tier>,
    /// What that tier does not do here, in words.
    pub degradations: Vec<String>,
    /// Why there is no higher tier.
    pub why: String,
    /// What to do about it, to paste.
    pub remedy: String,
}

/// Settles what a plan's commands run in. Not enough is [`Confinement::Unmet`].
pub(super) fn choose_tier(
    bindings: &BTreeMap<NodeId, Binding>,
    setting: &SandboxSetting,
    options: &BindOptions,
) -> SandboxPlan {
    let with_commands = || bindings.iter().filter(|(_, binding)| binding.runs_commands());
    let nodes: Vec<NodeId> = with_commands().map(|(id, _)| id.clone()).collect();
    let over_proxy = with_commands().filter(|(_, binding)| matches!(binding.command_access.network, Network::Proxy(_)));
    let over_proxy: Vec<NodeId> = over_proxy.map(|(id, _)| id.clone()).collect();
    let available = &options.available;
    let not_separable = |tier: Tier| subjects_beyond(bindings, tier);
    let confinement = match available.tier {
        _ if nodes.is_empty() => Confinement::NotNeeded,
        // Commands without walls find the sealed copy, whosever they are.
        _ if options.no_sandbox && !options.sealed.is_empty() => {
            Confinement::Unmet(PolicyProblem { nodes, kind: PolicyKind::HoldoutsOpen })
        }
        // A list of hosts that nothing keeps commands to is no list.
        _ if options.no_sandbox && !over_proxy.is_empty() => {
            Confinement::Unmet(PolicyProblem { nodes: over_proxy, kind: PolicyKind::NoProxy(Tier::Unconfined) })
        }
        _ if options.no_sandbox && !not_separable(Tier::Unconfined).is_empty() => Confinement::Unmet(PolicyProblem {
            nodes: not_separable(Tier::Unconfined),
            kind: PolicyKind::NoSubject(Tier::Unconfined),
        }),
        _ if options.no_sandbox => Confinement::Tier(Tier::Unconfined),
        // The proxy's listener stands in a network that only the highest tier makes itself.
        Some(tier @ (Tier::Landlock | Tier::Bwrap)) if tier >= setting.require && !over_proxy.is_empty() => {
            Confinement::Unmet(PolicyProblem { nodes: over_proxy, kind: PolicyKind::NoProxy(tier) })
        }
        Some(tier) if tier >= setting.require && !not_separable(tier).is_empty() => {
            Confinement::Unmet(PolicyProblem { nodes: not_separable(tier), kind: PolicyKind::NoSubject(tier) })
        }
        // What is called unconfined confines nothing, whoever says that it is available.
        Some(tier) if tier >= setting.require && tier != Tier::Unconfined => Confinement::Tier(tier),
        tier => Confinement::Unmet(PolicyProblem { nodes, kind: too_low(tier, setting.require, available) }),
    };
    let degradations = match confinement {
        Confinement::Tier(tier) if tier != Tier::Unconfined => available.degradations.clone(),
        _ => Vec::new(),
    };
    SandboxPlan { confinement, setting: setting.clone(), degradations }
}

/// Nodes whose program under test the tier cannot run apart from their own commands, or not serve at a port.
fn subjects_beyond(bindings: &BTreeMap<NodeId, Binding>, tier: Tier) -> Vec<NodeId> {
    let is_beyond = |binding: &Binding| {
        binding.separation.as_ref().is_some_and(|separation| {
            separation.command.is_some() && !tier.has_own_root() || separation.port.is_some() && tier != Tier::Full
        })
    };
    bindings.iter().filter(|(_, binding)| is_beyond(binding)).map(|(id, _)| id.clone()).collect()
}

fn too_low(available: Option<Tier>, require: Tier, found: &HostCapability) -> PolicyKind {
    PolicyKind::TierTooLow { available, require, why: found.why.clone(), remedy: found.remedy.clone() }
}
