//! Where behaviours run: in the sandbox of a glovebox program, or under another command.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// The folders of one trial.
#[derive(Debug)]
pub(crate) struct Folders {
    /// The folder that contains the others. It is removed after the trial.
    pub(crate) base: PathBuf,
}

impl Folders {
    /// The folder with the programs, which the project's script copies.
    pub(crate) fn programs(&self) -> PathBuf {
        self.base.join("programs")
    }

    /// The project, which its script creates.
    pub(crate) fn project(&self) -> PathBuf {
        self.base.join("project")
    }

    /// The folder for temporary files of programs outside of the sandbox.
    pub(crate) fn temporary(&self) -> PathBuf {
        self.base.join("tmp")
    }

    /// The home folder of programs outside of the sandbox.
    pub(crate) fn home(&self) -> PathBuf {
        self.base.join("home")
    }
}

/// Where behaviours run.
#[derive(Debug, Clone)]
pub enum Place {
    /// As stages of a pipeline.
    Glovebox {
        /// The program.
        program: PathBuf,
        /// The tier of the sandbox.
        tier: String,
    },
    /// Under a wrapper command, which gets the program as further arguments. `{project}`, `{tmp}`, `{home}` and
    /// `{base}` in its words are the folders of the trial. Without words, the program runs without a sandbox.
    Command {
        /// The words of the command.
        words: Vec<String>,
        /// True if the command takes one text for a shell instead of words.
        takes_text: bool,
    },
}

impl Place {
    /// Programs without a sandbox.
    pub fn plain() -> Self {
        Self::Command { words: Vec::new(), takes_text: false }
    }

    /// Returns true if the settings of glovebox.toml have an effect here.
    pub(crate) fn has_settings(&self) -> bool {
        matches!(self, Self::Glovebox { .. })
    }
}

/// The options of the shell that runs a part: the first command that fails ends it, and the last line on standard error
/// names that command even if it prints nothing.
pub(crate) const SHELL_OPTIONS: &str = "-eux";

/// Returns the words of a command with the folders of a trial, and after them the program of a part.
pub(crate) fn words(words: &[String], takes_text: bool, folders: &Folders, part: usize) -> Vec<OsString> {
    let text = |path: &Path| path.to_string_lossy().into_owned();
    let named = [
        ("{project}", text(&folders.project())),
        ("{tmp}", text(&folders.temporary())),
        ("{home}", text(&folders.home())),
        ("{base}", text(&folders.base)),
    ];
    let filled =
        words.iter().map(|word| named.iter().fold(word.clone(), |word, (name, path)| word.replace(name, path)));
    let program = format!(".ordinary/{part}.sh");
    let program = if takes_text {
        vec![format!("sh {SHELL_OPTIONS} {program}")]
    } else {
        vec!["sh".to_owned(), SHELL_OPTIONS.to_owned(), program]
    };
    filled.chain(program).map(OsString::from).collect()
}
