//! The questions of a machine to the driver of a run. A question and its answer are signed, and an answer with contents is encrypted in
//! an encrypted run.

use crate::fleet::Fleet;
use crate::jetstream::RequestError;
use crate::roster::Place;
use crate::run_key::{SealedKey, TextKind};
use crate::statement::Role;
use crate::wire::{Answer, AnswerContent, AnswerMessage, Ask, PROTOCOL, Question};
use glovebox_journal::event::{Digest, MachineId, RunId};
use glovebox_journal::ports::PortError;
use glovebox_signing::envelope::PayloadType;

/// The answer of a driver, and the key of the run that came with it.
pub(crate) struct DriverAnswer {
    pub(crate) answer: Answer,
    pub(crate) key: Option<SealedKey>,
}

/// Why a question to a driver has no answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NoAnswer {
    /// Nobody drives the run at the moment.
    NoDriver,
    /// The driver did not answer in time, or the servers did not pass the question on.
    Silence,
}

/// Asks the driver of a run, and waits for the answer for a third of the lease.
pub(crate) async fn ask_driver(
    fleet: &Fleet,
    machine: &MachineId,
    run: &RunId,
    ask: Ask,
) -> Result<DriverAnswer, NoAnswer> {
    let id = fleet.id().map_err(|_| NoAnswer::Silence)?.to_owned();
    let question = Question { protocol: PROTOCOL, fleet: id, run: run.clone(), machine: machine.clone(), ask };
    let text = serde_json::to_vec(&question).map_err(|_| NoAnswer::Silence)?;
    let text = fleet.sign(PayloadType::FLEET_QUESTION, &text).map_err(|_| NoAnswer::Silence)?;
    let (jetstream, wait) = (&fleet.jetstream, fleet.lease.third());
    let asked = Digest::hash(&text);
    let answer = jetstream.request(jetstream.name.questions(run), text.into(), wait).await;
    let answer = answer.map_err(|error| match error {
        RequestError::NoReceiver => NoAnswer::NoDriver,
        _ => NoAnswer::Silence,
    })?;
    read_answer(fleet, run, asked, &answer.payload).await.map_err(|error| {
        tracing::warn!(%run, %error, "an answer about a run does not count");
        NoAnswer::Silence
    })
}

/// Opens the answer to a question, which a machine must have signed that may drive runs.
async fn read_answer(fleet: &Fleet, run: &RunId, asked: Digest, message: &[u8]) -> Result<DriverAnswer, PortError> {
    let corrupt = |found: String| PortError::Corrupt { what: "an answer of a driver".to_owned(), found };
    let at = Place::lately(fleet.lease.third());
    let signed = fleet.open(PayloadType::FLEET_ANSWER, message, at, &[Role::Drive], 0).await?;
    let found = serde_json::from_slice(&signed.payload).map_err(|error| corrupt(error.to_string()))?;
    let AnswerMessage { protocol, fleet: of_fleet, run: of, question, key, content } = found;
    if protocol != PROTOCOL || of_fleet != fleet.id()? || of != *run || question != asked {
        return Err(corrupt("it is the answer to another question".to_owned()));
    }
    let text = match content {
        AnswerContent::Answer(answer) => return Ok(DriverAnswer { answer, key }),
        AnswerContent::Encrypted(text) => text,
    };
    let lent = key.as_ref().map(|key| fleet.take_key(run, key)).transpose()?;
    let opened = fleet.keys.unchecked(run).and_then(|key| key.decrypt_text(TextKind::Answer, &text).ok());
    drop(lent);
    let opened = opened.ok_or_else(|| PortError::NoKey { run: run.clone() })?;
    let answer = serde_json::from_slice(&opened).map_err(|error| corrupt(error.to_string()))?;
    Ok(DriverAnswer { answer, key })
}
