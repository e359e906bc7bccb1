//! Tests what every adapter of the ports promises, independent of its storage: one suite that is run with memory, with SQLite and
//! with NATS and an object store.
//!
//! A further adapter needs one more line at the end of [`suite`]. Promises that only a store on disk can make are tested in
//! `tests/journal`, and the faults of several servers in `runtime/fleet/tests`.

mod adopt;
mod blobs;
mod log;
mod machines;
mod mail;
mod queue;
mod run;
mod takeover;

use crate::nats::{NatsServers, nats_program};
use crate::not_run::not_run;
use glovebox_fleet::blobs::ObjectBlobs;
use glovebox_fleet::fleet::{Fleet, FleetAddress};
use glovebox_fleet::init::Replication;
use glovebox_fleet::log::NatsLog;
use glovebox_fleet::statement::{Admission, Role};
use glovebox_journal::blobs::DirBlobs;
use glovebox_journal::event::{BranchId, Event, Record, RunCanceled, RunId, StageReady, StreamKey, Task, Work};
use glovebox_journal::memory::{MemoryBlobs, MemoryLog};
use glovebox_journal::ports::{BlobStore, ClaimQueue, PortError, RunLog, Stored};
use glovebox_journal::sqlite::SqliteLog;
use glovebox_signing::key::SigningKey;
use jiff::{SignedDuration, Timestamp};
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

/// An adapter under test, and the values that must live as long as it does.
pub(crate) struct Under<L> {
    pub(crate) log: Arc<L>,
    pub(crate) run: RunId,
    _folder: Option<tempfile::TempDir>,
    _servers: Option<NatsServers>,
}

/// An adapter that can be created with an empty journal.
pub(crate) trait Adapter: RunLog + ClaimQueue + Sized + 'static {
    fn empty() -> impl Future<Output = Under<Self>>;

    /// Returns false and says so if the adapter's service is not on this machine.
    fn can_run() -> bool {
        true
    }
}

impl Adapter for MemoryLog {
    async fn empty() -> Under<Self> {
        Under { log: Arc::default(), run: "run".into(), _folder: None, _servers: None }
    }
}

impl Adapter for SqliteLog {
    async fn empty() -> Under<Self> {
        let (folder, run) = (tempfile::tempdir().unwrap(), RunId::new("run"));
        let log = SqliteLog::open(&folder.path().join("journal.sqlite"), run.clone()).unwrap();
        Under { log: Arc::new(log), run, _folder: Some(folder), _servers: None }
    }
}

impl Adapter for NatsLog {
    async fn empty() -> Under<Self> {
        let servers = NatsServers::start(1, "");
        let mut fleet = Fleet::connect(&FleetAddress::new(servers.addresses())).await.unwrap();
        fleet.init(Replication::SingleNode).await.unwrap();
        join(&mut fleet).await;
        let log = Arc::new(fleet.log(ObjectBlobs::in_memory().unwrap()));
        Under { log, run: "run".into(), _folder: None, _servers: Some(servers) }
    }

    fn can_run() -> bool {
        let is_here = nats_program().is_some();
        if !is_here {
            not_run("the ports over NATS", "no nats-server: run `cargo xtask nats`");
        }
        is_here
    }
}

/// Makes the fleet and joins it as a machine that may append.
async fn join(fleet: &mut Fleet) {
    let [operator, machine] = [1, 2].map(|seed| SigningKey::from_seed(&[seed; 32]).unwrap());
    fleet.establish(&operator, &"file:///shared".parse().unwrap(), None).await.unwrap();
    let (name, may) = ("machine".parse().unwrap(), [Role::Submit, Role::Drive].into());
    let admission = Admission { name, may, labels: BTreeSet::new(), tier: None, until: None };
    fleet.admit(&operator, machine.public(), admission).await.unwrap();
    fleet.join(&operator.public(), Some(machine)).await.unwrap();
}

impl<L: Adapter> Under<L> {
    pub(crate) async fn append(&self, expect: &[(StreamKey, u64)], events: &[Event]) -> Result<Vec<Stored>, PortError> {
        self.log.append(&self.run, expect, Timestamp::now(), events).await
    }

    pub(crate) async fn records(&self) -> Vec<Record> {
        self.log.read(&self.run, 1, usize::MAX).await.unwrap()
    }
}

