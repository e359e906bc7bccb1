//! The `agents` interface: runs the agent program that the node names, in the jail of the stage.
//!
//! The program has the scope of its node, and no network except the gateway. Its output is read as progress and as its final message.
//! The host itself determines the changed files and the cost. A component can start only the program that its node names.

mod gateway;
mod lines;
pub mod programs;
mod session;

use crate::attempt::Attempt;
use crate::bindings::agents::{Event, Host, HostSession, Task};
use crate::bindings::types;
use gateway::Gateway;
use glovebox_record::program::{AgentProgram, ProgramOptions};
use glovebox_record::{Failure, FailureClass, FailureCode, Refusal};
use programs::{Launch, LaunchRequest};
pub use session::ProgramSession;
use session::{ProgramPlace, RunningProgram};
use std::sync::Arc;
use wasmtime::Result;
use wasmtime::component::Resource;

/// An agent program and its options. None of it comes from the guest.
#[derive(Debug, Clone)]
pub struct ProgramSetting {
    /// The program.
    pub program: AgentProgram,
    /// Options from the node and from the operator.
    pub options: ProgramOptions,
    /// The program's private home, opened by the host.
    pub home: Arc<cap_std::fs::Dir>,
    /// Path of the private home inside the jail.
    pub home_inside: String,
}

/// The state of `agents`.
#[derive(Default)]
pub(crate) struct AgentState {
    /// The agent program of the node; `None` if it names none.
    setting: Option<ProgramSetting>,
    /// The running program, if there is one.
    running: Option<RunningProgram>,
}

impl AgentState {
    pub(crate) fn new(setting: Option<ProgramSetting>) -> Self {
        Self { setting, running: None }
    }
}

/// Why a program could not be started: an answer for the guest, or an error that ends the call.
enum StartError {
    Answer(Failure),
    End(wasmtime::Error),
}

impl From<Failure> for StartError {
    fn from(failure: Failure) -> Self {
        Self::Answer(failure)
    }
}

impl Host for Attempt {
    fn backends(&mut self) -> Result<Vec<String>> {
        self.call.observer.called("agents.backends", |call| call);
        Ok(self.agents.setting.iter().map(|setting| setting.program.to_string()).collect())
    }

    fn start(&mut self, task: Task) -> Result<std::result::Result<Resource<ProgramSession>, types::Failure>> {
        self.call.observer.called("agents.start", |call| call.record(&task));
        match self.start_program(&task) {
            Ok(session) => Ok(Ok(self.wasi.table.push(session)?)),
            Err(StartError::Answer(failure)) => Ok(Err(to_guest(&failure))),
            Err(StartError::End(error)) => Err(error),
        }
    }
}

impl HostSession for Attempt {
    fn next(&mut self, this: Resource<ProgramSession>, max: u32, wait_ms: u32) -> Result<Vec<Event>> {
        self.call.observer.called("agents.next", |call| call.number(u64::from(max)).number(u64::from(wait_ms)));
        self.next_events(&this, max, wait_ms)
    }

    fn steer(&mut self, _this: Resource<ProgramSession>, text: String) -> Result<()> {
        self.call.observer.called("agents.steer", |call| call.text(&text));
        let why = "an agent program gets its whole task at the start and accepts no messages after it";
        self.call.refuse(Refusal::new(
            "steer the agent program",
            "",
            why,
            "remove `agent.backend` from the node: without an agent program, `codergen` can be steered",
        ));
        Ok(())
    }

    fn cancel(&mut self, this: Resource<ProgramSession>) -> Result<()> {
        self.call.observer.called("agents.cancel", |call| call);
        self.wasi.table.get_mut(&this)?.stop();
        Ok(())
    }

    fn drop(&mut self, this: Resource<ProgramSession>) -> Result<()> {
        self.wasi.table.delete(this)?.stop();
        self.settle_running().map(drop)
    }
}

impl Attempt {
    fn start_program(&mut self, task: &Task) -> std::result::Result<ProgramSession, StartError> {
        let setting = self.agents.setting.as_ref().filter(|setting| setting.program.as_str() == task.backend).cloned();
        let (Some(setting), Some(commands)) = (setting, self.exec.setting.as_ref().map(Arc::clone)) else {
            let why = "the node names no such agent program";
            let help = "set `agent.backend` on the node";
            self.call.refuse(Refusal::new("start an agent program", &task.backend, why, help));
            return Err(failed(FailureClass::Scope, "agent/not-granted", format!("{why}; {help}")).into());
        };
        if self.agents.running.is_some() {
            let why = "the stage's agent program is still running";
            return Err(failed(FailureClass::Contract, "agent/not-started", why.to_owned()).into());
        }
        self.check_may_start().map_err(|error| failed(FailureClass::Budget, "agent/not-started", error.message))?;
        let jail = self.call.opened(&commands.jail).map_err(StartError::End)?;
        let gateway = Gateway::open(self, &jail).map_err(|error| {
            failed(
                FailureClass::Internal,
                "agent/gateway",
                format!("the gateway for the program could not be opened: {error}"),
            )
        })?;
        let launch = match launch(&setting, &gateway, self.call.limits.turns, &task.prompt) {
            Ok(launch) => launch.for_workspace(jail.inside()),
            Err(failure) => {
                gateway.close(self);
                return Err(failure.into());
            }
        };
        self.exec.started += 1;
        let place = ProgramPlace { jail, cwd: commands.workdir.clone(), gateway };
        ProgramSession::start(self, &setting, launch, place)
    }
}

/// Creates the private home of the program and returns its command line.
fn launch(
    setting: &ProgramSetting,
    gateway: &Gateway,
    turns_max: u64,
    prompt: &str,
) -> std::result::Result<Launch, Failure> {
    let target = gateway.target();
    let launch = programs::launch(
        &setting.options,
        &LaunchRequest {
            program: setting.program,
            prompt,
            model: target.model.as_str(),
            family: target.family,
            output_tokens_max: target.output_tokens_max,
            turns_max,
            url: gateway::URL,
            secret: gateway.secret(),
            home: &setting.home_inside,
        },
    );
    match launch.write_files(&setting.home) {
        Ok(()) => Ok(launch),
        Err(error) => Err(failed(
            FailureClass::Internal,
            "agent/home",
            format!("the private home folder of the program could not be written: {error}"),
        )),
    }
}

fn failed(class: FailureClass, code: &'static str, reason: String) -> Failure {
    Failure::new(class, FailureCode::from(code), reason)
}

/// Converts a failure to its WIT type.
fn to_guest(failure: &Failure) -> types::Failure {
    types::Failure {
        class: failure.class.as_str().to_owned(),
        code: failure.code.as_str().to_owned(),
        reason: failure.reason.clone(),
    }
}
