//! The kinds of pipelines that `glovebox init` writes.

use clap::ValueEnum;

/// A kind of pipeline.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Template {
    /// Test the project; a model repairs it if a test fails
    Default,
    /// A model builds what the goal says, until the tests pass
    Implement,
    /// As `implement`, and a second model reviews the result
    Review,
    /// Build and test only, without a model
    Check,
}

impl Template {
    /// Every template.
    pub const ALL: [Self; 4] = [Self::Default, Self::Implement, Self::Review, Self::Check];

    /// Returns the name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Default => "default",
            Self::Implement => "implement",
            Self::Review => "review",
            Self::Check => "check",
        }
    }

    /// Returns the purpose of the template in one line.
    pub fn purpose(self) -> &'static str {
        match self {
            Self::Default => "test the project; a model repairs it if a test fails",
            Self::Implement => "a model builds what the goal says, until the tests pass",
            Self::Review => {
                "a model builds what the goal says, until the tests pass, and a second model reviews the result"
            }
            Self::Check => "build and test only, without a model",
        }
    }

    /// Returns true if a model works before the first test.
    pub fn begins_with_model(self) -> bool {
        matches!(self, Self::Implement | Self::Review)
    }
}
