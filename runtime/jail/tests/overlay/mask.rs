//! The entries that the mask of an overlay hides, and its cost.

use super::bench::{Bench, entries, put, scope};
use super::upper::{overlay, parts};
use glovebox_record::path::ScopePath;
use glovebox_record::scope::Scope;
use glovebox_workspace::stage::{ViewOverrides, WorkspaceView};
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::{FileTypeExt, PermissionsExt, symlink};
use std::path::Path;

const FILES: &[(&str, &str)] =
    &[("src/a", "a"), ("src/d/secret", "s"), ("src/d/x", "x"), ("docs/r", "r"), ("top", "t")];

/// Returns the entries of a mask: whiteouts as `-path`, directories as `path/`, opaque directories as `path//`.
fn listing(mask: &Path) -> Vec<String> {
    let (mut all, mut pending) = (BTreeSet::new(), vec![mask.to_owned()]);
    while let Some(at) = pending.pop() {
        for entry in fs::read_dir(at).unwrap() {
            let path = entry.unwrap().path();
            let name = path.strip_prefix(mask).unwrap().display().to_string();
            let kind = fs::symlink_metadata(&path).unwrap().file_type();
            assert!(kind.is_dir() || kind.is_char_device(), "{name}");
            let mut value = [0_u8; 4];
            let opaque = rustix::fs::lgetxattr(&path, "user.overlay.opaque", &mut value[..]).is_ok();
            all.insert(match kind.is_dir() {
                true => format!("{name}/{}", if opaque { "/" } else { "" }),
                false => format!("-{name}"),
            });
            if kind.is_dir() {
                pending.push(path);
            }
        }
    }
    all.into_iter().collect()
}

fn check(scope: &Scope, mount_points: &[&str], expected: &[&str]) {
    let made = Bench::new(FILES);
    symlink("src/a", made.workspace().join("link")).unwrap();
    let mount_points = mount_points.iter().map(|path| ScopePath::parse(path).unwrap()).collect();
    let view = overlay(&made, scope, &ViewOverrides { mount_points, ..ViewOverrides::default() });
    assert_eq!(listing(&parts(&view).0[0]), expected, "{scope}");
    view.remove().unwrap();
}

#[test]
fn closed_folders_have_their_permissions_where_the_stage_sees_them() {
    let made = Bench::new(FILES);
    let closed = [("src".to_owned(), 0o555), ("absent".to_owned(), 0o555), ("src/d".to_owned(), 0o500)];
    let check = |scope: &Scope, expected: &[(&str, u32)]| {
        let view = overlay(&made, scope, &ViewOverrides { closed: closed.clone().into(), ..ViewOverrides::default() });
        let mask = parts(&view).0[0].clone();
        for (path, mode) in expected {
            let found = fs::symlink_metadata(mask.join(path)).unwrap();
            assert_eq!((found.is_dir(), found.permissions().mode() & 0o777), (true, *mode), "{path}");
        }
        assert!(fs::symlink_metadata(mask.join("absent")).is_err());
        view.remove().unwrap();
    };
    check(&Scope::everything(), &[("src", 0o555), ("src/d", 0o500)]);
    check(&scope(&["./"], &[], &["src/d"]), &[("src", 0o555)]);
}

#[test]
fn a_mask_hides_exactly_what_the_scope_does_not_show() {
    check(&Scope::everything(), &[], &[]);
    check(&scope(&["./"], &[], &["src/d/secret", "hold/", "docs"]), &[], &["-docs", "-src/d/secret", "src/", "src/d/"]);
    check(&scope(&["./"], &[], &["src/", "src/d/secret", "src"]), &[], &["-src"]);
    check(&scope(&["src/"], &["out/"], &[]), &[], &["-docs", "-link", "-top"]);
    check(&scope(&["src/d/x"], &["top"], &[]), &[], &["-docs", "-link", "-src/a", "-src/d/secret", "src/", "src/d/"]);
    check(&scope(&[], &[], &[]), &[], &["-docs", "-link", "-src", "-top"]);
    // In the first case, `top` is a file, although the scope treats it as a folder. In the second, the exact entry for
    // the folder `docs` shows only the folder, not its content.
    check(&scope(&["./"], &[], &["top/x"]), &[], &[]);
    check(&scope(&["top/x", "docs"], &[], &[]), &[], &["-docs/r", "-link", "-src", "-top", "docs/"]);
}

