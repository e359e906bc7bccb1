//! Executes one call from its start to its report: a new store, the guest, and the checks that stop it.
//!
//! A guest ends in one of three ways: it returns or traps; it is stopped at a tick of the epoch, because the deadline
//! has passed, the run was canceled or the component was revoked; or `watch` stops it for the same reasons while it waits
//! inside the host.
//! Afterwards only the record of the guest remains.

use crate::answer;
use crate::attempt::Attempt;
use crate::attempt::agents::AgentState;
use crate::attempt::call_context::CallContext;
use crate::attempt::control::ControlState;
use crate::attempt::exec::ExecState;
use crate::attempt::files::FileState;
use crate::attempt::llm::LlmState;
use crate::attempt::tools::ToolState;
use crate::attempt::wasi::WasiState;
use crate::bindings::types;
use crate::call::{Call, Report};
use crate::component::Component;
use crate::deadline::Deadline;
use crate::ending::{self, CallEnd, ErrorContext};
use crate::engine::HostEngine;
use crate::report;
use crate::revocation::RevocationCheck;
use crate::stop::Stop;
use crate::ticker::Ticker;
use glovebox_record::{LimitName, Limits};
use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use wasmtime::{Engine, Error, Result, Store, UpdateDeadline};

/// Interval at which a call checks for cancellation and revocation while its guest waits inside the host. While the guest runs
/// code, every tick of the epoch checks for cancellation.
const WATCH: Duration = Duration::from_millis(50);

/// Executes a call in the task that polls it. Only work of the host for the guest blocks the task.
pub(crate) async fn run(component: &Component, call: Call, prepared: &HostEngine) -> Report {
    let started = Instant::now();
    let (limits, reasons) = (call.limits, StopReasons::new(&call, started));
    if let Some(reason) = reasons.revocation.as_ref().and_then(RevocationCheck::look) {
        return report::without_guest(Some(component), &limits, ending::revoked(reason));
    }
    if let Some(name) = component.needs.over(&component.inspection, &limits) {
        return report::without_guest(Some(component), &limits, ending::limit_hit(name, &limits));
    }
    if reasons.canceled.load(Ordering::Relaxed) {
        return report::without_guest(Some(component), &limits, ending::canceled());
    }
    let ticker = match prepared.ticker() {
        Ok(ticker) => ticker,
        Err(problem) => return report::without_guest(Some(component), &limits, ending::host_fault(problem)),
    };
    let (attempt, input) = match prepare(call, &reasons.deadline, ticker.clone()) {
        Ok(prepared) => prepared,
        Err(problem) => return report::without_guest(Some(component), &limits, ending::host_fault(problem)),
    };
    let mut store = store_of(component.pre.engine(), attempt, reasons.clone());
    let mut instantiated = false;
    let ended = {
        let mut guest = pin!(guest(component, &mut store, &input, &mut instantiated));
        tokio::select! {
            biased;
            ended = poll_fn(|context| ticker.while_guest_runs(|| guest.as_mut().poll(context))) => ended,
            stop = reasons.watch() => Err(Error::new(stop)),
        }
    };
    let mut attempt = store.into_data();
    // A guest may return while its agent program still runs. A limit that the program exceeded takes precedence over the guest's
    // outcome.
    let left = attempt.end_program();
    let ended = ended.and_then(|answer| left.map(|()| answer));
    let ended = match ended {
        // A command or a request was ended because of it, or the guest caught the end.
        _ if reasons.revocation.as_ref().is_some_and(|check| check.found().is_some()) => reasons.revoked(),
        Ok(answer) => answer::check(answer, &mut attempt),
        Err(error) => {
            let stderr_tail = attempt.wasi.stderr.tail(2 << 10);
            let circumstances = ErrorContext {
                limits: &limits,
                hostcall_size_error: &prepared.hostcall_size_error,
                stderr_tail: &stderr_tail,
                started: instantiated,
            };
            ending::to_host_failure(&error, &circumstances)
        }
    };
    report::for_call(component, attempt, ended, started.elapsed())
}

