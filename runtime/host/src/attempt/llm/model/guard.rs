//! Checks each text of a conversation with a model, so that no secret reaches the model or the guest.
//!
//! The guard contains no secret: its caller supplies the search. It checks a text before the text is sent, and returns the secret's
//! place for the record only. Guest and model never get that place.

use std::fmt;
use std::sync::Arc;

/// The place in the secret where a text was found.
type Find = dyn Fn(&str) -> Option<String> + Send + Sync;

/// The same for bytes that are no text, such as an image's.
type FindBytes = dyn Fn(&[u8]) -> Option<String> + Send + Sync;

/// Returns where in the secret a text was found, or none.
#[derive(Clone)]
pub struct TextGuard {
    text: Arc<Find>,
    bytes: Arc<FindBytes>,
}

impl TextGuard {
    /// Makes a guard; `find` is called for every text of a conversation and must not block.
    pub fn new(find: impl Fn(&str) -> Option<String> + Send + Sync + 'static) -> Self {
        let text: Arc<Find> = Arc::new(find);
        let of_bytes = Arc::clone(&text);
        Self { text, bytes: Arc::new(move |bytes| of_bytes(&String::from_utf8_lossy(bytes))) }
    }

    /// Has bytes searched by `find` in the place of the text in them.
    pub fn with_bytes(self, find: impl Fn(&[u8]) -> Option<String> + Send + Sync + 'static) -> Self {
        Self { bytes: Arc::new(find), ..self }
    }

    /// Returns where the first secret of the texts stands, also if it is spread over texts that follow each other.
    pub fn first<'t>(&self, texts: impl IntoIterator<Item = &'t str>) -> Option<String> {
        let texts: Vec<&str> = texts.into_iter().collect();
        (self.text)(&texts.join("\n"))
    }

    /// Returns the same for images.
    pub fn first_of_bytes(&self, all: &[Vec<u8>]) -> Option<String> {
        all.iter().find_map(|bytes| (self.bytes)(bytes))
    }
}

impl fmt::Debug for TextGuard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TextGuard").finish_non_exhaustive()
    }
}
