//! The settings of a human gate.

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
