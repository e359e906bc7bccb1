//! Finds and reads the `glovebox.toml` and `glovebox.lock` of a pipeline or a folder.
//!
//! The search goes from the pipeline's folder up to the workdir. For a pipeline outside of the workdir, it looks in the
//! pipeline's folder and then in the workdir. Then the search continues above the workdir, up to the root of the git
//! repository. A note names a file that is found above the workdir.

use super::admission::{self, RevocationWatch};
use super::findings::Findings;
use super::refusal::{Class, Refusal};
use super::shipped::ShippedComponents;
use super::source::read_text;
use super::{toolchain, verify_settings};
use crate::bind::OperatorFiles;
use crate::components::admission::Admission;
use crate::config::{CONFIG_FILE_NAME, Config};
use crate::lock::{LOCK_FILE_NAME, Lock};
use glovebox_names::visible;
use glovebox_pipeline::diagnostic::Diagnostic;
use glovebox_pipeline::span::Span;
use glovebox_record::scope::Entry;
use glovebox_signing::trust::Trust;
use glovebox_workspace::project::Include;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A project and its configuration.
#[derive(Debug)]
pub struct Project {
    /// The absolute path of the project's folder.
    pub workdir: PathBuf,
    /// The configuration. The default if there is no file.
    pub config: Config,
    /// The folder of `glovebox.toml`, to which the paths in the file are relative. The workdir if there is no file.
    pub config_dir: PathBuf,
    /// True if `glovebox.toml` exists.
    pub has_config: bool,
    /// The plugins that `glovebox.lock` lists. Empty if there is no file.
    pub lock: Lock,
    /// The keys of `[trust]`. `None` without that table.
    pub trust: Option<Arc<Trust>>,
    /// The lists of revocations that apply.
    pub revocations: Arc<RevocationWatch>,
    /// A note on which configuration is used. `None` if that is obvious.
    pub note: Option<String>,
    /// The components that came with the settings, on a machine that has only those. `None` if they are read from where
    /// the settings name them.
    pub shipped: Option<Arc<ShippedComponents>>,
    /// True if the plan must be the same on every machine: it then contains no folder that only this machine has.
    pub is_portable: bool,
}

impl Project {
    /// Returns the files of the operator.
    pub fn operator_files(&self) -> OperatorFiles<'_> {
        OperatorFiles { config: &self.config, lock: &self.lock }
    }

    /// Returns true if the project has a history that commands could see.
    pub fn has_history(&self) -> bool {
        !self.is_portable && self.workdir.join(".git").exists()
    }

    /// Returns which components may run now.
    pub fn admission(&self) -> Admission {
        Admission { trust: self.trust.clone(), revocations: self.revocations.current() }
    }
}

/// Reads the configuration for a pipeline, or for the workdir alone.
pub fn read_project(workdir: &Path, pipeline: Option<&Path>) -> Result<Project, Refusal> {
    let given = workdir.display();
    let workdir =
        std::fs::canonicalize(workdir).map_err(|error| Refusal::io(format!("open workdir `{given}`"), &error))?;
    if !workdir.is_dir() {
        return Err(Refusal::new(Class::Usage, format!("workdir `{given}` is not a directory")));
    }
    with_verification(read_files(workdir, pipeline)?)
}

/// Reads the settings of a project whose files came to this machine: its configuration is in `config_dir`, and its files in
/// `workdir`.
pub(super) fn read_shipped(
    workdir: &Path,
    config_dir: &Path,
    components: ShippedComponents,
) -> Result<Project, Refusal> {
    let project = match exists(&config_dir.join(CONFIG_FILE_NAME)) {
        true => read_config_dir(workdir.to_owned(), config_dir.to_owned())?,
        false => without_config(workdir.to_owned(), config_dir.to_owned()),
    };
    with_verification(Project { shipped: Some(Arc::new(components)), is_portable: true, ..project })
}

