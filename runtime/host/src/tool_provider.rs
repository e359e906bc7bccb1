//! Tool providers: components whose tools an agent may call. Each question to a provider gets a new store.
//!
//! A provider sees the files that it was granted, read-only, and the attempt's log. It has no model, no commands, no tools and no
//! network: a component that imports any of these is not loaded. Memory, time, output and the length of an answer are limited as
//! for a handler. Nothing that a provider returns is trusted, and the caller checks it. The attempt's cancellation and a revocation
//! of the provider end a call.

use crate::attempt::Attempt;
use crate::attempt::agents::AgentState;
use crate::attempt::call_context::CallContext;
use crate::attempt::control::ControlState;
use crate::attempt::exec::ExecState;
use crate::attempt::files::FileState;
use crate::attempt::llm::LlmState;
use crate::attempt::tools::{AskProvider, ProviderAnswer, ProviderCall, ProviderEnd, ProviderRequest, ToolState};
use crate::attempt::wasi::WasiState;
use crate::component::{LoadError, Needs, refuse_newer};
use crate::ending::{self, CallEnd, ErrorContext};
use crate::host::Host;
use crate::inspect::{Import, Inspection};
use crate::interfaces::{ImportState, is_export};
use crate::probe::HostcallSizeError;
use crate::progress::CallObserver;
use crate::revocation::RevocationCheck;
use crate::run::{StopReasons, store_of};
use crate::ticker::Ticker;
use contract::exports::glovebox::plugin::tool::Output;
use contract::{Provider, ProviderPre};
use glovebox_record::{AttemptId, Digest, Limits};
use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use wasmtime::{Error, Result, Store};

#[allow(unreachable_pub, clippy::all, unused_qualifications)]
mod contract {
    wasmtime::component::bindgen!({
        path: "../../wit",
        inline: "
            package glovebox:host;

            world provider {
                export glovebox:plugin/tool@0.1.0;
            }
        ",
        world: "glovebox:host/provider",
        exports: { default: async },
        with: {
            "glovebox:plugin/types": crate::bindings::glovebox::plugin::types,
            "glovebox:plugin/chat": crate::bindings::glovebox::plugin::chat,
        },
    });
}

/// The interface that a provider exports.
const EXPORTED: &str = "tool";
/// The interfaces of Glovebox that a provider may import. Interfaces of WASI are the same as for a handler.
const IMPORTED: [&str; 4] = ["types", "chat", "files", "control"];
/// Maximum length of the log lines of one call that the stage's log gets.
const LOG_LINES_MAX: usize = 20;
/// Maximum number of refused requests of one call that the stage's record gets.
const REFUSALS_MAX: usize = 20;

/// A tool provider that was checked, compiled and linked.
pub struct ToolProvider {
    inspection: Inspection,
    pre: ProviderPre<Attempt>,
    needs: Needs,
    ticker: Ticker,
    carried: HostcallSizeError,
}

impl Host {
    /// Loads a tool provider of at most `component_bytes`. Its imports are checked before it is compiled.
    pub fn load_provider(&self, bytes: &[u8], component_bytes: u64) -> Result<Arc<ToolProvider>, LoadError> {
        if bytes.len() as u64 > component_bytes {
            return Err(LoadError::TooLarge { bytes: bytes.len() as u64, limit: component_bytes });
        }
        let (inspection, stored) = self.read(bytes)?;
        check(&inspection)?;
        let code = self.code(&inspection, bytes, stored)?;
        let pre = self.linker.instantiate_pre(&code).and_then(ProviderPre::new);
        let pre = pre.map_err(|problem| LoadError::Link(format!("{problem:#}")))?;
        let ticker = self.prepared.ticker().map_err(|problem| LoadError::Compiler(problem.to_string()))?.clone();
        let (needs, carried) = (Needs::of_code(&code), self.prepared.hostcall_size_error.clone());
        Ok(Arc::new(ToolProvider { inspection, pre, needs, ticker, carried }))
    }
}

/// Checks that a component exports tools, and imports only what a tool provider may have.
pub fn check(inspection: &Inspection) -> Result<(), LoadError> {
    refuse_newer(inspection)?;
    let refused: Vec<Import> =
        inspection.imports.iter().filter(|import| import.state != ImportState::Provided).cloned().collect();
    if !refused.is_empty() {
        return Err(LoadError::Imports(refused));
    }
    let is_of_others = |name: &&String| {
        let own = name.strip_prefix("glovebox:plugin/").and_then(|rest| rest.split('@').next());
        own.is_some_and(|interface| !IMPORTED.contains(&interface))
    };
    let names = inspection.imports.iter().map(|import| &import.name);
    let of_others: Vec<String> = names.filter(is_of_others).cloned().collect();
    if !of_others.is_empty() {
        return Err(LoadError::ProviderImport(of_others));
    }
    let limit = Limits::default().instances;
    if inspection.core_instances > limit {
        return Err(LoadError::TooManyInstances { count: inspection.core_instances, limit });
    }
    if !inspection.exports.iter().any(|export| is_export(export, EXPORTED)) {
        return Err(LoadError::NoTools(inspection.exports.clone()));
    }
    Ok(())
}

/// Returns the end of a question that the host ended, or whose component failed.
fn without_answer(ended: CallEnd) -> ProviderEnd {
    ProviderEnd { answer: Err(reason(ended)), log: Vec::new(), refusals: Vec::new() }
}

