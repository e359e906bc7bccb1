//! What `glovebox init` writes: a pipeline, its settings and rules for git, from a look at the project.

mod ignored;
mod pipeline;
mod settings;
mod template;

pub use ignored::{IGNORE_FILE_NAME, ignored};
pub use pipeline::pipeline;
pub use settings::settings;
pub use template::Template;

#[cfg(test)]
mod tests;
