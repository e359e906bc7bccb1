//! Lists of components that were revoked: the list of the user, and lists that a trusted key signed.
//!
//! A list that cannot be read counts as one that revokes everything: otherwise, damaging a list would undo its revocations. The key
//! of a signed list can revoke only components whose names it may sign. Its last day does not matter, because a revocation allows
//! nothing.
//!
//! A list for other people has a number that grows with each change, so that whoever serves it cannot bring back an earlier one.

use crate::envelope::{Broken, Envelope, PayloadType};
use crate::key::SigningKey;
use crate::trust::{NamePattern, Trust};
use glovebox_names::visible::is_deceptive;
use glovebox_record::Digest;
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// Maximum size of a list's file, in bytes.
pub const FILE_BYTES_MAX: u64 = 8 << 20;
/// The media type of a signed list in a registry.
pub const LIST_MEDIA_TYPE: &str = "application/vnd.glovebox.revocations.signed.v1+json";
/// Maximum number of revocations in a list.
pub const REVOCATIONS_MAX: usize = 10_000;
/// Maximum length of a reason, in characters.
pub const REASON_CHARS_MAX: usize = 500;
/// The only version of the list that this program reads and writes.
const SCHEMA_VERSION: u32 = 1;

/// The document of a list of revocations.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(title = "revocations.json")]
pub struct RevocationFile {
    /// Version of this document.
    schema_version: u32,
    /// The number of the list: each later list of the same author has a higher one. Absent in the list of a user.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    sequence: Option<u64>,
    /// The revocations, sorted by digest. At most 10,000.
    revoked: Vec<Revocation>,
}

/// One component that must not run any more.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Revocation {
    /// Digest of the component.
    pub digest: Digest,
    /// Why it was revoked: one line of at most 500 characters.
    pub reason: String,
    /// When it was revoked. It is shown and decides nothing.
    #[schemars(with = "String")]
    pub at: Timestamp,
}

/// Why a list of revocations cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ListFault {
    /// The file is too long.
    #[error("it has more than {FILE_BYTES_MAX} bytes")]
    TooLong,
    /// The file is not JSON of this form.
    #[error("it is not a list of revocations: {0}")]
    Form(#[from] serde_json::Error),
    /// The list has another version.
    #[error("it has version {0}, expected version {SCHEMA_VERSION}")]
    Version(u32),
    /// The list has too many revocations.
    #[error("it has {0} revocations, expected at most {REVOCATIONS_MAX}")]
    TooMany(usize),
    /// The list has a digest twice.
    #[error("it has {0} twice")]
    Twice(Digest),
    /// A reason is empty, too long, or has characters that could deceive a reader.
    #[error("the reason for {0} is not one line of 1 to {REASON_CHARS_MAX} visible characters")]
    Reason(Digest),
    /// The envelope of a signed list is damaged or changed.
    #[error("its signature is not valid: {0}")]
    Broken(#[from] Broken),
    /// The list has no number.
    #[error("it has no `sequence`, so that an earlier list could be brought back")]
    NoSequence,
    /// The list is an earlier one.
    #[error("it is number {found}, and number {known} was fetched before: an earlier list was brought back")]
    Older {
        /// The number of the list.
        found: u64,
        /// The highest number that was seen.
        known: u64,
    },
    /// Two lists have the same number.
    #[error("it is number {0}, and another list with this number was fetched before")]
    TwoLists(u64),
    /// No trusted key signed the list.
    #[error("none of the keys in `[trust]` signed it")]
    UnknownKeys,
}

/// A list of revocations. The default is empty and has no number.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RevocationList {
    revoked: BTreeMap<Digest, Revocation>,
    sequence: Option<u64>,
}

/// A signed list, and the plugins that its keys may revoke.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SignedRevocations {
    /// The list.
    pub list: RevocationList,
    /// The names of the plugins to which it applies.
    pub plugins: Vec<NamePattern>,
}

impl RevocationList {
    /// Reads a list without a signature.
    pub fn parse(bytes: &[u8]) -> Result<Self, ListFault> {
        if bytes.len() as u64 > FILE_BYTES_MAX {
            return Err(ListFault::TooLong);
        }
        let file: RevocationFile = serde_json::from_slice(bytes)?;
        if file.schema_version != SCHEMA_VERSION {
            return Err(ListFault::Version(file.schema_version));
        }
        if file.revoked.len() > REVOCATIONS_MAX {
            return Err(ListFault::TooMany(file.revoked.len()));
        }
        let mut list = Self { sequence: file.sequence, ..Self::default() };
        for revocation in file.revoked {
            if !is_reason(&revocation.reason) {
                return Err(ListFault::Reason(revocation.digest));
            }
            if let Some(twice) = list.revoked.insert(revocation.digest, revocation) {
                return Err(ListFault::Twice(twice.digest));
            }
        }
        Ok(list)
    }

