//! Pictures: the result of `read_file` for a picture file.
//!
//! A picture is recognized by its first bytes and not by its name. The host checks the picture again, so a mistake here can only lead
//! to a refusal.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use glovebox_plugin_sdk::llm::{Message, Part};
use std::fmt::Display;

/// Maximum size of one picture, and of all pictures of a conversation, in bytes. The host has the same limits.
pub(crate) const PICTURE_BYTES_MAX: usize = 3_932_160;
const ALL_BYTES_MAX: usize = 10 << 20;
/// Maximum number of pictures of a conversation.
const PICTURES_MAX: usize = 20;
/// Maximum width and height, in pixels. For a larger picture, the strictest provider refuses the whole conversation.
const SIDE_MAX: u32 = 8_000;
/// Size of a picture in a compaction, as a number of bytes of text.
pub(crate) const PICTURE_WEIGHT: usize = 6_400;

/// Kind of a message part with a picture.
pub(crate) const IMAGE: &str = "image";
const DATA: &str = "data";

/// A picture that was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Picture {
    media_type: &'static str,
    /// Width and height, if they are at a fixed position in the file.
    size: Option<(u32, u32)>,
    bytes: Vec<u8>,
}

impl Picture {
    /// Creates a picture from its bytes. Returns the bytes if they are not a picture.
    pub(crate) fn from_bytes(bytes: Vec<u8>) -> Result<Self, Vec<u8>> {
        match kind_of(&bytes) {
            Some(media_type) => Ok(Self { media_type, size: size_of(media_type, &bytes), bytes }),
            None => Err(bytes),
        }
    }

    /// Returns one line that describes the picture.
    ///
    /// # Errors
    /// The picture is too large or incomplete. A provider would refuse the whole conversation because of it.
    pub(crate) fn line(&self, path: impl Display) -> Result<String, String> {
        let (media_type, bytes) = (self.media_type, self.bytes.len());
        if bytes > PICTURE_BYTES_MAX {
            return Err(format!(
                "`{path}` is a picture ({media_type}) of {bytes} bytes, more than the {PICTURE_BYTES_MAX} that can be shown; make a \
                 smaller copy of it and read that"
            ));
        }
        if !self.is_whole() {
            return Err(format!(
                "`{path}` begins like a picture ({media_type}), but a part of it is missing; it cannot be shown"
            ));
        }
        if let Some((width, height)) = self.size.filter(|(width, height)| ![*width, *height].iter().all(is_side)) {
            return Err(format!(
                "`{path}` is a picture ({media_type}) of {width} x {height}, but each side must have 1 to {SIDE_MAX} pixels; make a \
                 smaller copy of it and read that"
            ));
        }
        let size = self.size.map(|(width, height)| format!(", {width} x {height}")).unwrap_or_default();
        Ok(format!("`{path}`: {media_type}, {bytes} bytes{size}"))
    }

    /// Returns true if the picture is complete. Bytes after its end are ignored.
    fn is_whole(&self) -> bool {
        match (self.media_type, &*self.bytes) {
            ("image/png", bytes) => ends_with_iend(bytes),
            ("image/jpeg", bytes) => bytes.windows(2).any(|pair| pair == [0xff, 0xd9]),
            ("image/gif", bytes) => bytes.len() > 13 && bytes.contains(&0x3b),
            (_, [_, _, _, _, a, b, c, d, ..]) => {
                let length = u32::from_le_bytes([*a, *b, *c, *d]);
                length > 4 && self.bytes.len() as u64 >= u64::from(length) + 8
            }
            _ => false,
        }
    }

    /// Checks that a conversation has room for the picture.
    ///
    /// # Errors
    /// The error text is a sentence for the model.
    pub(crate) fn fits<'p>(&self, parts: impl Iterator<Item = &'p Part>) -> Result<(), String> {
        let lengths: Vec<usize> = parts.filter(|part| part.kind == IMAGE).map(length).collect();
        let bytes = lengths.iter().sum::<usize>() + self.bytes.len();
        if lengths.len() < PICTURES_MAX && bytes <= ALL_BYTES_MAX {
            return Ok(());
        }
        Err(format!(
            "this conversation has {} pictures; it can have at most {PICTURES_MAX} pictures and {ALL_BYTES_MAX} bytes of pictures; \
             continue with the pictures that you saw, or make a smaller copy",
            lengths.len()
        ))
    }

    /// Returns the part that shows the picture to the model, for the result of a call.
    pub(crate) fn part(&self, call_id: &str) -> Part {
        let part = Part::new(IMAGE, "").with("call-id", call_id).with("media-type", self.media_type);
        part.with(DATA, STANDARD.encode(&self.bytes))
    }
}

/// Returns the size of the picture in a part, in bytes.
fn length(part: &Part) -> usize {
    part.field(DATA).map_or(0, |data| data.len() / 4 * 3)
}

/// Returns the fields of a part for people: all except the bytes of a picture.
pub(crate) fn fields_shown(part: &Part) -> impl Iterator<Item = &(String, String)> {
    part.fields.iter().filter(|(name, _)| part.kind != IMAGE || name != DATA)
}

/// Returns the number of pictures in messages that belong to a call.
pub(crate) fn pictures_of(messages: &[&Message], call_id: Option<&str>) -> usize {
    let parts = messages.iter().flat_map(|message| &message.parts);
    parts.filter(|part| part.kind == IMAGE && part.field("call-id") == call_id).count()
}

