//! `glovebox fleet`: makes a fleet of machines that run pipelines together, and says which machines belong to it.

mod gates;
pub mod machine;
pub mod pull;
mod remote;
pub mod start;

use super::{logs, show, why};
use crate::arguments::{
    Command, Deferred, FleetAdmitArguments, FleetCommand, FleetExpelArguments, FleetInitArguments, FleetKeyArguments,
    FleetListArguments, FleetPermissionsArguments,
};
use crate::drive::block_on;
use crate::exit::{CommandResult, Exit, Stop};
use crate::fleet_connection::{self, stop};
use crate::fleet_keys::FleetKey;
use crate::prepare;
use crate::terminal::{self, visible};
use futures_util::future::join_all;
use glovebox_fleet::init::Replication;
use glovebox_fleet::presence::Presence;
use glovebox_fleet::roster::Member;
use glovebox_fleet::server_users::{ServerRole, server_config};
use glovebox_fleet::statement::{Admission, LABELS_MAX, Role, Word};
use glovebox_record::{Label, Tier};
use glovebox_signing::key::PublicKey;
use jiff::Timestamp;
use jiff::civil::Date;
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeSet;

/// The version of the document.
const SCHEMA_VERSION: u32 = 1;

/// The document that `glovebox fleet ls --json` prints.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(title = "fleet-ls.json")]
pub struct FleetMachines {
    /// Version of this document.
    schema_version: u32,
    /// Each machine that the operator ever admitted, sorted by name.
    machines: Vec<ListedMachine>,
}

/// One machine.
#[derive(Debug, Serialize, JsonSchema)]
struct ListedMachine {
    /// Its name, or the one that it had when it was expelled.
    name: Option<Word>,
    /// Its public key: `ed25519:` and 32 bytes in base64.
    #[schemars(with = "String")]
    key: PublicKey,
    /// Whether it is admitted now.
    state: MachineState,
    /// What it may do; empty if it is expelled.
    may: BTreeSet<Role>,
    /// The labels that it may claim.
    labels: BTreeSet<Label>,
    /// The tier in which it must confine commands, at least; null if every tier will do.
    tier: Option<Tier>,
    /// When it was admitted; null if it is expelled.
    #[schemars(with = "Option<String>")]
    since: Option<Timestamp>,
    /// The last day of the admission in UTC; null for no end.
    #[schemars(with = "Option<String>")]
    until: Option<Date>,
    /// What it said of itself just now; null if it is not admitted, does not work, drains, or did not answer within a second.
    presence: Option<Presence>,
}

/// Whether a machine is admitted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum MachineState {
    /// It is.
    Admitted,
    /// Its last day has passed.
    Ended,
    /// The operator expelled it.
    Expelled,
}

impl ListedMachine {
    fn new(member: Member, now: Timestamp, presence: Option<Presence>) -> Self {
        let admission = member.last.admission;
        let state = match &admission {
            None => MachineState::Expelled,
            Some(admission) if admission.is_valid_at(now) => MachineState::Admitted,
            Some(_) => MachineState::Ended,
        };
        let (key, name, since) = (member.last.machine, member.name, member.since);
        match admission {
            Some(Admission { may, labels, tier, until, .. }) => {
                Self { name, key, state, may, labels, tier, since, until, presence }
            }
            None => {
                let (may, labels) = (BTreeSet::new(), BTreeSet::new());
                Self { name, key, state, may, labels, tier: None, since, until: None, presence }
            }
        }
    }

    /// Returns the machine as one line.
    fn line(&self) -> String {
        let list = |words: Vec<String>| words.join(", ");
        let mut parts = vec![match self.state {
            MachineState::Expelled => "expelled".to_owned(),
            MachineState::Admitted | MachineState::Ended => list(self.may.iter().map(Role::to_string).collect()),
        }];
        if !self.labels.is_empty() {
            parts.push(format!("labels {}", list(self.labels.iter().map(Label::to_string).collect())));
        }
        parts.extend(self.tier.map(|tier| format!("tier {}", tier.as_str())));
        parts.extend(self.since.map(|since| format!("since {}", terminal::moment(since))));
        let word = if self.state == MachineState::Ended { "ended on" } else { "until" };
        parts.extend(self.until.map(|until| format!("{word} {until}")));
        let name = self.name.as_ref().map_or("-", Word::as_str);
        let presence = match &self.presence {
            Some(presence) => format!("\n  {}", works(presence)),
            None if self.state == MachineState::Admitted => "\n  does not work".to_owned(),
            None => String::new(),
        };
        format!("{name}: {}\n  {}{presence}\n", parts.join("; "), self.key)
    }
}