fn with_verification(project: Project) -> Result<Project, Refusal> {
    let verify = verify_settings::complete(project.config.verify.as_deref(), &project.workdir)?.map(Arc::new);
    Ok(Project { config: Config { verify, ..project.config }, ..project })
}

fn without_config(workdir: PathBuf, config_dir: PathBuf) -> Project {
    Project {
        workdir,
        config: Config::default(),
        trust: None,
        revocations: Arc::new(RevocationWatch::new(None, None, &config_dir)),
        config_dir,
        has_config: false,
        lock: Lock::default(),
        note: None,
        shipped: None,
        is_portable: false,
    }
}

fn read_files(workdir: PathBuf, pipeline: Option<&Path>) -> Result<Project, Refusal> {
    let mut found = candidates(&workdir, pipeline).into_iter().filter(|folder| exists(&folder.join(CONFIG_FILE_NAME)));
    let Some(config_dir) = found.next() else {
        let config_dir = workdir.clone();
        return Ok(without_config(workdir, config_dir));
    };
    let file = config_dir.join(CONFIG_FILE_NAME);
    let other = found.find(|other| *other != config_dir).filter(|_| config_dir != workdir);
    let note = if !config_dir.starts_with(&workdir) && workdir.starts_with(&config_dir) {
        Some(format!("using the configuration of the repository: {}", shown(&file)))
    } else {
        // The pipeline's configuration may have come with the pipeline from another author; the configuration of the workdir
        // is the user's own.
        let other = other.map(|other| shown(&other.join(CONFIG_FILE_NAME)));
        other
            .map(|other| format!("using the configuration of the pipeline's folder: {}, and not {other}", shown(&file)))
    };
    Ok(Project { note, ..read_config_dir(workdir, config_dir)? })
}

fn read_config_dir(workdir: PathBuf, config_dir: PathBuf) -> Result<Project, Refusal> {
    let config = read_config(&config_dir.join(CONFIG_FILE_NAME), &workdir)?;
    let lock = read_lock(&config_dir.join(LOCK_FILE_NAME))?;
    let trust = config.trust.as_ref().map(|setting| admission::trust(setting, &config_dir)).transpose()?.map(Arc::new);
    let revocations = Arc::new(RevocationWatch::new(config.trust.as_ref(), trust.clone(), &config_dir));
    Ok(Project { config, has_config: true, lock, trust, revocations, ..without_config(workdir, config_dir) })
}

/// Refuses paths of `glovebox.toml` with which no run can start on this machine: entries of `[workspace] include`, and
/// `[exec] venv`.
pub fn refuse_bad_paths(project: &Project) -> Result<(), Refusal> {
    refuse_bad_include(project)?;
    let problem = project.config.exec.venv.as_ref().and_then(|venv| {
        let (why, help) = toolchain::venv_problem(Path::new(&venv.path))?;
        let span = Span { start: venv.place.start, end: venv.place.end };
        Some(Diagnostic::error("config_value", format!("`exec.venv` cannot be used: {why}"), span).with_help(help))
    });
    refuse(project, problem.into_iter().collect())
}

/// Refuses an entry of `[workspace] include` that cannot be copied.
pub fn refuse_bad_include(project: &Project) -> Result<(), Refusal> {
    let setting = &project.config.workspace;
    let problem = |(text, place): (&String, &Range<usize>)| {
        let error = Include::find(&project.workdir, &Entry::parse(text).ok()?).err()?;
        let span = Span { start: place.start, end: place.end };
        let help = "name files and folders of the project, or remove the entry";
        Some(Diagnostic::error("config_value", error.to_string(), span).with_help(help))
    };
    refuse(project, setting.include.iter().zip(&setting.include_places).filter_map(problem).collect())
}

/// Refuses the project if there are findings about its configuration.
fn refuse(project: &Project, diagnostics: Vec<Diagnostic>) -> Result<(), Refusal> {
    if diagnostics.is_empty() {
        return Ok(());
    }
    let file = project.config_dir.join(CONFIG_FILE_NAME);
    let findings = Findings { file: file.display().to_string(), source: read_text(&file)?, diagnostics };
    Err(Refusal::for_findings(findings))
}