fn kind_of(bytes: &[u8]) -> Option<&'static str> {
    match bytes {
        [0x89, b'P', b'N', b'G', b'\r', b'\n', 0x1a, b'\n', ..] => Some("image/png"),
        [0xff, 0xd8, 0xff, ..] => Some("image/jpeg"),
        [b'G', b'I', b'F', b'8', b'7' | b'9', b'a', ..] => Some("image/gif"),
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => Some("image/webp"),
        _ => None,
    }
}

fn is_side(side: &u32) -> bool {
    (1..=SIDE_MAX).contains(side)
}

/// Returns true if the chunks of a PNG are complete up to the last one.
fn ends_with_iend(bytes: &[u8]) -> bool {
    let mut rest = bytes.get(8..).unwrap_or_default();
    while let [a, b, c, d, kind @ ..] = rest {
        if kind.starts_with(b"IEND") {
            return true;
        }
        let length = u32::from_be_bytes([*a, *b, *c, *d]) as usize;
        // The length, type and checksum of a chunk have four bytes each.
        rest = length.checked_add(12).and_then(|length| rest.get(length..)).unwrap_or_default();
    }
    false
}

fn size_of(media_type: &str, bytes: &[u8]) -> Option<(u32, u32)> {
    match (media_type, bytes) {
        ("image/png", [_, _, _, _, _, _, _, _, _, _, _, _, b'I', b'H', b'D', b'R', a, b, c, d, e, f, g, h, ..]) => {
            Some((u32::from_be_bytes([*a, *b, *c, *d]), u32::from_be_bytes([*e, *f, *g, *h])))
        }
        ("image/gif", [_, _, _, _, _, _, a, b, c, d, ..]) => {
            Some((u16::from_le_bytes([*a, *b]).into(), u16::from_le_bytes([*c, *d]).into()))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PNG: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\x01\x40\0\0\0\xf0\x08\x02\0\0\0....\0\0\0\0IEND....";

    fn picture(bytes: &[u8]) -> Picture {
        Picture::from_bytes(bytes.to_vec()).unwrap()
    }

    #[test]
    fn a_picture_is_one_by_its_bytes() {
        assert_eq!(picture(PNG).line("a.txt").unwrap(), "`a.txt`: image/png, 45 bytes, 320 x 240");
        assert_eq!(picture(b"GIF89a\x02\0\x03\0\0\0\0\x3b").line("a").unwrap(), "`a`: image/gif, 14 bytes, 2 x 3");
        assert_eq!(picture(b"\xff\xd8\xff\xe0\xff\xd9").line("a").unwrap(), "`a`: image/jpeg, 6 bytes");
        assert_eq!(picture(b"RIFF\x08\0\0\0WEBPVP8 ").line("a").unwrap(), "`a`: image/webp, 16 bytes");
        assert_eq!(Picture::from_bytes(b"\x7fELF".to_vec()).unwrap_err(), b"\x7fELF");
    }

    #[test]
    fn a_large_picture_is_a_sentence() {
        let mut bytes = PNG.to_vec();
        bytes.resize(PICTURE_BYTES_MAX, 0);
        assert!(picture(&bytes).line("a.png").is_ok());
        bytes.push(0);
        let said = picture(&bytes).line("a.png").unwrap_err();
        assert!(said.contains("3932161 bytes, more than the 3932160") && said.ends_with("read that"), "{said}");
    }

    /// A provider would refuse the whole conversation because of one incomplete picture.
    #[test]
    fn a_picture_that_is_not_whole_is_a_sentence() {
        let cut = |bytes: &[u8]| picture(bytes).line("a").unwrap_err().contains("but a part of it is missing");
        for length in [8, 12, 20, 33, PNG.len() - 8] {
            assert!(cut(&PNG[..length]), "{length}");
        }
        assert!(cut(b"\xff\xd8\xff\xe0") && cut(b"GIF89a\x02\0\x03\0") && cut(b"RIFF\x09\0\0\0WEBPVP8 "));
        assert!(cut(b"\x89PNG\r\n\x1a\n\xff\xff\xff\xffIHDR") && cut(b"RIFF\0\0\0\0WEBP"));
        let behind = [PNG, b"#!/bin/sh"].concat();
        assert!(picture(&behind).line("a").is_ok());
    }

    #[test]
    fn a_picture_with_too_many_pixels_is_a_sentence() {
        let of_width = |width: u32| picture(&[&PNG[..16], &width.to_be_bytes(), &PNG[20..]].concat()).line("a");
        assert!(of_width(8_000).is_ok());
        for width in [0, 8_001, u32::MAX] {
            let said = of_width(width).unwrap_err();
            assert!(said.contains(&format!("{width} x 240")) && said.contains("1 to 8000"), "{said}");
        }
    }

    #[test]
    fn a_conversation_shows_so_many() {
        let shown = |count: usize, size: usize| {
            let mut bytes = PNG.to_vec();
            bytes.resize(size, 0);
            vec![picture(&bytes).part("1"); count]
        };
        assert!(picture(PNG).fits(shown(19, 45).iter()).is_ok());
        assert!(picture(PNG).fits(shown(20, 45).iter()).unwrap_err().starts_with("this conversation has 20 pictures"));
        assert!(picture(PNG).fits(shown(4, 3 << 20).iter()).is_err());
        assert!(picture(PNG).fits(shown(3, 3 << 20).iter()).is_ok());
    }

    #[test]
    fn a_part_names_its_call() {
        let part = picture(PNG).part("c7");
        assert_eq!((part.field("call-id"), part.field("media-type")), (Some("c7"), Some("image/png")));
        assert_eq!(STANDARD.decode(part.field(DATA).unwrap()).unwrap(), PNG);
        assert_eq!(fields_shown(&part).count(), 2);
    }
}
