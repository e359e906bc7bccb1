//! What `glovebox doctor --nats` says about the servers of a fleet.

use crate::arguments::DoctorArguments;
use crate::exit::{Exit, Stop};
use crate::fleet_connection::{self, stop};
use crate::terminal::rows::Rows;
use glovebox_fleet::examine::{Finding, State};
use glovebox_fleet::fleet::Fleet;
use glovebox_fleet::init::Replication;
use glovebox_plan::config::Config;
use schemars::JsonSchema;
use serde::Serialize;

/// The version of the document.
const SCHEMA_VERSION: u32 = 1;
/// Width of the column with the names of findings.
const NAME_WIDTH: usize = 10;

/// The document that `glovebox doctor --nats --json` prints.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(title = "doctor-fleet.json")]
pub struct FleetReport {
    /// Version of this document.
    schema_version: u32,
    /// What was found, one property after the other.
    findings: Vec<Finding>,
}

impl FleetReport {
    /// Examines the servers that the arguments name.
    ///
    /// # Errors
    /// The servers do not answer (exit 9), or refuse the user (6).
    pub async fn new(arguments: &DoctorArguments, config: &Config) -> Result<Self, Stop> {
        let fleet = arguments.fleet.servers().await?;
        let replication = if arguments.single_node { Replication::SingleNode } else { Replication::Cluster };
        let examined = fleet.examine(replication, arguments.nats_monitor.as_deref()).await;
        let mut findings = examined.map_err(|error| stop(&error))?;
        if findings.iter().all(|finding| finding.name != "stream" || finding.state == State::Ok) {
            findings.push(settings(arguments, config, &fleet).await);
        }
        Ok(Self { schema_version: SCHEMA_VERSION, findings })
    }

    /// Returns success if no finding is a problem.
    pub fn exit(&self) -> Exit {
        let has_problem = self.findings.iter().any(|finding| finding.state == State::Problem);
        if has_problem { Exit::Invalid } else { Exit::Ok }
    }

    /// Renders the report as text.
    pub fn render(&self) -> String {
        let mut rows = Rows::new(NAME_WIDTH);
        for finding in &self.findings {
            rows.row(finding.name, format_args!("{:7}  {}", finding.state.as_str(), finding.found));
            rows.indented(finding.help.as_deref().unwrap_or_default());
        }
        rows.finish()
    }
}

/// Checks who made the fleet, and that its blobs are in reach.
async fn settings(arguments: &DoctorArguments, config: &Config, fleet: &Fleet) -> Finding {
    let bad = |state, stop: Stop| Finding { name: "settings", state, found: stop.message, help: stop.help };
    let operator = match arguments.fleet.operator(config, &arguments.workdir) {
        Ok(operator) => operator,
        Err(stop) => return bad(State::Warning, stop),
    };
    let opened = match fleet.settings(&operator).await {
        Ok(settings) => fleet_connection::open(&settings.store).map(|_| settings),
        Err(error) => Err(stop(&error)),
    };
    match opened {
        Ok(settings) => {
            let found = format!("signed by the operator; blobs at {}", settings.store);
            Finding { name: "settings", state: State::Ok, found, help: None }
        }
        Err(stop) => bad(State::Problem, stop),
    }
}
