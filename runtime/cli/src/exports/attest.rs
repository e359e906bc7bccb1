//! Attestations: what a run proved, in one signed file that is checked offline with the public key of its author.
//!
//! [`statement`] builds what is attested: an in-toto statement. [`signed`] is a statement that was read from a file. [`folder`]
//! checks the files next to the journal. [`compare`] finds the first difference between an attestation and a run's folder.

pub mod compare;
pub mod folder;
pub mod signed;
pub mod statement;
