//! The exchanges of an attempt that another machine began: what it paid for is not paid for again.
//!
//! A machine keeps each answer of a model where others find it before the component gets it. If the machine is lost, the one that
//! makes the attempt again begins with these answers.

use glovebox_host::llm::{ExchangeKeeper, ExchangeLog};
use glovebox_journal::event::MachineId;
use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::sync::Arc;

/// Where machines keep the exchanges of attempts.
pub trait ExchangeStore: fmt::Debug + Send + Sync {
    /// Returns the lines that were kept for these claims of an attempt, in order. Blocks.
    ///
    /// # Errors
    /// The store does not answer, or a line is not there any more.
    fn read(&self, attempt: &str, claims: &Claims) -> io::Result<Vec<KeptLine>>;

    /// Keeps a line of an attempt. It is durable when this returns. Blocks.
    ///
    /// # Errors
    /// The store does not answer.
    fn keep(&self, attempt: &str, line: &[u8]) -> io::Result<()>;
}

/// Who was given an attempt. An attempt that is made again has another id, and the same task and ordinal.
#[derive(Debug, Clone, Default)]
pub struct Claims {
    /// The machine of each claim, by the sequence number of its record. Only lines of these machines count.
    pub machines: BTreeMap<u64, MachineId>,
    /// Sequence number of the last result of the attempt; 0 if there is none. That record includes the cost of all earlier lines.
    pub booked: u64,
    /// True if the stage judges. Then a line counts only if its machine was admitted to verify, otherwise to build.
    pub judges: bool,
}

/// A line that was kept.
#[derive(Debug, Clone)]
pub struct KeptLine {
    /// The number of the record with the claim.
    pub token: u64,
    /// The line, with its line break.
    pub line: String,
}

/// The exchanges of one attempt in a store of several machines.
#[derive(Debug, Clone)]
pub struct HandedOn {
    /// The store.
    pub store: Arc<dyn ExchangeStore>,
    /// The claims of the attempt, this one included.
    pub claims: Claims,
}

impl HandedOn {
    /// Returns the text of a log with the lines that were kept.
    pub(super) fn read(&self, attempt: &str) -> io::Result<Vec<u8>> {
        let lines = self.store.read(attempt, &self.claims)?;
        let (booked, open): (Vec<_>, Vec<_>) = lines.into_iter().partition(|kept| kept.token <= self.claims.booked);
        let mark = if booked.is_empty() { Vec::new() } else { ExchangeLog::booked_line()? };
        let text = |lines: Vec<KeptLine>| lines.into_iter().map(|kept| kept.line).collect::<String>().into_bytes();
        Ok([text(booked), mark, text(open)].concat())
    }

    /// Returns the keeper of an attempt's further lines.
    pub(super) fn keeper(&self, attempt: String) -> Arc<dyn ExchangeKeeper> {
        Arc::new(Keeper { store: Arc::clone(&self.store), attempt })
    }
}

#[derive(Debug)]
struct Keeper {
    store: Arc<dyn ExchangeStore>,
    attempt: String,
}

impl ExchangeKeeper for Keeper {
    fn keep(&self, line: &[u8]) -> io::Result<()> {
        self.store.keep(&self.attempt, line)
    }
}
