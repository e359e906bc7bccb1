//! One call from start to report: a fresh store, the guest, and the checks that stop it.
//!
//! Three things end a guest: it returns or traps, a tick finds the deadline passed or the run canceled, or, while it waits
//! inside the host, the watch beside it does. Afterwards nothing of the guest is left but the record.

use crate::answer;
use crate::attempt::Attempt;
use crate::attempt::hooks::Hooks;
use crate::attempt::llm::Conversation;
use crate::attempt::tools::Tools;
use crate::bindings::types;
use crate::call::{Call, FileSetting, FileSource, Progress, Report};
use crate::component::Component;
use crate::deadline::Deadline;
use crate::ending::{self, Circumstances};
use crate::engine::Prepared;
use crate::limiter::Meter;
use crate::report;
use crate::stdio::Output;
use crate::stop::Stop;
use crate::ticker::Ticker;
use glovebox_record::{LimitName, Limits};
use glovebox_workspace::refusal::RefusalLog;
use glovebox_workspace::view::{View, ViewProblem};
use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use wasmtime::component::ResourceTable;
use wasmtime::{Error, Result, Store, UpdateDeadline};
use wasmtime_wasi::WasiCtx;

/// How often a call whose guest waits inside the host looks whether it was canceled. While the guest runs the ticks do that.
const WATCH: Duration = Duration::from_millis(50);

/// Most random bytes a guest gets in one call.
const RANDOM_BYTES_MAX: u64 = 1 << 20;

/// Runs a call in the task that polls it. Only what the host does for the guest blocks.
pub(crate) async fn run(component: &Component, call: Call, prepared: &Prepared) -> Report {
    let started = Instant::now();
    let (limits, canceled) = (call.limits, Arc::clone(&call.canceled));
    if let Some(name) = over_static(component, &limits) {
        return report::without_guest(Some(component), &limits, ending::limit_hit(name, &limits));
    }
    if canceled.load(Ordering::Relaxed) {
        return report::without_guest(Some(component), &limits, ending::canceled());
    }
    let ticker = match prepared.ticker() {
        Ok(ticker) => ticker,
        Err(problem) => return report::without_guest(Some(component), &limits, ending::host_fault(problem)),
    };
    let deadline = Arc::new(Deadline::new(started, limits.wall_ms));
    let (attempt, input) = match prepare(call, &deadline, ticker.clone()) {
        Ok(prepared) => prepared,
        Err(problem) => return report::without_guest(Some(component), &limits, ending::host_fault(problem)),
    };
    let mut store = store_of(component, attempt);
    let mut instantiated = false;
    let ended = {
        let mut guest = pin!(guest(component, &mut store, &input, &mut instantiated));
        tokio::select! {
            biased;
            ended = poll_fn(|context| ticker.while_guest_runs(|| guest.as_mut().poll(context))) => ended,
            stop = watch(&deadline, &canceled) => Err(Error::new(stop)),
        }
    };
    let mut attempt = store.into_data();
    // A guest may leave its program at work. What that did counts before its own answer.
    let left = attempt.end_program();
    let ended = ended.and_then(|answer| left.map(|()| answer));
    let ended = match ended {
        Ok(answer) => answer::check(answer, &mut attempt),
        Err(error) => {
            let stderr_tail = attempt.stderr.tail(2 << 10);
            let circumstances = Circumstances {
                limits: &limits,
                carried_too_much: &prepared.carried_too_much,
                stderr_tail: &stderr_tail,
                started: instantiated,
            };
            ending::to_host_failure(&error, &circumstances)
        }
    };
    report::of(component, attempt, ended, started.elapsed())
}

/// The report of a call that could not even be tried.
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

async fn watch(deadline: &Deadline, canceled: &AtomicBool) -> Stop {
    loop {
        if let Some(stop) = stop_of(deadline, canceled) {
            return stop;
        }
        tokio::time::sleep(WATCH.min(deadline.left())).await;
    }
}

