//! Attestations: what a run proved, in one signed file that is checked offline with the public key of its author.
//!
//! [`statement`] builds what is attested: an in-toto statement. [`envelope`] signs it and checks the signature: DSSE
//! with Ed25519. [`signed`] is a statement that was read from a file. [`keys`] reads the keys. [`folder`] checks the
//! files next to the journal. [`compare`] finds the first difference between an attestation and a run's folder.

pub mod compare;
pub mod envelope;
pub mod folder;
pub mod keys;
pub mod signed;
pub mod statement;
