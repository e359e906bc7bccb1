//! A verified journal that is read page by page has the same records and the same folds as one that is read as a whole.

use super::{Place, RUN, append, note};
use glovebox_journal::event::{Event, Record, RunResumed, WentBack};
use glovebox_journal::ports::PortError;
use glovebox_journal::reading::{self, ReadRecords};
use glovebox_journal::rewind::{self, Fold};
use glovebox_journal::sqlite::{OpenJournal, SqliteReader};
use rusqlite::Connection;

fn rewind_target(seq: u64) -> Event {
    let back = Some(WentBack { visit: 1, generation: 0, seq });
    Event::RunResumed(Box::new(RunResumed { back, ..RunResumed::default() }))
}

/// Creates a journal of more than two pages with three rewinds, one of them to a record that was no longer in force.
async fn long() -> Place {
    let place = Place::make();
    let log = place.open();
    let mut head = 0;
    for part in [Some(300), Some(20), None, Some(310)] {
        let mut events: Vec<Event> = (0..200).map(|at| note(&format!("{part:?} {at}"))).collect();
        events.extend(part.map(rewind_target));
        head = append(&log, head, events).await.unwrap().last().unwrap().seq;
    }
    drop(log);
    place
}

fn whole(place: &Place) -> Vec<Record> {
    SqliteReader::open(&place.path).unwrap().read_verified(None).unwrap().records
}

#[tokio::test]
async fn pages_are_the_journal() {
    let place = long().await;
    let (reader, whole) = (SqliteReader::open(&place.path).unwrap(), whole(&place));
    let journal = reader.read_start_and_resumes(None).unwrap();
    assert_eq!((journal.records_count(), journal.head()), (803, whole.last().unwrap().hash));
    for after in [0, 1, 256, 802, 803, 900] {
        let pages: Vec<Vec<Record>> = reader.pages(&journal, after).unwrap().collect::<Result<_, _>>().unwrap();
        assert!(pages.iter().all(|page| (1..=256).contains(&page.len())));
        assert_eq!(pages.concat(), whole[whole.len().min(after as usize)..], "after {after}");
    }
}

/// The sequence numbers of the records that a fold got, and those before each rewind.
#[derive(Debug, Default, PartialEq)]
struct Seen {
    seqs: Vec<u64>,
    pasts: Vec<(usize, Vec<u64>)>,
}

impl Fold for Seen {
    type Past = Self;

    fn apply(&mut self, record: &Record) {
        self.seqs.push(record.seq);
    }

    fn go_back(&mut self, past: Self) {
        self.pasts.push((self.seqs.len(), past.seqs));
    }
}

#[tokio::test]
async fn a_fold_of_pages_is_the_fold_of_the_whole_for_a_run_that_went_back() {
    let place = long().await;
    let whole = whole(&place);
    let reader = SqliteReader::open(&place.path).unwrap();
    let journal = OpenJournal { verified: reader.read_start_and_resumes(None).unwrap(), reader };
    let mut seen = Seen::default();
    reading::fold(&journal, &mut seen).unwrap();
    assert_eq!(seen.seqs, (1..=803).collect::<Vec<_>>());
    let mut expected = Seen::default();
    rewind::fold(&whole, &mut expected);
    assert_eq!(seen, expected);
    let backs: Vec<_> = seen.pasts.iter().map(|(at, past)| (*at, past.last().copied())).collect();
    assert_eq!(backs, [(200, Some(200)), (401, Some(20)), (802, Some(310))]);
    let line: Vec<u64> = rewind::in_force(&whole).iter().map(|record| record.seq).collect();
    assert_eq!(journal.in_force().into_iter().flatten().collect::<Vec<_>>(), line);
}

#[tokio::test]
async fn what_was_appended_since_is_verified_from_there() {
    let place = Place::make();
    let log = place.open();
    append(&log, 0, vec![note("a")]).await.unwrap();
    let reader = SqliteReader::open(&place.path).unwrap();
    let mut journal = reader.read_start_and_resumes(None).unwrap();
    append(&log, 1, vec![note("b"), rewind_target(1)]).await.unwrap();
    assert_eq!(reader.pages(&journal, 0).unwrap().count(), 1, "a reader sees what was verified");
    reader.read_on(&mut journal).unwrap();
    assert_eq!((journal.records_count(), journal.records.len()), (3, 2));
    assert_eq!(journal.records, [whole(&place)[0].clone(), whole(&place)[2].clone()]);
    drop((log, reader));
    let changed = Connection::open(&place.path).unwrap().execute("UPDATE record SET event = '{}' WHERE seq = 3", []);
    assert_eq!(changed.unwrap(), 1);
    let reader = SqliteReader::open(&place.path).unwrap();
    let read = reader.pages(&journal, 0).unwrap().collect::<Result<Vec<_>, _>>();
    assert!(matches!(read, Err(PortError::Corrupt { .. })), "it is checked again: {read:?}");
}

#[tokio::test]
async fn a_journal_that_is_another_one_by_then_is_refused() {
    let (one, other) = (Place::make(), Place::make());
    for (place, text) in [(&one, "a"), (&other, "b")] {
        append(&place.open(), 0, vec![note(text), note(RUN)]).await.unwrap();
    }
    let journal = SqliteReader::open(&one.path).unwrap().read_start_and_resumes(None).unwrap();
    let reader = SqliteReader::open(&other.path).unwrap();
    let mut read = reader.pages(&journal, 0).unwrap();
    assert!(matches!(read.next(), Some(Err(PortError::Corrupt { .. }))));
    assert!(read.next().is_none());
}
