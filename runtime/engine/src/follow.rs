//! Follows a run: code that writes files or shows progress gets each record, and the state of the run after it. The
//! state comes from the same fold that the driver uses for its decisions.

use glovebox_journal::event::Record;
use glovebox_state::evidence::Replay;
use std::error::Error;

/// An error of the runtime: an attempt could not be executed, or records could not be written to files.
pub type Fault = Box<dyn Error + Send + Sync>;

/// Follows a run record by record.
pub trait Follow {
    /// Gets the next stored record, and the state of the run after it.
    fn record(&mut self, record: &Record, replay: &Replay);

    /// Called after all records of an append, or of a page that was read. `records` are the records of the append. Empty for
    /// a page.
    fn appended(&mut self, records: &[Record]) -> Result<(), Fault>;
}

impl Follow for () {
    fn record(&mut self, _record: &Record, _replay: &Replay) {}

    fn appended(&mut self, _records: &[Record]) -> Result<(), Fault> {
        Ok(())
    }
}

impl<F: Follow + ?Sized> Follow for &mut F {
    fn record(&mut self, record: &Record, replay: &Replay) {
        (**self).record(record, replay);
    }

    fn appended(&mut self, records: &[Record]) -> Result<(), Fault> {
        (**self).appended(records)
    }
}
