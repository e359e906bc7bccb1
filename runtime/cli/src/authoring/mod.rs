//! The author's side of a plugin: a project in one of four languages, its `plugin.toml`, and the component that is built from it.
//!
//! The project is the author's own, on the author's machine. Its build command is started like any other program of the author: no
//! sandbox, the author's environment. Nothing here runs a plugin. What a build knows about its source is its provenance.

pub mod component;
pub mod program;
pub mod project_file;
pub mod provenance;
pub mod repository;
pub mod sdk_files;
pub mod template;