/// A blob store with the journal that makes its blobs durable, in a folder that only some adapters use.
pub(crate) trait Blobs: Sized {
    fn open(folder: &Path) -> Self;
    fn store(&self) -> &impl BlobStore;
    fn append(
        &self,
        expect: &[(StreamKey, u64)],
        events: &[Event],
    ) -> impl Future<Output = Result<Vec<Stored>, PortError>>;

    /// Opens the store as the next process would. An adapter in memory continues unchanged.
    fn reopen(self, folder: &Path) -> Self;
}

/// Journal and blobs in memory.
#[derive(Default)]
pub(crate) struct InMemory(MemoryLog, MemoryBlobs);

impl Blobs for InMemory {
    fn open(_: &Path) -> Self {
        Self::default()
    }

    fn store(&self) -> &impl BlobStore {
        &self.1
    }

    async fn append(&self, expect: &[(StreamKey, u64)], events: &[Event]) -> Result<Vec<Stored>, PortError> {
        self.0.append(&"run".into(), expect, Timestamp::now(), events).await
    }

    fn reopen(self, _: &Path) -> Self {
        self
    }
}

/// Journal and small blobs in a database, large blobs in a folder.
pub(crate) struct OnDisk(SqliteLog, DirBlobs);

impl Blobs for OnDisk {
    fn open(folder: &Path) -> Self {
        let dir = cap_std::fs::Dir::open_ambient_dir(folder, cap_std::ambient_authority()).unwrap();
        let log = SqliteLog::open(&folder.join("journal.sqlite"), "run".into()).unwrap();
        let blobs = log.blobs(&dir).unwrap();
        Self(log, blobs)
    }

    fn store(&self) -> &impl BlobStore {
        &self.1
    }

    async fn append(&self, expect: &[(StreamKey, u64)], events: &[Event]) -> Result<Vec<Stored>, PortError> {
        self.0.append(&"run".into(), expect, Timestamp::now(), events).await
    }

    fn reopen(self, folder: &Path) -> Self {
        drop(self);
        Self::open(folder)
    }
}

/// Journal in memory, blobs in an object store in a folder. They are durable before an append, so the journal is not part of it.
pub(crate) struct InObjects(MemoryLog, ObjectBlobs);

impl Blobs for InObjects {
    fn open(folder: &Path) -> Self {
        Self(MemoryLog::default(), ObjectBlobs::in_folder(folder).unwrap())
    }

    fn store(&self) -> &impl BlobStore {
        &self.1
    }

    async fn append(&self, expect: &[(StreamKey, u64)], events: &[Event]) -> Result<Vec<Stored>, PortError> {
        self.0.append(&"run".into(), expect, Timestamp::now(), events).await
    }

    fn reopen(self, folder: &Path) -> Self {
        Self(self.0, ObjectBlobs::in_folder(folder).unwrap())
    }
}

pub(crate) fn note(text: &str) -> Event {
    Event::RunCanceled(RunCanceled { by: text.to_owned() })
}

pub(crate) fn task(node: &str) -> Task {
    Task { generation: 0, branch: BranchId::main(), node: node.into(), visit: 1, work: Work::Handler }
}

pub(crate) fn ready(node: &str, due_at: Option<Timestamp>) -> Event {
    Event::StageReady(StageReady { task: task(node), ordinal: 1, due_at })
}

pub(crate) fn after(now: Timestamp, ms: i64) -> Timestamp {
    now.checked_add(SignedDuration::from_millis(ms)).unwrap()
}

