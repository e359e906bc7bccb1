//! `glovebox plugin rehearse`: finds the smallest grants with which a plugin does the same work.
//!
//! The pipeline runs again and again, each time with other grants of the plugin. The runs are stored in a temporary folder, and
//! nothing in the project is written.

use super::add::terms;
use super::now;
use crate::arguments::{RehearseArguments, RunArguments};
use crate::commands::run;
use crate::exit::{CommandResult, Exit, Stop};
use crate::pipeline_file;
use crate::prepare;
use crate::rehearsal::facts::Facts;
use crate::rehearsal::search::{Found, Trial, Verdict, smallest};
use crate::runs::journal;
use crate::terminal::rows::Rows;
use crate::terminal::{self, Silence, visible};
use clap::Parser;
use glovebox_host::grants::{FileTier, Grants};
use glovebox_host::inspect::Inspection;
use glovebox_host::tools::AllowedTools;
use glovebox_pipeline::ir::Role;
use glovebox_plan::config::{ComponentSource, PluginEntry};
use glovebox_plan::lock::LockedPlugin;
use glovebox_plan::lock::growth::growth;
use glovebox_plan::lock::line::{Line, grant_lines};
use glovebox_plan::lock::wants::wanted;
use glovebox_plan::prepare::component_host::ComponentHost;
use glovebox_plan::prepare::project::Project;
use glovebox_plan::prepare::source;
use glovebox_record::path::ScopePath;
use glovebox_record::scope::Entry;
use glovebox_record::{FailureClass, LimitSettings};
use serde::Serialize;
use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};

/// Maximum number of entries of a folder that are tried alone. Of a larger folder, the whole is needed or nothing.
const ENTRIES_MAX: usize = 256;
/// Folders that no stage sees.
const LEFT_OUT: &[&str] = &[".git", ".glovebox"];

/// Rehearses one plugin of a project.
pub fn rehearse(arguments: &RehearseArguments) -> CommandResult {
    let project = prepare::read_project(&arguments.project.workdir, None)?;
    let name = arguments.name.as_str();
    let entry = project.config.plugins.get(name).cloned().ok_or_else(|| now::unknown(name))?;
    let inspection = now::ConfigEntry::plugin(name, &entry).read(&project)?.inspection;
    let mut stage = Stage::new(arguments, &project, entry, inspection)?;
    stage.require_agreement(&project)?;
    let lines = stage.wants();
    let base = stage
        .run(&lines)?
        .map_err(|stop| stop.with_help("a rehearsal begins with everything that the plugin wants"))?;
    if base.attempts == 0 {
        return Err(stage.was_not_called());
    }
    let again = stage.run(&lines)??;
    stage.stable = base.stable(&again);
    stage.base = base;
    let found = match smallest(&mut stage, lines) {
        Ok(found) => found,
        Err(End::Stop(stop)) => return Err(stop),
        Err(End::TooMany) => {
            let message = format!("{} runs were not enough", arguments.runs_max);
            return Err(Stop::new(Exit::Budget, message).with_help("allow more with `--runs N`"));
        }
    };
    let grants = Grants { limits: stage.limits(), ..grants(&found.kept) };
    let report = Report { name, entry: &stage.entry, runs: stage.runs, found: &found, grants: &grants };
    match arguments.json {
        true => terminal::print_json(&report.document())?,
        false => terminal::print(report.text()?),
    }
    Ok(Exit::Ok)
}

/// Why a search ends early.
enum End {
    /// The runs of `--runs` are used up.
    TooMany,
    /// A run could not be made, or was interrupted.
    Stop(Stop),
}

/// The arguments of `run` with their defaults.
#[derive(Debug, Parser)]
struct RunWords {
    #[command(flatten)]
    run: RunArguments,
}

/// The plugin, and everything that its runs need.
struct Stage<'a> {
    arguments: &'a RehearseArguments,
    host: ComponentHost,
    file: PathBuf,
    folder: tempfile::TempDir,
    /// The folder of the project, as stages see it.
    workdir: PathBuf,
    entry: PluginEntry,
    inspection: Inspection,
    runs: usize,
    /// What the plugin did with everything that it wants.
    base: Facts,
    /// The places that are compared.
    stable: BTreeSet<String>,
}

