//! What proves to a registry who asks. It is never printed.

use std::fmt;

/// A text that is never printed.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(pub(crate) String);

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

/// What proves to a registry who asks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Credential {
    /// A user's name and password.
    Password(String, Secret),
    /// A token for the token server, which returns tokens for the registry (`identitytoken`).
    IdentityToken(Secret),
    /// A token for the registry itself (`registrytoken`).
    RegistryToken(Secret),
}
