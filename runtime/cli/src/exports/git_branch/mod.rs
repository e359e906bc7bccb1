//! Writes the changes of a run to a branch of the project's repository, with one commit for each attempt that changed
//! files.
//!
//! The branch is created last, and only if each path that the run changed has the same version at HEAD as in the run's
//! copy of the project. The project's files and its index are never written, and not read either, except that git
//! before 2.41 reads `.gitattributes` of the work tree.

mod compare;
mod git;
mod repository;
mod shape;

use crate::exit::{Exit, Stop};
use crate::runs::RunFolder;
use crate::runs::changes::Changes;
use crate::terminal::visible;
use compare::{CommitFiles, Comparison};
use git::{Git, line};
use glovebox_journal::event::StageFinished;
use glovebox_record::path::ScopePath;
use glovebox_record::{ChangeOp, FileChange};
use glovebox_state::evidence::configuration::NewConfiguration;
use glovebox_workspace::apply::Conflict;
use repository::Repository;
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeSet;
use std::path::Path;

/// The branch that `apply` created. `apply --branch --json` prints this document.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(title = "branch.json")]
pub struct Branch {
    /// Version of this document.
    schema_version: u32,
    /// Id of the run.
    run_id: String,
    /// The repository folder with the objects and references of the branch.
    pub repository: String,
    /// Name of the branch; null if nothing differs from the commit at HEAD, so that no branch was created.
    pub name: Option<String>,
    /// The commit at which the branch begins.
    pub base: String,
    /// The commits of the branch, oldest first.
    pub commits: Vec<StageCommit>,
    /// New files and folders of the branch from which programs take settings or code.
    pub new_configuration: Vec<NewConfiguration>,
}

/// The commit of one attempt.
#[derive(Debug, Serialize, JsonSchema)]
pub struct StageCommit {
    /// Object id of the commit.
    pub commit: String,
    /// First line of the commit message.
    pub subject: String,
}

/// Why no branch was created.
pub enum BranchError {
    /// Paths whose version at HEAD differs from the version that the run copied.
    Conflicts(Vec<Conflict>),
    /// Anything else.
    Stop(Stop),
}

impl From<Stop> for BranchError {
    fn from(stop: Stop) -> Self {
        Self::Stop(stop)
    }
}

/// What the branch is created from.
pub struct Source<'a> {
    /// The run.
    pub run: &'a RunFolder,
    /// All changes of the run.
    pub changes: &'a Changes,
    /// The changes that the branch gets.
    pub selected: &'a [FileChange],
}

/// Creates the branch in the repository of the work tree that contains `project`.
pub fn make(source: &Source<'_>, project: &Path, name: &str) -> Result<Branch, BranchError> {
    let repository = Repository::for_project(project)?;
    let git = Git::new(&repository.root, source.run.path.join(format!(".index-{}", std::process::id())));
    repository.confirm(&git)?;
    let head = head(&git)?;
    let git = git.with_attributes(&head);
    let reference = new_reference(&git, name)?;
    repository.require_no_links(&reference)?;
    let commit = CommitFiles::read(&git, &head, &repository.prefix)?;
    let selected: BTreeSet<&ScopePath> = source.selected.iter().map(|change| &change.path).collect();
    let Comparison { mut conflicts, converted } =
        compare::with_commit(&git, &commit, &source.changes.base, source.selected)?;
    conflicts.extend(shape::conflicts(&git, &commit, source, &selected)?);
    if !conflicts.is_empty() {
        return Err(BranchError::Conflicts(conflicts));
    }
    git.run(&["read-tree", &head], b"")?;
    let (mut parent, nothing) = (head.clone(), "0".repeat(head.len()));
    let mut tree = line(&git.run(&["rev-parse", &format!("{head}^{{tree}}")], b"")?);
    let mut commits = Vec::new();
    for (at, stage) in &source.changes.stages {
        let files = stage.files.changes.iter().filter(|change| selected.contains(&change.path));
        let target = IndexTarget { prefix: &repository.prefix, nothing: &nothing, converted: &converted };
        stage_index(&git, source.changes, files, &target)?;
        let next = line(&git.run(&["write-tree", "--missing-ok"], b"")?);
        if next == tree {
            continue;
        }
        let (subject, message) = message(&source.run.id, stage);
        parent =
            git.commit(&["commit-tree", "--no-gpg-sign", &next, "-p", &parent, "-F", "-"], &message, at.as_second())?;
        commits.push(StageCommit { commit: parent.clone(), subject });
        tree = next;
    }
    let mut made = None;
    if !commits.is_empty() {
        // With the expected old value, this fails if another process has created the branch. Git must not follow a
        // symbolic ref.
        git.run(&["update-ref", "--no-deref", "-m", "glovebox apply", &reference, &parent, &nothing], b"")?;
        made = Some(name.to_owned());
    }
    let repository = repository.shared.to_string_lossy().into_owned();
    let new_configuration = match &made {
        Some(_) => source.changes.new_configuration(source.selected),
        None => Vec::new(),
    };
    let run_id = source.run.id.clone();
    Ok(Branch { schema_version: 1, run_id, repository, name: made, base: head, commits, new_configuration })
}

