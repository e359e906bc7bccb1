//! Changes of `glovebox.toml` and `glovebox.lock` by one process at a time.
//!
//! Each file is replaced atomically. The lock file is written before `glovebox.toml`: an entry of the lock file without a table
//! does nothing, and the interrupted command can be repeated.

use crate::exit::{Exit, Stop};
use crate::prepare;
use crate::replaced_file;
use glovebox_plan::config::{CONFIG_FILE_NAME, Config};
use glovebox_plan::lock::{LOCK_FILE_NAME, Lock};
use glovebox_plan::prepare::project::Project;
use glovebox_workspace::regular_file::{self, Links};
use semver::Version;
use std::fs::{File, TryLockError};
use std::io::{ErrorKind, Write};
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};
use toml_edit::DocumentMut;

/// Maximum time to wait for another process that changes the same project.
const WAIT_MAX: Duration = Duration::from_secs(10);
/// Maximum size of `glovebox.toml`, in bytes.
const CONFIG_BYTES_MAX: u64 = 1 << 20;
/// Maximum size of a lock file that is put back, in bytes.
const LOCK_BYTES_MAX: u64 = 16 << 20;
/// Time between two attempts to take the lock.
const POLL: Duration = Duration::from_millis(20);

/// The project, which no other `glovebox plugin` changes until this value is dropped.
pub struct Editing {
    /// The project, read after the lock was taken.
    pub project: Project,
    _guard: File,
}

impl Editing {
    /// Waits for other processes that change the project, and reads it.
    ///
    /// # Errors
    ///
    /// Exit 9 if another process does not end in time.
    pub fn begin(workdir: &Path, pipeline: Option<&Path>) -> Result<Self, Stop> {
        let folder = prepare::read_project(workdir, pipeline)?.config_dir;
        let failed = |error: &std::io::Error| Stop::io(format!("lock `{}`", folder.display()), error);
        // The folder itself is locked, so that no file is left behind.
        let guard = regular_file::open_folder(&folder).map_err(|error| failed(&error))?;
        let begin = Instant::now();
        loop {
            match guard.try_lock() {
                Ok(()) => break,
                Err(TryLockError::WouldBlock) if begin.elapsed() < WAIT_MAX => thread::sleep(POLL),
                Err(TryLockError::WouldBlock) => {
                    let message = format!("another process changes the plugins of `{}`", folder.display());
                    return Err(Stop::new(Exit::Transient, message).with_help("repeat the command when it has ended"));
                }
                Err(TryLockError::Error(error)) => return Err(failed(&error)),
            }
        }
        Ok(Self { project: prepare::read_project(workdir, pipeline)?, _guard: guard })
    }

    /// Replaces the lock file.
    pub fn write_lock(&self, lock: &Lock) -> Result<(), Stop> {
        let file = self.project.config_dir.join(LOCK_FILE_NAME);
        replace(&file, lock).map_err(|error| Stop::io(format!("write `{}`", file.display()), &error))
    }

    /// Returns the text of `glovebox.toml`, or an empty text if the file does not exist.
    pub fn config_text(&self) -> Result<String, Stop> {
        let file = self.project.config_dir.join(CONFIG_FILE_NAME);
        match regular_file::read_text(&file, Links::Within(&self.project.config_dir), CONFIG_BYTES_MAX) {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(String::new()),
            read => read.map_err(|error| Stop::io(format!("read `{}`", file.display()), &error)),
        }
    }

    /// Refuses a project whose `glovebox.toml` or `glovebox.lock` cannot be replaced, before anything is written.
    ///
    /// # Errors
    ///
    /// Exit 2 if one of them is a link or no file.
    pub fn require_places(&self) -> Result<(), Stop> {
        let root = &self.project.config_dir;
        replaced_file::require_place(root, &root.join(CONFIG_FILE_NAME))?;
        replaced_file::require_place(root, &root.join(LOCK_FILE_NAME))
    }

    /// Replaces the lock file and `glovebox.toml`. If one of them cannot be replaced, both are as before.
    pub fn write(&self, lock: &Lock, config: &str) -> Result<(), Stop> {
        let file = self.project.config_dir.join(LOCK_FILE_NAME);
        let before = regular_file::read(&file, Links::Within(&self.project.config_dir), LOCK_BYTES_MAX).ok();
        self.write_lock(lock)?;
        self.write_config(config).inspect_err(|_| {
            // An error here is ignored, because the earlier error is reported. An entry of the lock file without a table does nothing.
            drop(match &before {
                Some(before) => replaced_file::put_below(&self.project.config_dir, &file, before),
                None => replaced_file::remove_below(&self.project.config_dir, &file),
            });
        })
    }

    /// Replaces `glovebox.toml`. If the text is not a valid configuration, returns an error and writes nothing.
    pub fn write_config(&self, text: &str) -> Result<(), Stop> {
        parse_config(text)?;
        replaced_file::put_below(&self.project.config_dir, &self.project.config_dir.join(CONFIG_FILE_NAME), text)
    }
}

/// Parses a text that is to be the new `glovebox.toml`.
pub fn parse_config(text: &str) -> Result<Config, Stop> {
    Config::parse(text, CONFIG_FILE_NAME).map_err(|problems| {
        let problem = problems.first().map(ToString::to_string).unwrap_or_default();
        let message = format!("`{CONFIG_FILE_NAME}` cannot be changed by this command: {problem}");
        Stop::new(Exit::Invalid, message).with_help("change the table of the plugin by hand")
    })
}

/// Returns the text of `glovebox.toml` with another version of a plugin. The rest of the text is kept.
pub fn with_version(text: &str, name: &str, version: &Version) -> Result<String, Stop> {
    let mut document: DocumentMut = text.parse().map_err(|error: toml_edit::TomlError| {
        Stop::new(Exit::Invalid, format!("`{CONFIG_FILE_NAME}` cannot be changed: {}", error.message()))
    })?;
    let plugins = document.get_mut("plugins").and_then(|item| item.as_table_like_mut());
    let plugin = plugins.and_then(|plugins| plugins.get_mut(name)).and_then(|item| item.as_table_like_mut());
    let field = plugin.and_then(|plugin| plugin.get_mut("version")).and_then(|item| item.as_value_mut());
    let field = field.ok_or_else(|| {
        Stop::new(Exit::Invalid, format!("`{name}` has no `version` in `{CONFIG_FILE_NAME}` that can be changed"))
    })?;
    let decor = field.decor().clone();
    *field = toml_edit::Value::from(version.to_string());
    *field.decor_mut() = decor;
    Ok(document.to_string())
}

/// Replaces the lock file atomically: after a crash, it has the old or the new content. A symbolic link at its path is
/// replaced, not followed.
fn replace(file: &Path, lock: &Lock) -> std::io::Result<()> {
    let beside = file.with_extension("lock.new");
    match std::fs::remove_file(&beside) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut new = File::create_new(&beside)?;
    new.write_all(lock.to_text().as_bytes())?;
    new.sync_all()?;
    std::fs::rename(&beside, file)
}
