//! Renames of folders that are in a lower layer of the workspace.

use crate::fixture::{CommandResult, Fixture, Jail, names};
use glovebox_jail_helper::policy::{Bind, Confinement};
use rustix::fs::{CWD, FileType, Mode, mknodat};
use std::fs;
use std::os::unix::fs::{FileTypeExt, PermissionsExt, symlink};

/// A workspace with the folder `src`: files, a private folder, a link and an executable.
fn fixture() -> Fixture {
    let fixture = Fixture::new();
    let src = fixture.path("lower/src");
    fs::create_dir_all(src.join("lib/deep")).unwrap();
    fs::create_dir(src.join("private")).unwrap();
    fs::set_permissions(src.join("private"), fs::Permissions::from_mode(0o700)).unwrap();
    for (name, text) in [("a.txt", "a\n"), ("lib/b.txt", "b\n"), ("lib/deep/c.txt", "c\n"), ("private/k", "k\n")] {
        fs::write(src.join(name), text).unwrap();
    }
    fs::write(src.join("run.sh"), "#!/bin/sh\necho ran\n").unwrap();
    fs::set_permissions(src.join("run.sh"), fs::Permissions::from_mode(0o755)).unwrap();
    symlink("a.txt", src.join("link")).unwrap();
    fixture
}

fn rename(jail: &Jail, from: &str, to: &str) -> CommandResult {
    jail.shell(&format!("perl -e 'rename(\"{from}\", \"{to}\") or die \"$!\\n\"'"))
}

#[test]
fn a_folder_of_a_lower_layer_is_renamed_with_everything_in_it() {
    let fixture = fixture();
    let jail = Jail::start(&fixture.policy(Confinement::Full));
    let list = "find . -printf '%y %m %P %l\\n' | sort; find . -printf '%P %T@\\n' | sort";
    let before = jail.shell(&format!("cd src; {list}")).out;
    let came = rename(&jail, "src", "source");
    assert_eq!((came.ended.code, came.err.as_str()), (Some(0), ""));
    assert_eq!(jail.shell(&format!("cd source; {list}")).out, before);
    assert_eq!(
        jail.shell("cat source/*.txt source/lib/*.txt source/lib/deep/c.txt; source/run.sh; ls -A").out,
        "a\nb\nc\nran\nfile.txt\nsource\n"
    );
    assert!(fs::symlink_metadata(fixture.path("upper/src")).unwrap().file_type().is_char_device(), "removed");
    assert_eq!(names(&fixture.path("upper")), ["source", "src"], "no folder for the move is left");
    assert_eq!(fs::read_to_string(fixture.path("lower/src/lib/b.txt")).unwrap(), "b\n");
    // The folder is in the upper layer now.
    for (from, to) in [("source", "src"), ("src/lib", "lib"), ("lib", "src/private/lib"), ("src/", "again/")] {
        assert_eq!(rename(&jail, from, to).err, "", "{from} {to}");
    }
    assert_eq!(jail.shell("cat again/private/lib/deep/c.txt").out, "c\n");
}

#[test]
fn paths_are_those_of_the_caller() {
    let fixture = fixture();
    let jail = Jail::start(&fixture.policy(Confinement::Full));
    let came = jail.shell("cd src/lib && perl -e 'rename(\"deep\", \"../flat\") or die' && cat ../flat/c.txt && ls");
    assert_eq!(came.out, "c\nb.txt\n", "{came:?}");
    let came =
        jail.shell("ln -s src way; perl -e 'rename(\"/home/dev/project/way/lib\", \"way/lib2\") or die'; ls src");
    assert_eq!(came.out, "a.txt\nflat\nlib2\nlink\nprivate\nrun.sh\n", "{came:?}");
    // A link is renamed, not the folder that it leads to.
    assert_eq!(jail.shell("perl -e 'rename(\"way\", \"other\") or die'; readlink other; ls -d src").out, "src\nsrc\n");
}

