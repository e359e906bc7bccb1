//! The digest of what is compiled: a component without its own custom sections.
//!
//! A new manifest changes the digest of a component, and not its machine code. Custom sections of the modules and components inside are
//! part of the digest, because the compiler sees them.

use glovebox_record::Digest;

/// Length of the magic number and the version.
const HEADER_BYTES: usize = 8;
/// Id of a custom section.
const CUSTOM: u8 = 0;

/// Returns the digest of all sections but the custom ones of the component itself. For bytes that are no sequence of sections, returns the
/// digest of all bytes.
pub(crate) fn code_digest(bytes: &[u8]) -> Digest {
    digest_of_sections(bytes).unwrap_or_else(|| Digest::hash(bytes))
}

fn digest_of_sections(bytes: &[u8]) -> Option<Digest> {
    let (header, mut rest) = bytes.split_at_checked(HEADER_BYTES)?;
    let mut hasher = blake3::Hasher::new();
    hasher.update(header);
    while let Some(id) = rest.first() {
        let (length, prefix) = length(rest.get(1..)?)?;
        let (section, after) = rest.split_at_checked(1 + prefix + length)?;
        if *id != CUSTOM {
            hasher.update(section);
        }
        rest = after;
    }
    Some(Digest::from_bytes(*hasher.finalize().as_bytes()))
}

/// Reads an unsigned LEB128 number of 32 bits. Returns it with the number of its bytes.
fn length(bytes: &[u8]) -> Option<(usize, usize)> {
    let mut value = 0_u64;
    for (at, byte) in bytes.iter().take(5).enumerate() {
        value |= u64::from(byte & 0x7f) << (7 * at);
        if byte & 0x80 == 0 {
            return usize::try_from(u32::try_from(value).ok()?).ok().map(|value| (value, at + 1));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::inspect::embed;

    const COMPONENT: &str = "(component (core module (func (export \"f\"))))";

    fn component(text: &str) -> Vec<u8> {
        wat::parse_str(text).unwrap()
    }

    fn manifest(version: &str) -> Vec<u8> {
        embed(&component(COMPONENT), &format!(r#"{{"name":"acme.x","version":"{version}"}}"#)).unwrap()
    }

    #[test]
    fn a_manifest_does_not_change_it() {
        let (one, two) = (manifest("1.0.0"), manifest("2.0.0"));
        assert_ne!(Digest::hash(&one), Digest::hash(&two));
        assert_eq!(code_digest(&one), code_digest(&two));
        assert_eq!(code_digest(&one), code_digest(&component(COMPONENT)));
    }

    #[test]
    fn everything_else_changes_it() {
        let other = [
            component("(component (core module (func (export \"g\"))))"),
            component("(component (core module (@custom \"name\" \"x\") (func (export \"f\"))))"),
            component("(component (component (@custom \"x\" \"y\")) (core module (func (export \"f\"))))"),
            component("(component)"),
        ];
        let mut digests: Vec<Digest> = other.iter().map(|bytes| code_digest(bytes)).collect();
        digests.push(code_digest(&component(COMPONENT)));
        let count = digests.len();
        digests.sort_unstable_by_key(ToString::to_string);
        digests.dedup();
        assert_eq!(digests.len(), count);
    }

    #[test]
    fn what_is_no_sequence_of_sections_has_the_digest_of_its_bytes() {
        let whole = manifest("1.0.0");
        for bytes in
            [&b""[..], b"\0asm", &whole[..whole.len() - 1], &[&whole[..8], b"\x01\xff\xff\xff\xff\x7f"].concat()]
        {
            assert_eq!(code_digest(bytes), Digest::hash(bytes));
        }
    }
}
