//! What a machine and a project need before the first run: `glovebox init`, `glovebox doctor` and the files of a new
//! plugin.

pub mod doctor;
pub mod sdk_files;
pub mod starter;
pub mod trial;
