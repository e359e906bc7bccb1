//! Whether a machine is there: it answers who asks, while it takes work.
//!
//! The answer is signed, with the number of the question, so that nobody else can say it. It decides nothing but for whom the next
//! stage of a branch waits.

use crate::fleet::{Fleet, FleetError};
use crate::jetstream::RequestError;
use crate::roster::Place;
use crate::statement::Role;
use crate::wire::PROTOCOL;
use futures_util::StreamExt as _;
use glovebox_journal::event::MachineId;
use glovebox_record::placement::MachineFacts;
use glovebox_signing::envelope::PayloadType;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;
use ulid::Ulid;

/// How long a machine has to answer.
const ANSWERED_WITHIN: Duration = Duration::from_secs(1);
/// Time between two looks whether a machine still takes work.
const LOOK: Duration = Duration::from_millis(200);

/// What a machine says of itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Presence {
    /// The version of its program.
    pub version: String,
    /// Its tier, its architecture and its labels.
    pub facts: MachineFacts,
    /// True if it drives runs.
    pub drives: bool,
    /// Number of stages that it can make at the same time; 0 if it makes none.
    pub seats: usize,
    /// Number of stages that it makes now.
    pub busy: usize,
}

/// The answer of a machine.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct PresenceAnswer {
    protocol: u32,
    /// The id of the fleet.
    fleet: String,
    machine: MachineId,
    /// What the question contained.
    question: String,
    presence: Presence,
}

/// A machine that says that it is there.
pub struct Present {
    /// Its name.
    pub machine: MachineId,
    /// What it says, without the number of stages that it makes.
    pub presence: Presence,
    /// Number of stages that it makes.
    pub busy: Arc<AtomicUsize>,
    /// Set when it takes no further work. It then says nothing more.
    pub is_draining: Arc<AtomicBool>,
}

impl Fleet {
    /// Says that a machine is there to all who ask, until it drains.
    ///
    /// # Errors
    /// The connection was closed.
    pub async fn say_present(
        &self,
        Present { machine, presence, busy, is_draining }: Present,
    ) -> Result<(), FleetError> {
        let subject = self.jetstream.name.presence(machine.as_str());
        let failed = |error: async_nats::SubscribeError| self.failed(RequestError::NoAnswer(error.to_string()));
        let mut questions = self.client.subscribe(subject).await.map_err(failed)?;
        while !is_draining.load(Ordering::Relaxed) {
            let Ok(question) = tokio::time::timeout(LOOK, questions.next()).await else { continue };
            let Some(question) = question else { return Ok(()) };
            let (Some(reply), Ok(asked)) = (question.reply, String::from_utf8(question.payload.to_vec())) else {
                continue;
            };
            let presence = Presence { busy: busy.load(Ordering::Relaxed), ..presence.clone() };
            let Ok(fleet) = self.id().map(str::to_owned) else { continue };
            let answer =
                PresenceAnswer { protocol: PROTOCOL, fleet, machine: machine.clone(), question: asked, presence };
            let Ok(text) = serde_json::to_vec(&answer) else { continue };
            if let Ok(signed) = self.sign(PayloadType::FLEET_PRESENCE, &text) {
                // Who asked may have given up.
                let _lost = self.client.publish(reply, signed.into()).await;
            }
        }
        Ok(())
    }

    /// Asks whether a machine is there and takes work. `None` if it does not say so within a second.
    pub async fn presence(&self, machine: &MachineId) -> Option<Presence> {
        let question = Ulid::generate().to_string();
        let subject = self.jetstream.name.presence(machine.as_str());
        let answer = self.jetstream.request(subject, question.clone().into(), ANSWERED_WITHIN).await.ok()?;
        let signed = self.open(PayloadType::FLEET_PRESENCE, &answer.payload, Place::now(), &Role::ALL, 0).await.ok()?;
        let found: PresenceAnswer = serde_json::from_slice(&signed.payload).ok()?;
        let is_own = signed.admission.name.as_str() == machine.as_str() && found.machine == *machine;
        let is_asked = found.question == question && self.id().is_ok_and(|id| id == found.fleet);
        (is_own && is_asked && found.protocol == PROTOCOL).then_some(found.presence)
    }
}
