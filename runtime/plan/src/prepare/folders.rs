//! The folders that Glovebox keeps for a user, outside of projects.

use std::path::PathBuf;

/// Returns the folder of compiled components: `$GLOVEBOX_CACHE_DIR`, `$XDG_CACHE_HOME/glovebox` or `~/.cache/glovebox`.
/// `None` if there is none.
pub fn cache_dir() -> Option<PathBuf> {
    folder("GLOVEBOX_CACHE_DIR", "XDG_CACHE_HOME", ".cache/glovebox")
}

/// Returns the folder of the user's key and of what the user confirmed: `$GLOVEBOX_STATE_DIR`, `$XDG_STATE_HOME/glovebox` or
/// `~/.local/state/glovebox`. `None` if there is none.
pub fn state_dir() -> Option<PathBuf> {
    folder("GLOVEBOX_STATE_DIR", "XDG_STATE_HOME", ".local/state/glovebox")
}

/// Returns the folder of the plugins that the user pulled and of what the user decided for all projects, such as revocations:
/// `$GLOVEBOX_DATA_DIR`, `$XDG_DATA_HOME/glovebox` or `~/.local/share/glovebox`. `None` if there is none.
pub fn data_dir() -> Option<PathBuf> {
    folder("GLOVEBOX_DATA_DIR", "XDG_DATA_HOME", ".local/share/glovebox")
}

/// Returns the folders of this user that no sandbox shows.
pub fn private_dirs() -> impl Iterator<Item = PathBuf> {
    [state_dir(), cache_dir(), data_dir()].into_iter().flatten()
}

fn folder(own: &str, shared: &str, below_home: &str) -> Option<PathBuf> {
    let variable = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    variable(own)
        .or_else(|| variable(shared).map(|folder| folder.join("glovebox")))
        .or_else(|| variable("HOME").map(|home| home.join(below_home)))
}
