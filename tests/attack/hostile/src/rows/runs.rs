//! Attacks on files that Glovebox keeps for its user: the key that signs runs, and the folders of other runs with their
//! hold-outs.

use crate::row::{Payload, Row, Source};

const METADATA: &str = "Landlock cannot restrict modes, owners, times and attributes";

#[rustfmt::skip]
pub(super) const ROWS: &[Row] = &[
    Row::new("run-key-read", Source::Review(10), "read the key that signs runs", "view", Payload::Program(&["read", "{run_key}"])),
    Row::new("run-key-by-root", Source::Review(10), "read the key that signs runs by `/proc/self/root`", "view", Payload::Program(&["read", "/proc/self/root{run_key}"])),
    Row::new("run-key-by-link", Source::Review(10), "read the key that signs runs through a symbolic link", "view", Payload::Program(&["symlink-read", "{run_key}", "{out}/to-run-key"])),
    Row::new("run-key-append", Source::Review(10), "append to the key", "view", Payload::Program(&["append", "{run_key}"])),
    Row::new("run-key-replace", Source::Review(10), "replace the key with a key of the attacker", "view", Payload::Program(&["unlink", "{run_key}"])),
    Row::new("run-key-hardlink", Source::Review(10), "create a hard link to the key in the workspace", "view", Payload::Program(&["hardlink", "{run_key}", "{out}/second-key", "read"])),
    Row::new("run-key-chmod", Source::Review(10), "make the key world-readable", "view", Payload::Program(&["chmod", "{run_key}", "666"])).landlock(METADATA),
    Row::new("run-key-hunt", Source::Review(10), "search every visible folder for a key", "view", Payload::Program(&["hunt", "/", "run.key"])),
    Row::new("runs-list", Source::Review(15), "list the folder of all runs", "view", Payload::Program(&["list", "{runs}"])),
    Row::new("runs-chmod", Source::Review(19), "make the folder of all runs accessible to every user", "view", Payload::Program(&["chmod", "{runs}", "777"])).landlock(METADATA),
    Row::new("runs-plant", Source::Review(10), "create a forged run in the folder of all runs", "view", Payload::Program(&["mkdir", "{runs}/{planted}"])),
    Row::new("run-holdouts", Source::Review(15), "read another run's sealed hold-outs", "view", Payload::Program(&["read", "{runs}/other/holdouts/files/scenarios/answer.sh"])),
    Row::new("run-withheld", Source::Review(19), "read the text that another run withholds from builders", "view", Payload::Program(&["read", "{runs}/other/judge/withheld.json"])),
    Row::new("run-journal", Source::Review(10), "add a record to another run's journal", "view", Payload::Program(&["append", "{runs}/other/journal.sqlite"])),
    Row::new("run-rename", Source::Review(10), "move another run into the workspace", "view", Payload::Program(&["rename", "{runs}/other", "{out}/other"])),
    Row::new("run-hunt", Source::Review(15), "search every visible folder for withheld answers", "view", Payload::Program(&["hunt", "/", "withheld.json"])),
];
