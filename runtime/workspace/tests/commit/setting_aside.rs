//! The quarantine of disallowed changes.

use super::bench::{Bench, look, scope, sh};
use glovebox_workspace::quarantine::{self, QuarantineLimits};
use std::fs;
use std::os::unix::fs::PermissionsExt;

#[test]
fn quarantine_keeps_everything_and_nothing_of_it_can_act() {
    let made = Bench::new(&[("src/a", "a")]);
    let copy = made.copy(&scope(&["./"], &["src/"], &[]));
    let script = "mkdir -p .git/hooks; printf '#!/bin/sh' > .git/hooks/pre-commit; chmod 4755 .git/hooks/pre-commit; \
                  echo out > .envrc; mkfifo p; ln -s /etc/passwd l; echo fine > src/b; rm src/a; echo big > big";
    sh(copy.root(), script);
    let found = look(&copy);
    let into = made.dir.path().join("quarantine");
    let report =
        quarantine::quarantine(&copy, &found, &into, &QuarantineLimits { files_max: 2, ..QuarantineLimits::default() })
            .unwrap();
    let listed: Vec<(&str, bool)> =
        report.kept.iter().map(|kept| (kept.path.as_str(), kept.stored_as.is_some())).collect();
    let expected = [(".envrc", true), (".git/hooks/pre-commit", true), ("big", false), ("l", false), ("p", false)];
    assert_eq!(listed, expected);
    for entry in fs::read_dir(&into).unwrap() {
        let meta = entry.unwrap().path().symlink_metadata().unwrap();
        assert!(meta.is_file() && meta.permissions().mode() & 0o7777 == 0o600);
    }
    let stored = report.kept[1].stored_as.clone().unwrap();
    assert_eq!(fs::read_to_string(into.join(stored)).unwrap(), "#!/bin/sh");
    let read: quarantine::QuarantineReport =
        serde_json::from_str(&fs::read_to_string(into.join("report.json")).unwrap()).unwrap();
    assert_eq!(read, report);
}
