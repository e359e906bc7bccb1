//! `glovebox doctor`: reports what this machine can enforce and what is missing for more; with `--attack` or
//! `--ordinary`, tests it.

use crate::arguments::DoctorArguments;
use crate::exit::{CommandResult, Stop};
use crate::prepare;
use crate::setup::doctor::machine::MachineReport;
use crate::terminal;
use glovebox_jail::jail;
use glovebox_plan::prepare::folders::cache_dir;
use serde::Serialize;

/// Reports what the machine can enforce, or tests its sandbox.
pub fn doctor(arguments: &DoctorArguments) -> CommandResult {
    #[cfg(feature = "fleet")]
    if !arguments.fleet.nats.is_empty() {
        return fleet(arguments);
    }
    // The machine is always probed again: a user runs `doctor` after a change of the machine.
    let capability = jail::probe(None);
    if arguments.attack {
        return attack(arguments, capability);
    }
    if arguments.ordinary {
        return ordinary(arguments, &capability);
    }
    let project = prepare::read_project(&arguments.workdir, None)?;
    let report = MachineReport::new(capability, &project, cache_dir().as_deref());
    print(arguments, &report, || report.render())?;
    Ok(report.exit())
}

#[cfg(feature = "fleet")]
fn fleet(arguments: &DoctorArguments) -> CommandResult {
    use crate::drive::block_on;
    use crate::setup::doctor::fleet::FleetReport;
    let project = prepare::read_project(&arguments.workdir, None)?;
    let report = block_on(FleetReport::new(arguments, &project.config))??;
    print(arguments, &report, || report.render())?;
    Ok(report.exit())
}

/// Prints a report as JSON or as text.
fn print(arguments: &DoctorArguments, report: &impl Serialize, text: impl FnOnce() -> String) -> Result<(), Stop> {
    if arguments.json {
        terminal::print_json(report)
    } else {
        terminal::print(text());
        Ok(())
    }
}

#[cfg(target_os = "linux")]
fn attack(arguments: &DoctorArguments, capability: jail::ProbeReport) -> CommandResult {
    use crate::setup::doctor::attack;
    let tier = attack::tier(arguments.tier, &capability)?;
    let report = attack::attack(tier, capability)?;
    print(arguments, &report, || report.render())?;
    Ok(report.exit())
}

#[cfg(target_os = "linux")]
fn ordinary(arguments: &DoctorArguments, capability: &jail::ProbeReport) -> CommandResult {
    use crate::setup::doctor::{attack, ordinary};
    let tier = attack::tier(arguments.tier, capability)?;
    let selection = ordinary::Selection { group: arguments.group.as_deref(), text: arguments.filter.as_deref() };
    let report = ordinary::ordinary(tier, selection)?;
    print(arguments, &report, || report.render())?;
    Ok(report.exit())
}

#[cfg(not(target_os = "linux"))]
fn ordinary(_: &DoctorArguments, _: &jail::ProbeReport) -> CommandResult {
    use crate::exit::Exit;
    Err(Stop::new(Exit::Policy, "`--ordinary` works on Linux only"))
}

#[cfg(not(target_os = "linux"))]
fn attack(_: &DoctorArguments, _: jail::ProbeReport) -> CommandResult {
    use crate::exit::Exit;
    Err(Stop::new(Exit::Policy, "`--attack` works on Linux only"))
}
