//! The files that `glovebox init` writes for a project: a pipeline, settings and a `.gitignore`.

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