fn reason(ended: CallEnd) -> String {
    ended.outcome.failure.map(|failure| failure.reason).unwrap_or_default()
}

impl ToolProvider {
    /// Returns the BLAKE3 hash of the bytes.
    pub fn digest(&self) -> Digest {
        self.inspection.digest
    }

    /// Returns the result of inspecting the bytes.
    pub fn inspection(&self) -> &Inspection {
        &self.inspection
    }

    /// Returns the function that asks this component, for the setting of an attempt.
    pub fn to_ask(self: &Arc<Self>) -> AskProvider {
        let component = Arc::clone(self);
        AskProvider::new(move |call, request| component.ask(call, request))
    }

    /// Asks the provider on a thread of its own, because the thread of the stage already polls a guest. Blocks until the provider has
    /// answered, has failed or was stopped.
    fn ask(&self, call: ProviderCall, request: &ProviderRequest) -> ProviderEnd {
        let asked = std::thread::scope(|scope| {
            let thread = std::thread::Builder::new().name("tool-provider".to_owned());
            let asked = thread.spawn_scoped(scope, || {
                let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build();
                runtime.map(|runtime| runtime.block_on(self.run(call, request)))
            });
            asked.map(|asked| asked.join())
        });
        match asked {
            Ok(Ok(Ok(end))) => end,
            Ok(Ok(Err(problem))) | Err(problem) => without_answer(ending::host_fault(problem)),
            Ok(Err(_)) => without_answer(ending::host_fault("the thread of the call panicked")),
        }
    }

    async fn run(&self, call: ProviderCall, request: &ProviderRequest) -> ProviderEnd {
        let ProviderCall { attempt, tier, files, limits, deadline, canceled, revocation } = call;
        let reasons = StopReasons { deadline: Arc::new(deadline), canceled, revocation };
        if let Some(reason) = reasons.revocation.as_ref().and_then(RevocationCheck::look) {
            return without_answer(ending::revoked(reason));
        }
        if let Some(name) = self.needs.over(&self.inspection, &limits) {
            return without_answer(ending::limit_hit(name, &limits));
        }
        let context = self.context(&attempt, limits, &reasons);
        let files = match FileState::open(tier, files, limits, &context.refusals) {
            Ok(files) => files,
            Err(problem) => return without_answer(ending::host_fault(problem)),
        };
        let attempt = state(context, files, &limits);
        let mut store = store_of(self.pre.engine(), attempt, reasons.clone());
        let mut started = false;
        let ended = {
            let mut guest = pin!(self.guest(&mut store, request, &mut started));
            tokio::select! {
                biased;
                ended = poll_fn(|context| self.ticker.while_guest_runs(|| guest.as_mut().poll(context))) => ended,
                stop = reasons.watch() => Err(Error::new(stop)),
            }
        };
        let attempt = store.into_data();
        let revoked = reasons.revocation.as_ref().and_then(RevocationCheck::found).map(ending::revoked);
        let answer = match (ended, revoked) {
            (_, Some(revoked)) => Err(reason(revoked)),
            (Ok(answer), None) => Ok(answer),
            (Err(error), None) => Err(self.problem(&error, &limits, &attempt, started)),
        };
        let log = attempt.control.log.into_iter().take(LOG_LINES_MAX).collect();
        ProviderEnd { answer, log, refusals: attempt.call.refusals.stored() }
    }

    async fn guest(
        &self,
        store: &mut Store<Attempt>,
        request: &ProviderRequest,
        started: &mut bool,
    ) -> Result<ProviderAnswer> {
        let instance: Provider = self.pre.instantiate_async(&mut *store).await?;
        *started = true;
        let tool = instance.glovebox_plugin_tool();
        match request {
            ProviderRequest::Definitions => tool.call_definitions(&mut *store).await.map(ProviderAnswer::Definitions),
            ProviderRequest::Call { name, arguments } => {
                let output = tool.call_call(&mut *store, name, arguments).await;
                output.map(|Output { content, is_error, .. }| ProviderAnswer::Output { content, is_error })
            }
        }
    }

    fn problem(&self, error: &Error, limits: &Limits, attempt: &Attempt, started: bool) -> String {
        let stderr_tail = attempt.wasi.stderr.tail(2 << 10);
        let hostcall_size_error = &self.carried;
        let circumstances = ErrorContext { limits, hostcall_size_error, stderr_tail: &stderr_tail, started };
        reason(ending::to_host_failure(error, &circumstances))
    }

    fn context(&self, attempt: &AttemptId, limits: Limits, reasons: &StopReasons) -> CallContext {
        // A call keeps no artifacts: each one is refused and recorded.
        let refusals = limits.refusals.min(REFUSALS_MAX as u64);
        let bounded = Limits { refusals, artifact_bytes: 0, ..limits };
        let (canceled, deadline) = (Arc::clone(&reasons.canceled), Arc::clone(&reasons.deadline));
        CallContext::new(attempt, bounded, canceled, deadline, self.ticker.clone(), CallObserver::unobserved())
    }
}

/// Creates the state of all interfaces. Everything except `files` and `control` denies.
fn state(context: CallContext, files: FileState, limits: &Limits) -> Attempt {
    Attempt {
        wasi: WasiState::new(limits),
        files,
        control: ControlState::default(),
        exec: ExecState::new(None),
        agents: AgentState::new(None),
        llm: LlmState::default(),
        tools: ToolState::default(),
        call: context,
    }
}