impl<'a> Stage<'a> {
    fn new(
        arguments: &'a RehearseArguments,
        project: &Project,
        entry: PluginEntry,
        inspection: Inspection,
    ) -> Result<Self, Stop> {
        let file = pipeline_file::choose(arguments.file.as_deref(), &arguments.project.workdir)?;
        let folder = tempfile::tempdir().map_err(|error| Stop::io("create a temporary folder", &error))?;
        Ok(Self {
            arguments,
            host: prepare::component_host(),
            file,
            folder,
            workdir: project.workdir.clone(),
            entry,
            inspection,
            runs: 0,
            base: Facts::default(),
            stable: BTreeSet::new(),
        })
    }

    /// Requires that the reader agrees to the bytes and to everything that the plugin wants, because the first runs grant it.
    fn require_agreement(&self, project: &Project) -> Result<(), Stop> {
        let name = &self.arguments.name;
        let locked = project.lock.plugins.get(name);
        let entry = PluginEntry { grants: Some(grants(&self.wants())), ..self.entry.clone() };
        let now = LockedPlugin::for_plugin(name, &entry, locked, &self.inspection);
        // Every run checks the signatures.
        let now = LockedPlugin { signer: locked.and_then(|locked| locked.signer.clone()), ..now };
        let is_agreed = locked.is_some_and(|locked| locked.digest == now.digest && growth(locked, &now).is_empty());
        if self.arguments.accept || is_agreed {
            return Ok(());
        }
        terminal::print(terms(&now));
        let message = format!("a rehearsal grants `{}` everything that it wants: nothing was run", visible::line(name));
        Err(Stop::new(Exit::Policy, message).with_help("if it may do this in the sandbox, repeat with `--accept`"))
    }

    /// Returns the error for a pipeline that does not call the plugin.
    fn was_not_called(&self) -> Stop {
        let name = visible::line(&self.arguments.name);
        let (message, help) = match self.inspection.world == now::TOOL_PROVIDER {
            true => (
                format!("no agent called a tool of `{name}`"),
                "write the calls of the model in a script, and name it with `--script`",
            ),
            false => (
                format!("the pipeline executed no stage of `{name}`"),
                "name a pipeline that reaches one, or set its inputs with `--set`",
            ),
        };
        Stop::new(Exit::RunFailed, message).with_help(help)
    }

    /// Returns everything that the plugin wants.
    fn wants(&self) -> Vec<Line> {
        lines(&wanted(&self.inspection, Some(&self.entry)))
    }

    /// Returns the limits that the operator wrote. A rehearsal does not change them.
    fn limits(&self) -> LimitSettings {
        self.entry.grants.as_ref().map(|grants| grants.limits.clone()).unwrap_or_default()
    }

    /// Runs the pipeline with these grants of the plugin. The inner error is that of a run that these grants make impossible.
    fn run(&mut self, grants_of: &[Line]) -> Result<Result<Facts, Stop>, Stop> {
        self.runs += 1;
        let folder = self.folder.path().join(self.runs.to_string());
        let run = self.run_arguments(&folder)?;
        let inputs = source::inputs(&self.arguments.project.inputs);
        // The first run says what every run says, such as warnings of open access.
        let silence = (self.runs > 1).then(Silence::begin);
        let (source, mut project) = prepare::read_pipeline(&self.host, &self.file, &inputs, &run.project.workdir)?;
        self.agree(&mut project, grants(grants_of));
        let finished = match run::execute(&self.host, &run, &source, &project) {
            Ok(finished) => finished,
            Err(stop) if matches!(stop.exit, Exit::Plugin | Exit::Policy | Exit::Invalid) => return Ok(Err(stop)),
            Err(stop) => return Err(stop),
        };
        drop(silence);
        let failure = finished.run.summary().end.failure.clone();
        if failure.is_some_and(|failure| failure.class == FailureClass::Canceled) {
            return Err(Stop::new(Exit::Interrupted, "the rehearsal was interrupted"));
        }
        let records = journal::read(&finished.folder)?.records;
        drop(finished);
        let facts = Facts::of(&records, &self.arguments.name);
        fs::remove_dir_all(&folder).map_err(|error| Stop::io("remove the run of a rehearsal", &error))?;
        Ok(Ok(facts))
    }

