//! `glovebox fleet`: makes a fleet of machines that run pipelines together.

use crate::arguments::{FleetCommand, FleetInitArguments};
use crate::drive::block_on;
use crate::exit::{CommandResult, Exit, Stop};
use crate::fleet_connection::{self, stop};
use crate::fleet_keys::FleetKey;
use crate::terminal::{self, visible};
use glovebox_fleet::init::Replication;

/// Executes a subcommand.
pub fn fleet(command: &FleetCommand) -> CommandResult {
    match command {
        FleetCommand::Init(arguments) => init(arguments),
    }
}

fn init(arguments: &FleetInitArguments) -> CommandResult {
    // A store that cannot be opened here is found before anything is made.
    fleet_connection::open(&arguments.store)?;
    let replication = if arguments.single_node { Replication::SingleNode } else { Replication::Cluster };
    let made = async {
        let fleet = arguments.fleet.servers().await?;
        let (key, file) = FleetKey::Operator.read_or_create(&arguments.workdir)?;
        fleet.init(replication).await.map_err(|error| stop(&error))?;
        fleet.establish(&key, &arguments.store).await.map_err(|error| stop(&error))?;
        Ok::<_, Stop>((key, file))
    };
    let (key, file) = block_on(made)??;
    let (public, file) = (key.public(), file.display().to_string());
    terminal::print(format_args!("{public}\n"));
    terminal::say(format_args!(
        "this is the public key of the operator; every machine and every user of the fleet needs it:\n  \
         [fleet]\n  operator = \"{public}\"\nthe private key is `{}`: who has it admits machines, and nobody can replace it\n",
        visible::line(&file)
    ));
    Ok(Exit::Ok)
}
