//! The commands, one file each. A command reads its arguments, asks the crates below, prints, and says how it ended.

pub mod apply;
pub mod check;
pub mod compile;
pub mod completions;
pub mod diff;
pub mod doctor;
pub mod explain;
pub mod fmt;
pub mod gc;
pub mod graph;
pub mod help;
pub mod holdout;
pub mod init;
pub mod logs;
pub mod ls;
pub mod man;
pub mod new_plugin;
pub mod plan;
pub mod plugin;
pub mod resume;
pub mod rm;
pub mod run;
pub mod show;
pub mod verify;
pub mod version;
