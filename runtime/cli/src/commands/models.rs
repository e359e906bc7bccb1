//! `glovebox models`: lists the models of glovebox.toml, and tests whether they answer.

use crate::arguments::{ModelsListArguments, ModelsTestArguments};
use crate::exit::{CommandResult, Exit, Stop};
use crate::prepare;
use crate::terminal::{self, visible};
use glovebox_models::ask;
use glovebox_models::chat::{Request, Settings, text_part};
use glovebox_models::deadline::CallDeadline;
use glovebox_names::shell;
use glovebox_plan::config::{ConfiguredModel, KeySource};
use glovebox_plan::prepare::project::Project;
use glovebox_plan::prepare::trust;
use glovebox_record::session::Message;
use glovebox_record::spend::Price;
use schemars::JsonSchema;
use serde::Serialize;
use std::fmt::Write;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

/// Maximum number of tokens of the answer to the test question: enough for a model that thinks first.
const TEST_TOKENS: u64 = 512;
/// Maximum duration of the test of one model.
const TEST_TIME: Duration = Duration::from_secs(120);

/// The document that `models ls --json` prints.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(title = "models.json")]
pub struct ModelsFile {
    /// Version of this document.
    pub schema_version: u32,
    /// Every configured model, by name.
    pub models: Vec<ListedModel>,
}

/// A model of glovebox.toml that has a provider.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ListedModel {
    /// Name of the model in glovebox.toml.
    pub name: String,
    /// Wire format of the provider.
    pub provider: String,
    /// Exact name of the model at the provider.
    pub model: String,
    /// Address of the provider.
    pub endpoint: String,
    /// Source of the key: `env NAME`, `file PATH` or `none`. The key itself is never printed.
    pub key: String,
    /// Why the model cannot be asked; absent if it can be asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
    /// True for the model of nodes that do not name a model.
    pub is_default: bool,
    /// Price of the model; absent if glovebox.toml has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub price: Option<Price>,
}

/// The document that `models test --json` prints.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(title = "models-test.json")]
pub struct ModelsTestFile {
    /// Version of this document.
    pub schema_version: u32,
    /// Every model that was asked.
    pub models: Vec<TestedModel>,
}

/// A model that was asked.
#[derive(Debug, Serialize, JsonSchema)]
pub struct TestedModel {
    /// Name of the model in glovebox.toml.
    pub name: String,
    /// True if the model answered.
    pub ok: bool,
    /// Name of the model as the provider reports it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Duration of the test in milliseconds.
    pub duration_ms: u64,
    /// Tokens sent and received.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens: Option<glovebox_record::Tokens>,
    /// Kind of the error; absent if the model answered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Message of the error; absent if the model answered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// What the user can do about the error; absent if the model answered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub help: Option<String>,
}

/// Lists the models without asking them.
pub fn ls(arguments: &ModelsListArguments) -> CommandResult {
    let project = prepare::read_project(&arguments.workdir, None)?;
    let listed: Vec<ListedModel> = project.config.configured_models().map(|model| listed(&project, model)).collect();
    if arguments.json {
        terminal::print_json(&ModelsFile { schema_version: 1, models: listed })?;
        return Ok(Exit::Ok);
    }
    if listed.is_empty() {
        return Err(none_configured());
    }
    listed.iter().for_each(|model| terminal::print(list_text(model)));
    Ok(Exit::Ok)
}

/// Asks each model, or only the model that the arguments name.
pub fn test(arguments: &ModelsTestArguments) -> CommandResult {
    let project = prepare::read_project(&arguments.workdir, None)?;
    let is_meant = |name: &str| arguments.name.as_ref().is_none_or(|meant| meant == name);
    let asked = project.config.configured_models().filter(|model| is_meant(model.name));
    let tested: Vec<TestedModel> = asked.map(|model| tested(&project, model)).collect();
    if tested.is_empty() {
        return Err(match &arguments.name {
            Some(name) => {
                let message = format!("`[models]` in glovebox.toml has no model `{name}` with a `provider`");
                Stop::new(Exit::Usage, message).with_help("list them: `glovebox models ls`")
            }
            None => none_configured(),
        });
    }
    let ok = tested.iter().all(|model| model.ok);
    if arguments.json {
        terminal::print_json(&ModelsTestFile { schema_version: 1, models: tested })?;
    } else {
        tested.iter().for_each(|model| terminal::print(test_text(model)));
    }
    Ok(if ok { Exit::Ok } else { Exit::Provider })
}

