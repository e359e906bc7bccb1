//! The journals of runs on JetStream, and their claim queues.
//!
//! One append is one message: a frame, published under one compare-and-set on the run's subject, in one atomic batch with
//! a pointer to each task that it made ready. The heads of streams are checked here, in the fold of the frames; the
//! compare-and-set proves that the fold was complete.
//!
//! An answer that was lost is resolved, never guessed: the same frame is published again. It is then either stored or
//! refused, and the frame that is in its place shows by its nonce whose it is. Only if the server stays silent for the
//! whole patience the append is [`PortError::Ambiguous`]. No call creates a stream.

use crate::blobs::ObjectBlobs;
use crate::fleet::NOT_JOINED;
use crate::frame::{self, EVENTS_BYTES_MAX, Frame, FrameEvents};
use crate::jetstream::{BATCH_MAX, JetStream, Message, Publish, RequestError};
use crate::repetition::{self, Pause};
use crate::roster::{self, Roster};
use crate::run::{Place, RunFold};
use crate::run_key::{RunKey, RunKeys, Secrecy};
use crate::statement::Role;
use crate::wire::Pointer;
use futures_util::StreamExt as _;
use futures_util::stream;
use glovebox_journal::event::{Digest, Event, Record, RunId, StreamKey, Task, whole_milliseconds};
use glovebox_journal::lease::LeaseTable;
use glovebox_journal::ports::{BlobStore as _, ClaimQueue, Delivery, Next, PortError, RunLog, Stored};
use glovebox_signing::key::SigningKey;
use jiff::Timestamp;
use std::collections::{BTreeMap, HashMap};
use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Mutex as Turn;
use ulid::Ulid;

/// Number of frames that are requested at the same time.
const READS_MAX: usize = 16;

/// The journals of a fleet's runs.
pub struct NatsLog {
    jetstream: JetStream,
    blobs: ObjectBlobs,
    /// How long a request is repeated while the server gives no answer.
    patience: Duration,
    /// Who may sign, and the key of this machine. Without it, nothing can be read or appended.
    roster: Option<Arc<Roster>>,
    /// The keys of encrypted runs.
    keys: RunKeys,
    /// Each run's fold. An append holds its turn until it is decided, because the next frame depends on it.
    runs: Mutex<HashMap<RunId, Arc<Turn<RunFold>>>>,
    leases: Mutex<LeaseTable>,
}

impl NatsLog {
    /// Creates the log over a stream. Large frames are in `blobs`. A request without an answer is repeated for `patience`.
    /// Frames of signers that `roster` does not have are refused.
    pub(crate) fn new(
        jetstream: JetStream,
        blobs: ObjectBlobs,
        patience: Duration,
        roster: Option<Arc<Roster>>,
        keys: RunKeys,
    ) -> Self {
        Self { jetstream, blobs, patience, roster, keys, runs: Mutex::default(), leases: Mutex::default() }
    }

    /// Returns the fold of a run, which may be behind the stream.
    fn fold(&self, run: &RunId) -> Arc<Turn<RunFold>> {
        let mut runs = self.runs.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(runs.entry(run.clone()).or_default())
    }

    fn leases(&self) -> MutexGuard<'_, LeaseTable> {
        self.leases.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn roster(&self) -> Result<&Roster, PortError> {
        self.roster.as_deref().ok_or_else(|| PortError::Unavailable(NOT_JOINED.to_owned()))
    }

    /// Repeats a read until there is an answer.
    async fn patiently<T, F>(&self, request: impl FnMut() -> F) -> Result<T, PortError>
    where
        F: Future<Output = Result<T, RequestError>>,
    {
        repetition::patiently(self.patience, request).await.map_err(|error| self.failed(error))
    }