/// Returns what a machine that works says of itself.
fn works(Presence { version, facts, drives, seats, busy }: &Presence) -> String {
    let does = match (drives, seats) {
        (true, 0) => "drives runs".to_owned(),
        (true, _) => format!("drives runs, makes {busy} of {seats} stages"),
        (false, _) => format!("makes {busy} of {seats} stages"),
    };
    let arch = facts.arch.map(|arch| format!(", {}", arch.as_str())).unwrap_or_default();
    let tier = facts.tier.map(|tier| format!(", tier {}", tier.as_str())).unwrap_or_default();
    format!("works: {does}{arch}{tier}, version {}", visible::line(version))
}

/// Executes a command that names a fleet. Returns any other command.
pub fn dispatch(command: Command) -> Result<CommandResult, Box<Command>> {
    Ok(match command {
        Command::Resume(Deferred(arguments)) if arguments.fleet.is_named() => remote::resume(&arguments),
        Command::Cancel(Deferred(arguments)) if arguments.fleet.is_named() => remote::cancel(&arguments),
        Command::Pause(Deferred(arguments)) if arguments.fleet.is_named() => remote::pause(&arguments),
        Command::Steer(Deferred(arguments)) if arguments.fleet.is_named() => remote::steer(&arguments),
        Command::Ls(Deferred(arguments)) if arguments.fleet.is_named() => remote::ls(&arguments),
        Command::Answer(Deferred(arguments)) if arguments.fleet.is_named() => remote::answer(&arguments),
        Command::Show(Deferred(mut arguments)) if arguments.fleet.is_named() => {
            let copied = remote::copy(&arguments.fleet, &arguments.run, &mut arguments.runs);
            copied.and_then(|_copy| show::show(&arguments))
        }
        Command::Why(Deferred(mut arguments)) if arguments.fleet.is_named() => {
            let copied = remote::copy(&arguments.fleet, &arguments.run, &mut arguments.runs);
            copied.and_then(|_copy| why::why(&arguments))
        }
        Command::Logs(Deferred(mut arguments)) if arguments.fleet.is_named() => {
            let copied = remote::copy(&arguments.fleet, &arguments.run, &mut arguments.runs);
            copied.and_then(|_copy| logs::logs(&arguments))
        }
        other => return Err(Box::new(other)),
    })
}

/// Executes a subcommand.
pub fn fleet(command: &FleetCommand) -> CommandResult {
    match command {
        FleetCommand::Init(arguments) => init(arguments),
        FleetCommand::Key(arguments) => key(arguments),
        FleetCommand::Admit(arguments) => admit(arguments),
        FleetCommand::Expel(arguments) => expel(arguments),
        FleetCommand::Ls(arguments) => list(arguments),
        FleetCommand::Permissions(arguments) => permissions(arguments),
    }
}

fn init(arguments: &FleetInitArguments) -> CommandResult {
    // A store that cannot be opened here is found before anything is made.
    fleet_connection::open(&arguments.store)?;
    let replication = if arguments.single_node { Replication::SingleNode } else { Replication::Cluster };
    let made = async {
        let fleet = arguments.fleet.servers().await?;
        fleet.init(replication).await.map_err(|error| stop(&error))?;
        let (key, file) = FleetKey::Operator.read_or_create(&arguments.workdir)?;
        fleet.establish(&key, &arguments.store, arguments.lease).await.map_err(|error| stop(&error))?;
        Ok::<_, Stop>((key, file))
    };
    let (key, file) = block_on(made)??;
    let (public, file) = (key.public(), file.display().to_string());
    terminal::print(format_args!("{public}\n"));
    terminal::say(format_args!(
        "this is the public key of the operator; every machine and every user of the fleet needs it:\n  \
         [fleet]\n  operator = \"{public}\"\nthe private key is `{}`: it admits machines. Keep it secret, and keep a copy in a safe place\n",
        visible::line(&file)
    ));
    Ok(Exit::Ok)
}

fn key(arguments: &FleetKeyArguments) -> CommandResult {
    let (key, file) = FleetKey::Machine.read_or_create(&arguments.workdir)?;
    let public = key.public();
    terminal::print(format_args!("{public}\n"));
    let file = file.display().to_string();
    terminal::say(format_args!(
        "the private key is `{}` and stays on this machine; the operator admits it:\n  \
         glovebox fleet admit {public} --name NAME --may build --nats URL\n",
        visible::line(&file)
    ));
    Ok(Exit::Ok)
}

