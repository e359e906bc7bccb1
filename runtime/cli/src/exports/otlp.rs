//! A run as OpenTelemetry: one trace, and metrics.
//!
//! Everything is computed from the record, so a second export of a run is the same, byte for byte: the ids are hashes of the
//! ids of run, visits, attempts and receipts. Nothing has text that stages, models or programs wrote: no prompt, no output,
//! no argument of a command, no path. Of a stage with hold-outs in reach there is its status and no duration, and no sum
//! counts it.

pub mod exporter;
pub mod headers;
mod metrics;
pub mod send;
mod spans;
mod values;
mod visits;

use crate::exit::{Exit, Stop};
use crate::runs::RunFolder;
use crate::runs::changes;
use crate::runs::conversations;
use crate::runs::hidden::Hidden;
use crate::runs::journal;
use glovebox_journal::event::{Digest, Record};
use glovebox_journal::rewind;
use glovebox_record::AttemptId;
use glovebox_record::transcript::Turn;
use glovebox_state::evidence::{Command, Evidence};
use jiff::Timestamp;
use opentelemetry_proto::tonic::common::v1::InstrumentationScope;
use opentelemetry_proto::tonic::metrics::v1::{MetricsData, ResourceMetrics, ScopeMetrics};
use opentelemetry_proto::tonic::resource::v1::Resource;
use opentelemetry_proto::tonic::trace::v1::{ResourceSpans, ScopeSpans, TracesData};
use std::collections::{BTreeMap, BTreeSet};
use values::{nanos, text};
use visits::Visit;

/// The version of the semantic conventions whose names are used. Those of `gen_ai.*` are still in development.
pub const CONVENTIONS: &str = "https://opentelemetry.io/schemas/1.37.0";

/// A run as telemetry.
pub struct Telemetry {
    traces: TracesData,
    metrics: MetricsData,
}

/// What is exported of a run.
struct RunFacts {
    run_id: String,
    pipeline: String,
    status: &'static str,
    started: Timestamp,
    ended: Timestamp,
    plan: Digest,
    pipeline_digest: Digest,
    visits: Vec<Visit>,
    commands: BTreeMap<AttemptId, Vec<Command>>,
    turns: BTreeMap<AttemptId, Vec<Turn>>,
    hidden: Hidden,
}

impl RunFacts {
    fn read(run: &RunFolder) -> Result<Self, Stop> {
        let records = journal::read_to_show(run)?;
        let started = journal::beginning(run, &records)?;
        let hidden = Hidden::in_records(&records);
        let in_force: BTreeSet<u64> = rewind::in_force(&records).iter().map(|record| record.seq).collect();
        let visits = visits::of(&records, &in_force);
        // The trees on which commands worked are not exported.
        let evidence = Evidence::read(&journal::open_to_show(run)?, |_| Digest::ZERO);
        let evidence = evidence.map_err(|error| journal::unreadable(run, &error))?;
        let mut commands: BTreeMap<AttemptId, Vec<Command>> = BTreeMap::new();
        for command in evidence.commands {
            commands.entry(command.attempt.id.clone()).or_default().push(command);
        }
        let blobs = changes::open_blobs(run)?;
        let mut turns = BTreeMap::new();
        for stage in records.iter().filter_map(|record| record.event.stage_finished()) {
            if !hidden.has(&stage.attempt.task.stage()) && !hidden.has(&stage.attempt.task.node) {
                turns.insert(stage.attempt.id.clone(), conversations::kept(run, stage, &blobs)?);
            }
        }
        let at = |record: Option<&Record>| record.map_or(Timestamp::UNIX_EPOCH, |record| record.at);
        Ok(Self {
            run_id: run.id.clone(),
            pipeline: started.pipeline.name.clone(),
            status: evidence.summary.status.as_str(),
            started: at(records.first()),
            ended: at(records.last()),
            plan: started.plan.digest,
            pipeline_digest: started.pipeline.digest,
            visits,
            commands,
            turns,
            hidden,
        })
    }

    fn is_hidden(&self, visit: &Visit) -> bool {
        self.hidden.has(&visit.task.stage()) || self.hidden.has(&visit.task.node)
    }

    /// Returns the visits of stages without hold-outs in reach.
    fn open_visits(&self) -> impl Iterator<Item = &Visit> {
        self.visits.iter().filter(|visit| !self.is_hidden(visit))
    }
}

impl Telemetry {
    /// Computes the telemetry of a run.
    pub fn of(run: &RunFolder) -> Result<Self, Stop> {
        let facts = RunFacts::read(run)?;
        let version = env!("CARGO_PKG_VERSION");
        let scope = Some(InstrumentationScope {
            name: "glovebox".to_owned(),
            version: version.to_owned(),
            ..InstrumentationScope::default()
        });
        let attributes = vec![text("service.name", "glovebox"), text("service.version", version)];
        let resource = Some(Resource { attributes, ..Resource::default() });
        let schema_url = CONVENTIONS.to_owned();
        let spans = ScopeSpans { scope: scope.clone(), spans: spans::of(&facts), schema_url: schema_url.clone() };
        let metrics = ScopeMetrics { scope, metrics: metrics::of(&facts), schema_url: schema_url.clone() };
        let traces =
            ResourceSpans { resource: resource.clone(), scope_spans: vec![spans], schema_url: schema_url.clone() };
        let metrics = ResourceMetrics { resource, scope_metrics: vec![metrics], schema_url };
        Ok(Self {
            traces: TracesData { resource_spans: vec![traces] },
            metrics: MetricsData { resource_metrics: vec![metrics] },
        })
    }

    /// Returns the traces and the metrics as OTLP JSON, each on one line.
    pub fn documents(&self) -> Result<[String; 2], Stop> {
        let failed = |error: serde_json::Error| Stop::new(Exit::Internal, format!("write telemetry: {error}"));
        let traces = serde_json::to_string(&self.traces).map_err(failed)?;
        Ok([traces, serde_json::to_string(&self.metrics).map_err(failed)?])
    }

    /// Returns the number of spans.
    pub fn spans_count(&self) -> usize {
        let scopes = self.traces.resource_spans.iter().flat_map(|resource| &resource.scope_spans);
        scopes.map(|scope| scope.spans.len()).sum()
    }
}

/// Returns the first and the last nanosecond of the run.
fn span_of_run(facts: &RunFacts) -> (u64, u64) {
    (nanos(facts.started), nanos(facts.ended))
}
