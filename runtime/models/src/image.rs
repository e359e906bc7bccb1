//! Images in the results of tools: message parts, limits and estimated tokens.
//!
//! In a message with tool results, each image is a separate part after the result to which it belongs. Pixels are not
//! decoded: the type of an image is recognized by its first bytes, and the provider reads the rest.

use crate::chat::{FieldName, IMAGE, TOOL_RESULT};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use glovebox_record::Digest;
use glovebox_record::session::{Message, MessagePart};
use std::borrow::Cow;

/// Maximum size of one image, in bytes. In base64 that is 5 MiB, the lowest limit of all providers.
pub const IMAGE_BYTES_MAX: usize = 3_932_160;
/// Maximum number of images of one conversation.
pub const IMAGES_MAX: usize = 20;
/// Maximum total size of all images of one conversation, in bytes. In base64 that is 13.4 MiB, which leaves room for text within the
/// 16 MiB that a component may pass in one call, and within the 20 MB limit of providers.
pub const IMAGES_BYTES_MAX: usize = 10 << 20;
/// Estimated tokens of an image. Providers count pixels, which are not decoded here.
pub const IMAGE_TOKENS: u64 = 1_600;

/// Fields of a part with an image.
const MEDIA_TYPE: &str = "media-type";
const DATA: &str = "data";
/// Fields that replace the image's bytes in a record.
const BYTES: &str = "bytes";
const DIGEST: &str = "digest";

/// A type of image that every provider accepts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MediaType {
    /// PNG.
    Png,
    /// JPEG.
    Jpeg,
    /// GIF.
    Gif,
    /// WebP.
    Webp,
}

impl MediaType {
    /// Every type.
    pub const ALL: [Self; 4] = [Self::Png, Self::Jpeg, Self::Gif, Self::Webp];

    /// Returns the name in fields and requests.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Png => "image/png",
            Self::Jpeg => "image/jpeg",
            Self::Gif => "image/gif",
            Self::Webp => "image/webp",
        }
    }

    /// Returns the type of an image by its first bytes, or `None` if they are not those of a supported image.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        match bytes {
            [0x89, b'P', b'N', b'G', b'\r', b'\n', 0x1a, b'\n', ..] => Some(Self::Png),
            [0xff, 0xd8, 0xff, ..] => Some(Self::Jpeg),
            [b'G', b'I', b'F', b'8', b'7' | b'9', b'a', ..] => Some(Self::Gif),
            [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => Some(Self::Webp),
            _ => None,
        }
    }
}

/// An image as its message part describes it.
#[derive(Debug, Clone, Copy)]
pub struct Image<'p> {
    /// Type of the image.
    pub media_type: MediaType,
    /// Bytes of the image in base64.
    pub data: &'p str,
}

impl<'p> Image<'p> {
    /// Reads the image of a part. Returns `None` if the part is not an image of a supported type.
    pub fn from_part(part: &'p MessagePart) -> Option<Self> {
        let field = |wanted| part.fields.iter().find(|(name, _)| name == wanted).map(|(_, value)| value.as_str());
        let media_type = field(MEDIA_TYPE)?;
        let media_type = MediaType::ALL.into_iter().find(|known| known.as_str() == media_type)?;
        (part.kind == IMAGE).then_some(Self { media_type, data: field(DATA)? })
    }

    /// Returns the image as a data URL.
    pub fn data_url(self) -> String {
        format!("data:{};base64,{}", self.media_type.as_str(), self.data)
    }

    /// Decodes the bytes of the image.
    ///
    /// # Errors
    /// The image is too large, the text is not base64, or the bytes have another type than stated.
    pub fn bytes(self) -> Result<Vec<u8>, String> {
        // Apart from padding, four characters stand for three bytes. A text that is too long is not decoded.
        if self.data.len() / 4 * 3 > IMAGE_BYTES_MAX + 2 {
            return Err(too_large(self.data.len() / 4 * 3));
        }
        let bytes = STANDARD.decode(self.data).map_err(|_| "its data is not base64".to_owned())?;
        if bytes.len() > IMAGE_BYTES_MAX {
            return Err(too_large(bytes.len()));
        }
        match MediaType::from_bytes(&bytes) {
            Some(found) if found == self.media_type => Ok(bytes),
            found => {
                let found = found.map_or("of an unknown type", MediaType::as_str);
                Err(format!("it is declared as {}, but its bytes are {found}", self.media_type.as_str()))
            }
        }
    }
}

fn too_large(bytes: usize) -> String {
    format!("it has {bytes} bytes, expected at most {IMAGE_BYTES_MAX}")
}

/// Returns a part for a record: an image is replaced by its size and digest.
pub fn described(part: &MessagePart) -> MessagePart {
    if part.kind != IMAGE {
        return part.to_owned();
    }
    let bytes = Image::from_part(part).and_then(|image| image.bytes().ok()).unwrap_or_default();
    let kept = part.fields.iter().filter(|(name, _)| name != DATA).cloned();
    let told = [(BYTES, bytes.len().to_string()), (DIGEST, Digest::hash(&bytes).to_string())];
    let fields = kept.chain(told.map(|(name, value)| (name.to_owned(), value))).collect();
    MessagePart { kind: part.kind.to_owned(), text: part.text.to_owned(), fields }
}

