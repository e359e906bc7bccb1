//! The questions of machines to a driver, and the machines that wait for its answers.
//!
//! A driver answers only while it has the lease of its run. One that lost it does not know what has happened since, and its answer
//! would end an attempt that the next driver waits for. A machine without an answer asks again.

use crate::eligibility::MAKERS;
use crate::fleet::Fleet;
use crate::held::LeaseState;
use crate::roster::{Place, Signed};
use crate::run_key::{RunKey, SealedKey, TextKind};
use crate::wire::{Answer, AnswerContent, AnswerMessage, Ask, Order, PROTOCOL, Question};
use glovebox_journal::event::{Digest, MachineId, NodeId, RunId};
use glovebox_journal::ports::PortError;
use glovebox_signing::envelope::PayloadType;
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// Why a question is not answered with a decision.
pub(crate) enum Unanswered {
    /// The machine may not ask it.
    Refused(String),
    /// The servers do not say whether the machine may ask it.
    Unknown,
}

/// Opens a question about a run: that of a machine which may make attempts, in its own name. Work is given only to a machine about
/// which the servers were asked just now.
pub(crate) async fn question(fleet: &Fleet, run: &RunId, message: &[u8]) -> Result<(Question, Signed), Unanswered> {
    let lately = Place::lately(fleet.lease.third());
    let (mut question, mut signed) = question_at(fleet, run, message, lately).await?;
    if matches!(question.ask, Ask::Claim { .. } | Ask::Made { .. }) {
        (question, signed) = question_at(fleet, run, message, Place::now()).await?;
    }
    Ok((question, signed))
}

async fn question_at(fleet: &Fleet, run: &RunId, message: &[u8], at: Place) -> Result<(Question, Signed), Unanswered> {
    let refused = |reason: &str| Unanswered::Refused(reason.to_owned());
    let signed = fleet.open(PayloadType::FLEET_QUESTION, message, at, MAKERS, 0).await;
    let signed = signed.map_err(|error| match error {
        PortError::Foreign { .. } => refused("the machine is not admitted to make attempts"),
        PortError::Unavailable(_) => Unanswered::Unknown,
        error => Unanswered::Refused(error.to_string()),
    })?;
    let question: Question = serde_json::from_slice(&signed.payload)
        .map_err(|error| Unanswered::Refused(format!("a question of another form: {error}")))?;
    if let Some(reason) = question.other_protocol() {
        return Err(Unanswered::Refused(reason));
    }
    let is_own = fleet.id().is_ok_and(|id| id == question.fleet) && question.run == *run;
    match is_own && question.machine.as_str() == signed.admission.name.as_str() {
        true => Ok((question, signed)),
        false => Err(refused("the question is one about another run, or in the name of another machine")),
    }
}

/// Signs and encrypts the answers of a driver, while it has the lease.
pub(crate) struct AnswerSigner {
    pub(crate) fleet: Fleet,
    pub(crate) run: RunId,
    /// The key of the run, if it is encrypted.
    pub(crate) key: Option<RunKey>,
    pub(crate) lease: Arc<LeaseState>,
}

impl AnswerSigner {
    /// Returns the message with an answer, signed, so that nobody who gets it on the way can change it.
    fn message(&self, question: Digest, answer: &Answer, key: Option<SealedKey>) -> Result<Vec<u8>, PortError> {
        let failed = |error: serde_json::Error| PortError::Unavailable(error.to_string());
        // Only answers with contents are encrypted. A machine that is refused has no key, and must be able to read the reason.
        let is_secret = matches!(answer, Answer::Order(_) | Answer::GoOn { .. } | Answer::Denied(_));
        let content = match self.key.as_ref().filter(|_| is_secret) {
            None => AnswerContent::Answer(answer.clone()),
            Some(key) => {
                let text = serde_json::to_vec(answer).map_err(failed)?;
                AnswerContent::Encrypted(key.encrypt_text(TextKind::Answer, &text))
            }
        };
        let (fleet, run) = (self.fleet.id()?.to_owned(), self.run.clone());
        let message = AnswerMessage { protocol: PROTOCOL, fleet, run, question, key, content };
        self.fleet.sign(PayloadType::FLEET_ANSWER, &serde_json::to_vec(&message).map_err(failed)?)
    }
}

/// A machine that waits for an answer.
pub(crate) struct Caller {
    pub(crate) machine: MachineId,
    /// The key of the run, if it is encrypted and the machine may have it.
    pub(crate) key: Option<SealedKey>,
    pub(crate) pending: PendingAnswer,
}

impl Caller {
    /// Sets the answer if this is dropped.
    pub(crate) fn or(self, otherwise: Answer) -> Self {
        Self { pending: self.pending.or(otherwise), ..self }
    }

    /// Gives the machine an attempt.
    pub(crate) fn order(self, order: &Order) {
        let Self { key, mut pending, .. } = self;
        pending.send_to(&Answer::Order(order.clone()), key);
    }
}

/// A machine that waits for an answer, and the stages that it can make. `None` for all.
pub(crate) type Claimant = (Caller, Option<Arc<BTreeSet<NodeId>>>);

/// An answer that a machine waits for. It is sent at the latest when the value is dropped.
pub(crate) struct PendingAnswer {
    signer: Arc<AnswerSigner>,
    asked: Instant,
    question: Digest,
    /// `None` after the answer.
    subject: Option<async_nats::Subject>,
    /// The answer if this is dropped.
    otherwise: Answer,
}

impl PendingAnswer {
    /// Creates the answer to a question that arrived now. It is [`Answer::NotNeeded`] if no other one is given.
    pub(crate) fn new(signer: &Arc<AnswerSigner>, message: &async_nats::Message) -> Self {
        let (subject, question) = (message.reply.clone(), Digest::hash(&message.payload));
        Self { signer: Arc::clone(signer), asked: Instant::now(), question, subject, otherwise: Answer::NotNeeded }
    }

    /// Sets the answer if this is dropped.
    pub(crate) fn or(mut self, otherwise: Answer) -> Self {
        self.otherwise = otherwise;
        self
    }

    /// Returns the digest of the question.
    pub(crate) fn question(&self) -> Digest {
        self.question
    }

    /// Returns true if the machine still waits when it waits this long.
    pub(crate) fn is_awaited(&self, wait: Duration) -> bool {
        self.asked.elapsed() < wait
    }

    /// Gives no answer. The machine asks again.
    pub(crate) fn withhold(mut self) {
        self.subject = None;
    }

    pub(crate) fn send(mut self, answer: &Answer) {
        self.send_to(answer, None);
    }

    fn send_to(&mut self, answer: &Answer, key: Option<SealedKey>) {
        let Some(subject) = self.subject.take().filter(|_| self.signer.lease.is_held()) else { return };
        let Ok(text) = self.signer.message(self.question, answer, key) else { return };
        let client = self.signer.fleet.client.clone();
        // An answer that is lost is asked for again.
        tokio::spawn(async move { client.publish(subject, text.into()).await });
    }
}

impl Drop for PendingAnswer {
    fn drop(&mut self) {
        let otherwise = self.otherwise.clone();
        self.send_to(&otherwise, None);
    }
}

/// Locks a mutex, also after a panic of another thread.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
