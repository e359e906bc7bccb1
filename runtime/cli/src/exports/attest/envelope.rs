//! The envelope of an attestation: DSSE 1.0 with an in-toto payload and one signature over type and payload.
//!
//! The signature covers the pre-authentication encoding: `DSSEv1`, then the type and the payload, each after its
//! length. So the same bytes under another type have another signature.

use super::keys::{PublicKey, SigningKey};
use crate::exit::{Exit, Stop};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The type of every in-toto payload.
const PAYLOAD_TYPE: &str = "application/vnd.in-toto+json";
/// Maximum size of an attestation file, in bytes.
pub const FILE_BYTES_MAX: u64 = 256 << 20;

/// The document that `glovebox attest` writes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(title = "attestation.json")]
pub struct Envelope {
    /// Always `application/vnd.in-toto+json`.
    payload_type: String,
    /// The statement in base64.
    payload: String,
    /// Exactly one signature.
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
    #[error("it is not an attestation: {0}")]
    Form(#[from] serde_json::Error),
    /// The payload is not an in-toto statement.
    #[error("its payload is `{0}`, not `{PAYLOAD_TYPE}`")]
    Type(String),
    /// The payload or the signature is not base64.
    #[error("its {0} is not base64")]
    Base64(&'static str),
    /// The number of signatures is not 1.
    #[error("it has {0} signatures, not 1")]
    Signatures(usize),
    /// The envelope names another key than the given one.
    #[error("it names {0} as the key that signed it, not the given key {1}")]
    OtherKey(String, String),
    /// The signature does not match the payload and the key.
    #[error("it was changed after it was signed, or another key signed it")]
    Signature,
}

impl Envelope {
    /// Signs a payload.
    pub fn sign(payload: &[u8], key: &SigningKey) -> Self {
        let signed = key.sign(&encoded(payload));
        Self {
            payload_type: PAYLOAD_TYPE.to_owned(),
            payload: STANDARD.encode(payload),
            signatures: vec![Signature { keyid: key.public().id(), sig: STANDARD.encode(signed) }],
        }
    }

    /// Returns the envelope as it is written: one line of JSON.
    pub fn line(&self) -> Result<String, Stop> {
        let text = serde_json::to_string(self).map_err(|error| Stop::new(Exit::Internal, error.to_string()))?;
        Ok(text + "\n")
    }

    /// Reads an envelope and returns its payload, if the key signed it.
    pub fn open(bytes: &[u8], key: &PublicKey) -> Result<Vec<u8>, Broken> {
        let found: Self = serde_json::from_slice(bytes)?;
        if found.payload_type != PAYLOAD_TYPE {
            return Err(Broken::Type(found.payload_type));
        }
        let [signature] = <[Signature; 1]>::try_from(found.signatures).map_err(|all| Broken::Signatures(all.len()))?;
        if signature.keyid != key.id() {
            return Err(Broken::OtherKey(signature.keyid, key.id()));
        }
        let payload = STANDARD.decode(&found.payload).map_err(|_| Broken::Base64("payload"))?;
        let signed = STANDARD.decode(&signature.sig).map_err(|_| Broken::Base64("signature"))?;
        if key.has_signed(&encoded(&payload), &signed) { Ok(payload) } else { Err(Broken::Signature) }
    }
}

/// Returns the pre-authentication encoding of a payload.
fn encoded(payload: &[u8]) -> Vec<u8> {
    let head = format!("DSSEv1 {} {PAYLOAD_TYPE} {} ", PAYLOAD_TYPE.len(), payload.len());
    [head.as_bytes(), payload].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flipped_bit_of_any_byte_is_found() {
        let key = SigningKey::of_seed(&[7; 32]).unwrap();
        let text = Envelope::sign(b"{\"_type\":\"x\"}", &key).line().unwrap().into_bytes();
        assert_eq!(Envelope::open(&text, &key.public()).unwrap(), b"{\"_type\":\"x\"}");
        for at in 0..text.len() {
            for bit in 0..8 {
                let mut changed = text.clone();
                changed[at] ^= 1 << bit;
                // The line break at the end may become another kind of white space.
                let is_blank = at + 1 == text.len() && changed[at].is_ascii_whitespace();
                assert_eq!(Envelope::open(&changed, &key.public()).is_ok(), is_blank, "bit {bit} of byte {at}");
            }
        }
    }

    #[test]
    fn what_is_signed_has_the_lengths_of_type_and_payload() {
        assert_eq!(encoded(b"hello"), b"DSSEv1 28 application/vnd.in-toto+json 5 hello");
    }

    #[test]
    fn two_signatures_or_none_are_refused() {
        let key = SigningKey::of_seed(&[7; 32]).unwrap();
        let one = Envelope::sign(b"{}", &key);
        for count in [0, 2] {
            let signatures = std::iter::repeat_n(one.signatures[0].clone(), count).collect();
            let text = Envelope { signatures, ..one.clone() }.line().unwrap();
            assert!(matches!(Envelope::open(text.as_bytes(), &key.public()), Err(Broken::Signatures(_))), "{count}");
        }
    }

    #[test]
    fn each_part_is_checked_by_itself() {
        let key = SigningKey::of_seed(&[7; 32]).unwrap();
        let other = SigningKey::of_seed(&[8; 32]).unwrap();
        let whole = Envelope::sign(b"{}", &key);
        let check = |envelope: &Envelope, expected: &str| {
            let refused = Envelope::open(envelope.line().unwrap().as_bytes(), &key.public()).unwrap_err();
            assert_eq!(refused.to_string(), expected);
        };
        let (own_id, other_id) = (key.public().id(), other.public().id());
        let named = format!("it names {other_id} as the key that signed it, not the given key {own_id}");
        check(&Envelope::sign(b"{}", &other), &named);
        check(
            &Envelope { payload_type: "text/plain".to_owned(), ..whole.clone() },
            "its payload is `text/plain`, not `application/vnd.in-toto+json`",
        );
        check(&Envelope { payload: "?".to_owned(), ..whole.clone() }, "its payload is not base64");
        let with_signature = |sig: String| {
            let signature = Signature { keyid: own_id.clone(), sig };
            Envelope { signatures: vec![signature], ..whole.clone() }
        };
        check(&with_signature("?".to_owned()), "its signature is not base64");
        let changed = "it was changed after it was signed, or another key signed it";
        check(&with_signature(STANDARD.encode(other.sign(&encoded(b"{}")))), changed);
        check(&with_signature(STANDARD.encode(key.sign(b"{}"))), changed);
        check(&with_signature(String::new()), changed);
        check(&Envelope { payload: STANDARD.encode(b"{ }"), ..whole.clone() }, changed);
        assert_eq!(whole.line().unwrap().lines().count(), 1);
    }
}
