//! Attestations: what a run proved, as one signed file that is checked without Glovebox's key, its network or its makers.
//!
//! [`statement`] says what is attested: an in-toto statement. [`envelope`] signs it and checks the signature: DSSE with Ed25519.
//! [`signed`] is the statement as it is read. [`keys`] reads the keys, [`folder`] looks at what lies beside the journal, [`compare`] names the first difference between what was attested and what a run's folder says.

pub mod compare;
pub mod envelope;
pub mod folder;
pub mod keys;
pub mod signed;
pub mod statement;
