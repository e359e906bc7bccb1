//! The table of escapes from a stage's files, for every interface through which a guest can try them.
//!
//! The tree is the one of `fixture`: everything is readable, `out/` and `src/main.rs` are writable, `scenarios/holdout`
//! is hidden, and `/home/me/proj` is an absolute name of the root. The last column is the expected result.

use Try::*;
use glovebox_workspace::view::ViewError::{self, Loop, NotFound, NotPermitted};

/// One operation of a guest. Paths are as a guest writes them.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Try {
    Read(&'static str),
    Write(&'static str),
    Truncate(&'static str),
    Create(&'static str),
    List(&'static str),
    Stat(&'static str),
    MakeDirectory(&'static str),
    Unlink(&'static str),
    RemoveDirectory(&'static str),
    Rename(&'static str, &'static str),
    Times(&'static str),
    Link(&'static str),
    Symlink(&'static str),
    ReadLink(&'static str),
}

const OK: Result<(), ViewError> = Ok(());
const NO: Result<(), ViewError> = Err(NotPermitted);
const GONE: Result<(), ViewError> = Err(NotFound);
const LINK: Result<(), ViewError> = Err(Loop);

#[rustfmt::skip]
pub(crate) const TABLE: &[(&str, Try, Result<(), ViewError>)] = &[
    ("write the allowed exact file", Write("src/main.rs"), OK),
    ("write below an allowed directory by a crooked path", Write("src/../out/./new"), OK),
    ("write the sibling of the allowed file", Write("src/lib.rs"), NO),
    ("write a root file", Write("Cargo.toml"), NO),
    ("create a root file", Create("new.txt"), NO),
    ("truncate a read-only file", Truncate("src/lib.rs"), NO),
    ("write a read-only directory by a crooked path", Write("./ro/a"), NO),
    ("write a read-only directory through another", Write("src/../ro/a"), NO),
    ("list the hidden directory", List("scenarios/holdout"), GONE),
    ("stat the hidden directory", Stat("scenarios/holdout"), GONE),
    ("read a hidden file", Read("scenarios/holdout/h.toml"), GONE),
    ("read a hidden file through a visible directory", Read("visible/../scenarios/holdout/h.toml"), GONE),
    ("create in the hidden directory", Create("scenarios/holdout/new"), GONE),
    ("read through a link into the hidden directory", Read("out/to_holdout/h.toml"), LINK),
    ("list through a link into the hidden directory", List("out/to_holdout"), LINK),
    ("write through a link into a read-only directory", Write("out/to_src/lib.rs"), LINK),
    ("create through a link into a read-only directory", Create("out/to_src/new.rs"), LINK),
    ("read through a link out of the workspace", Read("out/to_passwd"), LINK),
    ("rename the ancestor of what is hidden", Rename("scenarios", "out/scenarios"), NO),
    ("rename what is hidden", Rename("scenarios/holdout", "out/holdout"), GONE),
    ("rename a read-only file out", Rename("src/lib.rs", "out/lib.rs"), NO),
    ("rename a read-only directory out", Rename("ro", "out/ro"), NO),
    ("rename the own file over a read-only file", Rename("out/own", "src/lib.rs"), NO),
    ("rename the own file over the allowed exact file", Rename("out/own", "src/main.rs"), OK),
    ("rename the own directory over the allowed exact file", Rename("out/d", "src/main.rs"), NO),
    ("write through an old hard link to a read-only file", Write("out/hard"), NO),
    ("truncate through an old hard link", Truncate("out/hard"), NO),
    ("set times through an old hard link", Times("out/hard"), NO),
    ("make a hard link to a read-only file", Link("src/lib.rs"), NO),
    ("make a hard link to a hidden file", Link("scenarios/holdout/h.toml"), GONE),
    ("make a symbolic link", Symlink("out/new_link"), NO),
    ("read a symbolic link", ReadLink("out/to_holdout"), NO),
    ("read a hidden link", ReadLink("scenarios/holdout/link"), GONE),
    ("remove a read-only file", Unlink("src/lib.rs"), NO),
    ("remove the writable directory itself", RemoveDirectory("out"), NO),
    ("rename the writable directory itself", Rename("out", "visible/out"), NO),
    ("make a directory outside", MakeDirectory("src/sub"), NO),
    ("set times of a read-only file", Times("src/lib.rs"), NO),
    ("climb out", Read("../etc/passwd"), NO),
    ("climb out after going in", Write("out/../../evil"), NO),
    ("name an absolute path", Read("/etc/passwd"), NO),
    ("name an absolute path inside", Write("/out/x"), NO),
    ("write by the project's own absolute path", Write("/home/me/proj/src/main.rs"), OK),
    ("write outside the scope by the own absolute path", Write("/home/me/proj/src/lib.rs"), NO),
    ("read what is hidden by the own absolute path", Read("/home/me/proj/scenarios/holdout/h.toml"), GONE),
    ("climb out of the own absolute path", Write("/home/me/proj/../../evil"), NO),
    ("name what only begins like the own absolute path", Write("/home/me/project2/out/x"), NO),
    ("make a directory where a file is granted", MakeDirectory("src/main.rs"), NO),
    ("make a directory below a granted file", MakeDirectory("src/main.rs/inner"), NO),
    ("hide a name behind NUL", Read("visible/v\0/../../scenarios"), Err(ViewError::Invalid)),
];
