//! The gateway of an agent program: the only address that the program reaches over its network, and the only way to its model.
//!
//! The gateway listens in the program's own network and requires the secret of this attempt. [`glovebox_models::gateway`] decides
//! which requests are allowed. The gateway reserves money before a request and settles it afterwards, searches both directions for
//! hold-outs, and records each exchange. The provider's key never leaves the gateway. While the program runs, the component of the
//! stage cannot ask the model.

mod response;

use crate::attempt::Attempt;
use crate::attempt::llm::{Model, ModelAccess, NewMessages, ProviderExchange, ShownAnswer, Side, answered_texts};
use crate::deadline::Deadline;
use crate::progress::{CallObserver, Progress};
use glovebox_jail::jail::Jail;
use glovebox_jail::port::{self, Connection, Port};
use glovebox_models::ask::{AskStep, estimated_tokens};
use glovebox_models::chat::Usage;
use glovebox_models::deadline::CallDeadline;
use glovebox_models::error::{ErrorKind, ModelError};
use glovebox_models::gateway::{self, CheckedRequest, ForwardResult, InFlight, IncomingRequest, Question, ReadError};
use glovebox_models::target::Target;
use glovebox_record::spend::Spend;
use glovebox_record::{LimitName, Refusal, WaitKind};
use glovebox_workspace::refusal::RefusalLog;
use response::GatewayResponse;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// Port on the loopback interface of the jail. Each jail has its own network, so every attempt uses the same port.
const PORT: u16 = 8790;
/// The gateway's address, as the program sees it.
pub(super) const URL: &str = "http://127.0.0.1:8790";

/// A listening gateway. Dropping it ends every connection.
pub(super) struct Gateway {
    port: Option<Port>,
    shared: Arc<Shared>,
}

/// State shared by all connections.
struct Shared {
    target: Arc<Target>,
    secret: String,
    turns_max: u64,
    deadline: Arc<Deadline>,
    /// Set when the program has ended. Pending requests are then canceled.
    closing: AtomicBool,
    observer: CallObserver,
    refusals: Arc<RefusalLog>,
    access: Mutex<ModelAccess>,
    /// Shows unfinished answers to a watcher, of one request at a time. `None` if nobody watches.
    shown: Mutex<Option<ShownAnswer>>,
    /// Limit on the total size of all request bodies that are being received.
    in_flight: InFlight,
}

impl Gateway {
    /// Listens in the jail of an attempt. Takes the attempt's access to the model until [`Gateway::close`] is called.
    ///
    /// # Errors
    /// The attempt has no model of a provider, or the sandbox cannot open the port.
    pub(super) fn open(attempt: &mut Attempt, jail: &Jail) -> io::Result<Self> {
        let model = attempt.llm.access.model();
        let watcher = model.and_then(Model::watcher);
        let target = model.and_then(Model::target).map(Arc::clone);
        let target = target.ok_or_else(|| io::Error::other("the stage has no model of a provider"))?;
        let shared = Arc::new(Shared {
            target,
            secret: port::secret()?,
            turns_max: attempt.call.limits.turns,
            deadline: Arc::clone(&attempt.call.deadline),
            closing: AtomicBool::new(false),
            observer: attempt.call.observer.clone(),
            refusals: Arc::clone(&attempt.call.refusals),
            access: Mutex::default(),
            shown: Mutex::new(watcher.map(ShownAnswer::new)),
            in_flight: InFlight::default(),
        });
        let serving = Arc::clone(&shared);
        let port = Port::open(jail, PORT, move |connection| serving.serve(connection))?;
        *shared.access() = std::mem::take(&mut attempt.llm.access);
        Ok(Self { port: Some(port), shared })
    }

    /// Returns the secret that each request of the program must carry.
    pub(super) fn secret(&self) -> &str {
        &self.shared.secret
    }

    /// Returns the model that the gateway asks.
    pub(super) fn target(&self) -> Arc<Target> {
        Arc::clone(&self.shared.target)
    }

    /// Ends every connection and returns the access to the model to the attempt.
    pub(super) fn close(mut self, attempt: &mut Attempt) {
        self.shared.end();
        if let Some(port) = self.port.take() {
            port.close();
        }
        attempt.llm.access = std::mem::take(&mut *self.shared.access());
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        self.shared.end();
    }
}

impl Shared {
    fn access(&self) -> MutexGuard<'_, ModelAccess> {
        self.access.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Cancels pending requests, because the program has ended.
    fn end(&self) {
        self.closing.store(true, Ordering::Relaxed);
        self.in_flight.close();
    }

    /// Serves one request.
    fn serve(&self, mut connection: Connection<'_>) {
        let (incoming, mut room) = match IncomingRequest::read(&mut connection, &self.in_flight) {
            Ok(read) => read,
            Err(ReadError::Gone(_)) => return,
            Err(ReadError::Malformed(why)) => {
                return self
                    .refuse(GatewayResponse::new(connection, false), ModelError::new(ErrorKind::InvalidRequest, why));
            }
            Err(ReadError::Busy(why)) => {
                return self
                    .refuse(GatewayResponse::new(connection, false), ModelError::new(ErrorKind::RateLimit, why));
            }
        };
        if !incoming.has_credential(&self.secret) && incoming.method != "POST" {
            // Some programs first test whether the gateway responds. Such a request needs no secret.
            return GatewayResponse::new(connection, false).json(404, &serde_json::json!({}));
        }
        if !incoming.has_credential(&self.secret) {
            let why = "the request does not have the token of this stage";
            return self
                .refuse(GatewayResponse::new(connection, false), ModelError::new(ErrorKind::Authentication, why));
        }
        let checked = gateway::check(&self.target, &incoming, &mut room);
        // The answer may take minutes, so the memory of the request is freed first.
        drop(incoming);
        match checked {
            Ok(CheckedRequest::Models) => {
                GatewayResponse::new(connection, false).json(200, &gateway::models(&self.target))
            }
            Ok(CheckedRequest::Answer(question)) => self.answer(&question, connection),
            Err(error) => self.refuse(GatewayResponse::new(connection, false), error),
        }
    }

