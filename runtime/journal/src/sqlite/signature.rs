//! Signatures of records: which of them this user's own program wrote.
//!
//! A record's hash covers everything before it, but anybody can hash. Its signature is a MAC of the hash under the user's key, so
//! the one of the last record vouches for the whole journal. It stands beside the record, not in it: a journal reads the same for
//! everybody, and a user without the key sees that it is not theirs. A prefix of a signed journal is signed.

use super::port_error;
use super::rows::digest;
use crate::event::Digest;
use crate::ports::PortError;
use glovebox_workspace::user_key::UserKey;
use rusqlite::Connection;

/// Keeps these MACs from standing in for any other.
const PURPOSE: &str = "glovebox 2026 journal record v1";

/// Who wrote a journal, as far as this user's key can tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Provenance {
    /// Every record is signed with this user's key, or there is none.
    Own,
    /// No record is signed: the run found no place for a key.
    Unsigned,
    /// Some record is not signed, or with another key.
    Foreign {
        /// The first such record.
        seq: u64,
    },
}

/// The signature of the record with this hash.
pub(super) fn sign(key: &UserKey, hash: &Digest) -> blake3::Hash {
    key.mac(PURPOSE, hash.as_bytes())
}

/// Refuses a journal that the key does not vouch for: what is appended to it must be signed like what is there.
pub(super) fn require_own(provenance: Provenance, key: Option<&UserKey>) -> Result<(), PortError> {
    match provenance {
        Provenance::Foreign { seq } => Err(PortError::Foreign { seq }),
        Provenance::Unsigned if key.is_some() => Err(PortError::Foreign { seq: 1 }),
        Provenance::Unsigned | Provenance::Own => Ok(()),
    }
}

/// Whose journal it is. To be asked after the chain was verified, since only hashes are signed.
pub(super) fn provenance(connection: &Connection, key: Option<&UserKey>) -> Result<Provenance, PortError> {
    let mut statement = connection.prepare("SELECT seq, hash, mac FROM record ORDER BY seq").map_err(port_error)?;
    let mut rows = statement.query([]).map_err(port_error)?;
    let (mut last, mut first_foreign, mut is_any_signed) = (0, None, false);
    while let Some(row) = rows.next().map_err(port_error)? {
        let seq = row.get::<_, i64>(0).map_err(port_error)?.cast_unsigned();
        // The pages of a damaged database may have no end.
        if seq <= last {
            let found = format!("record {seq} comes after record {last}");
            return Err(PortError::Corrupt { what: "the journal's database".into(), found });
        }
        last = seq;
        let hash = digest(&row.get::<_, Vec<u8>>(1).map_err(port_error)?, seq)?;
        let mac: Option<Vec<u8>> = row.get(2).map_err(port_error)?;
        is_any_signed |= mac.is_some();
        let mac: Option<[u8; 32]> = mac.and_then(|bytes| bytes.try_into().ok());
        // Comparing `blake3::Hash` takes the same time for any two values.
        let is_own = key.zip(mac).is_some_and(|(key, mac)| blake3::Hash::from_bytes(mac) == sign(key, &hash));
        if !is_own {
            first_foreign.get_or_insert(seq);
        }
        // A journal without any signature is unsigned, not foreign. So the search goes on until it finds a signature.
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
