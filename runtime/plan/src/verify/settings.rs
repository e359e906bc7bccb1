//! The settings of openTiger (decision verify-contract) in one table: the field of `[verify]`, the environment variable, and
//! the setting.

use super::{Phase, Verify};
use glovebox_record::no_change::NoChange;
use std::fmt;

/// Maximum allowed value of `max_commands`.
const COMMANDS_MAX: u32 = 100;
/// Maximum allowed value of `recovery_attempts` and of `no_change_recovery_attempts`.
const RECOVERY_ATTEMPTS_MAX: u32 = 100;
/// Maximum allowed value of `plan_parse_retries`.
const PLAN_RETRIES_MAX: u32 = 10;
/// Maximum allowed value of `plan_timeout_seconds` and of `reconcile_timeout_seconds`.
const ANSWER_SECONDS_MAX: u32 = 3600;
/// Maximum allowed value of `max_retries`. With -1 the category of the failure decides.
const RETRIES_MAX: i64 = 1000;
/// Maximum allowed value of `repeated_signature_threshold`.
const SIGNATURE_THRESHOLD_MAX: u32 = 100;
/// Maximum allowed value of `cooldown_seconds`: one day.
const COOLDOWN_SECONDS_MAX: u32 = 86_400;

/// A table below `[verify]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// `[verify.planner]`
    Planner,
    /// `[verify.worker]`
    Worker,
    /// `[verify.retry]`
    Retry,
}

impl Part {
    /// Returns the name of the table.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Planner => "planner",
            Self::Worker => "worker",
            Self::Retry => "retry",
        }
    }
}

/// What a setting changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Effect {
    Mode,
    Contract,
    CommandsMax,
    AugmentNonempty,
    SkipInvalid,
    RecoveryAttempts,
    RecoverExplicit,
    PlanTimeout,
    PlanRetries,
    ReconcileTimeout,
    NoChangeAttempts,
    NoChangeConfirm,
    RetriesMax,
    SignatureThreshold,
    Cooldown,
}

/// One setting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Setting {
    /// The table that contains the setting.
    pub part: Part,
    /// The name of the field in that table.
    pub field: &'static str,
    /// The environment variable that has precedence over the field. Empty if there is none.
    pub variable: &'static str,
    effect: Effect,
}

/// Why a value is not accepted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SettingError(String);

impl fmt::Display for SettingError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

const fn setting(part: Part, field: &'static str, variable: &'static str, effect: Effect) -> Setting {
    Setting { part, field, variable, effect }
}

/// All settings.
pub const SETTINGS: &[Setting] = &[
    setting(Part::Planner, "mode", "PLANNER_VERIFY_COMMAND_MODE", Effect::Mode),
    setting(Part::Planner, "contract", "PLANNER_VERIFY_CONTRACT_PATH", Effect::Contract),
    setting(Part::Planner, "max_commands", "PLANNER_VERIFY_MAX_COMMANDS", Effect::CommandsMax),
    setting(Part::Planner, "augment_nonempty", "PLANNER_VERIFY_AUGMENT_NONEMPTY", Effect::AugmentNonempty),
    setting(Part::Planner, "plan_timeout_seconds", "PLANNER_VERIFY_PLAN_TIMEOUT_SECONDS", Effect::PlanTimeout),
    setting(Part::Worker, "mode", "WORKER_AUTO_VERIFY_MODE", Effect::Mode),
    setting(Part::Worker, "contract", "WORKER_VERIFY_CONTRACT_PATH", Effect::Contract),
    setting(Part::Worker, "max_commands", "WORKER_AUTO_VERIFY_MAX_COMMANDS", Effect::CommandsMax),
    setting(Part::Worker, "skip_invalid_auto_command", "WORKER_VERIFY_SKIP_INVALID_AUTO_COMMAND", Effect::SkipInvalid),
    setting(Part::Worker, "recovery_attempts", "WORKER_VERIFY_RECOVERY_ATTEMPTS", Effect::RecoveryAttempts),
    setting(Part::Worker, "recovery_allow_explicit", "WORKER_VERIFY_RECOVERY_ALLOW_EXPLICIT", Effect::RecoverExplicit),
    setting(Part::Worker, "plan_timeout_seconds", "WORKER_VERIFY_PLAN_TIMEOUT_SECONDS", Effect::PlanTimeout),
    setting(Part::Worker, "plan_parse_retries", "WORKER_VERIFY_PLAN_PARSE_RETRIES", Effect::PlanRetries),
    setting(
        Part::Worker,
        "reconcile_timeout_seconds",
        "WORKER_VERIFY_RECONCILE_TIMEOUT_SECONDS",
        Effect::ReconcileTimeout,
    ),
    setting(
        Part::Worker,
        "no_change_recovery_attempts",
        "WORKER_NO_CHANGE_RECOVERY_ATTEMPTS",
        Effect::NoChangeAttempts,
    ),
    setting(Part::Worker, "no_change_confirm_mode", "WORKER_NO_CHANGE_CONFIRM_MODE", Effect::NoChangeConfirm),
    setting(Part::Retry, "max_retries", "FAILED_TASK_MAX_RETRY_COUNT", Effect::RetriesMax),
    setting(
        Part::Retry,
        "repeated_signature_threshold",
        "FAILED_TASK_REPEATED_SIGNATURE_THRESHOLD",
        Effect::SignatureThreshold,
    ),
    setting(Part::Retry, "cooldown_seconds", "", Effect::Cooldown),
];