    /// Reads a signed list. Signatures of keys that are not trusted do not count.
    pub fn parse_signed(bytes: &[u8], trust: &Trust) -> Result<SignedRevocations, ListFault> {
        if bytes.len() as u64 > FILE_BYTES_MAX {
            return Err(ListFault::TooLong);
        }
        let read = Envelope::read(PayloadType::REVOCATIONS, bytes)?;
        let (payload, signed) = read.verify(trust.keys.iter().map(|key| &key.key))?;
        if signed.is_empty() {
            return Err(ListFault::UnknownKeys);
        }
        let plugins = signed.into_iter().flat_map(|at| trust.keys[at].plugins.clone()).collect();
        Ok(SignedRevocations { list: Self::parse(payload)?, plugins })
    }

    /// Reads a signed list without a check of its signatures. For a copy whose signatures were checked before it was written.
    ///
    /// # Errors
    ///
    /// The copy is damaged.
    pub fn parse_unchecked(bytes: &[u8]) -> Result<Self, ListFault> {
        if bytes.len() as u64 > FILE_BYTES_MAX {
            return Err(ListFault::TooLong);
        }
        let read = Envelope::read(PayloadType::REVOCATIONS, bytes)?;
        Self::parse(read.verify(std::iter::empty())?.0)
    }

    /// Returns the number of the list. `None` for the list of a user, and for one that was signed without a number.
    pub fn sequence(&self) -> Option<u64> {
        self.sequence
    }

    /// Gives the list the next number, after a change of a list for other people.
    pub fn advance(&mut self) {
        self.sequence = Some(self.sequence.unwrap_or_default().saturating_add(1));
    }

    /// Returns the number of revocations.
    pub fn count(&self) -> usize {
        self.revoked.len()
    }

    /// Refuses this list as the successor of an earlier one of the same place.
    ///
    /// # Errors
    ///
    /// This list has no number, a lower one, or the same one with other revocations.
    pub fn require_successor_of(&self, earlier: Option<&Self>) -> Result<(), ListFault> {
        let found = self.sequence.ok_or(ListFault::NoSequence)?;
        match earlier.and_then(|earlier| Some((earlier.sequence?, earlier))) {
            Some((known, _)) if found < known => Err(ListFault::Older { found, known }),
            Some((known, earlier)) if found == known && earlier != self => Err(ListFault::TwoLists(found)),
            _ => Ok(()),
        }
    }

    /// Returns the content of the list's file.
    pub fn to_json(&self) -> String {
        let revoked = self.revoked.values().cloned().collect();
        let file = RevocationFile { schema_version: SCHEMA_VERSION, sequence: self.sequence, revoked };
        serde_json::to_string_pretty(&file).expect("a list holds texts and numbers only") + "\n"
    }

    /// Returns the content of the file of a signed list.
    pub fn sign(&self, key: &SigningKey) -> String {
        Envelope::sign(PayloadType::REVOCATIONS, self.to_json().as_bytes(), &[key]).to_line()
    }

    /// Adds a revocation. Returns false and changes nothing if the component is revoked already.
    ///
    /// # Errors
    ///
    /// Fails for a reason that could not be read again, and for a full list.
    pub fn add(&mut self, revocation: Revocation) -> Result<bool, ListFault> {
        if self.revoked.contains_key(&revocation.digest) {
            return Ok(false);
        }
        if !is_reason(&revocation.reason) {
            return Err(ListFault::Reason(revocation.digest));
        }
        if self.revoked.len() >= REVOCATIONS_MAX {
            return Err(ListFault::TooMany(self.revoked.len() + 1));
        }
        self.revoked.insert(revocation.digest, revocation);
        Ok(true)
    }

    /// Removes a revocation, and returns it if there was one.
    pub fn remove(&mut self, digest: &Digest) -> Option<Revocation> {
        self.revoked.remove(digest)
    }

    /// Returns the revocation of a component.
    pub fn get(&self, digest: &Digest) -> Option<&Revocation> {
        self.revoked.get(digest)
    }

    /// Returns all revocations, sorted by digest.
    pub fn iter(&self) -> impl Iterator<Item = &Revocation> {
        self.revoked.values()
    }
}

fn is_reason(text: &str) -> bool {
    !text.trim().is_empty() && text.chars().count() <= REASON_CHARS_MAX && !text.chars().any(is_deceptive)
}

/// A list and where it comes from.
#[derive(Debug, Clone)]
pub struct RevocationSource {
    /// The file of the list, for people.
    pub place: String,
    /// The list with the names to which it applies, or why it cannot be read.
    pub list: Result<SignedRevocations, String>,
    /// True if the list is a copy that was fetched from a registry or an address.
    pub is_fetched: bool,
}