#[test]
fn mount_points_exist_whatever_is_hidden() {
    check(&Scope::everything(), &[".git", "scripts/scenarios"], &[".git/", "scripts/", "scripts/scenarios/"]);
    check(
        &scope(&["top"], &[], &[]),
        &["src/deep/mount"],
        &["-docs", "-link", "src//", "src/deep/", "src/deep/mount/"],
    );
    check(&scope(&["./"], &[], &["docs/"]), &["docs"], &["docs//"]);
    check(&Scope::everything(), &["src/d"], &["src/", "src/d//"]);
}

#[test]
fn masked_directories_look_like_those_of_the_workspace() {
    let made = Bench::new(FILES);
    let real = made.workspace().join("src/d");
    fs::set_permissions(&real, fs::Permissions::from_mode(0o711)).unwrap();
    let view = overlay(&made, &scope(&["./"], &[], &["src/d/secret"]), &ViewOverrides::default());
    let (real, masked) = (fs::metadata(real).unwrap(), fs::metadata(parts(&view).0[0].join("src/d")).unwrap());
    assert_eq!(masked.permissions().mode() & 0o7777, 0o711);
    assert_eq!(masked.modified().unwrap(), real.modified().unwrap());
}

#[test]
fn a_small_view_costs_no_copy_either() {
    let made = Bench::new(FILES);
    let at = made.dir.path().join("attempt");
    for scope in [Scope::everything(), scope(&["src/"], &[], &[])] {
        let view = WorkspaceView::choose(&made.workspace(), &at, &scope, &ViewOverrides::default()).unwrap();
        assert!(view.root().is_none() && !at.join("src").exists());
        view.remove().unwrap();
    }
}

#[test]
fn a_workspace_of_somebody_else_is_copied() {
    let made = Bench::new(FILES);
    (0..300).for_each(|n| put(&made.workspace().join(format!("many/{n}")), "x"));
    let at = made.dir.path().join("attempt");
    let choose =
        || WorkspaceView::choose(&made.workspace(), &at, &Scope::everything(), &ViewOverrides::default()).unwrap();
    assert!(choose().root().is_none());
    glovebox_workspace::tree::remove_all(&at).unwrap();
    // Only root can change the owner of a folder.
    if std::os::unix::fs::chown(made.workspace(), None, Some(12_345)).is_ok() {
        assert!(choose().root().is_some());
    }
}

#[test]
fn a_copy_has_layers_and_mount_points_too() {
    let made = Bench::new(FILES);
    let layer = tempfile::tempdir().unwrap();
    put(&layer.path().join("scripts/scenarios/one"), "1");
    let mount_points = vec![ScopePath::parse("docs").unwrap(), ScopePath::parse("a/b").unwrap()];
    let extra = ViewOverrides { layers: vec![layer.path().to_owned()], mount_points, ..ViewOverrides::default() };
    let at = made.dir.path().join("attempt");
    let scope = scope(&["./"], &["./"], &[]).with_scratch(entries(&["tmp/"]));
    let view = WorkspaceView::copy(&made.workspace(), &at, &scope, &extra).unwrap();
    assert!(super::upper::look(&view).is_empty());
    assert!(at.join("scripts/scenarios/one").is_file() && at.join("a/b").is_dir());
    assert_eq!(fs::read_dir(at.join("docs")).unwrap().count(), 0, "nothing shows in a mount point");
    put(&at.join("tmp/x"), "x");
    put(&at.join("docs/x"), "x");
    put(&at.join("a/c"), "x");
    fs::remove_dir_all(at.join("scripts")).unwrap();
    let found = super::upper::lines(&super::upper::look(&view));
    let expected =
        ["write a/c", "!write docs/x", "rmdir scripts", "rmdir scripts/scenarios", "delete scripts/scenarios/one"];
    assert_eq!(found, expected);
}
