//! Exports of a run: a git branch, reports for CI services, and a signed attestation.

pub mod attest;
pub mod git_branch;
pub mod reports;
