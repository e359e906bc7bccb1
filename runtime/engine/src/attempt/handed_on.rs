//! The exchanges of an attempt that another machine began: what it paid for is not paid for again.
//!
//! A machine keeps each answer of a model where others find it before the component gets it. If the machine is lost, the one that
//! makes the attempt again begins with these answers.

use glovebox_host::llm::ExchangeKeeper;
use glovebox_journal::event::MachineId;
use std::collections::BTreeSet;
use std::fmt;
use std::io;
use std::sync::Arc;

/// Where machines keep the exchanges of attempts.
pub trait ExchangeStore: fmt::Debug + Send + Sync {
    /// Returns the lines that these machines kept of an attempt, in order. Blocks.
    ///
    /// # Errors
    /// The store does not answer.
    fn read(&self, attempt: &str, machines: &BTreeSet<MachineId>) -> io::Result<Vec<u8>>;

    /// Keeps a line of an attempt. It is durable when this returns. Blocks.
    ///
    /// # Errors
    /// The store does not answer.
    fn keep(&self, attempt: &str, line: &[u8]) -> io::Result<()>;
}

/// The exchanges of one attempt in a store of several machines.
#[derive(Debug, Clone)]
pub struct HandedOn {
    /// The store.
    pub store: Arc<dyn ExchangeStore>,
    /// The machines for which the attempt was claimed, this one included. Nothing that others kept is used.
    pub machines: BTreeSet<MachineId>,
}

impl HandedOn {
    /// Returns the lines that earlier machines kept.
    pub(super) fn read(&self, attempt: &str) -> io::Result<Vec<u8>> {
        self.store.read(attempt, &self.machines)
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