    fn run_arguments(&self, runs_dir: &Path) -> Result<RunArguments, Stop> {
        let mut words: Vec<OsString> = ["run", "--quiet", "--no-input", "--workdir"].map(OsString::from).to_vec();
        words.push(self.arguments.project.workdir.clone().into());
        words.extend([OsStr::new("--runs-dir").to_owned(), runs_dir.into()]);
        match &self.arguments.script {
            Some(script) => words.extend([OsStr::new("--script").to_owned(), script.into()]),
            None if self.arguments.ask_models => {}
            None => words.push("--simulate".into()),
        }
        for (key, value) in &self.arguments.project.inputs {
            words.extend([OsString::from("--set"), OsString::from(format!("{key}={value}"))]);
        }
        words.extend(self.arguments.labels.words().map(OsString::from));
        words.push(self.file.clone().into());
        let parsed = RunWords::try_parse_from(words)
            .map_err(|error| Stop::new(Exit::Internal, format!("the arguments of a rehearsal: {error}")))?;
        Ok(parsed.run)
    }

    /// Agrees to these grants, as `plugin lock` would.
    fn agree(&self, project: &mut Project, grants: Grants) {
        let name = &self.arguments.name;
        let grants = Grants { limits: self.limits(), ..grants };
        let entry = PluginEntry { grants: Some(grants), ..self.entry.clone() };
        let locked = LockedPlugin::for_plugin(name, &entry, project.lock.plugins.get(name), &self.inspection);
        project.lock.plugins.insert(name.clone(), locked);
        project.config.plugins.insert(name.clone(), entry);
    }
}

impl Trial for Stage<'_> {
    type Error = End;

    fn difference(&mut self, grants: &[Line]) -> Result<Option<String>, End> {
        if self.runs >= self.arguments.runs_max {
            return Err(End::TooMany);
        }
        Ok(match self.run(grants).map_err(End::Stop)? {
            Ok(fewer) => self.base.difference(&fewer, &self.stable),
            Err(stop) => Some(stop.message),
        })
    }

    fn parts(&self, grant: &Line) -> Vec<Line> {
        match grant {
            Line::Filesystem(FileTier::Posix) => vec![Line::Filesystem(FileTier::Workspace)],
            Line::Read(entry) if entry.is_subtree() => {
                entries(&self.workdir, entry.path()).into_iter().map(Line::Read).collect()
            }
            Line::Write(entry) if entry.is_subtree() => {
                let inside: Vec<&Entry> = self.base.changed.iter().filter(|changed| entry.covers(changed)).collect();
                narrower(entry, &inside).into_iter().map(Line::Write).collect()
            }
            Line::Run(words) => shared_words(words, &self.base.commands).into_iter().map(Line::Run).collect(),
            _ => Vec::new(),
        }
    }
}

/// Returns the entries of a folder of the project that stages see. Empty for a folder with too many. Of a folder below the root, only
/// folders are returned: a plugin that lists the folder would not see files that are added later.
fn entries(project: &Path, folder: &ScopePath) -> Vec<Entry> {
    let Ok(listed) = fs::read_dir(project.join(folder.as_str())) else { return Vec::new() };
    let mut found = Vec::new();
    for entry in listed.flatten().take(ENTRIES_MAX + 1) {
        let (name, kind) = (entry.file_name(), entry.file_type());
        let (Some(name), Ok(kind)) = (name.to_str(), kind) else { continue };
        if folder.is_root() && LEFT_OUT.contains(&name) || !folder.is_root() && !kind.is_dir() {
            continue;
        }
        let path = if folder.is_root() { name.to_owned() } else { format!("{folder}/{name}") };
        found.extend(Entry::parse(&if kind.is_dir() { format!("{path}/") } else { path }));
    }
    found.sort();
    if found.len() > ENTRIES_MAX { Vec::new() } else { found }
}