impl RevocationSource {
    /// Creates the source of the user's own list, which applies to all plugins.
    pub fn own(place: String, list: Result<RevocationList, String>) -> Self {
        let list = list.map(|list| SignedRevocations { list, plugins: vec![NamePattern::All] });
        Self { place, list, is_fetched: false }
    }
}

/// All lists of revocations that apply. The default has none.
#[derive(Debug, Clone, Default)]
pub struct Revocations(Vec<Arc<RevocationSource>>);

/// Why a component must not run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refused {
    /// A list revokes the component.
    Revoked {
        /// The reason in the list.
        reason: String,
        /// The file of the list.
        place: String,
    },
    /// A list cannot be read.
    Unreadable {
        /// What is wrong.
        fault: String,
        /// The file of the list.
        place: String,
        /// True if the list is a copy that was fetched.
        is_fetched: bool,
    },
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Revoked { reason, place } => write!(f, "it was revoked: {reason} (`{place}`)"),
            Self::Unreadable { fault, place, .. } => {
                write!(f, "the list of revocations `{place}` cannot be read, so no component may run: {fault}")
            }
        }
    }
}

impl Refused {
    /// Returns what the user can do.
    pub fn help(&self) -> &'static str {
        match self {
            Self::Revoked { .. } => {
                "use another version of the plugin; see all revocations with `glovebox plugin revoke --list`"
            }
            Self::Unreadable { is_fetched: true, .. } => "fetch the list with `glovebox plugin revocations --refresh`",
            Self::Unreadable { .. } => "restore the list from a backup; removing it takes back all its revocations",
        }
    }
}

impl Revocations {
    /// Creates the set of these lists.
    pub fn new(sources: impl IntoIterator<Item = Arc<RevocationSource>>) -> Self {
        Self(sources.into_iter().collect())
    }

    /// Returns all lists.
    pub fn sources(&self) -> impl Iterator<Item = &RevocationSource> {
        self.0.iter().map(Arc::as_ref)
    }

