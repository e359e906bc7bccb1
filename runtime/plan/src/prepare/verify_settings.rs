//! Completes `[verify]`: environment variables, the verify contracts, and the test commands for the kind of project.
//!
//! All of it is read before the first stage, so that no stage can change the commands that verify it.

use super::refusal::{Class, Refusal};
use super::source::read_text;
use super::survey::Survey;
use crate::verify::settings::SETTINGS;
use crate::verify::{CONTRACT_BYTES_MAX, CONTRACT_PATH, Contract, DirectCommand, Phase, Verify};
use glovebox_names::visible;
use std::path::Path;
use std::sync::Arc;

/// Returns the `[verify]` table with the values of environment variables and the files that it names. `None` if there
/// is neither the table nor a variable for it.
pub fn complete(table: Option<&Verify>, workdir: &Path) -> Result<Option<Verify>, Refusal> {
    let with_variable = SETTINGS.iter().filter(|setting| !setting.variable.is_empty());
    let set = with_variable.filter_map(|setting| Some((setting, std::env::var(setting.variable).ok()?)));
    let set: Vec<_> = set.filter(|(_, value)| !value.trim().is_empty()).collect();
    if table.is_none() && set.is_empty() {
        return Ok(None);
    }
    let mut verify = table.cloned().unwrap_or_default();
    for (setting, value) in set {
        setting.apply(&mut verify, &value).map_err(|refused| {
            let message = format!("the variable `{}`: {}", setting.variable, visible::line(&refused.to_string()));
            Refusal::new(Class::Usage, message).with_help(format!("unset it: `env -u {} glovebox …`", setting.variable))
        })?;
    }
    for phase in [&mut verify.planner, &mut verify.worker] {
        phase.contract = contract(phase, workdir)?.map(Arc::new);
    }
    if [&verify.planner, &verify.worker].iter().any(|phase| phase.mode.falls_back()) {
        verify.fallback = of_kind(workdir);
    }
    Ok(Some(verify))
}

/// Reads the verify contract of a phase. The file may be missing only at the default path.
fn contract(phase: &Phase, workdir: &Path) -> Result<Option<Contract>, Refusal> {
    if !phase.mode.reads_contract() {
        return Ok(None);
    }
    let path = phase.contract_path.as_deref().unwrap_or(CONTRACT_PATH);
    let file = workdir.join(path);
    if phase.contract_path.is_none() && file.symlink_metadata().is_err() {
        return Ok(None);
    }
    let shown = visible::line(path).into_owned();
    let wrong = |what: String| {
        let help = "docs/verification.md describes the form of a contract";
        Refusal::new(Class::Invalid, format!("the verify contract `{shown}`: {what}")).with_help(help)
    };
    let text = read_text(&file)?;
    if text.len() as u64 > CONTRACT_BYTES_MAX {
        return Err(wrong(format!("{} bytes, expected at most {CONTRACT_BYTES_MAX}", text.len())));
    }
    Contract::parse(&text).map(Some).map_err(|problem| wrong(visible::line(&problem.to_string()).into_owned()))
}

/// Returns the test commands of the project's root that need no shell.
fn of_kind(workdir: &Path) -> Vec<DirectCommand> {
    let parts = Survey::for_project(workdir).parts;
    let steps = parts.iter().filter(|part| part.folder.is_empty()).flat_map(|part| &part.steps);
    steps.filter_map(|step| DirectCommand::parse(&step.command).ok()).collect()
}