fn none_configured() -> Stop {
    let message = "no model is configured: `[models]` in glovebox.toml has no table with a `provider`";
    Stop::new(Exit::Provider, message)
        .with_help("add to glovebox.toml: `[models.NAME]` and below it `provider = \"openai\"` (docs/models.md)")
}

fn listed(project: &Project, model: ConfiguredModel<'_>) -> ListedModel {
    let ConfiguredModel { name, access } = model;
    let key = match &access.key {
        KeySource::None => "none".to_owned(),
        KeySource::Variable(variable) => format!("env {variable}"),
        KeySource::File(file) => format!("file {file}"),
    };
    ListedModel {
        name: name.to_owned(),
        provider: access.family.to_string(),
        model: access.model.to_string(),
        endpoint: access.endpoint.to_string(),
        key,
        problem: trust::target_alone(project, model).err().map(|stop| stop.message),
        is_default: access.is_default,
        price: project.config.models.get(name).and_then(|entry| entry.price),
    }
}

fn tested(project: &Project, model: ConfiguredModel<'_>) -> TestedModel {
    let began = Instant::now();
    let mut tested = TestedModel {
        name: model.name.to_owned(),
        ok: false,
        model: None,
        duration_ms: 0,
        tokens: None,
        error: None,
        message: None,
        help: None,
    };
    let target = match trust::target_alone(project, model) {
        Ok(target) => target,
        Err(stop) => {
            let kind = glovebox_models::error::ErrorKind::Configuration;
            return TestedModel {
                error: Some(kind.to_string()),
                message: Some(stop.message),
                help: stop.help,
                ..tested
            };
        }
    };
    let question = Message { role: "user".to_owned(), parts: vec![text_part("Answer with the word ok.")] };
    let settings = Settings { output_tokens_max: Some(TEST_TOKENS), ..Settings::default() };
    let request = Request { messages: vec![question], settings, ..Request::default() };
    let canceled = AtomicBool::new(false);
    let deadline = CallDeadline { canceled: &canceled, at: began + TEST_TIME, idle: target.timeout };
    let asked = ask::ask(&target, &request, deadline, &mut |_| {});
    tested.duration_ms = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
    match asked.answered {
        Ok(answer) => TestedModel {
            ok: true,
            model: answer.model.map(|model| model.to_string()),
            tokens: Some(answer.usage.tokens()),
            ..tested
        },
        Err(error) => TestedModel {
            error: Some(error.kind.to_string()),
            message: Some(error.message),
            help: Some(error.kind.row().help.to_owned()),
            ..tested
        },
    }
}

fn list_text(model: &ListedModel) -> String {
    let default = if model.is_default { " (default)" } else { "" };
    let (name, endpoint) = (visible::line(&model.name), visible::line(&model.endpoint));
    let mut text = format!(
        "{name}{default}: {} {} at {endpoint}, key: {}\n",
        model.provider,
        model.model,
        visible::line(&model.key)
    );
    if let Some(problem) = &model.problem {
        let _ = writeln!(text, "  {}", visible::line(problem));
    }
    text
}

fn test_text(model: &TestedModel) -> String {
    let name = visible::line(&model.name);
    if model.ok {
        let answered = visible::line(model.model.as_deref().unwrap_or_default());
        let tokens = model.tokens.unwrap_or_default();
        let took = terminal::duration(model.duration_ms);
        return format!(
            "{name}: ok, {answered} answered in {took}, {} tokens sent, {} received\n",
            tokens.input, tokens.output
        );
    }
    let kind = model.error.as_deref().unwrap_or_default();
    let mut text = format!("{name}: {kind}: {}\n", visible::line(model.message.as_deref().unwrap_or_default()));
    if let Some(help) = &model.help {
        let _ = writeln!(text, "  help: {}", visible::line(help));
    }
    let _ = writeln!(text, "  test again: glovebox models test {}", shell::word(&model.name));
    text
}
