//! `glovebox plugin revocations`: the lists of revocations that apply to a project, and the copies of those that are fetched.
//!
//! Only `--refresh` and `plugin pull` use the network. A list is kept only if a trusted key signed it and if it is not earlier than the
//! one that was fetched before (decision no-list-is-replaced-by-an-earlier-one).

use super::{folder_lock, registries, shown};
use crate::arguments::RevocationsArguments;
use crate::exit::{CommandResult, Exit, Stop};
use crate::prepare;
use crate::terminal::rows::Rows;
use crate::terminal::{self, counted, visible};
use glovebox_plan::config::ListSource;
use glovebox_plan::prepare::admission::fetched_list;
use glovebox_plan::prepare::project::Project;
use glovebox_registry::client::Client;
use glovebox_signing::revocation::{FILE_BYTES_MAX, LIST_MEDIA_TYPE, ListFault, RevocationList};
use glovebox_workspace::regular_file::{self, Links};
use schemars::JsonSchema;
use serde::Serialize;
use std::fs::{self, DirBuilder, File};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;

/// A list of revocations that applies to the project.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(title = "plugin-revocations.json")]
pub struct ListState {
    /// The file, the reference or the address.
    place: String,
    /// The number of the list; null if it has none or cannot be read.
    sequence: Option<u64>,
    /// The number of revocations; null if the list cannot be read.
    revoked: Option<usize>,
    /// Why the list cannot be read, so that no component may run; null otherwise.
    fault: Option<String>,
}

/// Shows the lists of the project. With `--refresh`, fetches them first.
pub fn revocations(arguments: &RevocationsArguments) -> CommandResult {
    let project = prepare::read_project(&arguments.workdir, None)?;
    if arguments.refresh {
        refresh(&project)?;
    }
    let states: Vec<ListState> = project
        .revocations
        .current()
        .sources()
        .map(|source| ListState {
            place: source.place.clone(),
            sequence: source.list.as_ref().ok().and_then(|signed| signed.list.sequence()),
            revoked: source.list.as_ref().ok().map(|signed| signed.list.count()),
            fault: source.list.as_ref().err().cloned(),
        })
        .collect();
    let is_readable = states.iter().all(|state| state.fault.is_none());
    if arguments.json {
        terminal::print_json(&states)?;
    } else if states.is_empty() {
        terminal::say("no list of revocations applies here\n");
    } else {
        terminal::print(render(&states));
    }
    Ok(if is_readable { Exit::Ok } else { Exit::Plugin })
}

fn render(states: &[ListState]) -> String {
    let mut rows = Rows::new(states.iter().map(|state| state.place.len()).max().unwrap_or_default());
    for ListState { place, sequence, revoked, fault } in states {
        let number = sequence.map(|number| format!("list {number}, ")).unwrap_or_default();
        match fault {
            Some(fault) => rows.row(place, format_args!("no component may run: {fault}")),
            None => rows.row(place, format_args!("{number}{}", counted(revoked.unwrap_or_default(), "revocation"))),
        }
    }
    rows.finish()
}

/// Fetches the lists that the project names in registries and at addresses.
///
/// # Errors
///
/// Exit 9 for a registry that cannot be reached, and 7 for a list that does not count or is an earlier one. The earlier copy stays.
pub fn refresh(project: &Project) -> Result<(), Stop> {
    let lists = project.config.trust.iter().flat_map(|trust| &trust.revocations);
    for source in lists.filter(|source| !matches!(source, ListSource::File(_))) {
        let bytes = fetch(&registries::client()?, source)?;
        let file = fetched_list(source).ok_or_else(|| {
            Stop::new(Exit::Usage, "there is no folder for the lists of revocations")
                .with_help("set GLOVEBOX_DATA_DIR to a folder of your own")
        })?;
        keep(project, source, &bytes, &file)?;
    }
    Ok(())
}

fn fetch(client: &Client, source: &ListSource) -> Result<Vec<u8>, Stop> {
    Ok(match source {
        ListSource::Registry(reference) => client.document(reference, LIST_MEDIA_TYPE, FILE_BYTES_MAX)?,
        ListSource::Address(address) => client.download(address, FILE_BYTES_MAX)?,
        ListSource::File(_) => Vec::new(),
    })
}

/// Keeps a list that was fetched, if it counts and is no earlier one.
fn keep(project: &Project, source: &ListSource, bytes: &[u8], file: &Path) -> Result<(), Stop> {
    let refused = |fault: &ListFault| {
        let message =
            format!("the list of revocations `{source}` was not taken: {}", visible::line(&fault.to_string()));
        Stop::new(Exit::Plugin, visible::line(&message).into_owned())
            .with_help("the list that was fetched before still applies; ask its author which list is the latest")
    };
    let nobody = Default::default();
    let trust = project.trust.as_deref().unwrap_or(&nobody);
    let list = RevocationList::parse_signed(bytes, trust).map_err(|fault| refused(&fault))?.list;
    let failed = |error: io::Error| Stop::io(format!("write `{}`", shown(file)), &error);
    let folder = file.parent().unwrap_or(file);
    DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(failed)?;
    // Otherwise, another process could write an earlier list after this one compared the numbers.
    let _guard = folder_lock::lock(folder)?;
    let known = match regular_file::read(file, Links::Follow, FILE_BYTES_MAX) {
        Err(error) if error.kind() == ErrorKind::NotFound => None,
        // The keys of the project may have changed since, and the copy is in a folder of the user. So its signature is not checked.
        read => read.ok().and_then(|known| RevocationList::parse_unchecked(&known).ok()),
    };
    list.require_successor_of(known.as_ref()).map_err(|fault| refused(&fault))?;
    write(file, bytes).map_err(failed)?;
    let number = list.sequence().unwrap_or_default();
    let news = if known.as_ref() == Some(&list) { "is the latest list" } else { "was fetched" };
    let place = source.to_string();
    let revoked = counted(list.count(), "revocation");
    terminal::say(format_args!("`{}` {news}: list {number}, {revoked}\n", visible::line(&place)));
    Ok(())
}

/// Replaces a copy atomically in a locked folder, also by the same bytes: its time says when it was fetched.
fn write(file: &Path, bytes: &[u8]) -> io::Result<()> {
    let beside = file.with_extension("json.new");
    match fs::remove_file(&beside) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut new = File::options().write(true).create_new(true).mode(0o600).open(&beside)?;
    let written = new.write_all(bytes).and_then(|()| new.sync_all());
    written.and_then(|()| fs::rename(&beside, file)).inspect_err(|_| drop(fs::remove_file(&beside)))?;
    file.parent().map_or(Ok(()), regular_file::flush_folder)
}
