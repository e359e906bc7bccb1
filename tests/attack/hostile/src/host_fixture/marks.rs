//! The random texts of one fixture: the canary, which must not leak, and the mark, by which the host finds processes
//! and files.

use std::io;

/// A secret text. If it appears inside a sandbox or in an output, a secret has leaked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Canary(String);

impl Canary {
    pub(super) fn new() -> io::Result<Self> {
        Ok(Self(format!("canary-{}", random()?)))
    }

    /// Returns the text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl AsRef<[u8]> for Canary {
    fn as_ref(&self) -> &[u8] {
        self.0.as_bytes()
    }
}

/// A name in the arguments of an attack's processes, by which the host finds them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mark(String);

impl Mark {
    pub(super) fn new() -> io::Result<Self> {
        Ok(Self(format!("glovebox-attack-{}", random()?)))
    }

    /// Creates the mark that another process printed.
    pub fn from_text(text: String) -> Self {
        Self(text)
    }

    /// Returns the name.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the name of files that attacks plant outside of the sandbox.
    pub(super) fn planted(&self) -> String {
        format!("planted-{}", self.0)
    }
}

fn random() -> io::Result<String> {
    let mut bytes = [0_u8; 8];
    let mut filled = 0;
    while filled < bytes.len() {
        filled += rustix::rand::getrandom(&mut bytes[filled..], rustix::rand::GetRandomFlags::empty())?;
    }
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}
