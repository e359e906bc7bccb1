//! `glovebox models trust`: lets a host have a key, takes that back, and lists what the user has confirmed.

use crate::arguments::ModelsTrustArguments;
use crate::exit::{Ended, Exit, Stop};
use crate::key_trust::{self, KeyUse};
use crate::models::Configured;
use crate::project;
use crate::terminal::{self, visible};
use schemars::JsonSchema;
use serde::Serialize;

/// What `models trust --json` prints.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(title = "models-trust.json")]
pub struct TrustFile {
    /// Version of this document.
    schema_version: u32,
    /// What this user has confirmed, of all projects.
    trusted: Vec<TrustedKey>,
}

/// A key that a host may have.
#[derive(Debug, Serialize, JsonSchema)]
struct TrustedKey {
    /// The folder of glovebox.toml.
    project: String,
    /// Scheme, host and port.
    host: String,
    /// Where the key is: `env NAME` or `file PATH`.
    key: String,
    /// Digest of the certificates that are trusted beside the bundled ones; null without any.
    authorities: Option<String>,
}

/// Confirms where the key of a model goes, or lists what was confirmed.
pub fn trust(arguments: &ModelsTrustArguments) -> Ended {
    let Some(name) = &arguments.name else { return list(arguments) };
    let project = project::read_project(&arguments.workdir, None)?;
    let access = project.config.models.get(name).and_then(|entry| entry.access.as_ref()).ok_or_else(|| {
        let message = format!("`[models]` in glovebox.toml has no model `{name}` with a `provider`");
        Stop::new(Exit::Usage, message).with_help("list them: `glovebox models ls`")
    })?;
    let model: Configured<'_> = (name, access);
    let shown = visible::line(name);
    let Some(found) = KeyUse::to_confirm(&project, model) else {
        terminal::print(format_args!(
            "{shown}: nothing to confirm: its key goes to its provider, or to this machine\n"
        ));
        return Ok(Exit::Ok);
    };
    let words = found.words();
    if arguments.remove {
        let was = if found.forget()? { "no longer confirmed" } else { "was not confirmed" };
        terminal::print(format_args!("{shown}: {was}: {words}\n"));
        return Ok(Exit::Ok);
    }
    found.trust()?;
    terminal::print(format_args!("{shown}: confirmed for {}: {words}\n", visible::line(&found.project)));
    Ok(Exit::Ok)
}

fn list(arguments: &ModelsTrustArguments) -> Ended {
    let all = key_trust::all()?;
    if arguments.json {
        let trusted = all.into_iter().map(|it| TrustedKey {
            project: it.project,
            host: it.host,
            key: it.key,
            authorities: it.authorities.map(|digest| digest.to_string()),
        });
        terminal::print_json(&TrustFile { schema_version: 1, trusted: trusted.collect() })?;
        return Ok(Exit::Ok);
    }
    if all.is_empty() {
        terminal::say("you have confirmed nothing: keys go to their providers and to this machine alone\n");
    }
    for found in &all {
        terminal::print(format_args!("{}: {}\n", visible::line(&found.project), found.words()));
    }
    Ok(Exit::Ok)
}
