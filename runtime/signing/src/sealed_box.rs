//! Sealed boxes: bytes that only the holder of one private key can read.
//!
//! A box is that of libsodium (`crypto_box_seal`): X25519 with a key pair that is made for this box alone, and
//! XSalsa20-Poly1305. Keys of this crate are Ed25519. Their X25519 form is the one of libsodium
//! (`crypto_sign_ed25519_pk_to_curve25519`), so that a machine needs only one key. A box does not say who made it.

use crate::key::{PublicKey, SigningKey};
use crypto_box::aead::OsRng;
use crypto_box::{PublicKey as BoxKey, SecretKey};
use curve25519_dalek::edwards::CompressedEdwardsY;
use ring::digest::{SHA512, digest};
use zeroize::Zeroizing;

/// Bytes that this key cannot read, or a public key for which nothing can be sealed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the key does not open it")]
pub struct NotSealed;

impl PublicKey {
    /// Encrypts bytes for the holder of the private key.
    ///
    /// # Errors
    /// The bytes of the key are not those of a public key.
    pub fn seal(&self, bytes: &[u8]) -> Result<Vec<u8>, NotSealed> {
        let point = CompressedEdwardsY(*self.as_bytes()).decompress().ok_or(NotSealed)?;
        // With such a key, everybody could open the box.
        if point.is_small_order() {
            return Err(NotSealed);
        }
        BoxKey::from_bytes(point.to_montgomery().to_bytes()).seal(&mut OsRng, bytes).map_err(|_| NotSealed)
    }
}

impl SigningKey {
    /// Decrypts what [`PublicKey::seal`] encrypted for this key.
    ///
    /// # Errors
    /// It was sealed for another key, or was changed.
    pub fn unseal(&self, sealed: &[u8]) -> Result<Zeroizing<Vec<u8>>, NotSealed> {
        let hash = digest(&SHA512, self.seed());
        let mut scalar = Zeroizing::new([0; 32]);
        scalar.copy_from_slice(&hash.as_ref()[..32]);
        SecretKey::from_bytes(*scalar).unseal(sealed).map(Zeroizing::new).map_err(|_| NotSealed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(seed: u8) -> SigningKey {
        SigningKey::from_seed(&[seed; 32]).unwrap()
    }

    #[test]
    fn only_the_key_for_which_a_box_was_made_opens_it() {
        let sealed = key(1).public().seal(b"secret").unwrap();
        assert_eq!(key(1).unseal(&sealed).unwrap().as_slice(), b"secret");
        assert_eq!(key(2).unseal(&sealed).unwrap_err(), NotSealed);
        assert_ne!(key(1).public().seal(b"secret").unwrap(), sealed, "two boxes with the same content are equal");
        for at in 0..sealed.len() {
            let mut changed = sealed.clone();
            changed[at] ^= 1;
            assert_eq!(key(1).unseal(&changed).unwrap_err(), NotSealed, "byte {at}");
        }
        assert_eq!(key(1).unseal(&sealed[..sealed.len() - 1]).unwrap_err(), NotSealed);
        assert_eq!(key(1).unseal(b"").unwrap_err(), NotSealed);
    }

    #[test]
    fn a_key_from_a_file_opens_what_was_sealed_for_it() {
        let (made, pem) = SigningKey::generate().unwrap();
        let sealed = made.public().seal(b"secret").unwrap();
        let read = SigningKey::from_pem(pem.as_bytes()).unwrap();
        assert_eq!(read.unseal(&sealed).unwrap().as_slice(), b"secret");
    }

    #[test]
    fn nothing_is_sealed_for_a_key_of_small_order() {
        // The neutral element, and a point of order 8.
        let neutral = "ed25519:AQAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=";
        let eighth = "ed25519:JuiVj8KyJ7BFw/SJ8u+Y8NXfrAXTxjM5sTgCiG1T/AU=";
        for key in [neutral, eighth] {
            assert_eq!(key.parse::<PublicKey>().unwrap().seal(b"secret").unwrap_err(), NotSealed, "{key}");
        }
    }

    #[test]
    fn the_form_of_keys_is_that_of_libsodium() {
        // From libsodium's test `ed25519_convert`: the seed, and its X25519 public key.
        let seed = blake3::Hash::from_hex("421151a459faeade3d247115f94aedae42318124095afabe4d1451a559faedee").unwrap();
        let public = SigningKey::from_seed(seed.as_bytes()).unwrap().public();
        let point = CompressedEdwardsY(*public.as_bytes()).decompress().unwrap().to_montgomery();
        let expected = "f1814f0e8ff1043d8a44d25babff3cedcae6c22c3edaa48f857ae70de2baae50";
        assert_eq!(blake3::Hash::from(point.to_bytes()).to_hex().as_str(), expected);
    }
}
