//! The spans of a run: run, visit of a stage, attempt, and command or model turn.
//!
//! The record has the times of attempts. Of a command it has the duration, so the commands of an attempt follow each other
//! from its beginning; of a turn it has none, so a turn is a point at the end of its attempt. Such spans have the attribute
//! `glovebox.time.is_known` = false.

use super::values::{flag, nanos, number, span_id, text, trace_id};
use super::visits::{Attempt, Visit};
use super::{RunFacts, span_of_run};
use glovebox_record::Status as StageStatus;
use glovebox_record::transcript::Turn;
use glovebox_state::evidence::Command;
use opentelemetry_proto::tonic::common::v1::KeyValue;
use opentelemetry_proto::tonic::trace::v1::span::SpanKind;
use opentelemetry_proto::tonic::trace::v1::status::StatusCode;
use opentelemetry_proto::tonic::trace::v1::{Span, Status};

const MILLISECOND: u64 = 1_000_000;

/// A span that others are below.
struct Parent<'a> {
    trace_id: &'a [u8],
    span_id: &'a [u8],
}

/// Returns the spans of a run, each after the one that it is below.
pub(super) fn of(facts: &RunFacts) -> Vec<Span> {
    let trace_id = trace_id(&facts.run_id, facts.started);
    let root_id = span_id(&trace_id, "run", &facts.run_id);
    let (start, end) = span_of_run(facts);
    let attributes = vec![
        text("glovebox.run.id", &facts.run_id),
        text("glovebox.run.status", facts.status),
        text("glovebox.pipeline.name", &facts.pipeline),
        text("glovebox.pipeline.digest", &facts.pipeline_digest.to_string()),
        text("glovebox.plan.digest", &facts.plan.to_string()),
    ];
    let code = match facts.status {
        "success" => StatusCode::Ok,
        "fail" => StatusCode::Error,
        _ => StatusCode::Unset,
    };
    let root = Parent { trace_id: &trace_id, span_id: &[] };
    let name = format!("run {}", facts.pipeline);
    let mut spans = vec![span(&root, root_id.clone(), name, (start, end), attributes, code)];
    let parent = Parent { trace_id: &trace_id, span_id: &root_id };
    for visit in &facts.visits {
        match facts.is_hidden(visit) {
            true => spans.push(hidden_visit(&parent, visit)),
            false => open_visit(&parent, visit, facts, &mut spans),
        }
    }
    spans
}

/// Returns the span of a visit of a stage with hold-outs in reach: a point in time with the status.
fn hidden_visit(parent: &Parent<'_>, visit: &Visit) -> Span {
    let end = nanos(visit.ended());
    let id = span_id(parent.trace_id, "visit", &visit.task.to_string());
    let mut attributes = about_visit(visit);
    attributes.push(flag("glovebox.stage.is_beside_holdouts", true));
    span(parent, id, format!("stage {}", visit.stage()), (end, end), attributes, code(visit.status()))
}

fn open_visit(parent: &Parent<'_>, visit: &Visit, facts: &RunFacts, spans: &mut Vec<Span>) {
    let id = span_id(parent.trace_id, "visit", &visit.task.to_string());
    let mut attributes = about_visit(visit);
    attributes.push(number("glovebox.stage.attempts", visit.attempts.len() as u64));
    if let Some(stage) = visit.last() {
        attributes.push(text("glovebox.stage.handler", &stage.handler));
        attributes.extend(stage.outcome.failure.as_ref().map(|failure| text("error.type", failure.class.as_str())));
    }
    let (from, to) = (nanos(visit.started()), nanos(visit.ended()));
    let name = format!("stage {}", visit.stage());
    spans.push(span(parent, id.clone(), name, (from, to), attributes, code(visit.status())));
    let parent = Parent { trace_id: parent.trace_id, span_id: &id };
    for attempt in &visit.attempts {
        of_attempt(&parent, attempt, facts, spans);
    }
}

fn about_visit(visit: &Visit) -> Vec<KeyValue> {
    let task = &visit.task;
    let mut attributes = vec![
        text("glovebox.stage.name", &visit.stage()),
        text("glovebox.branch", task.branch.as_str()),
        number("glovebox.generation", task.generation.into()),
        number("glovebox.stage.visit", task.visit.into()),
    ];
    attributes.extend(visit.status().map(|status| text("glovebox.stage.status", status.as_str())));
    attributes
}

