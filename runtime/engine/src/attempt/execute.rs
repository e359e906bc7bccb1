//! Decides where an attempt is executed: in the driver's own task, or on a thread.
//!
//! A component that starts no process and asks no provider of models or tools needs no thread, and switching threads costs as much as the
//! rest of a short stage. Such a component runs in the driver's task if it is on the main branch, because nothing else
//! runs then. The guest yields at every tick, so the driver still sees signals and deadlines. A stage that may block
//! for longer than a file access runs on a thread, and so does every stage of another branch.

use super::{AttemptError, Prepared, Workbench, required_tool, revocation};
use crate::assignment::{Assignment, AttemptResult};
use futures_util::FutureExt;
use glovebox_host::call::Call;
use glovebox_host::component::Component;
use glovebox_host::revocation::RevocationCheck;
use glovebox_journal::event::BranchId;
use glovebox_journal::ports::BlobStore;
use glovebox_plan::plan::{Binding, Plan};
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A flag that is set when the future of an attempt is dropped.
#[derive(Default)]
struct CancelOnDrop(Arc<AtomicBool>);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        glovebox_jail::jail::cancel(&self.0);
    }
}

impl<B: BlobStore + 'static> Workbench<B> {
    /// Executes one attempt, in the task that waits for it or on a thread, and returns its result. The driver commits the
    /// result. An attempt whose future is dropped stores nothing more, and [`super::sweep`] removes its folder.
    pub async fn execute(self: &Arc<Self>, assignment: &Assignment) -> Result<AttemptResult, AttemptError> {
        let (node, _) = self.bound(&assignment.stage())?;
        if let Some(held_back) = required_tool::held_back(node, assignment) {
            return self.signed(held_back).map(AttemptResult::from);
        }
        if can_be_in_turn(&self.plan, assignment) {
            return self.execute_in_turn(assignment).await;
        }
        let check = self.revocation_check(assignment)?;
        let given_up = CancelOnDrop::default();
        let (bench, assignment, is_given_up) = (Arc::clone(self), assignment.clone(), Arc::clone(&given_up.0));
        let (attempt, observer) = (assignment.attempt.id.clone(), self.observer(&assignment));
        let (stop, of_call) = (Arc::clone(&assignment.stop), check.clone());
        let made = tokio::task::spawn_blocking(move || bench.execute_here(&assignment, of_call, &is_given_up));
        let made = self.preparing.while_made(&attempt, &observer, made);
        let made = revocation::stop_if_revoked(&check, &self.revocations, &stop, made).await;
        made.map_err(|error| AttemptError::Thread(error.to_string()))?
    }

    fn execute_here(
        &self,
        assignment: &Assignment,
        check: RevocationCheck,
        is_given_up: &AtomicBool,
    ) -> Result<AttemptResult, AttemptError> {
        let Prepared { call, sandbox } = self.prepare(assignment)?;
        let call = Call { revocation: Some(check), ..call };
        let report = self.host.execute_here(self.component(assignment)?, call);
        if is_given_up.load(Ordering::Relaxed) {
            return Err(AttemptError::Thread("the run stopped waiting for the attempt".to_owned()));
        }
        self.finish(assignment, report, sandbox)
    }

    fn component(&self, assignment: &Assignment) -> Result<&Component, AttemptError> {
        let (node, binding) = self.bound(&assignment.stage())?;
        binding.component.loaded().map(Arc::as_ref).ok_or_else(|| AttemptError::unbound(&node.id))
    }

    /// Executes one attempt in the task that waits for it. A panic fails the attempt, as on a thread.
    async fn execute_in_turn(&self, assignment: &Assignment) -> Result<AttemptResult, AttemptError> {
        let made = async {
            let Prepared { call, sandbox } = self.prepare(assignment)?;
            let call = Call { revocation: Some(self.revocation_check(assignment)?), ..call };
            let report = self.host.execute_in_turn(self.component(assignment)?, call).await;
            self.finish(assignment, report, sandbox)
        };
        let made = AssertUnwindSafe(made).catch_unwind().await;
        made.unwrap_or_else(|_| Err(AttemptError::Thread("the attempt panicked".to_owned())))
    }
}

/// Returns true for an attempt on the main branch that starts no process and asks no provider of models or tools. While the main branch executes
/// a stage, no other branch does.
fn can_be_in_turn(plan: &Plan, assignment: &Assignment) -> bool {
    let stage = assignment.stage();
    let waits_for = |binding: &Binding| binding.starts_processes() || !binding.providers.is_empty();
    let is_quiet = plan.binding(&stage).is_some_and(|binding| !waits_for(binding));
    is_quiet && assignment.attempt.task.branch == BranchId::main() && !plan.models.by_node.contains_key(&stage)
}
