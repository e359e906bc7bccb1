//! What this program keeps for its user: the key that signs runs, and the folders of other runs with their hold-outs.

use crate::row::Row;

const METADATA: &str = "Landlock knows no right for modes, owners, times and attributes";

#[rustfmt::skip]
pub(super) const ROWS: &[Row] = &[
    Row::program("run-key-read", "review 10", "read the key that signs runs", "view", &["read", "{run_key}"]),
    Row::program("run-key-by-root", "review 10", "read it by `/proc/self/root`", "view", &["read", "/proc/self/root{run_key}"]),
    Row::program("run-key-by-link", "review 10", "read it through a link of our own", "view", &["symlink-read", "{run_key}", "{out}/to-run-key"]),
    Row::program("run-key-append", "review 10", "change the key", "view", &["append", "{run_key}"]),
    Row::program("run-key-replace", "review 10", "remove the key, so that one of ours is made", "view", &["unlink", "{run_key}"]),
    Row::program("run-key-hardlink", "review 10", "give the key a second name in the workspace", "view", &["hardlink", "{run_key}", "{out}/second-key", "read"]),
    Row::program("run-key-chmod", "review 10", "make the key readable for everybody", "view", &["chmod", "{run_key}", "666"]).landlock(METADATA),
    Row::program("run-key-hunt", "review 10", "look through everything that can be seen for a key", "view", &["hunt", "/", "run.key"]),
    Row::program("runs-list", "review 15", "list the folder of all runs", "view", &["list", "{runs}"]),
    Row::program("runs-chmod", "review 19", "open the folder of all runs to everybody", "view", &["chmod", "{runs}", "777"]).landlock(METADATA),
    Row::program("runs-plant", "review 10", "plant a run of ours among them", "view", &["mkdir", "{runs}/{planted}"]),
    Row::program("run-holdouts", "review 15", "read another run's sealed hold-outs", "view", &["read", "{runs}/other/holdouts/files/scenarios/answer.sh"]),
    Row::program("run-withheld", "review 19", "read what another run withholds from builders", "view", &["read", "{runs}/other/judge/withheld.json"]),
    Row::program("run-journal", "review 10", "add a record to another run's journal", "view", &["append", "{runs}/other/journal.sqlite"]),
    Row::program("run-rename", "review 10", "bring another run into the workspace", "view", &["rename", "{runs}/other", "{out}/other"]),
    Row::program("run-hunt", "review 15", "look through everything that can be seen for withheld answers", "view", &["hunt", "/", "withheld.json"]),
];
