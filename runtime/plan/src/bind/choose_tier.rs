//! Chooses the sandbox tier for the commands of a plan: what the machine can enforce, compared with what the operator requires.
//!
//! The tier is never lowered silently: below the required tier no command runs, unless the operator starts this one run
//! without a sandbox. The caller has already tested what the machine supports.

use super::BindOptions;
use crate::config::sandbox::SandboxSetting;
use crate::plan::{Binding, Confinement, PolicyKind, PolicyProblem};
use glovebox_pipeline::ir::NodeId;
use glovebox_record::{Network, Tier};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Chooses the tier for the commands of a plan. If the commands cannot be confined as required, the result is
/// [`Confinement::Unmet`].
pub(super) fn choose_tier(
    bindings: &BTreeMap<NodeId, Arc<Binding>>,
    setting: &SandboxSetting,
    options: &BindOptions,
) -> Confinement {
    let with_commands = nodes(bindings, Binding::starts_processes);
    if with_commands.is_empty() {
        return Confinement::NotNeeded;
    }
    let uses_proxy = |binding: &Binding| {
        let mut servers = binding.servers.iter().map(|server| &server.entry.network);
        let of_commands = binding.runs_commands() && matches!(binding.command_access.network, Network::Proxy(_));
        of_commands || servers.any(|network| matches!(network, Network::Proxy(_)))
    };
    let over_proxy = nodes(bindings, uses_proxy);
    let inseparable = |tier: Tier| nodes(bindings, |binding| !can_separate(binding, tier));
    let unmet = |nodes, kind| Confinement::Unmet(PolicyProblem { nodes, kind });
    // Without a sandbox, any command could read the sealed copy of the hold-outs.
    if options.no_sandbox && !options.sealed.is_empty() {
        return unmet(with_commands, PolicyKind::HoldoutsOpen);
    }
    let tier = match options.available.tier {
        _ if options.no_sandbox => Tier::Unconfined,
        // The tier `unconfined` is not a sandbox, even if the caller reports it as available.
        Some(tier) if tier >= setting.require && tier != Tier::Unconfined => tier,
        _ => {
            let machine = options.available.clone();
            return unmet(with_commands, PolicyKind::TierTooLow { require: setting.require, machine });
        }
    };
    // The proxy listens in a network namespace, which only the highest tier creates.
    if tier != Tier::Full && !over_proxy.is_empty() {
        return unmet(over_proxy, PolicyKind::NoProxy(tier));
    }
    // The gateway of agent programs also listens in a network namespace.
    let with_programs = nodes(bindings, |binding| binding.program.is_some());
    if tier != Tier::Full && !with_programs.is_empty() {
        return unmet(with_programs, PolicyKind::NoGateway(tier));
    }
    match inseparable(tier) {
        nodes if nodes.is_empty() => Confinement::Tier(tier),
        nodes => unmet(nodes, PolicyKind::NoSubject(tier)),
    }
}

/// Returns the nodes whose binding matches.
fn nodes(bindings: &BTreeMap<NodeId, Arc<Binding>>, is_meant: impl Fn(&Binding) -> bool) -> Vec<NodeId> {
    bindings.iter().filter(|(_, binding)| is_meant(binding)).map(|(id, _)| id.clone()).collect()
}

/// Returns true if the tier can run the program under test of the node apart from the node's own commands, and can provide
/// its port if it has one.
fn can_separate(binding: &Binding, tier: Tier) -> bool {
    binding.separation.as_ref().is_none_or(|separation| {
        (separation.command.is_none() || tier.has_own_root()) && (separation.port.is_none() || tier == Tier::Full)
    })
}