    /// Returns why a component must not run. `None` if it may run.
    pub fn find(&self, name: &str, digest: &Digest) -> Option<Refused> {
        let place = |source: &RevocationSource| source.place.clone();
        let revoked = self.0.iter().find_map(|source| {
            let SignedRevocations { list, plugins } = source.list.as_ref().ok()?;
            let found = list.get(digest).filter(|_| plugins.iter().any(|pattern| pattern.covers(name)))?;
            Some(Refused::Revoked { reason: found.reason.clone(), place: place(source) })
        });
        let unreadable = || {
            self.0.iter().find_map(|source| {
                let fault = source.list.as_ref().err()?.clone();
                Some(Refused::Unreadable { fault, place: place(source), is_fetched: source.is_fetched })
            })
        };
        revoked.or_else(unreadable)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trust::TrustedKey;
    use serde_json::json;

    fn revocation(byte: u8, reason: &str) -> Revocation {
        Revocation { digest: Digest::from_bytes([byte; 32]), reason: reason.to_owned(), at: Timestamp::UNIX_EPOCH }
    }

    fn list(bytes: &[u8]) -> RevocationList {
        let mut list = RevocationList::default();
        bytes.iter().for_each(|byte| assert!(list.add(revocation(*byte, "it leaks")).unwrap()));
        list
    }

    fn key(seed: u8) -> SigningKey {
        SigningKey::from_seed(&[seed; 32]).unwrap()
    }

    fn trust(pattern: NamePattern) -> Trust {
        let last = jiff::civil::date(2000, 1, 1);
        let (name, plugins) = ("acme".to_owned(), vec![pattern]);
        let key = TrustedKey { name, key: key(1).public(), plugins, not_after: Some(last) };
        Trust { keys: vec![key], ..Trust::default() }
    }

    #[test]
    fn a_list_survives_its_file_and_changes_are_explicit() {
        let mut two = list(&[2, 1]);
        assert_eq!(RevocationList::parse(two.to_json().as_bytes()).unwrap(), two);
        assert!(!two.add(revocation(1, "another reason")).unwrap());
        assert_eq!(two.get(&Digest::from_bytes([1; 32])).unwrap().reason, "it leaks");
        assert!(
            two.remove(&Digest::from_bytes([1; 32])).is_some() && two.remove(&Digest::from_bytes([9; 32])).is_none()
        );
        assert_eq!(two, list(&[2]));
        for wrong in ["", " ", "a\nb", "\u{202e}x", &"x".repeat(501)] {
            assert!(matches!(two.add(revocation(3, wrong)), Err(ListFault::Reason(_))), "{wrong:?}");
        }
    }

    #[test]
    fn an_earlier_list_is_no_successor() {
        let numbered = |sequence: Option<u64>, bytes: &[u8]| RevocationList { sequence, ..list(bytes) };
        let mut advanced = list(&[1]);
        advanced.advance();
        advanced.advance();
        assert_eq!(RevocationList::parse(advanced.to_json().as_bytes()).unwrap().sequence(), Some(2));
        let known = numbered(Some(5), &[1, 2]);
        let check = |next: RevocationList| next.require_successor_of(Some(&known));
        assert!(check(numbered(Some(6), &[])).is_ok() && check(known.clone()).is_ok());
        assert!(matches!(check(numbered(Some(4), &[1, 2])), Err(ListFault::Older { found: 4, known: 5 })));
        assert!(matches!(check(numbered(Some(5), &[1])), Err(ListFault::TwoLists(5))));
        assert!(matches!(check(numbered(None, &[1, 2])), Err(ListFault::NoSequence)));
        assert!(matches!(numbered(None, &[]).require_successor_of(None), Err(ListFault::NoSequence)));
        assert!(numbered(Some(1), &[]).require_successor_of(None).is_ok());
    }

    #[test]
    fn lists_of_another_form_are_refused() {
        let check = |text: &str, expected: &str| {
            let fault = RevocationList::parse(text.as_bytes()).unwrap_err().to_string();
            assert!(fault.contains(expected), "{fault}");
        };
        let text = list(&[1]).to_json();
        (0..text.trim_end().len()).for_each(|cut| assert!(RevocationList::parse(&text.as_bytes()[..cut]).is_err()));
        for wrong in ["", "null", "NaN", "{}", "[]", "{\"schema_version\": NaN, \"revoked\": []}"] {
            check(wrong, "is not a list of revocations");
        }
        check(&text.replace("\"schema_version\": 1", "\"schema_version\": 2"), "version 2");
        check(&text.replace("\"reason\"", "\"extra\": 1, \"reason\""), "unknown field");
        check(&text.replace("blake3:", "sha256:"), "is not a digest");
        check(&text.replace("it leaks", "a\\nb"), "is not one line");
        let entry = json!(revocation(1, "x"));
        check(&json!({ "schema_version": 1, "revoked": [entry, entry] }).to_string(), "twice");
        let many: Vec<_> = std::iter::repeat_n(&entry, REVOCATIONS_MAX + 1).collect();
        check(&json!({ "schema_version": 1, "revoked": many }).to_string(), "10001 revocations");
        check(&" ".repeat(FILE_BYTES_MAX as usize + 1), "more than");
        check(&"[".repeat(100_000), "is not a list");
    }

    #[test]
    fn a_signed_list_revokes_only_what_its_key_may_sign() {
        let text = list(&[1]).sign(&key(1));
        let read = |trust: &Trust| RevocationList::parse_signed(text.as_bytes(), trust);
        let below = read(&trust(NamePattern::Below("acme.".to_owned()))).unwrap();
        let source = Arc::new(RevocationSource { place: "list".to_owned(), list: Ok(below), is_fetched: false });
        let all = Revocations::new([source]);
        let (known, other) = (Digest::from_bytes([1; 32]), Digest::from_bytes([2; 32]));
        assert!(matches!(all.find("acme.x", &known), Some(Refused::Revoked { reason, .. }) if reason == "it leaks"));
        assert_eq!((all.find("zeta.x", &known), all.find("acme.x", &other)), (None, None));
        assert!(matches!(read(&Trust::default()), Err(ListFault::UnknownKeys)));
        let own = list(&[1]).to_json();
        assert!(RevocationList::parse_signed(own.as_bytes(), &trust(NamePattern::All)).is_err(), "not signed");
        let statement = Envelope::sign(PayloadType::IN_TOTO, own.as_bytes(), &[&key(1)]).to_line();
        let refused = RevocationList::parse_signed(statement.as_bytes(), &trust(NamePattern::All)).unwrap_err();
        assert!(refused.to_string().contains("its payload is"), "{refused}");
        let mut changed = text.clone().into_bytes();
        changed[100] ^= 1;
        assert!(RevocationList::parse_signed(&changed, &trust(NamePattern::All)).is_err());
    }

    #[test]
    fn a_list_that_cannot_be_read_refuses_everything() {
        let digest = Digest::from_bytes([1; 32]);
        let own = |list| Arc::new(RevocationSource::own("own".to_owned(), list));
        let broken = Revocations::new([own(Err("damaged".to_owned())), own(Ok(list(&[1])))]);
        assert!(matches!(broken.find("a.b", &digest), Some(Refused::Revoked { .. })), "the better reason");
        let refused = broken.find("a.b", &Digest::ZERO).unwrap();
        assert!(refused.to_string().contains("no component may run: damaged"), "{refused}");
        assert_eq!(Revocations::default().find("a.b", &digest), None);
    }
}
