//! SHA-256 digests, which name manifests and blobs in a registry. Plugins are named by BLAKE3 everywhere else.

use sha2::{Digest as _, Sha256};
use std::fmt;
use std::str::FromStr;

/// SHA-256 digest of some bytes. The text form is `sha256:` and 64 lower-case hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Sha256Digest([u8; 32]);

/// The error for a text that is not a digest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("expected `sha256:` and 64 lower-case hexadecimal digits")]
pub struct Sha256Error;

impl Sha256Digest {
    /// Computes the digest of some bytes.
    pub fn hash(bytes: &[u8]) -> Self {
        Self(Sha256::digest(bytes).into())
    }

    /// Returns the 64 hexadecimal digits without the prefix.
    pub fn hex(&self) -> String {
        self.0.iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

impl FromStr for Sha256Digest {
    type Err = Sha256Error;

    fn from_str(text: &str) -> Result<Self, Sha256Error> {
        let digits = text.strip_prefix("sha256:").ok_or(Sha256Error)?.as_bytes();
        let value = |digit: u8| match digit {
            b'0'..=b'9' => Ok(digit - b'0'),
            b'a'..=b'f' => Ok(digit - b'a' + 10),
            _ => Err(Sha256Error),
        };
        let (pairs, []) = digits.as_chunks::<2>() else { return Err(Sha256Error) };
        let bytes: Vec<u8> = pairs
            .iter()
            .map(|[high, low]| Ok(value(*high)? << 4 | value(*low)?))
            .collect::<Result<_, Sha256Error>>()?;
        bytes.try_into().map(Self).map_err(|_| Sha256Error)
    }
}

impl fmt::Display for Sha256Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "sha256:{}", self.hex())
    }
}

impl fmt::Debug for Sha256Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_digest_has_one_spelling() {
        let empty = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        assert_eq!(Sha256Digest::hash(b"").to_string(), empty);
        assert_eq!(empty.parse(), Ok(Sha256Digest::hash(b"")));
        for wrong in
            ["", "sha256:", &empty[7..], &empty[..70], &empty.to_uppercase(), "sha512:00", &format!("{empty}00")]
        {
            assert_eq!(wrong.parse::<Sha256Digest>(), Err(Sha256Error), "{wrong}");
        }
    }
}