/// Returns the report of a call that could not be started.
pub(crate) fn fault(limits: &Limits, problem: impl std::fmt::Display) -> Report {
    report::without_guest(None, limits, ending::host_fault(problem))
}

async fn guest(
    component: &Component,
    store: &mut Store<Attempt>,
    input: &types::StageInput,
    instantiated: &mut bool,
) -> Result<types::Outcome> {
    let instance = component.pre.instantiate_async(&mut *store).await?;
    *instantiated = true;
    instance.glovebox_plugin_stage().call_execute(&mut *store, input).await
}

/// The reasons for which a call is stopped.
#[derive(Clone)]
pub(crate) struct StopReasons {
    pub(crate) deadline: Arc<Deadline>,
    pub(crate) canceled: Arc<AtomicBool>,
    pub(crate) revocation: Option<RevocationCheck>,
}

impl StopReasons {
    fn new(call: &Call, started: Instant) -> Self {
        let deadline = Arc::new(Deadline::new(started, call.limits.wall_ms));
        Self { deadline, canceled: Arc::clone(&call.canceled), revocation: call.revocation.clone() }
    }

    /// Waits for a reason.
    pub(crate) async fn watch(&self) -> Stop {
        loop {
            if let Some(stop) = self.now() {
                return stop;
            }
            tokio::time::sleep(WATCH.min(self.deadline.left())).await;
        }
    }

    fn now(&self) -> Option<Stop> {
        if self.canceled.load(Ordering::Relaxed) {
            Some(Stop::Canceled)
        } else if self.deadline.left().is_zero() {
            Some(Stop::Limit(LimitName::WallMs))
        } else {
            self.revocation.as_ref().and_then(RevocationCheck::look_if_due).map(|_| Stop::Revoked)
        }
    }

    fn revoked(&self) -> CallEnd {
        let reason = self.revocation.as_ref().and_then(RevocationCheck::found);
        ending::revoked(reason.unwrap_or("it was revoked"))
    }
}

/// Creates the state of all interfaces, and the input of the handler.
fn prepare(call: Call, deadline: &Arc<Deadline>, ticker: Ticker) -> Result<(Attempt, types::StageInput), String> {
    let Call { input, tier, files, commands, program, model, conversation, hooks, policy, tools, limits, .. } = call;
    let (id, deadline) = (&input.attempt.id, Arc::clone(deadline));
    let context = CallContext::new(id, limits, call.canceled, deadline, ticker, call.observer);
    let files = FileState::open(tier, files, limits, &context.refusals)?;
    let llm = LlmState::new(model, conversation, hooks, policy, &input);
    let input = answer::input_of(input, tier, files.view.as_deref());
    let attempt = Attempt {
        wasi: WasiState::new(&limits),
        files,
        control: ControlState::default(),
        exec: ExecState::new(commands),
        agents: AgentState::new(program),
        llm,
        tools: ToolState::new(tools),
        call: context,
    };
    Ok((attempt, input))
}

/// Creates the store of one call. At every tick, the guest yields or is stopped.
pub(crate) fn store_of(engine: &Engine, attempt: Attempt, reasons: StopReasons) -> Store<Attempt> {
    let limits = attempt.call.limits;
    let pulse = attempt.call.observer.pulse().clone();
    let mut store = Store::new(engine, attempt);
    store.limiter(|attempt| &mut attempt.call.meter);
    store.set_hostcall_fuel(usize::try_from(limits.hostcall_bytes).unwrap_or(usize::MAX));
    store.set_epoch_deadline(1);
    store.epoch_deadline_callback(move |mut context| {
        context.data_mut().wasi.count_handles();
        pulse.beat();
        if let Some(stop) = reasons.now() {
            return Err(Error::new(stop));
        }
        Ok(UpdateDeadline::Yield(1))
    });
    store
}
