//! Tests that a message counts once, however often it is delivered.

use super::Adapter;
use super::run::{driver, started, succeed};
use super::takeover::successor;
use glovebox_engine::driver::Here;
use glovebox_engine::inbox::{Attendance, GivenAnswer, GivenSteering, Inbox, Mail, Message};
use glovebox_engine::signals::LocalSignals;
use glovebox_journal::event::{AnsweredBy, Event, Verdict};
use glovebox_pipeline::{Inputs, Source, check};
use jiff::Timestamp;

const GATED: &str =
    "digraph g { start [shape=Mdiamond]; exit [shape=Msquare]; a [prompt=a]; ask [shape=hexagon]; b [prompt=b];
    start -> a -> ask; ask -> b [label=\"Yes\"]; ask -> a [label=\"No\"]; b -> exit }";

/// A source that delivers its messages again and again, whatever becomes of them.
struct Insistent(Vec<Message>);

impl Mail for Insistent {
    async fn arrival(&mut self) {
        tokio::time::sleep(std::time::Duration::from_millis(1)).await;
    }

    fn messages(&mut self) -> Vec<Message> {
        [self.0.clone(), self.0.clone()].concat()
    }

    fn done(&mut self, _name: &str) {}
}

pub(crate) async fn mail_that_comes_twice_counts_once<L: Adapter>() {
    let pipeline = check(Source::new(GATED), &Inputs::default()).pipeline.unwrap();
    let (under, signals) = (L::empty().await, LocalSignals::new());
    let mut first = driver(&pipeline, &*under.log, &signals);
    first.start(started()).await.unwrap();
    first.drive(succeed).await.unwrap();
    let records = under.records().await;
    assert_eq!(records.last().map(|record| record.event.kind()), Some("run.paused"));
    let asked = records.iter().find_map(|record| record.event.question_asked()).unwrap();
    let answer = GivenAnswer {
        value: "Yes".into(),
        by: "ada".into(),
        ..GivenAnswer::none(&asked.question, AnsweredBy::Command, Timestamp::now())
    };
    let steering = GivenSteering::new("b".into(), "look at the tests".into(), "ada".into());
    let mail = Insistent(vec![Message::Answer(answer), Message::Steer(steering)]);
    let (mut second, last) = successor(&pipeline, &*under.log, &signals, "d2").await;
    second.take_over(last).await.unwrap();
    let slowly = async |assignment| {
        tokio::time::sleep(std::time::Duration::from_millis(200)).await;
        succeed(assignment).await
    };
    second.drive_on(&Here(&slowly), Inbox::new(Attendance::default(), mail)).await.unwrap();
    let records = under.records().await;
    let count = |is: fn(&Event) -> bool| records.iter().filter(|record| is(&record.event)).count();
    assert_eq!(count(|event| matches!(event, Event::QuestionAnswered(_))), 1);
    assert_eq!(count(|event| matches!(event, Event::StageSteered(_))), 1);
    assert_eq!(second.replay.state.verdict.as_ref().map(|ended| ended.status), Some(Verdict::Success));
}

pub(crate) async fn a_cancel_that_comes_twice_counts_once<L: Adapter>() {
    let pipeline = check(Source::new(GATED), &Inputs::default()).pipeline.unwrap();
    let (under, signals) = (L::empty().await, LocalSignals::new());
    let mut run = driver(&pipeline, &*under.log, &signals);
    run.start(started()).await.unwrap();
    let mail = Insistent(vec![Message::Cancel { by: "ada".into() }]);
    run.drive_on(&Here(&succeed), Inbox::new(Attendance::default(), mail)).await.unwrap();
    let records = under.records().await;
    let canceled = records.iter().filter(|record| matches!(record.event, Event::RunCanceled(_))).count();
    assert_eq!((canceled, run.replay.state.is_over()), (1, true));
}
