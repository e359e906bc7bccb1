//! How many stages proved something.

use super::receipt::Proof;
use super::summary::RunProof;
use glovebox_record::NodeId;
use std::collections::BTreeMap;

/// The numbers of stages by what their last attempts prove. A stage is counted once.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ProofCounts {
    /// Stages with a receipt that proves their success.
    pub proved: usize,
    /// Stages whose receipts prove it with a reservation, such as a subject that was not isolated.
    pub reserved: usize,
    /// Stages that passed without a receipt.
    pub claimed: usize,
    /// Stages whose verifying commands did not pass.
    pub not_proved: usize,
}

impl RunProof {
    /// Counts the stages. Of several commands of a stage the weakest counts.
    pub fn counts(&self) -> ProofCounts {
        let mut weakest: BTreeMap<&NodeId, u8> = BTreeMap::new();
        for evidence in &self.receipts {
            let strength = match evidence.proof() {
                Proof::Verified => 2,
                Proof::VerifiedNotIsolated | Proof::VerifiedWithCaches | Proof::VerifiedWithStartupFiles => 1,
                Proof::NotVerified => 0,
                Proof::Subject | Proof::Hook | Proof::NotTaken | Proof::Ran => continue,
            };
            let known = weakest.entry(&evidence.node).or_insert(strength);
            *known = strength.min(*known);
        }
        let with = |wanted: u8| weakest.values().filter(|strength| **strength == wanted).count();
        ProofCounts { proved: with(2), reserved: with(1), claimed: self.unverified.len(), not_proved: with(0) }
    }
}
