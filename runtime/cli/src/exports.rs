//! Exports of a run: a git branch, reports for CI services, a signed attestation, and telemetry.

pub mod attest;
pub mod git_branch;
pub mod otlp;
pub mod reports;
