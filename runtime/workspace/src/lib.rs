//! The files of a run: the copy of the project, the views of stages, and their stored changes.
//!
//! [`project`] copies the user's project once, and [`ignored`] has git's ignore rules for it.
//! [`glovebox_record::scope`] decides which operations a stage may do on a path. [`view`] does them on a real directory
//! and never leaves it. [`layer`] takes the changes of a component. [`stage`] has the files of one attempt: a copy, a
//! layer or an overlay over the folders of `lower`. [`branch_folder`] creates the folder of a branch. [`refusal`]
//! records refusals, each with the grant that would allow it.
//!
//! After an attempt, [`change`] lists the changes. [`protect`] and [`repository_shape`] refuse changes that would make
//! other programs run. [`commit`] stores allowed changes as blobs and applies them, and [`quarantine`] stores the rest.
//! [`apply`] changes the user's project, and [`restore`] repairs the workspace of a resumed run. [`holdout`] seals
//! hold-outs. [`cache`], [`ignored_store`], [`dependencies`] and [`repository`] provide files that the stages of a run
//! share.
//!
//! A component works on a layer over the workspace: reads go to the workspace, and the first write copies a file into
//! the layer. With the first command, the layer becomes the upper folder of an overlay that the jail mounts. If nothing
//! can be mounted, the stage has a private copy. The workspace itself changes only after the attempt was appended to
//! the journal.
//!
//! [`regular_file`] is the only reader of files from a project or a run folder, and its reads are bounded. [`tree`]
//! walks directories without following links. [`user_key`] authenticates the records of this user's runs. This crate
//! starts no process.

#![forbid(unsafe_code)]
#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

pub mod apply;
mod beneath;
pub mod branch_folder;
pub mod cache;
pub mod cache_reuse;
pub mod canonical;
pub mod change;
pub mod commit;
pub mod dependencies;
pub mod exposure;
pub mod flush;
pub mod holdout;
pub mod ignored;
pub mod ignored_store;
pub mod layer;
pub mod left_file;
mod link;
mod lower;
mod overlay;
pub mod project;
pub mod protect;
pub mod quarantine;
pub mod record_files;
pub mod refusal;
pub mod regular_file;
pub mod reported;
pub mod repository;
pub mod repository_shape;
pub mod restore;
mod root;
pub mod run_folder;
mod sparse_copy;
pub mod stage;
mod stage_error;
pub mod tree;
pub mod user_key;
pub mod view;
pub mod work_tree;
