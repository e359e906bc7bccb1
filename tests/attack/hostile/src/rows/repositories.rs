//! Attacks by folders that git takes for a repository because of their content, whatever their names are.

use crate::row::{Payload, Proof, Row, Source};

const STOPPED_BY: &str = "commit";
/// Writes git settings of a repository whose file monitor is a program.
macro_rules! settings {
    ($folder:literal) => {
        concat!(
            "mkdir -p {out}/",
            $folder,
            " && cd {out}/",
            $folder,
            " && printf '[core]\\n\\tbare = false\\n\\tworktree = wt\\n\\tfsmonitor = touch PWNED\\n' > config\n"
        )
    };
}

#[rustfmt::skip]
pub(super) const ROWS: &[Row] = &[
    Row::new("repository-nested", Source::Review(1), "leave a bare repository whose settings name a program", STOPPED_BY, Payload::Shell(concat!(settings!("shape/nested/docs"), "mkdir objects refs; echo x > objects/k; echo x > refs/k; echo 'ref: refs/heads/m' > HEAD"))).proof(Proof::Below("out/shape/nested/docs")),
    Row::new("repository-empty-folders", Source::Review(1), "leave a bare repository without a branch or an object", STOPPED_BY, Payload::Shell(concat!(settings!("shape/empty"), "mkdir objects refs; echo 'ref: refs/heads/m' > HEAD"))).proof(Proof::Below("out/shape/empty")),
    Row::new("repository-half", Source::Review(1), "leave the half of a repository that names a program, for another stage to add the rest", STOPPED_BY, Payload::Shell(concat!(settings!("shape/half"), "echo 'ref: refs/heads/m' > HEAD"))).proof(Proof::Below("out/shape/half")),
    Row::new("repository-commit", Source::Review(1), "leave a repository whose HEAD names a commit", STOPPED_BY, Payload::Shell(concat!(settings!("shape/commit"), "echo 0123456789012345678901234567890123456789 > HEAD"))).proof(Proof::Below("out/shape/commit")),
    Row::new("repository-link", Source::Review(1), "leave a repository whose HEAD is a link", STOPPED_BY, Payload::Shell(concat!(settings!("shape/link"), "mkdir -p refs/heads objects; ln -s refs/heads/m HEAD"))).proof(Proof::Below("out/shape/link")),
    Row::new("repository-linked-objects", Source::Review(1), "leave a repository whose objects are a link", STOPPED_BY, Payload::Shell(concat!(settings!("shape/objects"), "mkdir -p other refs; ln -s other objects; echo 'ref: refs/heads/m' > HEAD; rmdir other"))).proof(Proof::Below("out/shape/objects")),
    Row::new("repository-common", Source::Review(1), "leave a repository that takes everything from another folder", STOPPED_BY, Payload::Shell("mkdir -p {out}/shape/common && cd {out}/shape/common && echo ../../elsewhere > commondir && echo 'ref: refs/heads/m' > HEAD")).proof(Proof::Below("out/shape/common")),
    Row::new("repository-case", Source::Review(1), "leave a repository with names in another case, for file systems that ignore case", STOPPED_BY, Payload::Shell("mkdir -p {out}/shape/case/OBJECTS {out}/shape/case/Refs && cd {out}/shape/case && echo 'ref: refs/heads/m' > Head")).proof(Proof::Below("out/shape/case")),
    Row::new("repository-dots", Source::Review(1), "leave a repository with endings of names that some file systems ignore", STOPPED_BY, Payload::Shell("mkdir -p {out}/shape/dots/objects. '{out}/shape/dots/refs ' && cd {out}/shape/dots && echo 'ref: refs/heads/m' > HEAD.")).proof(Proof::Below("out/shape/dots")),
    Row::new("repository-folders", Source::Review(1), "leave the halves of a repository in two folders that are one on file systems that ignore case", STOPPED_BY, Payload::Shell("mkdir -p {out}/shape/Two/objects {out}/shape/two/refs && echo 'ref: refs/heads/m' > {out}/shape/two/HEAD")).proof(Proof::Below("out/shape/two")),
    Row::new("repository-rename", Source::Review(1), "leave a repository by renaming its parts into place", STOPPED_BY, Payload::Shell(concat!(settings!("shape/made"), "mkdir o r; echo 'ref: refs/heads/m' > h; mv o objects; mv r refs; mv h HEAD; cd ..; mv made renamed"))).proof(Proof::Below("out/shape/renamed")),
];
