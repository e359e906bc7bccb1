//! Gates: what a human gate asks, and what the success of a goal gate needs.

use super::Text;
use glovebox_record::QuestionType;
use std::time::Duration;

/// The settings of a gate on its node.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct GateSettings {
    /// `human.type`.
    pub kind: QuestionType,
    /// `human.default_choice`: a target, key or label.
    pub default: Option<Text>,
    /// `human.timeout`; `timeout` applies if it is absent.
    pub timeout: Option<Duration>,
}

/// What the success of a goal gate needs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum GateRequires {
    /// Nothing but itself.
    #[default]
    Success,
    /// A receipt: a verifier's command passed there.
    Receipt,
}

/// The words of `gate_requires`.
pub const GATE_REQUIREMENTS: &[(&str, GateRequires)] =
    &[("success", GateRequires::Success), ("receipt", GateRequires::Receipt)];