fn head(git: &Git<'_>) -> Result<String, Stop> {
    match git.succeeds(&["rev-parse", "--verify", "--quiet", "HEAD^{commit}"])? {
        true => Ok(line(&git.run(&["rev-parse", "--verify", "HEAD^{commit}"], b"")?)),
        false => Err(Stop::new(Exit::Usage, "the repository has no commit at which a branch could start")),
    }
}

/// Returns the full reference name of a branch that does not exist yet.
fn new_reference(git: &Git<'_>, name: &str) -> Result<String, Stop> {
    let reference = format!("refs/heads/{name}");
    let shown = visible::line(name);
    if name.starts_with('-') || !git.succeeds(&["check-ref-format", &reference])? {
        return Err(Stop::new(Exit::Usage, format!("`{shown}` is not a valid name for a git branch")));
    }
    if git.succeeds(&["show-ref", "--verify", "--quiet", &reference])? {
        return Err(Stop::new(Exit::Usage, format!("branch `{shown}` exists already; nothing was written"))
            .with_help("choose another name"));
    }
    Ok(reference)
}

/// What the entries of the index depend on, besides the changes.
struct IndexTarget<'t> {
    /// The project's folder in the repository, with a slash at its end; empty if it is the root.
    prefix: &'t str,
    /// The null object id, which removes an entry.
    nothing: &'t str,
    /// The paths whose bytes git converts.
    converted: &'t BTreeSet<String>,
}

/// Updates the index to the state in which an attempt left these files.
fn stage_index<'a>(
    git: &Git<'_>,
    changes: &Changes,
    files: impl Iterator<Item = &'a FileChange>,
    target: &IndexTarget<'_>,
) -> Result<(), Stop> {
    let IndexTarget { prefix, nothing, converted } = target;
    let mut entries = Vec::new();
    for change in files {
        let path = format!("{prefix}{}", change.path);
        match (change.op, crate::patch::Version::after(change)) {
            (ChangeOp::Write | ChangeOp::Symlink, Some(version)) => {
                let bytes = changes.bytes_after(change)?;
                let as_file = format!("--path={path}");
                let is_converted = change.op == ChangeOp::Write && converted.contains(&path);
                let how = if is_converted { &as_file } else { "--no-filters" };
                let object = line(&git.run(&["hash-object", "-w", how, "--stdin"], &bytes)?);
                entries.extend_from_slice(format!("{} {object}\t{path}\0", version.mode().digits()).as_bytes());
            }
            (ChangeOp::Delete, _) => {
                entries.extend_from_slice(format!("0 {nothing}\t{path}\0").as_bytes());
            }
            // Git does not store directories.
            _ => {}
        }
    }
    git.run(&["update-index", "-z", "--index-info"], &entries).map(drop)
}

/// Returns the subject and the whole message of an attempt's commit.
fn message(run: &str, stage: &StageFinished) -> (String, String) {
    let task = &stage.attempt.task;
    let (node, status) = (visible::line(task.node.as_str()), stage.outcome.status.as_str());
    let again = if task.visit > 1 { format!(", visit {}", task.visit) } else { String::new() };
    let subject = format!("{node}: {status}{again}");
    let message = format!(
        "{subject}\n\nGlovebox-Run: {run}\nGlovebox-Node: {node}\nGlovebox-Visit: {}\nGlovebox-Attempt: {}\nGlovebox-Outcome: {status}\n",
        task.visit, stage.attempt.ordinal
    );
    (subject, message)
}
