//! The private home of an agent program: a folder of the attempt that the program may write, and that ends with the attempt.

use crate::jail::{Bind, HOME_INSIDE};
use cap_std::ambient_authority;
use cap_std::fs::Dir;
use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Its name in the attempt's folder, and below HOME inside.
const NAME: &str = "agent";

/// A private home.
#[derive(Debug, Clone)]
pub struct PrivateHome {
    source: PathBuf,
    /// For the host's own files in it.
    pub dir: Arc<Dir>,
}

impl PrivateHome {
    /// Creates an empty one in the folder of an attempt.
    ///
    /// # Errors
    /// The name is already in use.
    pub fn make(attempt: &Path) -> io::Result<Self> {
        let source = attempt.join(NAME);
        DirBuilder::new().mode(0o700).create(&source)?;
        let dir = Arc::new(Dir::open_ambient_dir(&source, ambient_authority())?);
        Ok(Self { source, dir })
    }

    /// Its bind in a jail with a private root.
    pub fn bind(&self) -> Bind {
        Bind { source: self.source.clone(), at: Self::inside().into(), writable: true, optional: false }
    }

    /// Its path inside.
    pub fn inside() -> String {
        format!("{HOME_INSIDE}/{NAME}")
    }
}
