//! The envelope of everything that is signed: DSSE 1.0 with one or more signatures over type and payload.
//!
//! A signature covers the pre-authentication encoding: `DSSEv1`, then the type and the payload, each after its length. So the
//! same bytes under another type have another signature.

use crate::key::{KeyId, PublicKey, SigningKey};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Maximum number of signatures in an envelope that may have several.
pub const SIGNATURES_MAX: usize = 16;

/// The type of a payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PayloadType(&'static str);

impl PayloadType {
    /// An in-toto statement.
    pub const IN_TOTO: Self = Self("application/vnd.in-toto+json");
    /// A list of revocations.
    pub const REVOCATIONS: Self = Self("application/vnd.glovebox.revocations.v1+json");
    /// The settings of a fleet.
    pub const FLEET: Self = Self("application/vnd.glovebox.fleet.v1+json");
    /// What the operator of a fleet says about one machine.
    pub const FLEET_MACHINE: Self = Self("application/vnd.glovebox.fleet-machine.v1+json");
    /// The header of a frame of a journal.
    pub const FLEET_FRAME: Self = Self("application/vnd.glovebox.fleet-frame.v1+json");
    /// A question of a machine to the driver of a run.
    pub const FLEET_QUESTION: Self = Self("application/vnd.glovebox.fleet-question.v1+json");
    /// A message of a person to a run.
    pub const FLEET_MESSAGE: Self = Self("application/vnd.glovebox.fleet-message.v1+json");
    /// The result of an attempt.
    pub const FLEET_RESULT: Self = Self("application/vnd.glovebox.fleet-result.v1+json");

    /// A line of the exchanges of an attempt with its model.
    pub const FLEET_EXCHANGE: Self = Self("application/vnd.glovebox.fleet-exchange.v1+json");

    /// The answer of the driver of a run to a machine.
    pub const FLEET_ANSWER: Self = Self("application/vnd.glovebox.fleet-answer.v1+json");
    /// What a machine of a fleet says of itself.
    pub const FLEET_PRESENCE: Self = Self("application/vnd.glovebox.fleet-presence.v1+json");

    /// Signs a payload for a place that is no envelope. Returns the signature in base64.
    pub fn sign(self, payload: &[u8], key: &SigningKey) -> String {
        STANDARD.encode(key.sign(&encoded(self, payload)))
    }

    /// Returns true if this is a signature of the key over a payload of this type, in base64.
    pub fn has_signed(self, payload: &[u8], key: &PublicKey, signature: &str) -> bool {
        STANDARD.decode(signature).is_ok_and(|signature| key.has_signed(&encoded(self, payload), &signature))
    }
}

impl fmt::Display for PayloadType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

/// A signed document: an attestation of a run, the signatures of a plugin, a list of revocations, or a document of a fleet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(title = "attestation.json")]
pub struct Envelope {
    /// `application/vnd.in-toto+json` for a statement, `application/vnd.glovebox.revocations.v1+json` for a list of
    /// revocations, `application/vnd.glovebox.fleet.v1+json` for the settings of a fleet, and
    /// `application/vnd.glovebox.fleet-machine.v1+json` for a statement about a machine of a fleet.
    payload_type: String,
    /// The signed document in base64.
    payload: String,
    /// The signatures. An attestation has exactly one, other documents have up to 16.
    signatures: Vec<Signature>,
}

/// A signature over type and payload.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Signature {
    /// Id of the key: `sha256:` and the digest of the key's DER form.
    keyid: String,
    /// The signature in base64.
    sig: String,
}