fn of_attempt(parent: &Parent<'_>, attempt: &Attempt, facts: &RunFacts, spans: &mut Vec<Span>) {
    let id = span_id(parent.trace_id, "attempt", attempt.id.as_str());
    let mut attributes = vec![
        text("glovebox.attempt.id", attempt.id.as_str()),
        number("glovebox.attempt.ordinal", attempt.ordinal.into()),
        flag("glovebox.attempt.is_undone", attempt.is_undone),
        flag("glovebox.attempt.is_finished", attempt.finished.is_some()),
    ];
    if let Some(stage) = attempt.stage() {
        attributes.push(text("glovebox.attempt.status", stage.outcome.status.as_str()));
        attributes.push(number("glovebox.attempt.refusals", stage.refusals.total));
        attributes.push(number("glovebox.attempt.turns", stage.model.turns_used.into()));
        attributes.push(number("gen_ai.usage.input_tokens", stage.model.tokens.input));
        attributes.push(number("gen_ai.usage.output_tokens", stage.model.tokens.output));
        attributes.push(number("glovebox.attempt.cost_micro_usd", stage.model.cost.0));
        attributes.extend(stage.outcome.failure.as_ref().map(|failure| text("error.type", failure.class.as_str())));
    }
    let (from, to) = (nanos(attempt.started), nanos(attempt.ended()));
    let status = attempt.stage().map(|stage| stage.outcome.status);
    let name = format!("attempt {}", attempt.ordinal);
    spans.push(span(parent, id.clone(), name, (from, to), attributes, code(status)));
    let parent = Parent { trace_id: parent.trace_id, span_id: &id };
    let mut at = from;
    for command in facts.commands.get(&attempt.id).into_iter().flatten() {
        let until = at.saturating_add(command.evidence.receipt.duration_ms.saturating_mul(MILLISECOND)).min(to);
        spans.push(of_command(&parent, command, (at, until)));
        at = until;
    }
    for (turn, number) in facts.turns.get(&attempt.id).into_iter().flatten().zip(1..) {
        spans.push(of_turn(&parent, turn, number, to));
    }
}

fn of_command(parent: &Parent<'_>, command: &Command, at: (u64, u64)) -> Span {
    let receipt = &command.evidence.receipt;
    // Arguments may have anything in them: only the name of the program is exported.
    let path = receipt.program.as_ref().map(|program| program.path.as_str());
    let program = path.or(receipt.argv.first().map(String::as_str)).unwrap_or_default();
    let program = program.rsplit('/').next().unwrap_or_default();
    let proof = serde_json::to_value(command.proof).unwrap_or_default();
    let mut attributes = vec![
        text("process.executable.name", program),
        text("glovebox.receipt.id", &receipt.id),
        text("glovebox.receipt.proof", proof.as_str().unwrap_or_default()),
        text("glovebox.command.ending", receipt.how.as_str()),
        number("glovebox.command.duration_ms", receipt.duration_ms),
        flag("glovebox.time.is_known", false),
    ];
    if let Some(code) = receipt.code {
        attributes.push(text("process.exit.code", &code.to_string()));
    }
    let code = if receipt.code == Some(0) { StatusCode::Ok } else { StatusCode::Error };
    let id = span_id(parent.trace_id, "command", &receipt.id);
    span(parent, id, format!("command {program}"), at, attributes, code)
}

fn of_turn(parent: &Parent<'_>, turn: &Turn, ordinal: u64, at: u64) -> Span {
    let model = turn.model.as_deref().unwrap_or("none");
    let mut attributes = vec![
        text("gen_ai.operation.name", "chat"),
        text("gen_ai.provider.name", &turn.provider),
        text("gen_ai.request.model", model),
        number("gen_ai.usage.input_tokens", turn.usage.input),
        number("gen_ai.usage.output_tokens", turn.usage.output),
        number("glovebox.turn", ordinal),
        flag("glovebox.time.is_known", false),
    ];
    attributes.extend(turn.answered_by.as_deref().map(|model| text("gen_ai.response.model", model)));
    attributes.extend(turn.error.as_deref().map(|kind| text("error.type", kind)));
    let code = if turn.error.is_some() { StatusCode::Error } else { StatusCode::Unset };
    let key: String = parent.span_id.iter().map(|byte| format!("{byte:02x}")).collect();
    let id = span_id(parent.trace_id, "turn", &format!("{key}/{ordinal}"));
    let mut span = span(parent, id, format!("chat {model}"), (at, at), attributes, code);
    span.kind = SpanKind::Client.into();
    span
}

fn code(status: Option<StageStatus>) -> StatusCode {
    match status {
        Some(StageStatus::Success | StageStatus::PartialSuccess) => StatusCode::Ok,
        Some(StageStatus::Fail | StageStatus::Retry) => StatusCode::Error,
        Some(StageStatus::Skipped) | None => StatusCode::Unset,
    }
}

fn span(
    parent: &Parent<'_>,
    span_id: Vec<u8>,
    name: String,
    (start, end): (u64, u64),
    attributes: Vec<KeyValue>,
    code: StatusCode,
) -> Span {
    Span {
        trace_id: parent.trace_id.to_vec(),
        span_id,
        parent_span_id: parent.span_id.to_vec(),
        name,
        kind: SpanKind::Internal.into(),
        start_time_unix_nano: start,
        end_time_unix_nano: end,
        attributes,
        status: Some(Status { message: String::new(), code: code.into() }),
        ..Span::default()
    }
}