fn stop_of(deadline: &Deadline, canceled: &AtomicBool) -> Option<Stop> {
    if canceled.load(Ordering::Relaxed) {
        Some(Stop::Canceled)
    } else if deadline.left().is_zero() {
        Some(Stop::Limit(LimitName::WallMs))
    } else {
        None
    }
}

/// What the binary says it needs, against what this call may have.
fn over_static(component: &Component, limits: &Limits) -> Option<LimitName> {
    if component.inspection.bytes > limits.component_bytes {
        return Some(LimitName::ComponentBytes);
    }
    (component.instances() > limits.instances).then_some(LimitName::Instances)
}

fn prepare(call: Call, deadline: &Arc<Deadline>, ticker: Ticker) -> Result<(Attempt, types::StageInput), String> {
    let Call { input, tier, files, commands, program, model, hooks, tools, limits, canceled, progress } = call;
    let to_progress = progress.clone();
    let kept_max = usize::try_from(limits.refusals).unwrap_or(usize::MAX);
    let refusals = RefusalLog::new(kept_max).on_refusal(move |refusal| {
        // Progress is a hint by contract.
        let _ = to_progress.try_send(Progress::Refused(refusal.clone()));
    });
    let refusals = Arc::new(refusals);
    let open = |files: FileSetting| {
        let FileSetting { source, scope, protected, known_as, is_of_plugin } = files;
        let view = match source {
            FileSource::Folder(root) => View::open(&root, scope, limits, Arc::clone(&refusals))?,
            FileSource::Layer(layer) => View::over(&layer, scope, limits, Arc::clone(&refusals))?,
        };
        Ok::<_, ViewProblem>(view.protecting(protected).known_as(known_as).for_plugin(is_of_plugin))
    };
    let view = files.map(open);
    let view = view.transpose().map_err(|problem| problem.to_string())?.map(Arc::new);
    let attempt_id = input.attempt.id.clone();
    let hooks = Hooks::new(hooks, &input.run, &input.attempt);
    let input = answer::input_of(input, tier, view.as_deref());
    let (stdout, stderr) = (Output::new(limits.output_bytes), Output::new(limits.output_bytes));
    let mut table = ResourceTable::new();
    table.set_max_capacity(usize::try_from(limits.resources).unwrap_or(usize::MAX));
    let attempt = Attempt {
        wasi: wasi_of(&stdout, &stderr),
        table,
        tier,
        view,
        commands: commands.map(Arc::new),
        program,
        running: None,
        conversation: Conversation::new(model),
        hooks,
        tools: Tools::new(tools),
        meter: Meter::new(&limits),
        deadline: Arc::clone(deadline),
        limits,
        refusals,
        receipts: Vec::new(),
        artifacts: Vec::new(),
        log: Vec::new(),
        stdout,
        stderr,
        attempt_id,
        canceled,
        progress,
        ticker,
    };
    Ok((attempt, input))
}

/// The part of WASI that is not files. Denied: arguments, environment, standard input, sockets.
fn wasi_of(stdout: &Output, stderr: &Output) -> WasiCtx {
    let mut builder = WasiCtx::builder();
    builder.stdout(stdout.clone()).stderr(stderr.clone());
    // Hopping to another thread for each file costs five times the work.
    builder.allow_blocking_current_thread(true).max_random_size(RANDOM_BYTES_MAX);
    builder.build()
}

fn store_of(component: &Component, attempt: Attempt) -> Store<Attempt> {
    let limits = attempt.limits;
    let canceled = Arc::clone(&attempt.canceled);
    let deadline = Arc::clone(&attempt.deadline);
    let mut store = Store::new(component.pre.engine(), attempt);
    store.limiter(|attempt| &mut attempt.meter);
    store.set_hostcall_fuel(usize::try_from(limits.hostcall_bytes).unwrap_or(usize::MAX));
    store.set_epoch_deadline(1);
    store.epoch_deadline_callback(move |mut context| {
        context.data_mut().count_handles();
        if let Some(stop) = stop_of(&deadline, &canceled) {
            return Err(Error::new(stop));
        }
        Ok(UpdateDeadline::Yield(1))
    });
    store
}
