//! Tokens of clients, and one-time codes for the page in a browser.
//!
//! The server keeps only hashes of tokens. A token is compared by its hash, so the time of the comparison tells nothing
//! about it. There are no cookies: a cookie of one server on this machine is sent to every other one.

use crate::right::Rights;
use serde::{Deserialize, Serialize};
use std::io;
use std::sync::{Mutex, PoisonError, RwLock};
use std::time::{Duration, Instant};
use tokio::sync::watch;

/// How long a one-time code is valid.
pub const CODE_VALID: Duration = Duration::from_secs(60);
/// Maximum number of sessions. The oldest one ends when another begins.
const SESSIONS_MAX: usize = 64;
/// Maximum number of open codes. The oldest one ends when another is made.
const CODES_MAX: usize = 16;
/// Maximum number of wrong codes before all open codes end.
const WRONG_CODES_MAX: u32 = 10;
const TOKEN_BYTES: usize = 32;

/// A token, as the token file has it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StoredToken {
    /// The name. Records name it as the person who acted.
    pub name: String,
    /// What the bearer may do.
    pub rights: Rights,
    /// BLAKE3 hash of the token, as 64 hexadecimal digits.
    pub blake3: String,
}

/// Who sent a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bearer {
    /// The name of the token.
    pub name: String,
    /// What the bearer may do.
    pub rights: Rights,
}

/// Returns a new token: 64 hexadecimal digits from the system's random numbers.
///
/// # Errors
///
/// Returns an error if the system has no random numbers.
pub fn fresh() -> io::Result<String> {
    let mut bytes = [0; TOKEN_BYTES];
    // Up to 256 bytes come at once.
    rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty())?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// Returns the hash of a token, as a token file has it.
pub fn hash(token: &str) -> String {
    blake3::hash(token.as_bytes()).to_hex().to_string()
}

/// The tokens that this server accepts.
#[derive(Debug, Default)]
pub struct Tokens {
    stored: RwLock<Vec<StoredToken>>,
    sessions: Mutex<Sessions>,
    /// Told after each change of the accepted tokens.
    changed: watch::Sender<()>,
}

#[derive(Debug, Default)]
struct Sessions {
    /// Sessions of pages, oldest first.
    open: Vec<StoredToken>,
    codes: Vec<Code>,
    wrong: u32,
}

#[derive(Debug)]
struct Code {
    hash: String,
    name: String,
    until: Instant,
}

impl Tokens {
    /// Creates the list of accepted tokens.
    pub fn new(stored: Vec<StoredToken>) -> Self {
        Self { stored: RwLock::new(stored), ..Self::default() }
    }

    /// Replaces the accepted tokens. Sessions of pages go on.
    pub fn replace(&self, stored: Vec<StoredToken>) {
        let mut accepted = self.stored.write().unwrap_or_else(PoisonError::into_inner);
        if *accepted == stored {
            return;
        }
        *accepted = stored;
        drop(accepted);
        self.changed.send_replace(());
    }

    /// Returns who has the token; `None` if it is unknown.
    pub fn bearer(&self, token: &str) -> Option<Bearer> {
        let hash = hash(token);
        let of = |stored: &StoredToken| Bearer { name: stored.name.clone(), rights: stored.rights.clone() };
        let accepted = self.stored.read().unwrap_or_else(PoisonError::into_inner);
        let found = accepted.iter().find(|stored| stored.blake3 == hash).map(of);
        found.or_else(|| self.sessions().open.iter().find(|stored| stored.blake3 == hash).map(of))
    }

    /// Waits until the token is not accepted any more, or has another name or other rights.
    pub async fn until_changed(&self, token: &str, bearer: &Bearer) {
        let mut changed = self.changed.subscribe();
        while self.bearer(token).as_ref() == Some(bearer) {
            // The sender is as old as the tokens, so it is never gone.
            let _told = changed.changed().await;
        }
    }