    /// Refuses a request and records the refusal.
    fn refuse(&self, response: GatewayResponse<'_>, error: ModelError) {
        self.refusals.record(Refusal::new(
            "ask the gateway",
            &error.message,
            error.kind.as_str(),
            error.kind.row().help,
        ));
        response.refuse(&error, None);
    }

    fn answer(&self, question: &Question, connection: Connection<'_>) {
        let mut response = GatewayResponse::new(connection, question.is_streamed);
        let reserved = match self.admit(question) {
            Ok(reserved) => reserved,
            Err(error) => return response.refuse(&error, None),
        };
        let left = self.deadline.left();
        let deadline = CallDeadline { canceled: &self.closing, at: Instant::now() + left, idle: left };
        let wait = self.observer.pulse().wait(WaitKind::Model);
        let mut locked = self.shown.try_lock().ok();
        let mut shown = locked.as_deref_mut().and_then(Option::as_mut);
        shown.iter_mut().for_each(|shown| shown.end());
        let passed = gateway::forward(&self.target, question, deadline, |step| match step {
            AskStep::Received(bytes) => {
                self.observer.pulse().text_delta(bytes);
                response.stays()
            }
            AskStep::Unfinished(answer) => {
                shown.iter_mut().for_each(|shown| shown.show(&answer));
                true
            }
            AskStep::Try | AskStep::Wait(..) => true,
        });
        drop(wait);
        // An unfinished answer is taken back before the finished one is stored, so that nobody sees both.
        shown.into_iter().for_each(ShownAnswer::end);
        drop(locked);
        let retry_after = passed.retry_after;
        match self.settle(question, passed, reserved) {
            Ok(received) => response.finish(&received),
            Err(error) => response.refuse(&error, retry_after),
        }
    }

    /// Checks every bound and reserves the maximum cost of the answer.
    fn admit(&self, question: &Question) -> Result<Option<Spend>, ModelError> {
        let mut access = self.access();
        let admitted = self.admitted(&mut access, question);
        if let Err(error) = &admitted {
            access.fail(error.clone());
        }
        admitted
    }

    fn admitted(&self, access: &mut ModelAccess, question: &Question) -> Result<Option<Spend>, ModelError> {
        if self.closing.load(Ordering::Relaxed) {
            return Err(ModelError::new(ErrorKind::Canceled, "the run was asked to stop"));
        }
        if let Some(error) = access.final_failure() {
            return Err(error.clone());
        }
        // Pending requests use turns too, because a program may send many at once.
        if u64::from(access.turns) + u64::from(access.waiting) >= self.turns_max {
            access.limit_hit.get_or_insert(LimitName::Turns);
            let message = format!("limit `{}` ({}) reached", LimitName::Turns, self.turns_max);
            return Err(ModelError::new(ErrorKind::LimitExceeded, message));
        }
        self.check_leak(access, Side::Prompt, question.texts())?;
        let input = estimated_tokens(question.body().len());
        let most = Usage { input, output: question.output_tokens_max, ..Usage::default() };
        let reserved = access.reserve(most)?;
        access.waiting += 1;
        self.observer.report(Progress::ModelTurn(access.turns + access.waiting));
        Ok(reserved)
    }

    /// Settles the cost, records the exchange, and returns the bytes for the program.
    fn settle(
        &self,
        question: &Question,
        passed: ForwardResult,
        reserved: Option<Spend>,
    ) -> Result<Vec<u8>, ModelError> {
        let mut access = self.access();
        access.waiting -= 1;
        let ForwardResult { exchange, lost, answered, .. } = passed;
        let account = access.model().and_then(Model::account).cloned();
        let new = NewMessages {
            repeated: question.repeated(),
            new: &question.last(),
            account: account.as_ref(),
            agent: None,
        };
        let line = ProviderExchange { sent: &exchange.sent, exchange: &exchange, tries: 1, lost, answered: &answered }
            .line(&self.target, new);
        access.is_estimated |= lost != Usage::default() || answered.as_ref().is_ok_and(|answer| answer.is_estimated);
        let paid = answered.as_ref().map_or(lost, |answer| answer.usage);
        access.book_paid(paid, reserved);
        // The turn is counted even if the program does not wait for the answer or the answer is refused: the provider was
        // asked.
        access.turns += u32::from(answered.is_ok() || exchange.is_begun);
        let checked = answered.and_then(|answer| {
            self.check_leak(&mut access, Side::Response, answered_texts(&answer))?;
            access.keep_answer(&exchange.sent, &answer, &line);
            access.note_answer(&answer)
        });
        access.conversation.add_line(line);
        match checked {
            Ok(()) => {
                access.succeed();
                Ok(exchange.received)
            }
            Err(error) => {
                access.fail(error.clone());
                Err(error)
            }
        }
    }

    fn check_leak(&self, access: &mut ModelAccess, side: Side, texts: Vec<&str>) -> Result<(), ModelError> {
        let guard = access.model().and_then(Model::guard).cloned();
        access.check_leak(guard.as_ref(), side, || texts, |refusal| self.refusals.record(refusal))
    }
}