    /// Returns the error of a request that stored nothing.
    fn failed(&self, error: RequestError) -> PortError {
        let stream = self.jetstream.name.stream();
        PortError::Unavailable(match error {
            RequestError::NoStream => {
                format!("the stream `{stream}` does not exist\nhelp: create it once: `glovebox fleet init`")
            }
            RequestError::NoAnswer(reason) => format!("the NATS server gives no answer: {reason}"),
            RequestError::NoReceiver
            | RequestError::WrongHead
            | RequestError::Forbidden(_)
            | RequestError::Refused(_) => format!("stream `{stream}`: {error}"),
        })
    }

    /// Reads the frames that were stored since the last call, until the fold ends at the head that the stream's leader
    /// has. After an error the fold has some of them.
    async fn catch_up(&self, run: &RunId, fold: &mut RunFold) -> Result<(), PortError> {
        let subject = self.jetstream.name.run(run);
        let (begun, mut pause) = (fold.head, Pause::new(self.patience));
        loop {
            let last = self.patiently(|| self.jetstream.last(&subject)).await?.map_or(0, |last| last.seq);
            // Every message is read: a frame that is not the first after the head was never under the compare-and-set.
            while fold.head < last {
                let messages = self.after(&subject, fold.head, last).await?;
                if messages.is_empty() {
                    break;
                }
                for message in messages {
                    let (header, records) = self.decode(run, &message, last, fold.tip).await?;
                    fold.apply(message.seq, &header.nonce, &records);
                }
            }
            // A message that was appended in between may have been read too.
            if fold.head == last || fold.head > last && begun < last {
                return Ok(());
            }
            // A new leader may not have applied all messages yet.
            pause.again(RequestError::WrongHead).await.map_err(|_| fold.shrunk())?;
        }
    }

    /// Returns some of the messages after number `head`, in order and without a gap. The subject's last one is `last`.
    async fn after(&self, subject: &str, head: u64, last: u64) -> Result<Vec<Message>, PortError> {
        let next = self.patiently(|| self.jetstream.next(subject, head + 1)).await?;
        let mut messages: Vec<Message> = next.into_iter().collect();
        if let Some(next) = messages.first().filter(|next| next.seq < last) {
            // Any replica may answer. What it does not have or does not answer is read from the leader.
            let more = self.jetstream.batch(subject, next.seq + 1).await;
            messages.extend(more.unwrap_or_default());
        }
        Ok(messages)
    }

    /// Returns the header and the records of a frame, verified against the end of the journal before it and against the
    /// statements about its signer. Messages up to number `last` are read together with it.
    async fn decode(
        &self,
        run: &RunId,
        message: &Message,
        last: u64,
        tip: frame::Tip,
    ) -> Result<(frame::Header, Vec<Record>), PortError> {
        let (header, lines) = frame::parse(&message.payload, tip.seq + 1)?;
        // A frame that was stored twice is called so before anybody is asked who signed it.
        frame::follows(&header, tip)?;
        header.check_signature(self.roster()?.id(), run)?;
        let at = roster::Place::new(message.seq, message.time).before(last);
        self.roster()?.require(&header.signer, at, roles(header.first), header.first).await?;
        let secrecy = match header.first {
            1 => self.secrecy_in(run, &header)?,
            _ => self.secrecy(run).await?,
        };
        let key = secrecy.key();
        if header.key_id != key.map(RunKey::id) {
            return Err(frame::corrupt(header.first, "its frame is not encrypted as its run is"));
        }
        let lines = match frame::events(&header, lines, key)? {
            FrameEvents::Lines(lines) => lines,
            FrameEvents::Blob(digest) => {
                let blobs = self.blobs_with(&secrecy);
                let read = tokio::task::spawn_blocking(move || blobs.read_all(&digest, EVENTS_BYTES_MAX));
                let bytes = read.await.map_err(|error| PortError::Unavailable(error.to_string()))??;
                String::from_utf8(bytes).map_err(|error| frame::corrupt(header.first, error.to_string()))?
            }
        };
        let records = frame::verify(&header, &lines, tip, key)?;
        Ok((header, records))
    }

