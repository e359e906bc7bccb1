//! `glovebox trust`: confirms which keys, files and folders of the user a project may send out, and lists or withdraws
//! confirmations.

use crate::arguments::{TrustCommand, TrustGiveArguments, TrustListArguments, TrustRemoveArguments};
use crate::exit::{CommandResult, Exit, Stop};
use crate::pipeline_file;
use crate::prepare;
use crate::terminal::{self, visible};
use glovebox_plan::prepare::binding::{self, Request};
use glovebox_plan::prepare::project::Project;
use glovebox_plan::prepare::source;
use glovebox_plan::prepare::trust::{self, Transfer, Wanted};
use schemars::JsonSchema;
use serde::Serialize;

/// The document that `trust ls --json` prints.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(title = "trust.json")]
pub struct TrustFile {
    /// Version of this document.
    schema_version: u32,
    /// The confirmations of this user, for all projects.
    trusted: Vec<TrustedTransfer>,
}

/// A confirmation: a source that belongs to the user, and a destination that may get it.
#[derive(Debug, Serialize, JsonSchema)]
struct TrustedTransfer {
    /// Id of the confirmation, for `trust rm`.
    id: String,
    /// Folder of the project's glovebox.toml.
    project: String,
    /// What may be sent: `env NAME`, `file PATH` or `folder PATH`.
    source: String,
    /// Where it may be sent: scheme, host and port of a model's endpoint, `proxy HOST` or `network full`.
    sink: String,
    /// Digest of the certificates that are trusted in addition to the bundled ones; null without any.
    authorities: Option<String>,
}

/// Executes a subcommand.
pub fn trust(command: &TrustCommand) -> CommandResult {
    match command {
        TrustCommand::Ls(arguments) => list(arguments),
        TrustCommand::Give(arguments) => give(arguments),
        TrustCommand::Rm(arguments) => remove(arguments),
    }
}

fn list(arguments: &TrustListArguments) -> CommandResult {
    let all = trust::all()?;
    if arguments.json {
        let trusted = all.into_iter().map(|it| TrustedTransfer {
            id: it.id(),
            project: it.project,
            source: it.source,
            sink: it.sink,
            authorities: it.authorities.map(|digest| digest.to_string()),
        });
        terminal::print_json(&TrustFile { schema_version: 1, trusted: trusted.collect() })?;
        return Ok(Exit::Ok);
    }
    if all.is_empty() {
        terminal::say("you have confirmed nothing: keys are sent only to their own providers and to this machine\n");
    }
    for found in &all {
        terminal::print(format_args!("{} {}: {}\n", found.id(), visible::line(&found.project), found.words()));
    }
    Ok(Exit::Ok)
}

fn give(arguments: &TrustGiveArguments) -> CommandResult {
    let wanted = match &arguments.model {
        Some(name) => of_model(&prepare::read_project(&arguments.project.workdir, None)?, name)?,
        None => of_pipeline(arguments)?,
    };
    if wanted.is_empty() {
        terminal::print("nothing to confirm: nothing is sent out except keys to their own providers\n");
    }
    for wanted in &wanted {
        wanted.transfer.trust()?;
        terminal::print(format_args!(
            "confirmed for {}: {}\n",
            visible::line(&wanted.transfer.project),
            wanted.words()
        ));
    }
    Ok(Exit::Ok)
}

fn of_pipeline(arguments: &TrustGiveArguments) -> Result<Vec<Wanted>, Stop> {
    let (host, workdir) = (&prepare::component_host(), &arguments.project.workdir);
    let inputs = source::inputs(&arguments.project.inputs);
    let file = pipeline_file::choose(arguments.file.as_deref(), workdir)?;
    let (source, project) = prepare::read_pipeline(host, &file, &inputs, workdir)?;
    let sealed = binding::holdouts(&source, &project)?;
    let bound = prepare::bind(host, &source, &project, Request::to_show(sealed))?;
    Ok(trust::of_plan(&project, &bound.plan))
}

fn of_model(project: &Project, name: &str) -> Result<Vec<Wanted>, Stop> {
    let model = project.config.configured_model(name).ok_or_else(|| {
        let message = format!("`[models]` in glovebox.toml has no model `{name}` with a `provider`");
        Stop::new(Exit::Usage, message).with_help("list them: `glovebox models ls`")
    })?;
    Ok(trust::of_model(project, model).into_iter().collect())
}

fn remove(arguments: &TrustRemoveArguments) -> CommandResult {
    let all = trust::all()?;
    let found: Vec<&Transfer> = if arguments.ids.is_empty() {
        let project = prepare::read_project(&arguments.workdir, None)?;
        all.iter().filter(|known| known.is_of(&project)).collect()
    } else {
        arguments.ids.iter().map(|id| by_id(&all, id)).collect::<Result<_, _>>()?
    };
    if found.is_empty() {
        terminal::say("you have confirmed nothing for this project\n");
    }
    for transfer in found {
        transfer.forget()?;
        let project = visible::line(&transfer.project);
        terminal::print(format_args!("no longer confirmed for {project}: {}\n", transfer.words()));
    }
    Ok(Exit::Ok)
}

fn by_id<'a>(all: &'a [Transfer], id: &str) -> Result<&'a Transfer, Stop> {
    all.iter().find(|known| known.id() == id).ok_or_else(|| {
        Stop::new(Exit::Usage, format!("no confirmation has the id `{id}`"))
            .with_help("list all with their ids: `glovebox trust ls`")
    })
}
