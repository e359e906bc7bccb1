//! The settings of a fleet: who operates it, where its blobs are, and how long its machines may be silent.
//!
//! They are one message of the fleet's stream, signed by the operator's key. `fleet init` writes them once, and nothing
//! changes them. Every other command reads them and refuses those of another operator: otherwise, whoever can write the
//! stream could send the blobs of all machines elsewhere and admit machines of his own.

use crate::fleet::{Fleet, FleetError};
use crate::jetstream::{Publish, RequestError};
use crate::lease::Lease;
use crate::repetition::patiently;
use crate::store_url::StoreUrl;
use glovebox_signing::envelope::{Envelope, PayloadType};
use glovebox_signing::key::{PublicKey, SigningKey};
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use ulid::Ulid;

/// The version of the document.
const SCHEMA_VERSION: u32 = 1;

/// The settings of a fleet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(title = "fleet.json")]
pub struct FleetSettings {
    /// Version of this document.
    schema_version: u32,
    /// A name that no other fleet has. Statements of the operator name it, so that none is valid in another fleet.
    pub id: String,
    /// The operator's public key: `ed25519:` and 32 bytes in base64.
    #[schemars(with = "String")]
    pub operator: PublicKey,
    /// Where the blobs are.
    pub store: StoreUrl,
    /// How long a machine or a driver may be silent before another one does its work, in milliseconds.
    #[serde(rename = "lease_ms")]
    #[schemars(with = "u64", range(min = 3000, max = 300_000))]
    pub lease: Lease,
    /// When the fleet was made.
    #[schemars(with = "String")]
    pub at: Timestamp,
}

impl Fleet {
    /// Returns the settings of the fleet, or records them if it has none. The stream must exist. Without a lease, a new fleet has
    /// the default, and every lease is accepted of one that exists.
    ///
    /// # Errors
    /// The fleet has another operator, another store or another lease, or the servers do not answer.
    pub async fn establish(
        &self,
        operator: &SigningKey,
        store: &StoreUrl,
        lease: Option<Lease>,
    ) -> Result<FleetSettings, FleetError> {
        let public = operator.public();
        let new = FleetSettings {
            schema_version: SCHEMA_VERSION,
            id: Ulid::generate().to_string(),
            operator: public,
            store: store.clone(),
            lease: lease.unwrap_or_default(),
            at: Timestamp::now(),
        };
        let payload = serde_json::to_vec(&new).map_err(|error| self.unreadable(error))?;
        let payload = Envelope::sign(PayloadType::FLEET, &payload, &[operator]).to_line();
        let message = [Publish { subject: self.jetstream.name.settings(), payload: payload.into() }];
        // Only the first settings are stored. A repeated request whose answer was lost finds its own.
        match patiently(self.patience, || self.jetstream.append(&message, Some(0), "settings")).await {
            Ok(_) | Err(RequestError::WrongHead) => {}
            Err(error) => return Err(self.failed(error)),
        }
        let found = self.settings(&public).await?;
        let other = |found: String, what: &str| FleetError::Unsafe {
            found,
            help: format!("name that {what}, or make another fleet: `--fleet {}-2`", self.jetstream.name.stream()),
        };
        if found.store != *store {
            return Err(other(
                format!("the fleet has its blobs at `{}` already, not at `{store}`", found.store),
                "store",
            ));
        }
        if let Some(lease) = lease.filter(|lease| *lease != found.lease) {
            let (is, wanted) = (found.lease.duration(), lease.duration());
            return Err(other(format!("the fleet has a lease of {is:?} already, not of {wanted:?}"), "lease"));
        }
        Ok(found)
    }

    /// Reads the settings of the fleet, and checks that this operator signed them.
    ///
    /// # Errors
    /// There are none, another key signed them, or the servers do not answer.
    pub async fn settings(&self, operator: &PublicKey) -> Result<FleetSettings, FleetError> {
        let name = &self.jetstream.name;
        let subject = name.settings();
        let last = patiently(self.patience, || self.jetstream.last(&subject)).await;
        let last = last.map_err(|error| self.failed(error))?.ok_or_else(|| FleetError::Unsafe {
            found: format!("the fleet `{}` has no settings", name.stream()),
            help: "make them once: `glovebox fleet init`".to_owned(),
        })?;
        let payload = Envelope::open(PayloadType::FLEET, &last.payload, operator)
            .map_err(|reason| FleetError::OtherOperator { fleet: name.stream().to_owned(), reason })?;
        let found: FleetSettings = serde_json::from_slice(&payload).map_err(|error| self.unreadable(error))?;
        match found.schema_version == SCHEMA_VERSION && found.operator == *operator {
            true => Ok(found),
            false => Err(self.unreadable(format!("they have version {}", found.schema_version))),
        }
    }

    fn unreadable(&self, reason: impl std::fmt::Display) -> FleetError {
        FleetError::Unsafe {
            found: format!("the settings of the fleet `{}` cannot be read: {reason}", self.jetstream.name.stream()),
            help: "use the version of glovebox with which the fleet was made".to_owned(),
        }
    }
}
