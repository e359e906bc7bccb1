//! Runs many behaviours, as many at a time as the machine has processors.

use crate::behaviour::Behaviour;
use crate::place::Place;
use crate::trial::{self, Verdict};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};
use std::{env, fs, io, process, thread};

/// The result of one behaviour.
#[derive(Debug, Clone)]
pub struct Row {
    /// The behaviour.
    pub behaviour: Behaviour,
    /// The result without the settings of the behaviour.
    pub verdict: Verdict,
    /// The result with the settings of the behaviour, if it failed without them.
    pub with_settings: Option<Verdict>,
    /// Wall time of the first trial.
    pub duration: Duration,
}

/// Tries behaviours in a place. Returns one row for each, in their order.
///
/// # Errors
///
/// Fails if the folder for temporary files cannot be created.
pub fn run(behaviours: &[Behaviour], place: &Place) -> io::Result<Vec<Row>> {
    let folder = TemporaryFolder::new()?;
    let (next, rows) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let workers = thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    let Some(behaviour) = behaviours.get(number) else { break };
                    let row = row(behaviour, place, &folder.0.join(number.to_string()));
                    rows.lock().unwrap_or_else(PoisonError::into_inner).push((number, row));
                }
            });
        }
    });
    let mut rows = rows.into_inner().unwrap_or_else(PoisonError::into_inner);
    rows.sort_by_key(|(number, _)| *number);
    Ok(rows.into_iter().map(|(_, row)| row).collect())
}

fn row(behaviour: &Behaviour, place: &Place, base: &Path) -> Row {
    let begin = Instant::now();
    let verdict = trial::run(behaviour, place, false, base);
    let duration = begin.elapsed();
    let is_failed = matches!(verdict, Verdict::Fail(_));
    let tries_settings = is_failed && !behaviour.settings.is_empty() && place.has_settings();
    let with_settings = tries_settings.then(|| trial::run(behaviour, place, true, base));
    Row { behaviour: behaviour.clone(), verdict, with_settings, duration }
}

/// A temporary folder, removed on drop.
struct TemporaryFolder(PathBuf);

impl TemporaryFolder {
    /// Creates the folder, at a path without symbolic links.
    fn new() -> io::Result<Self> {
        let parent = fs::canonicalize(env::temp_dir())?;
        let folder = parent.join(format!("glovebox-ordinary-{}", process::id()));
        fs::create_dir(&folder)?;
        Ok(Self(folder))
    }
}

impl Drop for TemporaryFolder {
    fn drop(&mut self) {
        let _removed = fs::remove_dir_all(&self.0);
    }
}
