//! `glovebox plugin rebuild`: builds a component again from the source that its provenance names, and compares the bytes.
//!
//! The build command is that of a stranger, and runs as that of `plugin build` does: with the rights of the user, in no sandbox. So
//! nothing is fetched or run before the user has seen the command and agreed to it.

mod difference;

use super::provenance::{self, ProvenanceReport, ProvenanceState, command_line};
use super::subject::Subject;
use crate::arguments::RebuildArguments;
use crate::authoring::project_file::PluginProject;
use crate::authoring::repository;
use crate::commands::build_plugin;
use crate::exit::{CommandResult, Exit, Stop};
use crate::setup::temporary_folder::TemporaryFolder;
use crate::terminal::rows::Rows;
use crate::terminal::{self, visible};
use difference::{Difference, first_difference};
use glovebox_record::Digest;
use glovebox_signing::provenance::{Provenance, SourceRevision};
use std::ffi::OsString;
use std::path::Path;

/// Rebuilds a component. Exit 11 if the bytes differ, 4 if they cannot be compared.
pub fn rebuild(arguments: &RebuildArguments) -> CommandResult {
    let subject = Subject::read(&arguments.plugin)?;
    let recipe = Recipe::read(&subject, arguments.source.as_deref())?;
    terminal::print(recipe.render(&subject));
    if !arguments.accept {
        let stop = Stop::new(Exit::Policy, "nothing was fetched, and nothing was run");
        return Err(stop.with_help(
            "the command of this stranger runs with your rights and in no sandbox; to agree to it, repeat with `--accept`",
        ));
    }
    let folder = TemporaryFolder::new("rebuild").map_err(|error| Stop::io("make a folder for the source", &error))?;
    let rebuilt = recipe.build(&subject, &folder.path().join("source"))?;
    let digest = Digest::hash(&rebuilt);
    let Some(Difference { offset, section }) = first_difference(&subject.bytes, &rebuilt) else {
        terminal::print(format_args!("same: the source gives the same bytes, {digest}\n"));
        return Ok(Exit::Ok);
    };
    let message = format!(
        "`{}` is not what its source gives: the bytes differ first at offset {offset}, in {section}",
        subject.place
    );
    let sizes = format!(
        "it has {} bytes and {}, the source gives {} bytes and {digest}",
        subject.bytes.len(),
        subject.inspection.digest,
        rebuilt.len()
    );
    let help = "the tools may have other versions than those of the provenance, or the build is not reproducible, or the component was \
                changed; compare the row `tools` with your own";
    Err(Stop { details: sizes, ..Stop::new(Exit::Mismatch, message).with_help(help) })
}

/// What is built, and from where.
struct Recipe {
    provenance: Provenance,
    source: SourceRevision,
    /// The repository that is cloned.
    from: OsString,
}

impl Recipe {
    fn read(subject: &Subject, given: Option<&Path>) -> Result<Self, Stop> {
        let trust = subject.admission.trust.as_deref();
        let provenance = provenance::find(&subject.provenance, &subject.identity(), trust);
        let provenance = provenance.map_err(|reason| unchecked(subject, &reason).with_help(ASK))?;
        let Some(source) = provenance.source.clone() else {
            return Err(unchecked(subject, "its provenance names no commit, because its builder did not know it")
                .with_help(ASK));
        };
        if !source.is_clean {
            let reason = format!("it was built from changes that the commit {} does not have", source.commit);
            return Err(unchecked(subject, &reason).with_help(ASK));
        }
        // A stranger wrote the address. Others than these could start programs or name a folder of this machine.
        let named = source.repository.as_deref().and_then(repository::address);
        let from = match (given, named) {
            (Some(folder), _) => repository::absolute(folder).into_os_string(),
            (None, Some(named)) => named.trim_start_matches("git+").into(),
            (None, None) => {
                let stop = unchecked(subject, "its provenance names no repository with `https` or `ssh`");
                return Err(stop.with_help("get its source, and name the folder: `--source DIR`"));
            }
        };
        Ok(Self { provenance, source, from })
    }

    /// Returns what will be fetched and run.
    fn render(&self, subject: &Subject) -> String {
        let trust = subject.admission.trust.as_deref();
        let report = ProvenanceReport::new(&subject.provenance, &subject.identity(), trust);
        let mut rows = Rows::new(9);
        rows.row("component", format_args!("{} ({})", subject.place, subject.inspection.digest));
        rows.row("source", format_args!("commit {} of {}", self.source.commit, self.from.to_string_lossy()));
        if !self.source.folder.is_empty() {
            rows.row("folder", &self.source.folder);
        }
        rows.row("command", command_line(&self.provenance.command));
        rows.row("tools", self.provenance.tools.values().map(String::as_str).collect::<Vec<_>>().join(", "));
        if report.state != ProvenanceState::None {
            rows.row("vouched", report.vouched());
        }
        rows.finish()
    }

    /// Gets the source into a new folder, and builds it there.
    fn build(&self, subject: &Subject, folder: &Path) -> Result<Vec<u8>, Stop> {
        repository::check_out(&self.from, &self.source.commit, folder).map_err(|stop| failed(subject, stop))?;
        let project_folder = folder.join(&self.source.folder);
        // A link in the repository could lead to any folder of the user.
        let is_inside = std::fs::canonicalize(&project_folder)
            .is_ok_and(|real| std::fs::canonicalize(folder).is_ok_and(|root| real.starts_with(root)));
        if !is_inside {
            return Err(unchecked(subject, "its commit has no such folder"));
        }
        let project = PluginProject::read(&project_folder).map_err(|stop| failed(subject, stop))?;
        let same = (&project.build.command, project.build.output.as_str())
            == (&self.provenance.command, self.provenance.output.as_str());
        if !same {
            let message = format!("the provenance of `{}` has another build command than its source", subject.place);
            let details =
                format!("plugin.toml of the commit has: {}", visible::line(&command_line(&project.build.command)));
            return Err(Stop { details, ..Stop::new(Exit::Mismatch, message).with_help(ASK) });
        }
        build_plugin::component(&project_folder, &project)
            .map(|built| built.bytes)
            .map_err(|stop| failed(subject, stop))
    }
}

const ASK: &str = "ask its author for a version that was built with `glovebox plugin build` from a commit";

/// Returns the error for a component that cannot be compared.
fn unchecked(subject: &Subject, reason: &str) -> Stop {
    Stop::new(Exit::Unverified, format!("`{}` cannot be checked: {}", subject.place, visible::line(reason)))
}

/// Returns the error for a source that cannot be fetched or built. A signal is passed on.
fn failed(subject: &Subject, stop: Stop) -> Stop {
    if matches!(stop.exit, Exit::Interrupted | Exit::Terminated) {
        return stop;
    }
    let message = format!("`{}` cannot be checked: {}", subject.place, stop.message);
    Stop { exit: Exit::Unverified, message, ..stop }
}