fn admit(arguments: &FleetAdmitArguments) -> CommandResult {
    let project = prepare::read_project(&arguments.workdir, None)?;
    let operator = arguments.fleet.operator_key(&project.config, &arguments.workdir)?;
    let labels: BTreeSet<Label> = arguments.labels.iter().cloned().collect();
    if labels.len() > LABELS_MAX {
        let message = format!("the machine has {} labels, the most is {LABELS_MAX}", labels.len());
        return Err(Stop::new(Exit::Usage, message));
    }
    let admission = Admission {
        name: arguments.name.clone(),
        may: arguments.may.iter().copied().collect(),
        labels,
        tier: arguments.tier,
        until: arguments.until,
    };
    if !admission.is_valid_at(Timestamp::now()) {
        return Err(Stop::new(Exit::Usage, "the day of `--until` has passed"));
    }
    let admitted = async {
        let fleet = arguments.fleet.servers().await?;
        fleet.admit(&operator, arguments.machine, admission).await.map_err(|error| stop(&error))
    };
    block_on(admitted)??;
    terminal::say(format_args!("admitted `{}`\n", arguments.name));
    Ok(Exit::Ok)
}

fn expel(arguments: &FleetExpelArguments) -> CommandResult {
    let project = prepare::read_project(&arguments.workdir, None)?;
    let operator = arguments.fleet.operator_key(&project.config, &arguments.workdir)?;
    let expelled = async {
        let fleet = arguments.fleet.servers().await?;
        let members = fleet.members(&operator.public()).await.map_err(|error| stop(&error))?;
        let machine = find(&members, &arguments.machine)?;
        fleet.expel(&operator, machine).await.map_err(|error| stop(&error))
    };
    block_on(expelled)??;
    terminal::say(format_args!(
        "expelled `{}`; remove its user from the NATS servers and its keys of the object store too\n",
        visible::line(&arguments.machine)
    ));
    Ok(Exit::Ok)
}

/// Finds an admitted machine by its name or its key.
fn find(members: &[Member], wanted: &str) -> Result<PublicKey, Stop> {
    let key: Option<PublicKey> = wanted.parse().ok();
    let is_wanted = |member: &&Member| {
        let name = member.last.admission.as_ref().map(|admission| admission.name.as_str());
        name.is_some() && (name == Some(wanted) || key == Some(member.last.machine))
    };
    let found = members.iter().find(is_wanted).map(|member| member.last.machine);
    found.ok_or_else(|| {
        Stop::new(Exit::Usage, format!("no machine `{}` is admitted", visible::line(wanted)))
            .with_help("list them: `glovebox fleet ls --nats URL`")
    })
}

fn list(arguments: &FleetListArguments) -> CommandResult {
    let project = prepare::read_project(&arguments.workdir, None)?;
    let operator = arguments.fleet.operator(&project.config, &arguments.workdir)?;
    let listed = async {
        let mut fleet = arguments.fleet.servers().await?;
        fleet.join(&operator, None).await.map_err(|error| stop(&error))?;
        let (members, now) = (fleet.members(&operator).await.map_err(|error| stop(&error))?, Timestamp::now());
        let listed = members.into_iter().map(async |member| {
            let valid = member.last.admission.as_ref().filter(|admission| admission.is_valid_at(now));
            let presence = match valid {
                Some(admission) => fleet.presence(&admission.name.as_str().into()).await,
                None => None,
            };
            ListedMachine::new(member, now, presence)
        });
        Ok::<_, Stop>(join_all(listed).await)
    };
    let mut machines = block_on(listed)??;
    machines
        .sort_by(|one, other| one.name.cmp(&other.name).then_with(|| one.key.to_string().cmp(&other.key.to_string())));
    if arguments.json {
        terminal::print_json(&FleetMachines { schema_version: SCHEMA_VERSION, machines })?;
        return Ok(Exit::Ok);
    }
    if machines.is_empty() {
        terminal::say("no machine was admitted yet\n");
    }
    machines.iter().for_each(|machine| terminal::print(machine.line()));
    Ok(Exit::Ok)
}

fn permissions(arguments: &FleetPermissionsArguments) -> CommandResult {
    let roles: BTreeSet<ServerRole> = arguments.roles.iter().copied().collect();
    let roles: Vec<ServerRole> =
        ServerRole::ALL.into_iter().filter(|role| roles.is_empty() || roles.contains(role)).collect();
    terminal::print(server_config(&arguments.fleet, &roles));
    Ok(Exit::Ok)
}
