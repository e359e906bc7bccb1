//! Following a run: whoever keeps files or shows progress gets each record with the run after it, from the one fold that the driver
//! decides by.

use glovebox_journal::event::Record;
use glovebox_state::evidence::Replay;
use std::error::Error;

/// A fault of the runtime: an attempt could not be made, or records could not be written to files.
pub type Fault = Box<dyn Error + Send + Sync>;

/// Follows a run record by record.
pub trait Follow {
    /// Takes the next record, which is stored, and the run after it.
    fn record(&mut self, record: &Record, replay: &Replay);

    /// Is called when every record of an append, or of a page that was read, has been taken. `records` are those of an append, empty for a
    /// page.
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