    /// Returns whether a run is encrypted, as its first frame says, whose signature was checked.
    fn secrecy_in(&self, run: &RunId, first: &frame::Header) -> Result<Secrecy, PortError> {
        if let Some(kept) = self.keys.kept(run) {
            return Ok(kept);
        }
        let own = |key: &SigningKey| {
            let id = self.roster.as_ref()?.id();
            let own = first.keys.iter().filter(|sealed| sealed.machine == key.public());
            own.filter_map(|sealed| RunKey::unseal(sealed, id, run, key)).next()
        };
        let Some(key_id) = first.key_id else {
            self.keys.keep(run, Secrecy::Open);
            return Ok(Secrecy::Open);
        };
        let is_right = |key: &RunKey| key.id() == key_id;
        if let Some(key) = self.roster()?.key().ok().and_then(own).filter(is_right) {
            self.keys.keep(run, Secrecy::encrypted(key.clone()));
            return Ok(Secrecy::encrypted(key));
        }
        // A driver may have lent it.
        let lent = self.keys.unchecked(run).filter(is_right);
        let key = lent.ok_or_else(|| PortError::NoKey { run: run.clone() })?;
        self.keys.check(run);
        Ok(Secrecy::encrypted(key))
    }

    /// Returns whether a run is encrypted, as its first frame says, or as this process said that begins it.
    ///
    /// # Errors
    ///
    /// As for [`NatsLog::blobs_of`].
    pub(crate) async fn secrecy(&self, run: &RunId) -> Result<Secrecy, PortError> {
        if let Some(known) = self.keys.checked(run) {
            return Ok(known);
        }
        let subject = self.jetstream.name.run(run);
        // Whoever withholds the frame must not have the run taken for one that is not encrypted.
        let message = self.patiently(|| self.jetstream.next(&subject, 1)).await?;
        let message = message.ok_or_else(|| PortError::Unavailable(format!("run `{run}` has no first frame")))?;
        let (header, _) = frame::parse(&message.payload, 1)?;
        frame::follows(&header, frame::Tip::START)?;
        header.check_signature(self.roster()?.id(), run)?;
        let at = roster::Place::new(message.seq, message.time);
        self.roster()?.require(&header.signer, at, roles(1), 1).await?;
        self.secrecy_in(run, &header)
    }

    /// Returns the blobs of a run. Those of an encrypted run are decrypted.
    ///
    /// # Errors
    ///
    /// [`PortError::NoKey`] if the run is encrypted and this machine does not have its key; the stream does not answer, or its
    /// first frame does not count.
    pub async fn blobs_of(&self, run: &RunId) -> Result<ObjectBlobs, PortError> {
        Ok(self.blobs_with(&self.secrecy(run).await?))
    }

    pub(crate) fn blobs_with(&self, secrecy: &Secrecy) -> ObjectBlobs {
        match secrecy.key() {
            None => self.blobs.clone(),
            Some(key) => self.blobs.encrypted(key.clone()),
        }
    }

    /// Stores the frame that follows the fold, and applies it. Returns false if another frame is in its place, which the
    /// fold then has.
    async fn publish(
        &self,
        run: &RunId,
        fold: &mut RunFold,
        frame: &Frame,
        key: &SigningKey,
    ) -> Result<bool, PortError> {
        let secrecy = match frame.first() {
            1 => self.keys.checked(run).unwrap_or(Secrecy::Open),
            _ => self.secrecy(run).await?,
        };
        let messages = self.messages(run, frame, &secrecy, key).await?;
        let (head, mut pause, mut round) = (fold.head, Pause::new(self.patience), 0);
        loop {
            round += 1;
            let batch = format!("{}-{round}", frame.nonce);
            let error = match self.jetstream.append(&messages, Some(head), &batch).await {
                Ok(seq) => {
                    fold.apply(seq, &frame.nonce, &frame.records);
                    if frame.first() == 1 {
                        self.keys.keep(run, secrecy);
                    }
                    return Ok(true);
                }
                Err(error @ RequestError::WrongHead) => {
                    let caught = self.catch_up(run, fold).await;
                    // An earlier round may have stored the frame: the nonce tells.
                    if let Some(nonce) = fold.nonce_at(frame.first()) {
                        return Ok(nonce == frame.nonce);
                    }
                    match caught {
                        Ok(()) => error,
                        Err(PortError::Unavailable(reason)) => RequestError::NoAnswer(reason),
                        Err(error) => return Err(error),
                    }
                }
                Err(RequestError::NoReceiver) => self.why_no_receiver().await,
                Err(error) => error,
            };
            if round == 1
                && matches!(error, RequestError::NoStream | RequestError::Forbidden(_) | RequestError::Refused(_))
            {
                return Err(self.failed(error));
            }
            tracing::debug!(round, %error, "publishing the same frame again");
            pause
                .again(error)
                .await
                .map_err(|error| PortError::Ambiguous(format!("record {} of run `{run}`: {error}", frame.first())))?;
        }
    }

