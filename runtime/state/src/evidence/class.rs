//! The exit class of a run: why the process that drove the run ended (decision exit-codes).
//!
//! The class depends on the class and code of the failure, never on the text of a reason. Scripts depend on the codes
//! and names, so they do not change.

use glovebox_journal::event::{RunCanceled, RunFinished, SIGNAL, Verdict};
use glovebox_record::{Failure, FailureClass, FailureCode, FailureFamily};
use serde::ser::SerializeStruct;
use serde::{Serialize, Serializer};

/// How the process that drove a run ends.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum ExitClass {
    /// The run succeeded.
    Ok,
    /// The run failed, and no other class applies.
    RunFailed,
    /// The run reached an exit, but a goal gate is not satisfied, or commands of the verify contract were skipped.
    Unverified,
    /// A limit was reached: steps, turns, wall time, memory, output.
    Budget,
    /// A stage violated its grants.
    Policy,
    /// A plugin trapped or broke its contract.
    Plugin,
    /// A model provider refused permanently, or a script has no more turns.
    Provider,
    /// Retries are used up, or the run has not ended. A resume may succeed.
    #[default]
    Transient,
    /// The run waits for a person.
    Paused,
    /// Glovebox itself failed.
    Internal,
    /// Ctrl-C stopped the run, or a person canceled it.
    Interrupted,
    /// SIGTERM, SIGHUP or SIGQUIT stopped the run.
    Terminated,
}

/// The origin of a request to stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CanceledBy {
    /// The signal SIGTERM, SIGHUP or SIGQUIT.
    Termination,
    /// Ctrl-C, or the SIGINT signal.
    Interrupt,
    /// A person. The run cannot be resumed.
    Person,
}

impl CanceledBy {
    /// Returns the origin that the record of a cancellation names.
    pub fn from_cancel(cancel: &RunCanceled) -> Self {
        match cancel.by.strip_prefix(SIGNAL) {
            None => CanceledBy::Person,
            Some("TERM" | "HUP" | "QUIT") => CanceledBy::Termination,
            Some(_) => CanceledBy::Interrupt,
        }
    }
}

impl ExitClass {
    /// Decides the class of a run that ended.
    pub fn for_run(run: &RunFinished, canceled_by: Option<CanceledBy>) -> Self {
        match (run.status, &run.failure) {
            (Verdict::Success, _) => ExitClass::Ok,
            (Verdict::Fail, None) => ExitClass::RunFailed,
            (Verdict::Fail, Some(failure)) => Self::of_failure(failure, canceled_by),
        }
    }

    fn of_failure(failure: &Failure, canceled_by: Option<CanceledBy>) -> Self {
        match failure.class {
            FailureClass::Canceled if canceled_by == Some(CanceledBy::Termination) => ExitClass::Terminated,
            FailureClass::Canceled => ExitClass::Interrupted,
            FailureClass::Budget => ExitClass::Budget,
            FailureClass::Scope => ExitClass::Policy,
            FailureClass::Transient => ExitClass::Transient,
            _ if failure.code.is_of_model() => ExitClass::Provider,
            FailureClass::Contract => ExitClass::Plugin,
            FailureClass::Internal if failure.code.family() == FailureFamily::Trap => ExitClass::Plugin,
            FailureClass::Internal => ExitClass::Internal,
            FailureClass::Deterministic
                if [FailureCode::GATE_UNSATISFIED, FailureCode::CHECK_DROPPED].contains(&failure.code) =>
            {
                ExitClass::Unverified
            }
            FailureClass::Deterministic => ExitClass::RunFailed,
        }
    }

    /// Returns the process exit code.
    pub const fn code(self) -> u8 {
        match self {
            ExitClass::Ok => 0,
            ExitClass::RunFailed => 1,
            ExitClass::Unverified => 4,
            ExitClass::Budget => 5,
            ExitClass::Policy => 6,
            ExitClass::Plugin => 7,
            ExitClass::Provider => 8,
            ExitClass::Transient => 9,
            ExitClass::Paused => 10,
            ExitClass::Internal => 70,
            ExitClass::Interrupted => 130,
            ExitClass::Terminated => 143,
        }
    }

