//! The settings of a human gate.

use super::Text;
use glovebox_record::QuestionType;
use std::time::Duration;

/// The settings of a gate on its node.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct GateSettings {
    /// `human.type`: the type of the question.
    pub kind: QuestionType,
    /// `human.default_choice`: the target, key or label of the default choice.
    pub default: Option<Text>,
    /// `human.timeout`. If it is absent, `timeout` applies.
    pub timeout: Option<Duration>,
}
