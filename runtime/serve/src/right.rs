//! What the bearer of a token may do.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

/// One right.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Right {
    /// To see what stages without hold-outs may learn about a run.
    Builder,
    /// To see runs as a person does, without the output of stages that had hold-outs in reach.
    View,
    /// To see the output of stages that had hold-outs in reach.
    Withheld,
    /// To start a run whose plan the client has seen, named by its digest.
    Start,
    /// To start a run whose plan the client has not seen.
    StartUnseen,
    /// To answer questions, and to cancel, pause, resume, fork and steer runs.
    Operate,
    /// To write the changes of a run to the project.
    Apply,
}

impl Right {
    /// Every right, in the order of the documentation.
    pub const ALL: [Self; 7] =
        [Self::Builder, Self::View, Self::Withheld, Self::Start, Self::StartUnseen, Self::Operate, Self::Apply];

    /// Returns the name in token files and messages.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Builder => "builder",
            Self::View => "view",
            Self::Withheld => "withheld",
            Self::Start => "start",
            Self::StartUnseen => "start-unseen",
            Self::Operate => "operate",
            Self::Apply => "apply",
        }
    }

    /// Returns what a bearer may do, as one sentence without a subject.
    pub fn about(self) -> &'static str {
        match self {
            Self::Builder => "see what stages without hold-outs may learn about a run",
            Self::View => "see runs, without the output of stages that had hold-outs in reach",
            Self::Withheld => "see the output of stages that had hold-outs in reach, and their conversations",
            Self::Start => "start a run whose plan was seen, named by its digest",
            Self::StartUnseen => "start a run from pipeline text without a digest of its plan",
            Self::Operate => "answer questions; cancel, pause, resume, fork and steer runs",
            Self::Apply => "write the changes of a run to the project",
        }
    }
}

impl fmt::Display for Right {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Right {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::ALL.into_iter().find(|right| right.as_str() == text).ok_or_else(|| {
            let known: Vec<&str> = Self::ALL.iter().map(|right| right.as_str()).collect();
            format!("`{text}` is not a right; expected one of {}", known.join(", "))
        })
    }
}

/// A set of rights.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Rights(BTreeSet<Right>);

impl Rights {
    /// Returns every right.
    pub fn all() -> Self {
        Right::ALL.into_iter().collect()
    }

    /// Returns the rights with which the page in a browser begins, of those that the owner has.
    pub fn of_page() -> Self {
        [Right::Builder, Right::View, Right::Start, Right::Operate].into_iter().collect()
    }

    /// Returns true if the set has the right. Whoever may see everything of a kind may also see less of it.
    pub fn has(&self, right: Right) -> bool {
        let stronger: &[Right] = match right {
            Right::Builder => &[Right::Builder, Right::View, Right::Withheld],
            Right::View => &[Right::View, Right::Withheld],
            Right::Start => &[Right::Start, Right::StartUnseen],
            ref only => std::slice::from_ref(only),
        };
        stronger.iter().any(|right| self.0.contains(right))
    }

    /// Returns how much of a run the bearer sees; `None` if nothing.
    pub fn sight(&self) -> Option<Sight> {
        let by_right =
            [(Right::Withheld, Sight::Everything), (Right::View, Sight::Person), (Right::Builder, Sight::Builder)];
        by_right.into_iter().find(|(right, _)| self.0.contains(right)).map(|(_, sight)| sight)
    }

    /// Returns the rights in the order of the documentation.
    pub fn iter(&self) -> impl Iterator<Item = Right> + '_ {
        self.0.iter().copied()
    }

    /// Returns true if there is no right.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl FromIterator<Right> for Rights {
    fn from_iter<T: IntoIterator<Item = Right>>(rights: T) -> Self {
        Self(rights.into_iter().collect())
    }
}

/// How much of a run a client sees.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Sight {
    /// Of a stage with hold-outs in reach: its status. Hints that crossed to builders are in no answer.
    Builder,
    /// Everything but the output and the conversations of stages with hold-outs in reach.
    Person,
    /// Everything that the owner of the run sees.
    Everything,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_right_has_one_name() {
        for right in Right::ALL {
            assert_eq!(right.as_str().parse(), Ok(right));
            assert_eq!(serde_json::to_value(right).unwrap(), right.as_str());
        }
        assert!("all".parse::<Right>().unwrap_err().contains("start-unseen"));
    }

    #[test]
    fn a_right_to_see_more_includes_less() {
        let of = |rights: &[Right]| rights.iter().copied().collect::<Rights>();
        assert!(of(&[Right::Withheld]).has(Right::View) && of(&[Right::View]).has(Right::Builder));
        assert!(!of(&[Right::View]).has(Right::Withheld) && !of(&[Right::Builder]).has(Right::View));
        assert!(of(&[Right::StartUnseen]).has(Right::Start) && !of(&[Right::Start]).has(Right::StartUnseen));
        assert!(!of(&[Right::View, Right::Start]).has(Right::Operate));
        assert!(!Rights::of_page().has(Right::Withheld) && !Rights::of_page().has(Right::Apply));
        assert_eq!(of(&[Right::Apply]).sight(), None);
        assert_eq!(of(&[Right::View, Right::Builder]).sight(), Some(Sight::Person));
    }
}
