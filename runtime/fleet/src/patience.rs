//! The pauses between repetitions of a request that may have no answer for a while, such as during an election.

use crate::jetstream::RequestError;
use std::future::Future;
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// Delay before the first repetition of a request. It doubles up to [`DELAY_MAX`].
const DELAY: Duration = Duration::from_millis(50);
/// Maximum delay before a repetition.
const DELAY_MAX: Duration = Duration::from_secs(1);

/// The pauses between repetitions of one request.
pub(crate) struct Pause {
    until: Instant,
    delay: Duration,
}

impl Pause {
    pub(crate) fn new(patience: Duration) -> Self {
        Self { until: Instant::now() + patience, delay: DELAY }
    }

    /// Waits, or returns the error if the patience has ended.
    pub(crate) async fn again(&mut self, error: RequestError) -> Result<(), RequestError> {
        if Instant::now() + self.delay > self.until {
            return Err(error);
        }
        sleep(self.delay).await;
        self.delay = (self.delay * 2).min(DELAY_MAX);
        Ok(())
    }
}

/// Repeats a request that changes nothing until there is an answer, at most for `patience`.
pub(crate) async fn patiently<T, F>(patience: Duration, mut request: impl FnMut() -> F) -> Result<T, RequestError>
where
    F: Future<Output = Result<T, RequestError>>,
{
    let mut pause = Pause::new(patience);
    loop {
        match request().await {
            Err(error @ (RequestError::NoAnswer(_) | RequestError::NoReceiver)) => pause.again(error).await?,
            answer => return answer,
        }
    }
}