    /// Tells a stream that does not exist from one that has no leader at the moment.
    async fn why_no_receiver(&self) -> RequestError {
        match self.jetstream.last(self.jetstream.name.stream()).await {
            Err(RequestError::NoStream) => RequestError::NoStream,
            _ => RequestError::NoReceiver,
        }
    }

    /// Returns the messages of a frame: the pointers that it makes, and the frame itself at the end.
    async fn messages(
        &self,
        run: &RunId,
        frame: &Frame,
        secrecy: &Secrecy,
        key: &SigningKey,
    ) -> Result<Vec<Publish>, PortError> {
        let sealing = secrecy.sealing();
        let blob = match frame.too_large(sealing) {
            Some(events) => Some(put(self.blobs_with(secrecy), events.to_owned()).await?),
            None => None,
        };
        let payload = frame
            .message(self.roster()?.id(), run, blob, sealing, key)
            .map_err(|error| PortError::Unavailable(error.to_string()))?;
        let mut messages = self.pointers(run, frame);
        // Pointers that do not fit into the batch are stored before it. A pointer is a hint: whoever reads one asks the
        // driver, so one whose frame is then refused does no harm.
        while messages.len() >= BATCH_MAX {
            let early: Vec<Publish> = messages.drain(..BATCH_MAX.min(messages.len())).collect();
            self.patiently(|| {
                let (early, batch) = (&early, Ulid::generate().to_string());
                async move { self.jetstream.append(early, None, &batch).await }
            })
            .await?;
        }
        messages.push(Publish { subject: self.jetstream.name.run(run), payload: payload.into() });
        Ok(messages)
    }

    /// Returns a pointer to the run with its first frame, and one to each task that the frame leaves ready.
    fn pointers(&self, run: &RunId, frame: &Frame) -> Vec<Publish> {
        let mut ready: BTreeMap<u64, &Task> = BTreeMap::new();
        for record in &frame.records {
            match &record.event {
                Event::StageReady(event) => drop(ready.insert(record.seq, &event.task)),
                // The driver claimed it in the same append, for a machine that it knows.
                Event::StageStarted(event) => ready.retain(|_, task| **task != event.attempt.task),
                _ => {}
            }
        }
        let name = &self.jetstream.name;
        let first = frame.first() == 1;
        let first = first.then(|| Publish { subject: name.drive(run), payload: Pointer::new(run, 1, None).payload() });
        let stages = ready.into_iter().map(|(seq, task)| Publish {
            subject: name.stage(run, task),
            payload: Pointer::new(run, seq, Some(task.clone())).payload(),
        });
        first.into_iter().chain(stages).collect()
    }

    /// Requests the frames at these places, in order.
    fn frames<'a>(
        &'a self,
        places: &'a [Place],
    ) -> impl stream::Stream<Item = Result<(&'a Place, Option<Message>), PortError>> + 'a {
        let reads = places.iter().map(move |place| async move {
            let message = self.patiently(|| self.jetstream.at(place.message)).await?;
            Ok((place, message))
        });
        stream::iter(reads).buffered(READS_MAX)
    }
}

