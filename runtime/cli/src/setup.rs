//! What a machine and a project need before the first run: `glovebox init`, `glovebox doctor`, the files of a new
//! plugin, and temporary folders.

pub mod doctor;
pub mod sdk_files;
pub mod starter;
pub mod temporary_folder;
pub mod trial;
