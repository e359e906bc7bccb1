//! Projections: the files of the run directory, made from the journal's records.
//!
//! Every file here can be thrown away and made again with the same bytes. Nothing reads them to decide anything.

pub mod files;
pub mod manifest;
pub mod status;