/// Returns the JSON of a request for a record: the bytes of each image are replaced by their digest.
pub fn without_data<'s>(sent: &'s [u8], messages: &[Message]) -> Cow<'s, [u8]> {
    let parts = messages.iter().flat_map(|message| &message.parts);
    let images = parts.filter_map(|part| Some((Image::from_part(part)?, part)));
    images.fold(Cow::Borrowed(sent), |sent, (image, part)| {
        let text = String::from_utf8_lossy(&sent);
        let digest = described(part).fields.pop().map(|(_, digest)| digest).unwrap_or_default();
        Cow::Owned(text.replace(image.data, &digest).into_bytes())
    })
}

/// Returns a message for the conversation that a later stage continues: images are removed, and the results say so.
pub fn without_images(mut message: Message) -> Message {
    let (images, mut rest): (Vec<_>, Vec<_>) = message.parts.into_iter().partition(|part| part.kind == IMAGE);
    for image in images {
        let id = FieldName::CallId.value_in(&image);
        if let Some(result) =
            rest.iter_mut().find(|part| part.kind == TOOL_RESULT && FieldName::CallId.value_in(part) == id)
        {
            result.text.push_str(NOT_KEPT);
        }
    }
    message.parts = rest;
    message
}

/// Text that is appended to a result whose image was removed.
const NOT_KEPT: &str =
    "\n[The image was shown to the stage that read it, and is not kept. Read the file again to see it.]";

/// Returns the images of a result: the images in the same message that have the id of the same call.
pub(crate) fn images_of<'m>(message: &'m Message, result: &MessagePart) -> impl Iterator<Item = Image<'m>> {
    let id = FieldName::CallId.value_in(result).to_owned();
    message.parts.iter().filter(move |part| FieldName::CallId.value_in(part) == id).filter_map(Image::from_part)
}

/// Checks every image of a conversation and returns their bytes. Types and sizes that a guest states are verified.
///
/// # Errors
/// The problem of the first image that is refused.
pub fn checked_images(messages: &[Message]) -> Result<Vec<Vec<u8>>, String> {
    let (mut images, mut sum) = (Vec::new(), 0);
    for message in messages {
        for part in message.parts.iter().filter(|part| part.kind == IMAGE) {
            let number = images.len() + 1;
            let wrong = |problem: String| format!("image {number} of the request: {problem}");
            if number > IMAGES_MAX {
                return Err(wrong(format!("a conversation has at most {IMAGES_MAX} images")));
            }
            belongs(message, part).map_err(wrong)?;
            let known = MediaType::ALL.map(MediaType::as_str).join(", ");
            let image =
                Image::from_part(part).ok_or_else(|| wrong(format!("it has no data, or a type other than {known}")))?;
            let bytes = image.bytes().map_err(wrong)?;
            sum += bytes.len();
            if sum > IMAGES_BYTES_MAX {
                return Err(wrong(format!("the images have more than {IMAGES_BYTES_MAX} bytes together")));
            }
            images.push(bytes);
        }
    }
    Ok(images)
}

