//! What `glovebox init` writes: a look at the project, and from it a pipeline, its settings and rules for git.
//!
//! It reads a few files of the project and runs no program. What the project's files say is never written into a command: a command is
//! one of the texts in this module, and a name of a folder is written only if it is plain.

mod folder;
mod ignored;
mod node;
mod part;
mod pipeline;
mod plain;
mod python;
mod scope;
mod settings;
mod template;

pub use ignored::{IGNORE_FILE_NAME, ignored};
pub use part::Survey;
pub use pipeline::pipeline;
pub use scope::sources;
pub use settings::settings;
pub use template::Template;

#[cfg(test)]
mod tests;