/// Declares each test once for each adapter.
macro_rules! suite {
    ($adapter:ident: $type:ty) => {
        mod $adapter {
            use super::*;

            #[tokio::test]
            async fn what_is_appended_is_what_is_read() {
                if <$type>::can_run() {
                    log::what_is_appended_is_what_is_read::<$type>().await;
                }
            }

            #[tokio::test]
            async fn the_chain_is_the_same_in_every_adapter() {
                if <$type>::can_run() {
                    log::the_chain_is_the_same_in_every_adapter::<$type>().await;
                }
            }

            #[tokio::test]
            async fn a_second_run_sees_nothing_of_the_first() {
                if <$type>::can_run() {
                    log::a_second_run_sees_nothing_of_the_first::<$type>().await;
                }
            }

            #[tokio::test(flavor = "multi_thread", worker_threads = 4)]
            async fn of_sixteen_writers_with_one_expectation_one_is_stored() {
                if <$type>::can_run() {
                    log::of_sixteen_writers_with_one_expectation_one_is_stored::<$type>().await;
                }
            }

            #[tokio::test]
            async fn a_stale_token_stores_nothing_of_its_batch() {
                if <$type>::can_run() {
                    log::a_stale_token_stores_nothing_of_its_batch::<$type>().await;
                }
            }

            #[tokio::test]
            async fn append_is_enqueue_and_a_lease_comes_back() {
                if <$type>::can_run() {
                    queue::append_is_enqueue_and_a_lease_comes_back::<$type>().await;
                }
            }

            #[tokio::test]
            async fn timers_are_due_in_their_order() {
                if <$type>::can_run() {
                    queue::timers_are_due_in_their_order::<$type>().await;
                }
            }

            #[tokio::test]
            async fn a_finished_task_is_not_delivered_again() {
                if <$type>::can_run() {
                    queue::a_finished_task_is_not_delivered_again::<$type>().await;
                }
            }

            #[tokio::test]
            async fn what_a_run_begins_again_before_is_not_delivered() {
                if <$type>::can_run() {
                    queue::what_a_run_begins_again_before_is_not_delivered::<$type>().await;
                }
            }

            #[tokio::test]
            async fn a_delivery_that_is_held_is_not_handed_out() {
                if <$type>::can_run() {
                    queue::a_delivery_that_is_held_is_not_handed_out::<$type>().await;
                }
            }

            #[tokio::test]
            async fn a_job_of_three_leases_is_not_handed_out_twice() {
                if <$type>::can_run() {
                    queue::a_job_of_three_leases_is_not_handed_out_twice::<$type>().await;
                }
            }

            #[tokio::test]
            async fn the_clock_of_a_worker_decides_no_ownership() {
                if <$type>::can_run() {
                    queue::the_clock_of_a_worker_decides_no_ownership::<$type>().await;
                }
            }

            #[tokio::test]
            async fn a_run_is_driven_to_its_end() {
                if <$type>::can_run() {
                    run::a_run_is_driven_to_its_end::<$type>().await;
                }
            }

            #[tokio::test]
            async fn a_delivery_that_comes_twice_is_worked_on_once() {
                if <$type>::can_run() {
                    run::a_delivery_that_comes_twice_is_worked_on_once::<$type>().await;
                }
            }

            #[tokio::test]
            async fn a_stage_after_a_stage_costs_one_append() {
                if <$type>::can_run() {
                    run::a_stage_after_a_stage_costs_one_append::<$type>().await;
                }
            }

            #[tokio::test]
            async fn a_worker_that_paused_too_long_stores_nothing() {
                if <$type>::can_run() {
                    run::a_worker_that_paused_too_long_stores_nothing::<$type>().await;
                }
            }

            #[tokio::test]
            async fn an_answer_that_was_lost_is_found_in_the_journal() {
                if <$type>::can_run() {
                    run::an_answer_that_was_lost_is_found_in_the_journal::<$type>().await;
                }
            }

            #[tokio::test]
            async fn a_claim_that_was_overtaken_before_it_was_known_executes_nothing() {
                if <$type>::can_run() {
                    run::a_claim_that_was_overtaken_before_it_was_known_executes_nothing::<$type>().await;
                }
            }

            #[tokio::test]
            async fn a_claim_expects_the_head_that_it_saw() {
                if <$type>::can_run() {
                    run::a_claim_expects_the_head_that_it_saw::<$type>().await;
                }
            }

            #[tokio::test]
            async fn a_delivery_of_an_earlier_attempt_claims_nothing() {
                if <$type>::can_run() {
                    run::a_delivery_of_an_earlier_attempt_claims_nothing::<$type>().await;
                }
            }

            #[tokio::test]
            async fn a_cancel_and_a_commit_race_and_one_order_is_stored() {
                if <$type>::can_run() {
                    run::a_cancel_and_a_commit_race_and_one_order_is_stored::<$type>().await;
                }
            }

            #[tokio::test]
            async fn a_driver_that_was_replaced_stores_nothing_more() {
                if <$type>::can_run() {
                    takeover::a_driver_that_was_replaced_stores_nothing_more::<$type>().await;
                }
            }

            #[tokio::test]
            async fn of_two_drivers_that_take_over_one_does() {
                if <$type>::can_run() {
                    takeover::of_two_drivers_that_take_over_one_does::<$type>().await;
                }
            }

            #[tokio::test]
            async fn equal_events_of_another_driver_are_not_those_of_a_lost_append() {
                if <$type>::can_run() {
                    takeover::equal_events_of_another_driver_are_not_those_of_a_lost_append::<$type>().await;
                }
            }

            #[tokio::test]
            async fn a_run_that_has_ended_is_not_taken_over() {
                if <$type>::can_run() {
                    takeover::a_run_that_has_ended_is_not_taken_over::<$type>().await;
                }
            }

            #[tokio::test]
            async fn a_driver_that_takes_over_adopts_attempts_in_progress() {
                if <$type>::can_run() {
                    adopt::a_driver_that_takes_over_adopts_attempts_in_progress::<$type>().await;
                }
            }

            #[tokio::test]
            async fn a_result_that_came_before_the_takeover_counts() {
                if <$type>::can_run() {
                    adopt::a_result_that_came_before_the_takeover_counts::<$type>().await;
                }
            }

            #[tokio::test]
            async fn an_attempt_whose_machine_is_lost_is_made_again_and_its_late_result_is_dropped() {
                if <$type>::can_run() {
                    adopt::an_attempt_whose_machine_is_lost_is_made_again_and_its_late_result_is_dropped::<$type>()
                        .await;
                }
            }

            #[tokio::test]
            async fn a_resume_abandons_attempts_that_a_takeover_would_adopt() {
                if <$type>::can_run() {
                    adopt::a_resume_abandons_attempts_that_a_takeover_would_adopt::<$type>().await;
                }
            }

            #[tokio::test]
            async fn adopted_attempts_of_a_canceled_run_are_stopped() {
                if <$type>::can_run() {
                    adopt::adopted_attempts_of_a_canceled_run_are_stopped::<$type>().await;
                }
            }

            #[tokio::test]
            async fn a_machine_keeps_its_seat_for_the_stages_that_it_can_make() {
                if <$type>::can_run() {
                    adopt::a_machine_keeps_its_seat_for_the_stages_that_it_can_make::<$type>().await;
                }
            }

            #[tokio::test]
            async fn mail_that_comes_twice_counts_once() {
                if <$type>::can_run() {
                    mail::mail_that_comes_twice_counts_once::<$type>().await;
                }
            }

            #[tokio::test]
            async fn a_cancel_that_comes_twice_counts_once() {
                if <$type>::can_run() {
                    mail::a_cancel_that_comes_twice_counts_once::<$type>().await;
                }
            }

            #[tokio::test]
            async fn a_journal_that_moves_to_another_adapter_folds_the_same() {
                if <$type>::can_run() {
                    run::a_journal_that_moves_to_another_adapter_folds_the_same::<$type>().await;
                }
            }
        }
    };
}

