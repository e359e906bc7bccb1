//! The body of an answer: read up to a limit of bytes, and only while it arrives fast enough.

use crate::error::{Fault, RegistryError, Unreachable};
use reqwest::Response;
use std::time::Duration;
use tokio::time::{Instant, timeout_at};

/// Period for which the speed of an answer is measured.
const PERIOD: Duration = Duration::from_secs(10);
/// Minimum number of bytes that arrive in a period: 2 KiB each second.
const PERIOD_BYTES_MIN: u64 = 20 << 10;
/// Maximum time for one body.
const TIME_MAX: Duration = Duration::from_secs(20 * 60);

/// Reads a body.
///
/// # Errors
///
/// The body is longer than `bytes_max`, arrives too slowly, or is cut off.
pub(crate) async fn read(
    mut response: Response,
    host: &str,
    what: &'static str,
    bytes_max: u64,
) -> Result<Vec<u8>, RegistryError> {
    let too_long = || RegistryError::answer(host, Fault::TooLong { what, bytes_max });
    if response.content_length().is_some_and(|bytes| bytes > bytes_max) {
        return Err(too_long());
    }
    let begin = Instant::now();
    let mut period = Period { begin, bytes: 0 };
    let mut body = Vec::new();
    loop {
        let received = match timeout_at(period.begin + PERIOD, response.chunk()).await {
            Ok(Ok(None)) => return Ok(body),
            Ok(Ok(Some(received))) => received,
            Ok(Err(_)) => return Err(RegistryError::unreachable(host, Unreachable::Cut)),
            Err(_) => Default::default(),
        };
        body.extend_from_slice(&received);
        if body.len() as u64 > bytes_max {
            return Err(too_long());
        }
        let is_in_time = period.add(received.len() as u64) && begin.elapsed() < TIME_MAX;
        if !is_in_time {
            let slow = Unreachable::Slow { bytes: body.len() as u64, seconds: begin.elapsed().as_secs() };
            return Err(RegistryError::unreachable(host, slow));
        }
    }
}

/// The bytes of the current period.
struct Period {
    begin: Instant,
    bytes: u64,
}

impl Period {
    /// Adds received bytes, and begins a new period if this one is over. Returns false if too little arrived in it.
    fn add(&mut self, bytes: u64) -> bool {
        self.bytes += bytes;
        if self.begin.elapsed() < PERIOD {
            return true;
        }
        let is_enough = self.bytes >= PERIOD_BYTES_MIN;
        *self = Self { begin: Instant::now(), bytes: 0 };
        is_enough
    }
}
