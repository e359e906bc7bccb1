//! Checks of the scope. The host enforces it; these checks find a component that tries to leave it, and one that hides a refusal.

use super::contract::malformed;
use crate::bench::Bench;
use crate::error::TestError;
use crate::observed::Observed;
use crate::report::Finding;
use crate::sample::CANARY;
use crate::stage_file::HIDDEN;
use crate::text::quoted;
use glovebox_host::grants::Grants;
use glovebox_record::Refusal;
use glovebox_record::path::ScopePath;
use glovebox_record::scope::Entry;

/// Operations that change files, as refusals name them.
const WRITING: [&str; 7] = ["write", "make directory", "remove", "rename", "set times of", "link", "symlink"];
/// Operations that read files, as refusals name them.
const READING: [&str; 4] = ["read", "list", "stat", "read link"];
/// The operation of a refused command.
const RUNNING: &str = "run";

/// Returns the first refusal of the calls with the normal, the empty and the odd inputs that meets a condition.
fn refused(bench: &Bench<'_>, is: impl Fn(&Refusal) -> bool) -> Result<Option<String>, TestError> {
    let calls = bench.all_inputs()?;
    let found =
        calls.into_iter().find_map(|call| Some((call, call.report.refusals.iter().find(|refusal| is(refusal))?)));
    Ok(found.map(|(call, refusal)| described(call, refusal)))
}

fn described(call: &Observed, refusal: &Refusal) -> String {
    let Refusal { operation, path, reason, .. } = refusal;
    let path = if path.is_empty() { String::new() } else { format!(" {}", quoted(path)) };
    format!("with {}, it was refused to {operation}{path}: {}", call.title, crate::text::lines(reason))
}

pub(super) fn writes(bench: &Bench<'_>) -> Result<Finding, TestError> {
    for call in bench.all_inputs()? {
        if let Some(change) = call.changes.iter().find(|change| change.refused.is_some()) {
            let reason = change.refused.as_deref().unwrap_or_default();
            let (path, op) = (quoted(&change.path), change.op);
            return Ok(Finding::Failed(format!(
                "with {}, the change {op} of {path} is not allowed: {reason}",
                call.title
            )));
        }
    }
    let is_refused = |refusal: &Refusal| WRITING.contains(&&*refusal.operation) && !is_of_limit(refusal);
    Ok(Finding::of(refused(bench, is_refused)?))
}

/// Returns true for a write that was refused because a limit is used up, which another check finds.
fn is_of_limit(refusal: &Refusal) -> bool {
    refusal.help.starts_with("raise `limits.")
}

pub(super) fn reads(bench: &Bench<'_>) -> Result<Finding, TestError> {
    Ok(Finding::of(refused(bench, |refusal| READING.contains(&&*refusal.operation))?))
}

pub(super) fn hidden(bench: &Bench<'_>) -> Result<Finding, TestError> {
    let Ok(folder) = Entry::parse(HIDDEN) else { return Ok(Finding::passed()) };
    let wants = bench.wants();
    if wants.read.iter().chain(&wants.write).any(|entry| folder.contains(entry.path())) {
        return Ok(Finding::NotApplicable(format!("it wants to read `{HIDDEN}`, where hold-outs are")));
    }
    for call in bench.all_inputs()? {
        let asked = call.calls.kept.iter().find(|one| {
            let path = one.path.as_deref().and_then(|path| ScopePath::parse(path.trim_matches('/')).ok());
            path.is_some_and(|path| folder.contains(&path))
        });
        if let Some(asked) = asked {
            let path = asked.path.as_deref().unwrap_or_default();
            return Ok(Finding::Failed(format!("with {}, it asks for the hidden path {}", call.title, quoted(path))));
        }
        if returns_canary(call) {
            return Ok(Finding::Failed(format!("with {}, it returns text of a hidden file", call.title)));
        }
    }
    Ok(Finding::passed())
}

/// Returns true if anything that leaves the call contains the text of the hidden file.
fn returns_canary(call: &Observed) -> bool {
    let report = &call.report;
    let has = |bytes: &[u8]| bytes.windows(CANARY.len()).any(|window| window == CANARY.as_bytes());
    let outcome = serde_json::to_vec(&report.outcome).unwrap_or_default();
    let log = report.log.iter().flat_map(|line| {
        let fields = line.fields.iter().flat_map(|(name, value)| [name.as_bytes(), value.as_bytes()]);
        fields.chain([line.message.as_bytes()])
    });
    let files = call.changes.iter().filter_map(|change| change.content.as_deref());
    let artifacts = report.artifacts.iter().map(|artifact| artifact.data.as_slice());
    [outcome.as_slice(), &report.stdout, &report.stderr].into_iter().chain(log).chain(files).chain(artifacts).any(has)
}

pub(super) fn requests(bench: &Bench<'_>) -> Result<Finding, TestError> {
    let is_of_files =
        |refusal: &Refusal| WRITING.iter().chain(&READING).any(|operation| *operation == refusal.operation);
    // Commands that it wants are refused unless the test allows them.
    let may_be_refused = !bench.runs_commands() && !bench.wants().commands.is_empty();
    let is_command = |refusal: &Refusal| refusal.operation == RUNNING && may_be_refused;
    Ok(Finding::of(refused(bench, |refusal| !is_of_files(refusal) && !is_command(refusal))?))
}

pub(super) fn ungranted(bench: &Bench<'_>) -> Result<Finding, TestError> {
    let Grants { filesystem, commands, model, .. } = bench.wants();
    if filesystem == Default::default() && commands.is_empty() && !model {
        return Ok(Finding::NotApplicable("it wants nothing that could be taken away".to_owned()));
    }
    let stage = bench.normal_stage();
    let observed = bench.call("nothing granted", &bench.plan(&stage, Grants::default()))?;
    if let Some(problem) = malformed(&observed) {
        return Ok(Finding::Failed(problem));
    }
    if let Some(change) = observed.changes.first() {
        return Ok(Finding::Failed(format!("it changed {}", quoted(&change.path))));
    }
    let hides = observed.report.outcome.status.satisfies_gate();
    Ok(Finding::of(observed.report.refusals.first().filter(|_| hides).map(|refusal| {
        format!("{}, and it still answers `{}`", described(&observed, refusal), observed.report.outcome.status.as_str())
    })))
}
