//! Checks each text of a conversation with a model, so that no hold-out reaches the model or the guest.
//!
//! The guard itself does not contain the hold-outs: its creator supplies the search. A text is checked before it is sent. The place
//! that the search returns is for the record only. The guest and the model never get it.

use std::fmt;
use std::sync::Arc;

/// Searches a text, and returns the place of the hold-out that it contains.
type Find = dyn Fn(&str) -> Option<String> + Send + Sync;

/// As [`Find`], for bytes that are not text, such as those of an image.
type FindBytes = dyn Fn(&[u8]) -> Option<String> + Send + Sync;

/// Searches texts and images of a conversation for hold-outs.
#[derive(Clone)]
pub struct TextGuard {
    text: Arc<Find>,
    bytes: Arc<FindBytes>,
}

impl TextGuard {
    /// Creates a guard. `find` is called for every text of a conversation and must not block.
    pub fn new(find: impl Fn(&str) -> Option<String> + Send + Sync + 'static) -> Self {
        let text: Arc<Find> = Arc::new(find);
        let of_bytes = Arc::clone(&text);
        Self { text, bytes: Arc::new(move |bytes| of_bytes(&String::from_utf8_lossy(bytes))) }
    }

    /// Sets the search for images, which by default are searched as text.
    pub fn with_bytes(self, find: impl Fn(&[u8]) -> Option<String> + Send + Sync + 'static) -> Self {
        Self { bytes: Arc::new(find), ..self }
    }

    /// Returns the place of the first hold-out in these texts. A hold-out is also found if it is split over successive texts.
    pub fn first<'t>(&self, texts: impl IntoIterator<Item = &'t str>) -> Option<String> {
        let texts: Vec<&str> = texts.into_iter().collect();
        (self.text)(&texts.join("\n"))
    }

    /// As [`first`](Self::first), for images.
    pub fn first_of_bytes(&self, all: &[Vec<u8>]) -> Option<String> {
        all.iter().find_map(|bytes| (self.bytes)(bytes))
    }
}

impl fmt::Debug for TextGuard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TextGuard").finish_non_exhaustive()
    }
}
