//! Signatures of records, which show that a record was written with this user's key.
//!
//! A record's hash covers all earlier records, but every program can compute hashes. The signature is a MAC of the hash
//! under the user's key, so the signature of the last record authenticates the whole journal. It is stored next to the
//! record, not in it. So a journal has the same records for every user, and a user without the key sees that it was
//! written by another user. A prefix of a signed journal is signed.

use super::port_error;
use super::rows::digest;
use crate::event::Digest;
use crate::ports::PortError;
use glovebox_workspace::user_key::UserKey;
use rusqlite::Connection;

/// Context of these MACs, so that no MAC for another purpose is valid here.
const PURPOSE: &str = "glovebox 2026 journal record v1";

/// The author of a journal, as far as it can be determined with this user's key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Provenance {
    /// Every record is signed with this user's key, or there are no records.
    Own,
    /// No record is signed, because the run had no folder to store a key in.
    Unsigned,
    /// Some record is not signed, or is signed with another key.
    Foreign {
        /// The first record that is not signed with this user's key.
        seq: u64,
    },
}

/// Returns the signature of the record with this hash.
pub(super) fn sign(key: &UserKey, hash: &Digest) -> blake3::Hash {
    key.mac(PURPOSE, hash.as_bytes())
}

/// Refuses a journal that was not signed with the key, because new records must have the same signature as the existing ones.
pub(super) fn require_own(provenance: Provenance, key: Option<&UserKey>) -> Result<(), PortError> {
    match provenance {
        Provenance::Foreign { seq } => Err(PortError::Foreign { seq }),
        Provenance::Unsigned if key.is_some() => Err(PortError::Foreign { seq: 1 }),
        Provenance::Unsigned | Provenance::Own => Ok(()),
    }
}

/// Returns the author of a journal. The chain must have been verified before, because only hashes are signed.
pub(super) fn provenance(connection: &Connection, key: Option<&UserKey>) -> Result<Provenance, PortError> {
    let mut statement = connection.prepare("SELECT seq, hash, mac FROM record ORDER BY seq").map_err(port_error)?;
    let mut rows = statement.query([]).map_err(port_error)?;
    let (mut last, mut first_foreign, mut is_any_signed) = (0, None, false);
    while let Some(row) = rows.next().map_err(port_error)? {
        let seq = row.get::<_, i64>(0).map_err(port_error)?.cast_unsigned();
        // A damaged database may contain a cycle of pages.
        if seq <= last {
            let found = format!("record {seq} comes after record {last}");
            return Err(PortError::Corrupt { what: "the journal's database".into(), found });
        }
        last = seq;
        let hash = digest(&row.get::<_, Vec<u8>>(1).map_err(port_error)?, seq)?;
        let mac: Option<Vec<u8>> = row.get(2).map_err(port_error)?;
        is_any_signed |= mac.is_some();
        let mac: Option<[u8; 32]> = mac.and_then(|bytes| bytes.try_into().ok());
        // The comparison of `blake3::Hash` values takes constant time.
        let is_own = key.zip(mac).is_some_and(|(key, mac)| blake3::Hash::from_bytes(mac) == sign(key, &hash));
        if !is_own {
            first_foreign.get_or_insert(seq);
        }
        // A journal without any signature is unsigned, not foreign. So the search continues until a signature is found.
        if is_any_signed && first_foreign.is_some() {
            break;
        }
    }
    Ok(match first_foreign {
        None => Provenance::Own,
        Some(seq) if is_any_signed => Provenance::Foreign { seq },
        Some(_) => Provenance::Unsigned,
    })
}
