//! The `glovebox.toml` and `glovebox.lock` that go with a pipeline or a folder.
//!
//! Finds and reads files; what they mean is decided elsewhere. `glovebox.toml` is looked up from the pipeline's folder upward
//! to the workdir and never above it; a pipeline outside the workdir looks in its own folder, then in the workdir.

use crate::exit::{Exit, Stop};
use crate::source::{invalid, read_text, report};
use crate::terminal::diagnostics::Findings;
use glovebox_engine::config::{CONFIG_FILE_NAME, Config};
use glovebox_engine::lock::{LOCK_FILE_NAME, Lock};
use glovebox_pipeline::diagnostic::Severity;
use std::path::{Path, PathBuf};

/// A project's configuration and the folder its paths are relative to.
#[derive(Debug)]
pub struct Project {
    /// The project, absolute.
    pub workdir: PathBuf,
    /// What `glovebox.toml` says; the default when there is none.
    pub config: Config,
    /// The configuration's folder; the workdir when there is no file.
    pub config_dir: PathBuf,
    /// True when there is a file.
    pub has_config: bool,
    /// The plugins that `glovebox.lock` lists; none without a file.
    pub lock: Lock,
}

/// Reads the configuration that goes with a pipeline, or with the workdir alone.
pub fn read_project(workdir: &Path, pipeline: Option<&Path>) -> Result<Project, Stop> {
    let given = workdir.display();
    let workdir =
        std::fs::canonicalize(workdir).map_err(|error| Stop::io(format!("open workdir `{given}`"), &error))?;
    if !workdir.is_dir() {
        return Err(Stop::new(Exit::Usage, format!("workdir `{given}` is not a directory")));
    }
    let found = candidates(&workdir, pipeline).into_iter().find(|folder| stands(&folder.join(CONFIG_FILE_NAME)));
    let Some(config_dir) = found else {
        let config_dir = workdir.clone();
        return Ok(Project {
            workdir,
            config: Config::default(),
            config_dir,
            has_config: false,
            lock: Lock::default(),
        });
    };
    let config = read_config(&config_dir.join(CONFIG_FILE_NAME))?;
    let lock = read_lock(&config_dir.join(LOCK_FILE_NAME))?;
    Ok(Project { workdir, config, config_dir, has_config: true, lock })
}

/// Where compiled components are kept: `$GLOVEBOX_CACHE_DIR`, `$XDG_CACHE_HOME/glovebox`, `~/.cache/glovebox`, or nowhere.
pub fn cache_dir() -> Option<PathBuf> {
    let variable = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    variable("GLOVEBOX_CACHE_DIR")
        .or_else(|| variable("XDG_CACHE_HOME").map(|folder| folder.join("glovebox")))
        .or_else(|| variable("HOME").map(|home| home.join(".cache/glovebox")))
}

/// Folders that may hold the configuration, best first.
fn candidates(workdir: &Path, pipeline: Option<&Path>) -> Vec<PathBuf> {
    let Some(pipeline) = pipeline else { return vec![workdir.to_owned()] };
    // A run that is resumed names a file that may be gone; its folder still says where the configuration is.
    let pipeline = std::fs::canonicalize(pipeline).unwrap_or_else(|_| pipeline.to_owned());
    let folder = pipeline.parent().unwrap_or(workdir);
    if !folder.starts_with(workdir) {
        return vec![folder.to_owned(), workdir.to_owned()];
    }
    folder.ancestors().take_while(|ancestor| ancestor.starts_with(workdir)).map(Path::to_owned).collect()
}

/// True where something stands that is no folder. A pipe is no configuration, and nothing that stands in one's place is passed over.
fn stands(file: &Path) -> bool {
    file.metadata().is_ok_and(|found| !found.is_dir())
}

fn read_config(file: &Path) -> Result<Config, Stop> {
    let text = read_text(file)?;
    Config::parse(&text, &file.display().to_string()).map_err(|problems| {
        let diagnostics = problems.iter().map(|problem| problem.to_diagnostic()).collect();
        let findings = Findings { file: file.display().to_string(), source: text, diagnostics };
        report(&findings, Severity::Warning);
        invalid(&findings)
    })
}

fn read_lock(file: &Path) -> Result<Lock, Stop> {
    if !stands(file) {
        return Ok(Lock::default());
    }
    let text = read_text(file)?;
    Lock::parse(&text).map_err(|error| {
        Stop::new(Exit::Plugin, format!("`{}`: {error}", file.display()))
            .with_help("review the plugins, then run `glovebox plugin lock`")
    })
}
