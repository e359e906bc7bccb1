//! The place of a client that follows a run or a stage.
//!
//! The number of places is limited. A stream ends when the token with which it was asked for is not accepted any more.

use crate::desk::Problem;
use crate::token::{Bearer, Tokens};
use std::sync::Arc;
use tokio::sync::OwnedSemaphorePermit;

/// The place of one client. It is free again when the value is dropped.
pub(crate) struct Place {
    tokens: Arc<Tokens>,
    token: String,
    bearer: Bearer,
    _permit: OwnedSemaphorePermit,
}

impl Place {
    pub(crate) fn new(tokens: Arc<Tokens>, token: String, bearer: Bearer, permit: OwnedSemaphorePermit) -> Self {
        Self { tokens, token, bearer, _permit: permit }
    }

    /// Lets a stream go on until it ends, or until the token of the client is not accepted any more. Returns why it was
    /// ended.
    pub(crate) async fn hold(self, stream: impl Future<Output = ()>) -> Option<Problem> {
        tokio::select! {
            () = stream => None,
            () = self.tokens.until_changed(&self.token, &self.bearer) => Some(unknown_token()),
        }
    }
}

/// Returns the problem of a token that is not accepted.
pub(crate) fn unknown_token() -> Problem {
    Problem::new(401, "unknown-token", "this token is not known")
}