impl Setting {
    /// Returns the setting of a field.
    pub fn of_field(part: Part, field: &str) -> Option<&'static Self> {
        SETTINGS.iter().find(|setting| setting.part == part && setting.field == field)
    }

    /// Sets the value from a text.
    ///
    /// # Errors
    ///
    /// Fails for a value of another form, and says what was expected.
    pub fn apply(&self, verify: &mut Verify, value: &str) -> Result<(), SettingError> {
        let value = value.trim();
        let flag = || match value {
            "true" | "1" => Ok(true),
            "false" | "0" => Ok(false),
            _ => Err(SettingError(format!("`{value}` is neither `true` nor `false`"))),
        };
        let whole = |least: i64, most: i64| {
            let number = value.parse().ok().filter(|number| (least..=most).contains(number));
            number.ok_or_else(|| SettingError(format!("`{value}` is not a number from {least} to {most}")))
        };
        let number = |least: u32, most: u32| {
            whole(least.into(), most.into()).map(|number| u32::try_from(number).unwrap_or(most))
        };
        match self.effect {
            Effect::Mode => {
                let mode =
                    value.parse().map_err(|unknown| SettingError(format!("`{value}` is not a mode, {unknown}")))?;
                self.phase(verify).mode = mode;
            }
            Effect::Contract => self.phase(verify).contract_path = Some(contract_path(value)?),
            Effect::CommandsMax => self.phase(verify).commands_max = number(1, COMMANDS_MAX)? as usize,
            Effect::AugmentNonempty => verify.augment_nonempty = flag()?,
            Effect::SkipInvalid => verify.skips_invalid = flag()?,
            Effect::RecoverExplicit => verify.recovers_explicit = flag()?,
            Effect::RecoveryAttempts => verify.recovery_attempts = number(0, RECOVERY_ATTEMPTS_MAX)?,
            Effect::PlanTimeout => self.phase(verify).plan_timeout_seconds = number(1, ANSWER_SECONDS_MAX)?,
            Effect::PlanRetries => verify.plan_parse_retries = number(0, PLAN_RETRIES_MAX)?,
            Effect::ReconcileTimeout => verify.reconcile_timeout_seconds = number(1, ANSWER_SECONDS_MAX)?,
            Effect::NoChangeAttempts => {
                verify.no_change.get_or_insert_with(NoChange::default).recovery_attempts =
                    number(0, RECOVERY_ATTEMPTS_MAX)?;
            }
            Effect::NoChangeConfirm => {
                let wrong = |unknown| SettingError(format!("`{value}` is not a mode, {unknown}"));
                verify.no_change.get_or_insert_with(NoChange::default).confirm = value.parse().map_err(wrong)?;
            }
            Effect::RetriesMax => verify.retry.max_retries = u32::try_from(whole(-1, RETRIES_MAX)?).ok(),
            Effect::SignatureThreshold => {
                verify.retry.repeated_signature_threshold = Some(number(2, SIGNATURE_THRESHOLD_MAX)?);
            }
            Effect::Cooldown => verify.retry.cooldown_seconds = number(0, COOLDOWN_SECONDS_MAX)?,
        }
        Ok(())
    }

    fn phase<'a>(&self, verify: &'a mut Verify) -> &'a mut Phase {
        match self.part {
            Part::Planner => &mut verify.planner,
            Part::Worker | Part::Retry => &mut verify.worker,
        }
    }
}

/// Checks the path of a file below the project.
pub(crate) fn contract_path(value: &str) -> Result<String, SettingError> {
    let is_inside = !value.is_empty() && !value.starts_with(['/', '~']) && value.split('/').all(|name| name != "..");
    match is_inside && !value.contains('\0') {
        true => Ok(value.to_owned()),
        false => Err(SettingError(format!("`{value}` is not the path of a file below the project"))),
    }
}