#[cfg(target_arch = "x86_64")]
#[test]
fn folders_are_exchanged_and_never_replaced_against_the_flags() {
    let fixture = fixture();
    let jail = Jail::start(&fixture.policy(Confinement::Full));
    let call = |flags: u64, from: &str, to: &str| {
        jail.shell(&format!(
            "perl -e 'syscall(316, -100, my $a = \"{from}\", -100, my $b = \"{to}\", {flags}) and die \"$!\\n\"'"
        ))
    };
    assert_eq!(call(2, "src/lib", "src/private").err, "");
    assert_eq!(jail.shell("ls src/lib src/private").out, "src/lib:\nk\n\nsrc/private:\nb.txt\ndeep\n");
    assert_eq!(call(1, "src/lib", "src/private").err, "File exists\n");
    // A command that avoids the listener gets what the kernel does alone.
    let came = jail.shell("mkdir empty; true");
    assert_eq!(came.ended.code, Some(0));
    assert!(call(1 << 32, "src", "source").err.contains("cross-device"));
    assert_eq!(jail.shell("cat src/a.txt").out, "a\n");
}

#[test]
fn a_folder_with_a_mount_or_without_permissions_stays_as_it_is() {
    let fixture = fixture();
    fs::create_dir(fixture.path("lower/src/lib/mounted")).unwrap();
    fs::set_permissions(fixture.path("lower/src/private"), fs::Permissions::from_mode(0o500)).unwrap();
    let mut policy = fixture.policy(Confinement::Full);
    policy.workspace.inner = vec![Bind::read_only(fixture.path("outside"), "/home/dev/project/src/lib/mounted".into())];
    let jail = Jail::start(&policy);
    for folder in ["src", "src/lib", "src/private"] {
        let came = rename(&jail, folder, "moved");
        assert!(came.ended.code != Some(0), "{folder} {came:?}");
    }
    assert_eq!(
        jail.shell("cat src/a.txt src/lib/b.txt src/lib/mounted/secret src/private/k; ls -A").out,
        "a\nb\nsecret\nk\nfile.txt\nsrc\n"
    );
}

#[test]
fn hidden_files_stay_hidden() {
    let fixture = fixture();
    fs::create_dir(fixture.path("mask/src")).unwrap();
    mknodat(CWD, fixture.path("mask/src/a.txt"), FileType::CharacterDevice, Mode::empty(), 0).unwrap();
    let jail = Jail::start(&fixture.policy(Confinement::Full));
    assert_eq!(rename(&jail, "src", "source").err, "");
    assert_eq!(jail.shell("ls -A source").out, "lib\nlink\nprivate\nrun.sh\n");
    assert!(!fixture.path("upper/source/a.txt").exists());
}

/// A rename waits for the jail's first process, which must answer whatever else happens.
#[test]
fn renames_of_many_processes_all_end() {
    let fixture = fixture();
    for number in 0..8 {
        fs::create_dir_all(fixture.path(&format!("lower/dirs/{number}/x/y"))).unwrap();
        fs::write(fixture.path(&format!("lower/dirs/{number}/x/y/z")), "z\n").unwrap();
    }
    let jail = Jail::start(&fixture.policy(Confinement::Full));
    let script = "for i in 0 1 2 3 4 5 6 7; do \
        perl -e '$i = shift; rename(\"dirs/$i\", \"dirs/n$i\") or die \"$!\"; open(F, \">f$i\"); close F; \
        for (1 .. 200) { rename(\"f$i\", \"g$i\") or die; rename(\"g$i\", \"f$i\") or die }' $i & \
        done; wait; cat dirs/n*/x/y/z | wc -l; ls | grep -c '^f[0-9]'";
    let came = jail.shell(script);
    assert_eq!(came.out, "8\n8\n", "{came:?}");
    // A caller that is killed while it waits, and one that ends with its command.
    let came =
        jail.shell("perl -e 'for (;;) { rename(\"f1\", \"g1\"); rename(\"g1\", \"f1\") }' & kill -9 $!; wait; echo on");
    assert_eq!(came.out, "on\n");
    let came = jail.shell("perl -e 'for (;;) { rename(\"f2\", \"g2\"); rename(\"g2\", \"f2\") }' & echo left");
    assert_eq!((came.out.as_str(), came.ended.killed, came.ended.survivors), ("left\n", 1, 0), "{came:?}");
    assert_eq!(rename(&jail, "dirs", "last").err, "");
}

