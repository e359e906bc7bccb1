//! A verifier's command that says that the machine failed and not the product (decision infra-failures-are-not-fixed).
//!
//! Only a receipt of a verifier can say so. The verdict stays a failure: nothing passes because of it.

use glovebox_journal::event::{Ending, Receipt, StageFinished};
use glovebox_plan::plan::Binding;
use glovebox_record::{CommandEnding, FailureClass, FailureCode, PrintedClass, Status};

/// Changes the class and the code of the failure if the command that failed last printed `failure_class=infra`. The
/// reason stays.
pub(super) fn classify(fact: &mut StageFinished, binding: &Binding) {
    let is_own = |receipt: &&Receipt| !receipt.passed() && receipt.hook.is_none() && !receipt.subject;
    let last = fact.commands.receipts.iter().rev().find(is_own);
    let is_infra = last.is_some_and(|receipt| {
        receipt.how == CommandEnding::Exited && receipt.printed_class == Some(PrintedClass::Infra)
    });
    let is_verdict = fact.ending == Ending::Returned && fact.outcome.status == Status::Fail && binding.is_verifier();
    let Some(failure) = &mut fact.outcome.failure else { return };
    if is_infra && is_verdict && failure.class == FailureClass::Deterministic {
        (failure.class, failure.code) = (FailureClass::Transient, FailureCode::VERIFY_INFRA);
    }
}
