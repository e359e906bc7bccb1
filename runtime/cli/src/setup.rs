//! What a machine and a project need before the first run: `glovebox init` and `glovebox doctor`, and temporary folders.

pub mod doctor;
pub mod starter;
pub mod temporary_folder;
pub mod trial;