/// Checks that an image belongs to one result in its message. Providers refuse an image of a result that is an error.
fn belongs(message: &Message, image: &MessagePart) -> Result<(), String> {
    let id = FieldName::CallId.value_in(image);
    let mut results = message.parts.iter().filter(|part| part.kind == TOOL_RESULT);
    match results.find(|result| FieldName::CallId.value_in(result) == id) {
        Some(result) if FieldName::IsError.value_in(result) == "true" => {
            Err("it belongs to a tool result that is an error".to_owned())
        }
        Some(_) if message.role == "tool" => Ok(()),
        _ => Err("it does not belong to a tool result in the same message".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PNG: &[u8] = b"\x89PNG\r\n\x1a\n....";

    fn part(kind: &str, fields: &[(&str, &str)]) -> MessagePart {
        let fields = fields.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        MessagePart { kind: kind.to_owned(), text: String::new(), fields }
    }

    fn image(media_type: &str, data: &str) -> MessagePart {
        part(IMAGE, &[("call-id", "1"), (MEDIA_TYPE, media_type), (DATA, data)])
    }

    fn tool(parts: Vec<MessagePart>) -> Message {
        let result = part(TOOL_RESULT, &[("call-id", "1")]);
        Message { role: "tool".to_owned(), parts: std::iter::once(result).chain(parts).collect() }
    }

    fn problem(message: Message) -> String {
        checked_images(&[message]).unwrap_err()
    }

    #[test]
    fn kinds_are_known_by_their_first_bytes() {
        let check = |bytes: &[u8], expected| assert_eq!(MediaType::from_bytes(bytes), expected, "{bytes:?}");
        check(PNG, Some(MediaType::Png));
        check(b"\xff\xd8\xff\xe0", Some(MediaType::Jpeg));
        check(b"GIF87a", Some(MediaType::Gif));
        check(b"GIF89a", Some(MediaType::Gif));
        check(b"RIFF\0\0\0\0WEBPVP8 ", Some(MediaType::Webp));
        for other in [&b""[..], b"\x89PNG", b"GIF88a", b"RIFF\0\0\0\0WAVE", b"<svg", b"%PDF"] {
            check(other, None);
        }
    }

    #[test]
    fn an_image_is_what_it_says() {
        let png = STANDARD.encode(PNG);
        assert_eq!(checked_images(&[tool(vec![image("image/png", &png)])]).unwrap(), [PNG]);
        let wrong = problem(tool(vec![image("image/jpeg", &png)]));
        assert_eq!(wrong, "image 1 of the request: it is declared as image/jpeg, but its bytes are image/png");
        let wrong = problem(tool(vec![image("image/png", &STANDARD.encode("#!/bin/sh"))]));
        assert!(wrong.ends_with("but its bytes are of an unknown type"), "{wrong}");
        assert!(problem(tool(vec![image("image/png", "iVBOR*")])).ends_with("its data is not base64"));
        let unpadded = png.trim_end_matches('=');
        assert_eq!(unpadded.len() < png.len(), checked_images(&[tool(vec![image("image/png", unpadded)])]).is_err());
        assert!(problem(tool(vec![image("image/svg+xml", &png)])).contains("a type other than image/png, image/jpeg"));
        assert!(problem(tool(vec![part(IMAGE, &[("call-id", "1"), (MEDIA_TYPE, "image/png")])])).contains("no data"));
    }

    #[test]
    fn an_image_stands_in_a_result_that_is_no_error() {
        let png = STANDARD.encode(PNG);
        let mut elsewhere = tool(vec![image("image/png", &png)]);
        elsewhere.role = "user".to_owned();
        assert!(problem(elsewhere).ends_with("it does not belong to a tool result in the same message"));
        let other = part(IMAGE, &[("call-id", "2"), (MEDIA_TYPE, "image/png"), (DATA, &png)]);
        assert!(problem(tool(vec![other])).ends_with("it does not belong to a tool result in the same message"));
        let mut failed = tool(vec![image("image/png", &png)]);
        failed.parts[0].fields.push(("is-error".to_owned(), "true".to_owned()));
        assert!(problem(failed).ends_with("it belongs to a tool result that is an error"));
    }

    #[test]
    fn a_record_has_a_digest_in_the_place_of_the_bytes() {
        let data = STANDARD.encode(PNG);
        let message = tool(vec![image("image/png", &data)]);
        let shown = described(&message.parts[1]);
        let field = |name: &str| shown.fields.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str());
        let digest = Digest::hash(PNG).to_string();
        assert_eq!((field(DATA), field(BYTES), field(DIGEST)), (None, Some("12"), Some(digest.as_str())));
        assert_eq!(described(&message.parts[0]), message.parts[0]);
        let sent = format!("{{\"url\":\"data:image/png;base64,{data}\"}}");
        let expected = format!("{{\"url\":\"data:image/png;base64,{digest}\"}}");
        assert_eq!(without_data(sent.as_bytes(), &[message]), expected.as_bytes());
        assert_eq!(without_data(sent.as_bytes(), &[]), sent.as_bytes());
    }

    #[test]
    fn a_conversation_that_goes_on_has_a_sentence_in_the_place_of_an_image() {
        let mut message = tool(vec![image("image/png", &STANDARD.encode(PNG))]);
        message.parts[0].text = "a.png".to_owned();
        let kept = without_images(message);
        assert_eq!(kept.parts.len(), 1);
        assert!(kept.parts[0].text.starts_with("a.png\n[The image was shown"), "{}", kept.parts[0].text);
    }

    #[test]
    fn size_and_number_are_bounded() {
        let of_size = |size: usize| {
            let mut bytes = PNG.to_vec();
            bytes.resize(size, 0);
            image("image/png", &STANDARD.encode(bytes))
        };
        assert!(checked_images(&[tool(vec![of_size(IMAGE_BYTES_MAX)])]).is_ok());
        for size in [IMAGE_BYTES_MAX + 1, IMAGE_BYTES_MAX + 3, 8 << 20] {
            let wrong = problem(tool(vec![of_size(size)]));
            assert!(wrong.contains("expected at most 3932160"), "{wrong}");
        }
        let many = |count: usize, size: usize| tool(vec![of_size(size); count]);
        assert!(checked_images(&[many(IMAGES_MAX, 100)]).is_ok());
        let wrong = problem(many(IMAGES_MAX + 1, 100));
        assert_eq!(wrong, "image 21 of the request: a conversation has at most 20 images");
        assert!(checked_images(&[many(5, 2 << 20)]).is_ok());
        let wrong = problem(many(6, 2 << 20));
        assert!(wrong.starts_with("image 6 of the request: the images have more than"), "{wrong}");
        assert!(checked_images(&[many(IMAGES_MAX, 100), many(1, 100)]).is_err());
    }
}