async fn put(blobs: ObjectBlobs, events: String) -> Result<Digest, PortError> {
    let put = tokio::task::spawn_blocking(move || blobs.put_bytes(events.as_bytes()));
    put.await.map_err(|error| PortError::Unavailable(error.to_string()))?
}

/// Returns the roles of which a signer needs one for the frame that begins with a record. Whoever submits a run begins it.
fn roles(first: u64) -> &'static [Role] {
    if first == 1 { &[Role::Submit, Role::Drive] } else { &[Role::Drive] }
}

impl RunLog for NatsLog {
    async fn append(
        &self,
        run: &RunId,
        expect: &[(StreamKey, u64)],
        at: Timestamp,
        events: &[Event],
    ) -> Result<Vec<Stored>, PortError> {
        let (texts, at) = (frame::texts(events)?, whole_milliseconds(at));
        let fold = self.fold(run);
        let mut fold = fold.lock().await;
        // The fold may be behind. It is behind for certain before the first append of this process.
        if fold.tip.seq == 0 || events.is_empty() || fold.check(expect).is_err() {
            self.catch_up(run, &mut fold).await?;
        }
        loop {
            fold.check(expect)?;
            if events.is_empty() {
                return Ok(Vec::new());
            }
            // A frame of a machine that is not admitted would make the journal unreadable for everybody.
            let (key, _) = self.roster()?.signer(roles(fold.tip.seq + 1)).await?;
            let frame = Frame::new(fold.tip, at, events, &texts, Ulid::generate().to_string());
            if self.publish(run, &mut fold, &frame, key).await? {
                return Ok(frame.stored());
            }
        }
    }

    async fn read(&self, run: &RunId, from: u64, records_max: usize) -> Result<Vec<Record>, PortError> {
        let from = from.max(1);
        let (mut tip, places) = {
            let fold = self.fold(run);
            let mut fold = fold.lock().await;
            self.catch_up(run, &mut fold).await?;
            let (tip, places) = fold.places(from);
            // Each frame has at least one record.
            (tip, places[..places.len().min(records_max)].to_vec())
        };
        let mut records = Vec::new();
        let mut frames = std::pin::pin!(self.frames(&places));
        while records.len() < records_max
            && let Some(frame) = frames.next().await
        {
            let (place, message) = frame?;
            let message = message.ok_or_else(|| frame::corrupt(place.first, "it is not in the stream any more"))?;
            let (_, found) = self.decode(run, &message, message.seq, tip).await?;
            let end = found.last().map_or(tip, |last| frame::Tip { seq: last.seq, hash: last.hash });
            if end.hash != place.hash {
                return Err(frame::corrupt(place.first, "it has changed since the journal was verified"));
            }
            tip = end;
            records.extend(found.into_iter().filter(|record| record.seq >= from));
        }
        records.truncate(records_max);
        Ok(records)
    }
}

impl ClaimQueue for NatsLog {
    async fn next(&self, run: &RunId, now: Timestamp, lease_ms: u64) -> Result<Next, PortError> {
        let fold = self.fold(run);
        let mut fold = fold.lock().await;
        let next = fold.queue.next(run, &mut self.leases(), now, lease_ms);
        if matches!(next, Next::Due(_)) {
            return Ok(next);
        }
        // Another process may have appended.
        self.catch_up(run, &mut fold).await?;
        Ok(fold.queue.next(run, &mut self.leases(), now, lease_ms))
    }

    async fn extend(&self, delivery: &Delivery, now: Timestamp, lease_ms: u64) -> Result<bool, PortError> {
        Ok(self.leases().extend(delivery, now, lease_ms))
    }

    async fn hold(&self, delivery: &Delivery, now: Timestamp, lease_ms: u64) -> Result<(), PortError> {
        self.leases().hold(delivery, now, lease_ms);
        Ok(())
    }

    async fn done(&self, delivery: &Delivery) -> Result<(), PortError> {
        self.leases().end(delivery);
        Ok(())
    }
}