/// Why an envelope is not valid.
#[derive(Debug, thiserror::Error)]
pub enum Broken {
    /// The file is not JSON of this form.
    #[error("it is not a signed document: {0}")]
    Form(#[from] serde_json::Error),
    /// The document has another type.
    #[error("its payload is `{found}`, not `{expected}`")]
    Type {
        /// The type in the envelope.
        found: String,
        /// The type that was expected.
        expected: PayloadType,
    },
    /// The payload or a signature is not base64.
    #[error("its {0} is not base64")]
    Base64(&'static str),
    /// The number of signatures is wrong.
    #[error("it has {found} signatures, expected {expected}")]
    Count {
        /// The number of signatures.
        found: usize,
        /// The numbers that are expected.
        expected: &'static str,
    },
    /// Two signatures name the same key.
    #[error("two of its signatures name the key {0}")]
    Twice(String),
    /// The envelope names another key than the given one.
    #[error("it names {0} as the key that signed it, not the given key {1}")]
    OtherKey(String, KeyId),
    /// A signature does not match the payload and the key that it names.
    #[error("it was changed after it was signed, or another key than {0} signed it")]
    Changed(KeyId),
}

impl Envelope {
    /// Signs a payload with each key.
    pub fn sign(payload_type: PayloadType, payload: &[u8], keys: &[&SigningKey]) -> Self {
        let bytes = encoded(payload_type, payload);
        let sign = |key: &&SigningKey| Signature {
            keyid: key.public().id().to_string(),
            sig: STANDARD.encode(key.sign(&bytes)),
        };
        Self {
            payload_type: payload_type.to_string(),
            payload: STANDARD.encode(payload),
            signatures: keys.iter().map(sign).collect(),
        }
    }

    /// Returns the envelope as it is written: one line of JSON.
    pub fn to_line(&self) -> String {
        serde_json::to_string(self).expect("an envelope holds texts only") + "\n"
    }

    /// Reads an envelope with exactly one signature, and returns its payload if the key signed it.
    pub fn open(payload_type: PayloadType, bytes: &[u8], key: &PublicKey) -> Result<Vec<u8>, Broken> {
        let found: Self = serde_json::from_slice(bytes)?;
        let [signature] = &found.signatures[..] else {
            return Err(Broken::Count { found: found.signatures.len(), expected: "1" });
        };
        if signature.keyid != key.id().to_string() {
            return Err(Broken::OtherKey(signature.keyid.clone(), key.id()));
        }
        let payload = found.payload(payload_type)?;
        signature.check(&encoded(payload_type, &payload), key)?;
        Ok(payload)
    }

    /// Reads an envelope with 1 to 16 signatures of different keys. Checks no signature.
    pub fn read(payload_type: PayloadType, bytes: &[u8]) -> Result<UncheckedPayload, Broken> {
        let found: Self = serde_json::from_slice(bytes)?;
        let payload = found.payload(payload_type)?;
        if !(1..=SIGNATURES_MAX).contains(&found.signatures.len()) {
            return Err(Broken::Count { found: found.signatures.len(), expected: "1 to 16" });
        }
        for (at, one) in found.signatures.iter().enumerate() {
            if found.signatures[..at].iter().any(|other| other.keyid == one.keyid) {
                return Err(Broken::Twice(one.keyid.clone()));
            }
        }
        Ok(UncheckedPayload { encoded: encoded(payload_type, &payload), payload, signatures: found.signatures })
    }

    fn payload(&self, expected: PayloadType) -> Result<Vec<u8>, Broken> {
        if self.payload_type != expected.0 {
            return Err(Broken::Type { found: self.payload_type.clone(), expected });
        }
        STANDARD.decode(&self.payload).map_err(|_| Broken::Base64("payload"))
    }
}

impl Signature {
    fn check(&self, encoded: &[u8], key: &PublicKey) -> Result<(), Broken> {
        let signature = STANDARD.decode(&self.sig).map_err(|_| Broken::Base64("signature"))?;
        if key.has_signed(encoded, &signature) { Ok(()) } else { Err(Broken::Changed(key.id())) }
    }
}

/// A payload whose signatures were not checked. Nobody can read it before.
#[derive(Debug, Clone)]
pub struct UncheckedPayload {
    encoded: Vec<u8>,
    payload: Vec<u8>,
    signatures: Vec<Signature>,
}

impl UncheckedPayload {
    /// Returns the ids of the keys that the signatures name, in their order. Anyone can write any id.
    pub fn named_keys(&self) -> impl Iterator<Item = &str> {
        self.signatures.iter().map(|signature| signature.keyid.as_str())
    }

    /// Checks each signature that names one of these keys, and returns the payload with the positions of the keys that signed
    /// it, lowest first. A wrong signature of a given key is an error even if another key signed the payload. Signatures of
    /// other keys are not checked.
    pub fn verify<'k>(&self, keys: impl IntoIterator<Item = &'k PublicKey>) -> Result<(&[u8], Vec<usize>), Broken> {
        let mut signed = Vec::new();
        for (at, key) in keys.into_iter().enumerate() {
            let id = key.id().to_string();
            if let Some(signature) = self.signatures.iter().find(|signature| signature.keyid == id) {
                signature.check(&self.encoded, key)?;
                signed.push(at);
            }
        }
        Ok((&self.payload, signed))
    }
}

/// Returns the pre-authentication encoding of a payload.
fn encoded(payload_type: PayloadType, payload: &[u8]) -> Vec<u8> {
    let head = format!("DSSEv1 {} {payload_type} {} ", payload_type.0.len(), payload.len());
    [head.as_bytes(), payload].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TYPE: PayloadType = PayloadType::IN_TOTO;

    fn key(seed: u8) -> SigningKey {
        SigningKey::from_seed(&[seed; 32]).unwrap()
    }

    #[test]
    fn a_flipped_bit_of_any_byte_is_found() {
        let key = key(7);
        let text = Envelope::sign(TYPE, b"{\"_type\":\"x\"}", &[&key]).to_line().into_bytes();
        assert_eq!(Envelope::open(TYPE, &text, &key.public()).unwrap(), b"{\"_type\":\"x\"}");
        let verifies = |text: &[u8]| {
            let read = Envelope::read(TYPE, text).ok();
            read.is_some_and(|read| read.verify([&key.public()]).is_ok_and(|(_, signed)| signed == [0]))
        };
        assert!(verifies(&text));
        for at in 0..text.len() {
            for bit in 0..8 {
                let mut changed = text.clone();
                changed[at] ^= 1 << bit;
                // The line break at the end may become another kind of white space.
                let is_blank = at + 1 == text.len() && changed[at].is_ascii_whitespace();
                assert_eq!(Envelope::open(TYPE, &changed, &key.public()).is_ok(), is_blank, "bit {bit} of byte {at}");
                assert_eq!(verifies(&changed), is_blank, "bit {bit} of byte {at}");
            }
        }
    }

    #[test]
    fn what_is_signed_has_the_lengths_of_type_and_payload() {
        assert_eq!(encoded(TYPE, b"hello"), b"DSSEv1 28 application/vnd.in-toto+json 5 hello");
    }

    #[test]
    fn a_signature_without_an_envelope_is_of_one_type() {
        let (key, other) = (key(7), key(8));
        let signature = PayloadType::FLEET_FRAME.sign(b"{}", &key);
        let is_valid = |kind: PayloadType, payload: &[u8], key: &SigningKey, signature: &str| {
            kind.has_signed(payload, &key.public(), signature)
        };
        assert!(is_valid(PayloadType::FLEET_FRAME, b"{}", &key, &signature));
        assert!(!is_valid(PayloadType::FLEET_RESULT, b"{}", &key, &signature));
        assert!(!is_valid(PayloadType::FLEET_FRAME, b"{ }", &key, &signature));
        assert!(!is_valid(PayloadType::FLEET_FRAME, b"{}", &other, &signature));
        assert!(!is_valid(PayloadType::FLEET_FRAME, b"{}", &key, "?"));
    }

    #[test]
    fn an_attestation_has_one_signature() {
        let key = key(7);
        let one = Envelope::sign(TYPE, b"{}", &[&key]);
        for count in [0, 2] {
            let signatures = std::iter::repeat_n(one.signatures[0].clone(), count).collect();
            let text = Envelope { signatures, ..one.clone() }.to_line();
            let refused = Envelope::open(TYPE, text.as_bytes(), &key.public());
            assert!(matches!(refused, Err(Broken::Count { .. })), "{count}");
        }
    }

    #[test]
    fn several_signatures_are_checked_one_by_one() {
        let keys: Vec<SigningKey> = (1..=17).map(key).collect();
        let keys: Vec<&SigningKey> = keys.iter().collect();
        let read =
            |count: usize| Envelope::read(TYPE, Envelope::sign(TYPE, b"{}", &keys[..count]).to_line().as_bytes());
        assert!(matches!(read(0), Err(Broken::Count { found: 0, .. })));
        assert!(matches!(read(17), Err(Broken::Count { found: 17, .. })));
        let sixteen = read(16).unwrap();
        let public: Vec<PublicKey> = keys.iter().map(|key| key.public()).collect();
        assert_eq!(sixteen.verify(&public).unwrap().1, (0..16).collect::<Vec<_>>());
        assert_eq!(sixteen.verify([&public[16], &public[3]]).unwrap().1, [1]);
        assert_eq!(sixteen.verify([&public[16]]).unwrap().1, [0_usize; 0]);
        let twice = Envelope::sign(TYPE, b"{}", &[keys[0], keys[0]]).to_line();
        assert!(matches!(Envelope::read(TYPE, twice.as_bytes()), Err(Broken::Twice(_))));
        // A wrong signature counts even beside a right one.
        let mut mixed = Envelope::sign(TYPE, b"{}", &[keys[0], keys[1]]);
        mixed.signatures[1].sig = mixed.signatures[0].sig.clone();
        let mixed = Envelope::read(TYPE, mixed.to_line().as_bytes()).unwrap();
        assert!(matches!(mixed.verify(&public[..2]), Err(Broken::Changed(id)) if id == public[1].id()));
        assert_eq!(mixed.verify(&public[..1]).unwrap().1, [0]);
    }

    #[test]
    fn each_part_is_checked_by_itself() {
        let (key, other) = (key(7), key(8));
        let whole = Envelope::sign(TYPE, b"{}", &[&key]);
        let check = |envelope: &Envelope, expected: &str| {
            let refused = Envelope::open(TYPE, envelope.to_line().as_bytes(), &key.public()).unwrap_err();
            assert_eq!(refused.to_string(), expected);
        };
        let (own_id, other_id) = (key.public().id(), other.public().id());
        let named = format!("it names {other_id} as the key that signed it, not the given key {own_id}");
        check(&Envelope::sign(TYPE, b"{}", &[&other]), &named);
        check(
            &Envelope { payload_type: "text/plain".to_owned(), ..whole.clone() },
            "its payload is `text/plain`, not `application/vnd.in-toto+json`",
        );
        check(&Envelope { payload: "?".to_owned(), ..whole.clone() }, "its payload is not base64");
        let with_signature = |sig: String| {
            let signature = Signature { keyid: own_id.to_string(), sig };
            Envelope { signatures: vec![signature], ..whole.clone() }
        };
        check(&with_signature("?".to_owned()), "its signature is not base64");
        let changed = format!("it was changed after it was signed, or another key than {own_id} signed it");
        check(&with_signature(STANDARD.encode(other.sign(&encoded(TYPE, b"{}")))), &changed);
        check(&with_signature(STANDARD.encode(key.sign(b"{}"))), &changed);
        check(&with_signature(STANDARD.encode(key.sign(&encoded(PayloadType::REVOCATIONS, b"{}")))), &changed);
        check(&with_signature(String::new()), &changed);
        check(&Envelope { payload: STANDARD.encode(b"{ }"), ..whole.clone() }, &changed);
        assert_eq!(whole.to_line().lines().count(), 1);
    }
}
