//! The metrics of a run: durations, spend, refusals and retries of its stages.
//!
//! Each point has the id of the run, and counts from its beginning to its end. So the points of a second export replace those
//! of the first.

use super::values::{number, text};
use super::visits::{Attempt, Visit};
use super::{RunFacts, span_of_run};
use glovebox_record::spend::MICRO;
use opentelemetry_proto::tonic::common::v1::KeyValue;
use opentelemetry_proto::tonic::metrics::v1::metric::Data;
use opentelemetry_proto::tonic::metrics::v1::number_data_point::Value;
use opentelemetry_proto::tonic::metrics::v1::{
    AggregationTemporality, Histogram, HistogramDataPoint, Metric, NumberDataPoint, Sum,
};
use std::collections::BTreeMap;

/// Upper bounds of the buckets of durations, seconds.
const BOUNDS: [f64; 11] = [0.1, 0.5, 1.0, 5.0, 10.0, 30.0, 60.0, 300.0, 600.0, 1800.0, 3600.0];

/// What is counted of a stage.
#[derive(Default)]
struct Counted {
    seconds: Vec<f64>,
    input_tokens: u64,
    output_tokens: u64,
    cost: u64,
    refusals: u64,
    retries: u64,
}

impl Counted {
    fn add(&mut self, visit: &Visit) {
        for stage in visit.attempts.iter().filter_map(Attempt::stage) {
            self.seconds.push(stage.duration_ms as f64 / 1_000.0);
            self.input_tokens += stage.model.tokens.input;
            self.output_tokens += stage.model.tokens.output;
            self.cost += stage.model.cost.0;
            self.refusals += stage.refusals.total;
            self.retries += u64::from(stage.follow_up.retrying);
        }
    }
}

/// Returns the metrics of the stages without hold-outs in reach.
pub(super) fn of(facts: &RunFacts) -> Vec<Metric> {
    let mut stages: BTreeMap<String, Counted> = BTreeMap::new();
    for visit in facts.open_visits() {
        stages.entry(visit.stage()).or_default().add(visit);
    }
    let about = |stage: &str| {
        vec![
            text("glovebox.run.id", &facts.run_id),
            text("glovebox.pipeline.name", &facts.pipeline),
            text("glovebox.stage.name", stage),
        ]
    };
    let counted = |name: &str, unit: &str, about_it: &str, value: &dyn Fn(&Counted) -> Value| {
        let points = stages.iter().map(|(stage, counted)| point(facts, about(stage), value(counted)));
        sum(name, unit, about_it, points.collect())
    };
    let whole = |number: u64| Value::AsInt(i64::try_from(number).unwrap_or(i64::MAX));
    let durations = stages.iter().map(|(stage, counted)| durations(facts, about(stage), &counted.seconds));
    vec![
        Metric {
            name: "glovebox.stage.duration".to_owned(),
            description: "Duration of the attempts of a stage".to_owned(),
            unit: "s".to_owned(),
            data: Some(Data::Histogram(Histogram {
                data_points: durations.collect(),
                aggregation_temporality: AggregationTemporality::Cumulative.into(),
            })),
            ..Metric::default()
        },
        counted("glovebox.stage.cost", "USD", "Cost of model calls of a stage", &|counted| {
            Value::AsDouble(counted.cost as f64 / MICRO as f64)
        }),
        counted("glovebox.stage.tokens.input", "{token}", "Tokens that a stage sent to models", &|counted| {
            whole(counted.input_tokens)
        }),
        counted("glovebox.stage.tokens.output", "{token}", "Tokens that a stage received from models", &|counted| {
            whole(counted.output_tokens)
        }),
        counted("glovebox.stage.refusals", "{refusal}", "What a stage tried and was refused", &|counted| {
            whole(counted.refusals)
        }),
        counted("glovebox.stage.retries", "{attempt}", "Attempts of a stage that another one followed", &|counted| {
            whole(counted.retries)
        }),
        sum("glovebox.run.visits", "{visit}", "Visits of stages without hold-outs in reach", {
            let attributes = vec![
                text("glovebox.run.id", &facts.run_id),
                text("glovebox.pipeline.name", &facts.pipeline),
                text("glovebox.run.status", facts.status),
                number("glovebox.stages", stages.len() as u64),
            ];
            vec![point(facts, attributes, whole(facts.open_visits().count() as u64))]
        }),
    ]
}

fn sum(name: &str, unit: &str, about: &str, data_points: Vec<NumberDataPoint>) -> Metric {
    Metric {
        name: name.to_owned(),
        description: about.to_owned(),
        unit: unit.to_owned(),
        data: Some(Data::Sum(Sum {
            data_points,
            aggregation_temporality: AggregationTemporality::Cumulative.into(),
            is_monotonic: true,
        })),
        ..Metric::default()
    }
}

fn point(facts: &RunFacts, attributes: Vec<KeyValue>, value: Value) -> NumberDataPoint {
    let (start, end) = span_of_run(facts);
    NumberDataPoint {
        attributes,
        start_time_unix_nano: start,
        time_unix_nano: end,
        value: Some(value),
        ..NumberDataPoint::default()
    }
}

fn durations(facts: &RunFacts, attributes: Vec<KeyValue>, seconds: &[f64]) -> HistogramDataPoint {
    let mut counts = vec![0_u64; BOUNDS.len() + 1];
    for second in seconds {
        counts[BOUNDS.iter().position(|bound| second <= bound).unwrap_or(BOUNDS.len())] += 1;
    }
    let (start, end) = span_of_run(facts);
    HistogramDataPoint {
        attributes,
        start_time_unix_nano: start,
        time_unix_nano: end,
        count: seconds.len() as u64,
        sum: Some(seconds.iter().sum()),
        bucket_counts: counts,
        explicit_bounds: BOUNDS.to_vec(),
        ..HistogramDataPoint::default()
    }
}
