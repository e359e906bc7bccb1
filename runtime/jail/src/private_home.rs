//! The private home of an agent program: a folder of the attempt that the program may write, and that is removed with
//! the attempt.

use crate::jail::{Bind, HOME_INSIDE};
use cap_std::ambient_authority;
use cap_std::fs::Dir;
use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Name of the folder in the attempt's folder, and below `HOME` inside the jail.
const NAME: &str = "agent";

/// The private home of one attempt.
#[derive(Debug, Clone)]
pub struct PrivateHome {
    source: PathBuf,
    /// Access to the folder for files that the host writes.
    pub dir: Arc<Dir>,
}

impl PrivateHome {
    /// Creates an empty private home in the folder of an attempt.
    ///
    /// # Errors
    /// Returns an error if the name is already in use.
    pub fn make(attempt: &Path) -> io::Result<Self> {
        let source = attempt.join(NAME);
        DirBuilder::new().mode(0o700).create(&source)?;
        let dir = Arc::new(Dir::open_ambient_dir(&source, ambient_authority())?);
        Ok(Self { source, dir })
    }

    /// Returns the bind of the folder for a jail with a private root.
    pub fn bind(&self) -> Bind {
        Bind::writable(self.source.clone(), Self::inside().into())
    }

    /// Returns the path of the folder inside the jail.
    pub fn inside() -> String {
        format!("{HOME_INSIDE}/{NAME}")
    }
}