    /// Makes a one-time code with which a page begins a session in this name.
    ///
    /// # Errors
    ///
    /// Returns an error if the system has no random numbers.
    pub fn code(&self, name: &str, now: Instant) -> io::Result<String> {
        let code = fresh()?;
        let mut sessions = self.sessions();
        sessions.codes.retain(|code| code.until > now);
        if sessions.codes.len() >= CODES_MAX {
            sessions.codes.remove(0);
        }
        sessions.codes.push(Code { hash: hash(&code), name: name.to_owned(), until: now + CODE_VALID });
        Ok(code)
    }

    /// Begins a session with a one-time code, and returns the token of the session and its bearer. `None` if the code is
    /// unknown, used or too old.
    pub fn begin(&self, code: &str, now: Instant) -> Option<(String, Bearer)> {
        let (token, given) = (fresh().ok()?, hash(code));
        let mut sessions = self.sessions();
        sessions.codes.retain(|code| code.until > now);
        let Some(at) = sessions.codes.iter().position(|code| code.hash == given) else {
            sessions.wrong += 1;
            if sessions.wrong >= WRONG_CODES_MAX {
                (sessions.codes, sessions.wrong) = (Vec::new(), 0);
            }
            return None;
        };
        let Code { name, .. } = sessions.codes.remove(at);
        let rights = Rights::of_page();
        if sessions.open.len() >= SESSIONS_MAX {
            sessions.open.remove(0);
        }
        sessions.open.push(StoredToken { name: name.clone(), rights: rights.clone(), blake3: hash(&token) });
        drop(sessions);
        // The oldest session may have ended.
        self.changed.send_replace(());
        Some((token, Bearer { name, rights }))
    }

    fn sessions(&self) -> std::sync::MutexGuard<'_, Sessions> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::right::Right;

    #[test]
    fn a_token_is_known_by_its_hash() {
        let token = fresh().unwrap();
        assert_eq!(token.len(), 64);
        let rights: Rights = [Right::View].into_iter().collect();
        let tokens =
            Tokens::new(vec![StoredToken { name: "anna".into(), rights: rights.clone(), blake3: hash(&token) }]);
        assert_eq!(tokens.bearer(&token), Some(Bearer { name: "anna".into(), rights }));
        assert_eq!(tokens.bearer(&hash(&token)), None);
        assert_eq!(tokens.bearer(""), None);
    }

    #[test]
    fn a_code_is_used_once_and_ends_after_a_minute() {
        let (tokens, now) = (Tokens::default(), Instant::now());
        let code = tokens.code("anna", now).unwrap();
        let (token, bearer) = tokens.begin(&code, now).unwrap();
        assert_eq!(tokens.bearer(&token), Some(bearer.clone()));
        assert_eq!(bearer.rights, Rights::of_page());
        assert!(tokens.begin(&code, now).is_none());
        let late = tokens.code("anna", now).unwrap();
        assert!(tokens.begin(&late, now + CODE_VALID).is_none());
    }

    #[test]
    fn guesses_end_all_codes() {
        let (tokens, now) = (Tokens::default(), Instant::now());
        let code = tokens.code("anna", now).unwrap();
        (0..WRONG_CODES_MAX).for_each(|guess| assert!(tokens.begin(&guess.to_string(), now).is_none()));
        assert!(tokens.begin(&code, now).is_none());
    }

    #[tokio::test]
    async fn whoever_waits_learns_that_a_token_is_gone_or_has_other_rights() {
        let with = |rights: &[Right]| {
            let rights = rights.iter().copied().collect();
            vec![StoredToken { name: "anna".into(), rights, blake3: hash("t") }]
        };
        let tokens = Tokens::new(with(&[Right::View]));
        let bearer = tokens.bearer("t").unwrap();
        for now in [Vec::new(), with(&[Right::Builder])] {
            tokens.replace(with(&[Right::View]));
            let wait = tokens.until_changed("t", &bearer);
            tokio::pin!(wait);
            tokens.replace([with(&[Right::View]), with(&[Right::Apply])].concat());
            assert!(tokio::time::timeout(Duration::from_millis(20), &mut wait).await.is_err(), "it is still accepted");
            tokens.replace(now);
            tokio::time::timeout(Duration::from_secs(10), wait).await.expect("it is not accepted any more");
        }
    }
}