suite!(memory: MemoryLog);
suite!(sqlite: SqliteLog);
suite!(nats: NatsLog);

/// Drivers that share one adapter, as here, also share the leases of a driver that was killed. Over NATS each process has its own, and a
/// driver dies there between a lease and its claim so often that the others mostly wait.
mod kills {
    use super::*;

    #[tokio::test]
    async fn each_task_is_finished_once_in_memory() {
        adopt::each_task_is_finished_once_whatever_dies::<MemoryLog>().await;
    }

    #[tokio::test]
    async fn each_task_is_finished_once_on_disk() {
        adopt::each_task_is_finished_once_whatever_dies::<SqliteLog>().await;
    }
}

/// Declares each test of blobs once for each adapter.
macro_rules! blob_suite {
    ($adapter:ident: $type:ty) => {
        mod $adapter {
            use super::*;

            #[tokio::test]
            async fn what_is_put_is_what_is_opened() {
                blobs::what_is_put_is_what_is_opened::<$type>().await;
            }

            #[tokio::test]
            async fn a_blob_that_is_missing_is_corrupt() {
                blobs::a_blob_that_is_missing_is_corrupt::<$type>().await;
            }

            #[tokio::test]
            async fn what_was_put_before_an_append_is_there_after_it() {
                blobs::what_was_put_before_an_append_is_there_after_it::<$type>().await;
            }

            #[tokio::test]
            async fn an_append_that_is_refused_loses_no_blob() {
                blobs::an_append_that_is_refused_loses_no_blob::<$type>().await;
            }

            #[tokio::test]
            async fn more_than_memory_takes_is_stored_too() {
                blobs::more_than_memory_takes_is_stored_too::<$type>().await;
            }
        }
    };
}

blob_suite!(blobs_in_memory: InMemory);
blob_suite!(blobs_on_disk: OnDisk);
blob_suite!(blobs_in_objects: InObjects);