fn shown(file: &Path) -> String {
    visible::line(&file.display().to_string()).into_owned()
}

/// Returns the folders above a folder, up to the root of its git repository. Empty outside of a repository.
fn above(folder: &Path) -> Vec<PathBuf> {
    let Some(depth) = folder.ancestors().position(|ancestor| ancestor.join(".git").exists()) else { return Vec::new() };
    folder.ancestors().skip(1).take(depth).map(Path::to_owned).collect()
}

/// Returns the folders that may contain the configuration, best first.
fn candidates(workdir: &Path, pipeline: Option<&Path>) -> Vec<PathBuf> {
    let mut folders = own_candidates(workdir, pipeline);
    folders.extend(above(workdir));
    folders
}

fn own_candidates(workdir: &Path, pipeline: Option<&Path>) -> Vec<PathBuf> {
    let Some(pipeline) = pipeline else { return vec![workdir.to_owned()] };
    // The pipeline file of a resumed run may not exist any more, but its folder still leads to the configuration.
    let pipeline = std::fs::canonicalize(pipeline).unwrap_or_else(|_| pipeline.to_owned());
    let folder = pipeline.parent().unwrap_or(workdir);
    if !folder.starts_with(workdir) {
        return vec![folder.to_owned(), workdir.to_owned()];
    }
    folder.ancestors().take_while(|ancestor| ancestor.starts_with(workdir)).map(Path::to_owned).collect()
}

/// Returns true if the path exists and is not a folder. Also returns true for a pipe or a device, so that reading it
/// reports an error.
fn exists(file: &Path) -> bool {
    file.metadata().is_ok_and(|found| !found.is_dir())
}

fn read_config(file: &Path, workdir: &Path) -> Result<Config, Refusal> {
    let text = read_text(file)?;
    let parsed = Config::parse(&text, &file.display().to_string())
        .map_err(|problems| problems.iter().map(|problem| problem.to_diagnostic()).collect());
    let checked = parsed.and_then(|config| match writable_programs(&config, workdir) {
        found if found.is_empty() => Ok(config),
        found => Err(found),
    });
    checked.map_err(|diagnostics: Vec<Diagnostic>| {
        Refusal::for_findings(Findings { file: file.display().to_string(), source: text, diagnostics })
    })
}

/// Returns an error for each folder of `[exec] path` and `[exec] venv` that is in the project, because a stage could replace the programs there.
fn writable_programs(config: &Config, workdir: &Path) -> Vec<Diagnostic> {
    let exec = &config.exec;
    let is_inside = |folder: &Path| {
        folder.starts_with(workdir) || std::fs::canonicalize(folder).is_ok_and(|real| real.starts_with(workdir))
    };
    let of_venv = exec.venv.iter().map(|venv| ("venv", &venv.path, &venv.place));
    let folders = exec.path.iter().zip(&exec.path_places).map(|(folder, place)| ("path", folder, place));
    let inside = folders.chain(of_venv).filter(|(_, folder, _)| is_inside(Path::new(folder)));
    let problem = |(field, folder, place): (&str, &String, &Range<usize>)| {
        let message = format!(
            "`exec.{field}` contains `{folder}`, which is in the project: stages could replace the programs there"
        );
        Diagnostic::error("config_value", message, Span { start: place.start, end: place.end }).with_help(
            "name a folder outside of the project; a virtual environment in `.venv/` is found automatically, and programs of \
             `node_modules/` start with `npx`",
        )
    };
    inside.map(problem).collect()
}

fn read_lock(file: &Path) -> Result<Lock, Refusal> {
    if !exists(file) {
        return Ok(Lock::default());
    }
    let text = read_text(file)?;
    Lock::parse(&text).map_err(|error| {
        Refusal::new(Class::Plugin, format!("`{}`: {error}", file.display()))
            .with_help("review the plugins, then run `glovebox plugin lock`")
    })
}
