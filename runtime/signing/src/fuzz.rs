//! Fuzz target of the readers of signatures and lists of revocations, with the properties that must hold for any bytes.
//!
//! Used only by the target in `fuzz/` and by the test below, which reads the stored corpus.

use crate::key::SigningKey;
use crate::plugin::{PluginIdentity, Signatures};
use crate::provenance::ProvenanceFile;
use crate::revocation::{REVOCATIONS_MAX, RevocationList};
use crate::trust::{NamePattern, Trust, TrustedKey};

/// The seed of the key that signed the files of the corpus.
const SEED: [u8; 32] = [1; 32];

/// Reads bytes as the signatures of a plugin, as its provenance, as a list of revocations and as a signed list.
///
/// # Panics
/// Panics if the bytes are accepted as signatures or as provenance of a plugin that the key did not sign, or if a list is longer than its
/// bound.
pub fn signatures(bytes: &[u8]) {
    let Some(key) = SigningKey::from_seed(&SEED) else { return };
    let plugins = vec![NamePattern::All];
    let trusted = TrustedKey { name: "corpus".to_owned(), key: key.public(), plugins, not_after: None };
    let trust = Trust { keys: vec![trusted], ..Trust::default() };
    // The corpus has signatures of `acme.review` 0.1.0 with the bytes `component` only.
    let signed = PluginIdentity::new("acme.review", Some("0.1.0".to_owned()), b"component");
    let _ = trust.check(&signed, Some(bytes));
    for other in [
        PluginIdentity { name: "acme.other".to_owned(), ..signed.clone() },
        PluginIdentity { version: None, ..signed.clone() },
        PluginIdentity::new("acme.review", Some("0.1.0".to_owned()), b"other"),
    ] {
        assert!(trust.check(&other, Some(bytes)).is_err(), "{other:?}");
    }
    if let Ok(read) = Signatures::read(bytes) {
        assert!(read.named_keys().count() <= crate::envelope::SIGNATURES_MAX);
    }
    if let Ok(read) = ProvenanceFile::read(bytes) {
        let provenance = read.provenance();
        assert!(
            provenance
                .is_ok_and(|found| !found.command.is_empty() && !found.output.split('/').any(|part| part == ".."))
        );
        let other = PluginIdentity::new("acme.review", Some("0.1.0".to_owned()), b"other");
        assert!(trust.check_provenance(&other, &read).is_err());
    }
    if let Ok(list) = RevocationList::parse(bytes) {
        assert!(list.iter().count() <= REVOCATIONS_MAX);
        assert_eq!(RevocationList::parse(list.to_json().as_bytes()).ok(), Some(list));
    }
    let _ = RevocationList::parse_signed(bytes, &trust);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_corpus_has_signatures_and_lists_that_are_accepted() {
        let file = |name: &str| {
            let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/corpus/signatures/");
            std::fs::read(format!("{folder}{name}")).unwrap()
        };
        let key = SigningKey::from_seed(&SEED).unwrap().public();
        let plugin = PluginIdentity::new("acme.review", Some("0.1.0".to_owned()), b"component");
        for name in ["one", "two"] {
            assert_eq!(Signatures::read(&file(name)).unwrap().verify(&plugin, [&key]).unwrap(), [0], "{name}");
        }
        let provenance = ProvenanceFile::read(&file("provenance")).unwrap();
        provenance.require_about(&plugin).unwrap();
        assert_eq!(RevocationList::parse(&file("list")).unwrap().iter().count(), 1);
    }

    #[test]
    fn signatures() {
        glovebox_short_run::run("signatures", crate::fuzz::signatures);
    }
}
