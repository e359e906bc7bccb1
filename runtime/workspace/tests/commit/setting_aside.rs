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

#[test]
fn what_is_within_the_limits_is_stored_and_the_rest_only_listed() {
    let made = Bench::new(&[("src/a", "a")]);
    let copy = made.copy(&scope(&["./"], &["src/"], &[]));
    sh(copy.root(), "printf 1234 > a; printf 12345 > b; printf 123 > c; printf 1 > d");
    let found = look(&copy);
    for (number, files_max, bytes_max, expected) in [
        (1, 9, 13, [true, true, true, true]),
        (2, 9, 9, [true, true, false, false]),
        (3, 9, 8, [true, false, true, true]),
        (4, 2, 13, [true, true, false, false]),
        (5, 0, 13, [false; 4]),
        (6, 9, 0, [false; 4]),
    ] {
        let into = made.dir.path().join(format!("quarantine-{number}"));
        let report = quarantine::quarantine(&copy, &found, &into, &QuarantineLimits { files_max, bytes_max }).unwrap();
        let stored: Vec<bool> = report.kept.iter().map(|kept| kept.stored_as.is_some()).collect();
        assert_eq!(stored, expected, "{files_max} files and {bytes_max} bytes");
        let bytes: Vec<u64> = report.kept.iter().map(|kept| kept.bytes).collect();
        assert_eq!(bytes, [4, 5, 3, 1], "the length of a file is listed even if it is not stored");
        assert_eq!(fs::read_dir(&into).unwrap().count(), 1 + stored.iter().filter(|stored| **stored).count());
    }
}

#[test]
fn a_stored_name_has_a_number_and_the_harmless_characters() {
    let made = Bench::new(&[("src/a", "a")]);
    let copy = made.copy(&scope(&["./"], &["src/"], &[]));
    sh(copy.root(), "mkdir x; echo 1 > 'x/A-b_c.9'; echo 2 > 'x/B $(id);é'; echo 3 > x/$(printf '%070d' 0)");
    let into = made.dir.path().join("quarantine");
    let report = quarantine::quarantine(&copy, &look(&copy), &into, &QuarantineLimits::default()).unwrap();
    let names: Vec<_> = report.kept.iter().filter_map(|kept| kept.stored_as.clone()).collect();
    let zeros = "0".repeat(64);
    let harmless = ["A-b_c.9", "B___id___", zeros.as_str()];
    for plain in harmless {
        assert!(names.iter().any(|name| name.get(5..) == Some(plain)), "{plain} in {names:?}");
    }
    assert!(names.iter().all(|name| name.as_bytes()[4] == b'-' && name[..4].parse::<u32>().is_ok()), "{names:?}");
}

#[test]
fn allowed_changes_make_no_quarantine() {
    let made = Bench::new(&[("src/a", "a")]);
    let copy = made.copy(&scope(&["./"], &["src/"], &[]));
    sh(copy.root(), "echo fine > src/b");
    let into = made.dir.path().join("quarantine");
    let report = quarantine::quarantine(&copy, &look(&copy), &into, &QuarantineLimits::default()).unwrap();
    assert!(report.kept.is_empty() && !into.exists());
}