/// Returns the smallest entry that covers all changed ones, if it is smaller than `entry`.
fn narrower(entry: &Entry, changed: &[&Entry]) -> Option<Entry> {
    let covers_all = |found: &Entry| changed.iter().all(|changed| found.covers(changed));
    let first = *changed.first()?;
    let mut parts: Vec<&str> = first.path().as_str().split('/').collect();
    let mut found = first.clone();
    while !covers_all(&found) {
        parts.pop();
        if parts.is_empty() {
            return None;
        }
        found = Entry::parse(&format!("{}/", parts.join("/"))).ok()?;
    }
    Some(found).filter(|found| found != entry)
}

/// Returns the longest leading words of all commands that a grant allows, if they are more than the grant has.
fn shared_words(granted: &str, commands: &BTreeSet<Vec<String>>) -> Option<String> {
    let covers = |argv: &&Vec<String>| glovebox_host::grants::covers_command(granted, &argv.join(" "));
    let mut used = commands.iter().filter(covers);
    let mut words: Vec<&str> = used.next()?.iter().map(String::as_str).collect();
    for argv in used {
        let same = words.iter().zip(argv).take_while(|(word, other)| *word == other).count();
        words.truncate(same);
    }
    // A word of a grant has no white space.
    let plain = words.iter().take_while(|word| !word.is_empty() && !word.contains(char::is_whitespace)).count();
    words.truncate(plain);
    let common = words.join(" ");
    let is_narrower = !common.is_empty() && common != granted.trim() && !words.contains(&"*");
    is_narrower.then_some(common)
}

/// Returns wants as lines that can be left out. The author's limits apply anyway.
fn lines(wants: &Grants) -> Vec<Line> {
    let lines = grant_lines(wants, Role::Builder);
    let mut lines: Vec<Line> = lines.iter().map(|line| Line::parse(line)).collect();
    lines.retain(|line| !matches!(line, Line::Filesystem(FileTier::None) | Line::Limit(..)));
    // Paths need access to files, so it is left out last.
    lines.sort_by_key(|line| matches!(line, Line::Filesystem(_)));
    lines
}

/// Returns the grants that these lines are. Without access to files, there are no paths.
fn grants(lines: &[Line]) -> Grants {
    let mut grants = Grants::default();
    for line in lines {
        match line {
            Line::Filesystem(tier) => grants.filesystem = *tier,
            Line::Read(entry) => grants.read.push(entry.clone()),
            Line::Write(entry) => grants.write.push(entry.clone()),
            Line::Run(words) => grants.commands.push(words.clone()),
            Line::Model => grants.model = true,
            Line::Limit(..) | Line::Verifier | Line::Tool(_) | Line::Other(_) => {}
        }
    }
    if grants.filesystem == FileTier::None {
        (grants.read, grants.write) = (Vec::new(), Vec::new());
    }
    grants
}

/// The result of a rehearsal.
struct Report<'a> {
    name: &'a str,
    entry: &'a PluginEntry,
    runs: usize,
    found: &'a Found,
    grants: &'a Grants,
}

/// Returns the lines of the plugin's table that a rehearsal does not change, each after a line break.
fn own_lines(entry: &PluginEntry) -> String {
    let role = if entry.role == Role::Verifier { "\nrole = \"verifier\"" } else { "" };
    let quoted = |name: &String| toml::Value::String(name.clone()).to_string();
    match &entry.tools {
        AllowedTools::All => format!("{role}\ntools = \"*\""),
        AllowedTools::Named(names) if names.is_empty() => role.to_owned(),
        AllowedTools::Named(names) => {
            format!("{role}\ntools = [{}]", names.iter().map(quoted).collect::<Vec<_>>().join(", "))
        }
    }
}

/// The result of a rehearsal as JSON.
#[derive(Serialize)]
struct Document<'a> {
    plugin: &'a str,
    runs: usize,
    wants: Vec<Want>,
    grants: &'a Grants,
}

#[derive(Serialize)]
struct Want {
    want: String,
    needed: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    without: Option<String>,
}

