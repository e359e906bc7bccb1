//! What `plugin inspect` shows about a component in addition to its bytes: signatures, provenance and revocations.

use super::provenance::ProvenanceReport;
use super::signature::{SignatureReport, SignatureState};
use super::subject::Subject;
use crate::terminal::rows::Rows;
use crate::terminal::visible;
use glovebox_signing::plugin::Signatures;
use schemars::JsonSchema;
use serde::Serialize;

/// What `plugin inspect` shows about signatures, revocations and provenance.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Standing {
    /// The signatures of the component.
    signature: SignatureReport,
    /// How the component was built, as its builder says.
    provenance: ProvenanceReport,
    /// Why the component may not run; null unless it was revoked.
    revoked: Option<String>,
}

impl Standing {
    /// Looks at the signatures and the provenance of a component, with the keys of the project, and at the revocations.
    pub fn new(subject: &Subject) -> Self {
        let Subject { name, inspection, admission, signatures, provenance, .. } = subject;
        let revoked = admission.revocations.find(name, &inspection.digest).map(|refused| refused.to_string());
        let first = signatures.first().map(Vec::as_slice);
        let signature = match (&admission.trust, first) {
            (_, None) if !subject.asked_for_signatures => SignatureReport::new(SignatureState::NotChecked, None),
            (_, None) => SignatureReport::new(SignatureState::NotSigned, None),
            (Some(trust), Some(_)) if !name.is_empty() => {
                let check = |file: &Vec<u8>| SignatureReport::check(trust, &subject.identity(), Some(file)).0;
                let mut reports: Vec<SignatureReport> = signatures.iter().map(check).collect();
                let counts = reports.iter().position(|report| report.state == SignatureState::Verified);
                reports.swap_remove(counts.unwrap_or_default())
            }
            // Without a key, only damage is seen. A component without a manifest has no name that a key could cover.
            (_, Some(file)) => match Signatures::read(file) {
                Ok(_) => SignatureReport::new(SignatureState::NotChecked, Some(file)),
                Err(fault) => SignatureReport {
                    reason: Some(visible::line(&fault.to_string()).into_owned()),
                    ..SignatureReport::new(SignatureState::Failed, Some(file))
                },
            },
        };
        let provenance = ProvenanceReport::new(provenance, &subject.identity(), admission.trust.as_deref());
        Self { signature, provenance, revoked }
    }

    /// Returns the rows of `plugin inspect`.
    pub fn render(&self) -> String {
        let mut rows = Rows::new(9);
        let SignatureReport { state, signer, reason, named_keys } = &self.signature;
        match (state, signer, reason) {
            (_, Some(signer), _) => rows.row("signed", format_args!("verified: by {signer}")),
            (_, _, Some(reason)) => rows.row("signed", format_args!("failed: {reason}")),
            (SignatureState::NotChecked, ..) => {
                let keys = named_keys.join(", ");
                let named = if keys.is_empty() { String::new() } else { format!("; it names {keys}") };
                rows.row("signed", format_args!("not checked, since no key is trusted here{named}"));
            }
            _ => rows.row("signed", "not signed"),
        }
        self.provenance.add_to(&mut rows);
        self.revoked.iter().for_each(|reason| rows.row("revoked", reason));
        rows.finish()
    }
}