    /// Returns the stable name, for people and for JSON.
    pub const fn name(self) -> &'static str {
        match self {
            ExitClass::Ok => "ok",
            ExitClass::RunFailed => "run-failed",
            ExitClass::Unverified => "unverified",
            ExitClass::Budget => "budget",
            ExitClass::Policy => "policy",
            ExitClass::Plugin => "plugin",
            ExitClass::Provider => "provider",
            ExitClass::Transient => "transient",
            ExitClass::Paused => "paused",
            ExitClass::Internal => "internal",
            ExitClass::Interrupted => "interrupted",
            ExitClass::Terminated => "terminated",
        }
    }
}

impl Serialize for ExitClass {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut exit = serializer.serialize_struct("ExitClass", 2)?;
        exit.serialize_field("code", &self.code())?;
        exit.serialize_field("name", self.name())?;
        exit.end()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_exit_follows_from_class_and_code_and_never_from_the_reason() {
        for (class, code, by, exit) in [
            (FailureClass::Deterministic, "tool/exit-code", None, ExitClass::RunFailed),
            (FailureClass::Deterministic, "GoalGateUnsatisfied", None, ExitClass::Unverified),
            (FailureClass::Deterministic, "verification/dropped-check", None, ExitClass::Unverified),
            (FailureClass::Deterministic, "script/exhausted", None, ExitClass::Provider),
            (FailureClass::Deterministic, "provider/authentication", None, ExitClass::Provider),
            (FailureClass::Transient, "provider/rate_limit", None, ExitClass::Transient),
            (FailureClass::Budget, "limit/wall_ms", None, ExitClass::Budget),
            (FailureClass::Scope, "scope/write", None, ExitClass::Policy),
            (FailureClass::Contract, "outcome/malformed", None, ExitClass::Plugin),
            (FailureClass::Internal, "trap/unreachable", None, ExitClass::Plugin),
            (FailureClass::Internal, "host/fault", None, ExitClass::Internal),
            (FailureClass::Canceled, "run/canceled", Some(CanceledBy::Person), ExitClass::Interrupted),
            (FailureClass::Canceled, "run/canceled", Some(CanceledBy::Interrupt), ExitClass::Interrupted),
            (FailureClass::Canceled, "run/canceled", Some(CanceledBy::Termination), ExitClass::Terminated),
        ] {
            let failure = Failure::new(class, code, "signal TERM: budget GoalGateUnsatisfied");
            let run = RunFinished {
                status: Verdict::Fail,
                failure: Some(failure),
                exit_node: None,
                resumes_at: None,
                artifact: None,
            };
            assert_eq!(ExitClass::for_run(&run, by), exit, "{code}");
        }
        let run =
            RunFinished { status: Verdict::Fail, failure: None, exit_node: None, resumes_at: None, artifact: None };
        assert_eq!(ExitClass::for_run(&run, None), ExitClass::RunFailed);
    }

    #[test]
    fn no_name_of_a_person_is_taken_for_a_signal() {
        for (name, by) in [
            ("signal INT", "a person named signal INT"),
            ("signal TERM", "a person named signal TERM"),
            ("ATERMAN", "ATERMAN"),
            (" ", "a person"),
        ] {
            let cancel = RunCanceled::by_person(name);
            assert_eq!((cancel.by.as_str(), cancel.is_stop()), (by, false));
            assert_eq!(CanceledBy::from_cancel(&cancel), CanceledBy::Person);
        }
        let by = |by: &str| CanceledBy::from_cancel(&RunCanceled { by: by.to_owned() });
        assert_eq!((by("signal INT"), by("signal TERM")), (CanceledBy::Interrupt, CanceledBy::Termination));
    }
}
