//! The arguments that choose what a run prints and which reports are written.

use clap::Args;
use std::path::{Path, PathBuf};

/// What a run prints.
#[derive(Debug, Args)]
pub struct OutputArguments {
    /// Print the journal's records as they are written, one JSON document per line
    #[arg(long)]
    pub json: bool,
    /// Print only the summary
    #[arg(long, short)]
    pub quiet: bool,
}

/// Reports for other programs, written when the run has ended or pauses.
#[derive(Debug, Default, Args)]
pub struct ReportArguments {
    /// Write the result of each stage as JUnit XML
    #[arg(long, value_name = "FILE")]
    pub junit: Option<PathBuf>,
    /// Write what failed, was refused or is unverified as SARIF 2.1.0
    #[arg(long, value_name = "FILE")]
    pub sarif: Option<PathBuf>,
    /// Append a summary in Markdown; in GitHub Actions `$GITHUB_STEP_SUMMARY`
    #[arg(long, value_name = "FILE")]
    pub job_summary: Option<PathBuf>,
}

impl ReportArguments {
    /// Returns the files to write.
    pub fn files(&self) -> impl Iterator<Item = &Path> {
        [&self.junit, &self.sarif, &self.job_summary].into_iter().flatten().map(PathBuf::as_path)
    }
}