impl Report<'_> {
    fn document(&self) -> Document<'_> {
        let want = |Verdict { grant, difference }: &Verdict| Want {
            want: grant.to_string(),
            needed: difference.is_some(),
            without: difference.clone(),
        };
        let wants = self.found.verdicts.iter().map(want).collect();
        Document { plugin: self.name, runs: self.runs, wants, grants: self.grants }
    }

    fn text(&self) -> Result<String, Stop> {
        let mut rows = Rows::below_a_title(8);
        for Verdict { grant, difference } in &self.found.verdicts {
            let grant = visible::line(&grant.to_string()).into_owned();
            match difference {
                Some(difference) => {
                    rows.row("needed", format_args!("{grant}: without it, {}", visible::line(difference)));
                }
                None => rows.row("unused", grant),
            }
        }
        if self.found.verdicts.is_empty() {
            rows.row("wants", "nothing");
        }
        let cannot =
            |error: toml::ser::Error| Stop::new(Exit::Internal, format!("the grants cannot be written: {error}"));
        let grants = toml::Value::try_from(self.grants).map_err(cannot)?;
        let text = |text: &str| toml::Value::String(text.to_owned());
        let source = match &self.entry.source {
            ComponentSource::File(path) => format!("path = {}", text(path)),
            ComponentSource::Registry(source) => {
                let (registry, version) = (source.repository.to_string(), source.version.to_string());
                format!("registry = {}\nversion = {}", text(&registry), text(&version))
            }
        };
        let more = visible::block(&own_lines(self.entry)).into_owned();
        let grants = grants.to_string();
        let (name, source, grants) = (visible::line(self.name), visible::block(&source), visible::line(&grants));
        Ok(format!(
            "{name} ({} runs)\n{}the smallest grants of these runs:\n\n[plugins.\"{name}\"]\n{source}{more}\ngrants = {grants}\n",
            self.runs,
            rows.finish()
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn argv(words: &[&str]) -> Vec<String> {
        words.iter().map(|word| (*word).to_owned()).collect()
    }

    #[test]
    fn a_command_is_narrowed_to_the_words_that_all_calls_share() {
        let commands: BTreeSet<Vec<String>> =
            [argv(&["cargo", "test", "-q"]), argv(&["cargo", "test", "-p", "a b"]), argv(&["git", "log", "a b"])]
                .into();
        assert_eq!(shared_words("cargo", &commands).as_deref(), Some("cargo test"));
        assert_eq!(shared_words("git", &commands).as_deref(), Some("git log"));
        assert_eq!(shared_words("cargo test", &commands), None);
        assert_eq!(shared_words("*", &commands), None);
        assert_eq!(shared_words("make", &commands), None);
    }

    #[test]
    fn a_written_folder_is_narrowed_to_the_changed_paths() {
        let smallest = |entry: &str, changed: &[&str]| {
            let changed: Vec<Entry> = changed.iter().map(|path| Entry::parse(path).unwrap()).collect();
            let changed: Vec<&Entry> = changed.iter().collect();
            narrower(&Entry::parse(entry).unwrap(), &changed).map(|entry| entry.to_string())
        };
        assert_eq!(smallest("./", &["out/a/x", "out/a/y"]).as_deref(), Some("out/a/"));
        assert_eq!(smallest("./", &["out/a/x", "out/b"]).as_deref(), Some("out/"));
        assert_eq!(smallest("./", &["out/", "out/b"]).as_deref(), Some("out/"), "it created the folder");
        assert_eq!(smallest("out/", &["out/a"]).as_deref(), Some("out/a"));
        assert_eq!(smallest("out/", &["out/a", "out/b"]), None);
        assert_eq!(smallest("./", &["a", "b/c"]), None);
        assert_eq!(smallest("./", &[]), None);
    }

    #[test]
    fn lines_and_grants_are_the_same() {
        let text = "filesystem = 'posix'\nread = ['src/']\nwrite = ['out/']\ncommands = ['cargo']\nmodel = true";
        let wants: Grants = toml::from_str(text).unwrap();
        assert_eq!(grants(&lines(&wants)), wants);
        assert_eq!(lines(&wants).last(), Some(&Line::Filesystem(FileTier::Posix)));
        assert_eq!(grants(&[Line::Read(Entry::whole())]), Grants::default(), "no paths without access to files");
    }
}