/// Number of files in the folder `big`, so many that a command can act while they are moved.
const FILES: usize = 3000;

/// Starts the rename of a large folder, waits until its files are being moved, acts and ends. Then checks that no part
/// of the folder is lost or elsewhere.
fn check_interrupted(act: &str) {
    let fixture = fixture();
    let big = fixture.path("lower/big");
    fs::create_dir_all(big.join("deep")).unwrap();
    fs::set_permissions(big.join("deep"), fs::Permissions::from_mode(0o751)).unwrap();
    for number in 0..FILES / 2 {
        fs::write(big.join(format!("{number}")), "x\n").unwrap();
        fs::write(big.join(format!("deep/{number}")), "x\n").unwrap();
    }
    let jail = Jail::start(&fixture.policy(Confinement::Full));
    jail.shell(&format!(
        "exec perl -e '
            if (!fork) {{ rename(\"big\", \"renamed\"); sleep 60; exit }}
            for (1 .. 200000) {{
                opendir(D, \".\");
                last if -e \"renamed\" or grep {{ /^.glovebox-moved/ }} readdir D;
            }}
            {act}'"
    ));
    let list = jail.shell("ls -A; cat big/[0-9]* big/deep/* renamed/[0-9]* renamed/deep/* 2>/dev/null | wc -l").out;
    let whole = ["big\nfile.txt\nsrc", "file.txt\nrenamed\nsrc"].map(|names| format!("{names}\n{FILES}\n"));
    assert!(whole.contains(&list), "{act} {list}");
    assert_eq!(jail.shell("stat -c %a big/deep renamed/deep 2>/dev/null").out, "751\n", "{act}");
}

#[test]
fn a_command_that_ends_during_a_move_leaves_a_whole_folder() {
    check_interrupted("");
}

#[test]
fn a_command_that_kills_the_move_leaves_a_whole_folder() {
    check_interrupted("kill(9, -1)");
}

#[cfg(target_arch = "x86_64")]
#[test]
fn a_command_that_limits_the_move_leaves_a_whole_folder() {
    for limit in [1, 7] {
        check_interrupted(&format!(
            "opendir(P, \"/proc\");
            for (grep {{ /^[0-9]+$/ && $_ > 1 && $_ != $$ }} readdir P) {{
                syscall(302, $_ + 0, {limit}, my $none = pack(\"QQ\", 0, 0), 0);
            }}"
        ));
    }
}

/// A rename of a file does not wait for the move of a folder.
#[test]
fn files_are_renamed_while_a_folder_is_moved() {
    let fixture = fixture();
    fs::create_dir(fixture.path("lower/big")).unwrap();
    for number in 0..FILES {
        fs::write(fixture.path(&format!("lower/big/{number}")), "x\n").unwrap();
    }
    let jail = Jail::start(&fixture.policy(Confinement::Full));
    // The file is renamed again and again; the command ends when the folder has its new name.
    let came = jail.shell(
        "touch f; perl -e '
            my $child = fork;
            if (!$child) { rename(\"big\", \"renamed\") or die \"$!\"; exit }
            my $during = 0;
            until (-e \"renamed\" or waitpid($child, 1)) {
                opendir(D, \".\");
                my $moves = grep { /^.glovebox-moved/ } readdir D;
                rename(\"f\", \"g\") or die; rename(\"g\", \"f\") or die;
                $during++ if $moves;
            }
            print $during > 1 ? \"during\" : \"after\"'; ls renamed | wc -l",
    );
    assert_eq!(came.out, format!("during{FILES}\n"), "{came:?}");
}
