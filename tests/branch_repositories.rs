//! `apply --branch` creates the branch in the repository of the project's own work tree, including a linked work tree
//! and a submodule. If the project's `.git` leads to another repository, nothing is written there. The files of the
//! other repository are the witness.

use crate::workbench::{self, Answer, Workbench};
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

const PIPELINE: &str = "digraph g { start [shape=Mdiamond]; done [shape=Msquare]
  t [shape=parallelogram, tool_command=\"echo 2 > f\", allowed_write_paths=\"f\"]; start -> t -> done }";
const FOREIGN: i32 = 6;

#[track_caller]
fn git(folder: &Path, words: &[&str]) -> String {
    let mut command = Command::new("git");
    command.current_dir(folder).env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_NOSYSTEM", "1");
    for name in ["GIT_AUTHOR", "GIT_COMMITTER"] {
        command.env(format!("{name}_NAME"), "a").env(format!("{name}_EMAIL"), "a@localhost");
    }
    let output = command.args(["-c", "protocol.file.allow=always"]).args(words).output().unwrap();
    assert!(output.status.success(), "{words:?} in {}: {output:?}", folder.display());
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

/// Returns the contents of all files and the targets of all links in a folder.
fn tree(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut pending = vec![folder.to_owned()];
    while let Some(at) = pending.pop() {
        for path in at.read_dir().unwrap().map(|entry| entry.unwrap().path()) {
            let content = match path.symlink_metadata().unwrap().file_type() {
                kind if kind.is_symlink() => fs::read_link(&path).unwrap().into_os_string().into_encoded_bytes(),
                kind if kind.is_dir() => Vec::new(),
                _ => fs::read(&path).unwrap(),
            };
            if content.is_empty() && path.is_dir() {
                pending.push(path.clone());
            }
            found.insert(path, content);
        }
    }
    found
}

/// Creates the repository `other`, the project as a clone of it, and the run `r` in the project.
fn cloned() -> (Workbench, PathBuf) {
    let bench = Workbench::new();
    let other = bench.outside().canonicalize().unwrap().join("other");
    fs::create_dir(&other).unwrap();
    fs::write(other.join("pipeline.dot"), PIPELINE).unwrap();
    fs::write(other.join("f"), "1\n").unwrap();
    git(&other, &["init", "-q", "-b", "main"]);
    git(&other, &["add", "-A"]);
    git(&other, &["commit", "-q", "-m", "base"]);
    git(bench.outside(), &["clone", "-q", "other", "project"]);
    (bench, other)
}

fn run(bench: &Workbench, folder: &Path) {
    let mut command = workbench::glovebox_in(folder);
    Answer::of(command.args(["run", "pipeline.dot", "--run-id", "r", "--quiet", "--simulate"])).ends(0);
    assert!(folder.starts_with(bench.outside().canonicalize().unwrap()));
}

fn branch(folder: &Path, more: &[&str]) -> Answer {
    let mut command = workbench::glovebox_in(folder);
    for name in ["GIT_AUTHOR", "GIT_COMMITTER"] {
        command.env(format!("{name}_NAME"), "a").env(format!("{name}_EMAIL"), "a@localhost");
    }
    Answer::of(command.args(["apply", "r", "--branch", "gb/r"]).args(more).env("GIT_CONFIG_GLOBAL", "/dev/null"))
}

#[test]
fn the_repository_of_the_project_gets_the_branch_and_is_named() {
    let (bench, other) = cloned();
    let project = bench.project().canonicalize().unwrap();
    // Linked work trees with absolute and with relative links, and submodules with and without settings of their own.
    git(&other, &["worktree", "add", "-q", "-b", "linked", "../linked"]);
    git(&other, &["worktree", "add", "-q", "-b", "related", "../related"]);
    let linked = other.with_file_name("linked");
    let related = other.with_file_name("related");
    fs::write(related.join(".git"), "gitdir: ../other/.git/worktrees/related\n").unwrap();
    fs::write(other.join(".git/worktrees/related/gitdir"), "../../../../related/.git\n").unwrap();
    git(&project, &["submodule", "--quiet", "add", other.to_str().unwrap(), "part"]);
    git(&project, &["submodule", "--quiet", "add", other.to_str().unwrap(), "sparse"]);
    let (part, sparse) = (project.join("part"), project.join("sparse"));
    git(&sparse, &["sparse-checkout", "init", "--no-cone"]);
    git(&sparse, &["sparse-checkout", "set", "--no-cone", "/*"]);
    for (folder, repository) in [
        (&linked, other.join(".git")),
        (&part, project.join(".git/modules/part")),
        (&sparse, project.join(".git/modules/sparse")),
        (&project, project.join(".git")),
    ] {
        run(&bench, folder);
        let named = format!(
            "branch `gb/r`: 1 commit on {}, in the repository `{}`",
            &git(folder, &["rev-parse", "HEAD"])[..12],
            repository.display()
        );
        branch(folder, &[]).ends(0).says(&named);
        assert_eq!(git(&repository, &["cat-file", "blob", "gb/r:f"]), "2");
        git(&repository, &["update-ref", "-d", "refs/heads/gb/r"]);
    }
    run(&bench, &related);
    let made = branch(&related, &["--json"]).ends(0).json();
    assert_eq!((made["repository"].as_str(), made["name"].as_str()), (other.join(".git").to_str(), Some("gb/r")));
}

#[test]
fn a_project_below_the_root_of_a_work_tree_gets_its_own_paths() {
    let (bench, other) = cloned();
    let below = bench.project().join("a/b");
    fs::create_dir_all(&below).unwrap();
    for name in ["f", "pipeline.dot"] {
        fs::copy(other.join(name), below.join(name)).unwrap();
    }
    git(&below, &["add", "-A"]);
    git(&below, &["commit", "-q", "-m", "below"]);
    run(&bench, &below.canonicalize().unwrap());
    branch(&below, &[]).ends(0);
    assert_eq!(git(&below, &["diff", "--name-only", "main", "gb/r"]), "a/b/f");
}

#[test]
fn a_repository_that_a_stranger_named_is_refused_and_stays_as_it_is() {
    let (bench, other) = cloned();
    let project = bench.project().canonicalize().unwrap();
    run(&bench, &project);
    git(&other, &["worktree", "add", "-q", "-b", "linked", "../linked"]);
    let (at, away) = (project.join(".git"), other.with_file_name("away"));
    // Git itself fails in this repository, so the refusal cannot come from git.
    let settings = fs::read(other.join(".git/config")).unwrap();
    fs::write(other.join(".git/config"), [&settings[..], b"[broken\n"].concat()).unwrap();
    let before = tree(&other);
    let refused = |what: &str, path: &str| {
        branch(&project, &[]).ends(FOREIGN).says("nothing was written").says(path);
        assert_eq!(tree(&other), before, "{what}");
    };
    fs::rename(&at, &away).unwrap();
    let victim = other.join(".git");
    let names = |folder: &Path| fs::write(&at, format!("gitdir: {}\n", folder.display())).unwrap();

    names(&victim);
    refused("a file that names it", "other/.git`, which does not name this folder");
    names(&victim.join("worktrees/linked"));
    refused("a file that names one of its work trees", "worktree repair");
    // A folder of the attacker that names the project and shares the branches of the other repository.
    let between = project.join("between");
    fs::create_dir(&between).unwrap();
    fs::write(between.join("HEAD"), "ref: refs/heads/main\n").unwrap();
    fs::write(between.join("gitdir"), format!("{}\n", at.display())).unwrap();
    fs::write(between.join("commondir"), format!("{}\n", victim.display())).unwrap();
    names(&between);
    refused("a folder that shares its branches", "other/.git");
    fs::write(between.join("config"), format!("[core]\n\tworktree = {}\n", project.display())).unwrap();
    fs::remove_file(between.join("commondir")).unwrap();
    fs::write(project.join("common"), victim.to_str().unwrap()).unwrap();
    symlink("../common", between.join("commondir")).unwrap();
    refused("the same through a link", "nothing was written");
    fs::remove_file(&at).unwrap();
    symlink(&victim, &at).unwrap();
    refused("a link", "other/.git");
    fs::remove_file(&at).unwrap();

    fs::rename(&away, &at).unwrap();
    fs::write(at.join("commondir"), victim.to_str().unwrap()).unwrap();
    refused("a folder that shares its branches", "other/.git");
    fs::remove_file(at.join("commondir")).unwrap();
    for name in ["objects", "refs", "refs/heads", "logs", "logs/refs/heads"] {
        let (own, kept) = (at.join(name), other.with_file_name("kept"));
        fs::rename(&own, &kept).unwrap();
        symlink(victim.join(name), &own).unwrap();
        refused(name, &format!("`{name}` of the repository"));
        fs::remove_file(&own).unwrap();
        fs::rename(&kept, &own).unwrap();
    }
    fs::create_dir_all(at.join("logs/refs/heads/gb")).unwrap();
    symlink(project.join("f"), at.join("logs/refs/heads/gb/r")).unwrap();
    refused("the log of the branch", "`logs/refs/heads/gb/r` of the repository");
    fs::remove_file(at.join("logs/refs/heads/gb/r")).unwrap();
    git(&project, &["config", "core.worktree", other.to_str().unwrap()]);
    refused("a work tree somewhere else", "as the place of the repository in");
    git(&project, &["config", "--unset", "core.worktree"]);
    branch(&project, &[]).ends(0);
    assert_eq!((tree(&other), bench.read("f")), (before, "1\n".to_owned()));
}

#[test]
fn a_separate_folder_of_git_counts_when_it_names_the_work_tree() {
    let (bench, other) = cloned();
    let project = bench.project().canonicalize().unwrap();
    let apart = other.with_file_name("it's apart");
    git(&project, &["init", "-q", "--separate-git-dir", apart.to_str().unwrap()]);
    run(&bench, &project);
    let before = tree(&apart);
    let answer = branch(&project, &[]);
    answer.ends(FOREIGN).says("which does not name this folder");
    assert_eq!(tree(&apart), before);
    let remedy = answer.stderr.split('`').find(|part| part.starts_with("git config")).unwrap();
    let remedied = Command::new("sh").args(["-c", remedy]).current_dir("/").status().unwrap();
    assert!(remedied.success(), "{remedy}");
    branch(&project, &[]).ends(0).says("it's apart");
}

/// A symbolic ref makes git write to files of other names, which may be links to any place.
#[test]
fn a_symbolic_ref_at_the_name_of_the_branch_leads_nowhere() {
    let (bench, _other) = cloned();
    let outside = bench.outside().canonicalize().unwrap();
    let (project, victim) = (outside.join("project"), outside.join("victim"));
    run(&bench, &project);
    let of_git = project.join(".git");
    fs::write(&victim, "mine\n").unwrap();
    for folder in ["refs/heads/gb", "logs/refs/heads"] {
        fs::create_dir_all(of_git.join(folder)).unwrap();
    }
    fs::write(of_git.join("refs/heads/gb/r"), "ref: refs/heads/evil\n").unwrap();
    symlink(&victim, of_git.join("logs/refs/heads/evil")).unwrap();
    branch(&project, &[]).ends(FOREIGN).says("is a symbolic ref");
    let left = of_git.join("refs/heads/gb/r");
    assert_eq!(fs::read_to_string(&victim).unwrap(), "mine\n");
    assert!(!of_git.join("refs/heads/evil").exists());
    assert_eq!(fs::read_to_string(&left).unwrap(), "ref: refs/heads/evil\n");
    for (target, is_there) in [("../../heads/evil", false), (victim.to_str().unwrap(), true)] {
        fs::remove_file(&left).unwrap();
        symlink(target, &left).unwrap();
        assert_eq!(left.exists(), is_there);
        branch(&project, &[])
            .ends(FOREIGN)
            .says("`refs/heads/gb/r` of the repository")
            .says("is a link to another place");
    }
    fs::remove_file(&left).unwrap();
    fs::write(&left, "").unwrap();
    branch(&project, &[]).ends(FOREIGN).says("is a file that git does not accept as a branch");
    // Git leaves an empty folder if a branch below this name was deleted.
    fs::remove_file(&left).unwrap();
    fs::create_dir(&left).unwrap();
    branch(&project, &[]).ends(0);
    assert_eq!(fs::read_to_string(&victim).unwrap(), "mine\n");
}

/// Git converts line ends and encodings between the commit and the files. A filter is a program, which is not started.
#[test]
fn files_that_git_converts_get_into_the_branch_as_git_would_write_them() {
    let bench = Workbench::new();
    let project = bench.project();
    bench.write("work.sh", "printf 'c\\r\\n' >> r.bat\nprintf 'n\\r\\n' > new.bat\nprintf 'u\\0' >> wide.txt\nprintf 'x\\r\\n' > raw.bin\n");
    bench.write("pipeline.dot", &PIPELINE.replace("echo 2 > f", "sh work.sh").replace("\"f\"", "\"./\""));
    bench.write(
        ".gitattributes",
        "*.bat text eol=crlf\n*.bin -text\nwide.txt text working-tree-encoding=UTF-16LE eol=lf\n*.big filter=large\n",
    );
    bench.write("r.bat", "a\r\nb\r\n");
    bench.write("wide.txt", "w\0");
    bench.write("raw.bin", "a\r\n");
    bench.write("data.big", "large\n");
    git(&project, &["init", "-q", "-b", "main"]);
    let ran = bench.outside().join("ran");
    for (key, value) in [("clean", format!("tee {}", ran.display())), ("required", "true".to_owned())] {
        git(&project, &["config", &format!("filter.large.{key}"), &value]);
    }
    git(&project, &["add", "-A"]);
    git(&project, &["commit", "-q", "-m", "base"]);
    let _by_add = fs::remove_file(&ran);
    assert_eq!(git(&project, &["cat-file", "blob", "HEAD:r.bat"]), "a\nb");
    run(&bench, &project);
    branch(&project, &[]).ends(0);
    for (path, content) in [("r.bat", "a\nb\nc"), ("new.bat", "n"), ("wide.txt", "wu"), ("raw.bin", "x")] {
        assert_eq!(git(&project, &["cat-file", "blob", &format!("gb/r:{path}")]), content, "{path}");
    }
    assert_eq!(git(&project, &["cat-file", "-s", "gb/r:raw.bin"]), "3", "not converted");
    git(&project, &["branch", "-D", "gb/r"]);
    bench.write("work.sh", "echo more >> data.big\n");
    git(&project, &["commit", "-qam", "other"]);
    let _by_commit = fs::remove_file(&ran);
    fs::remove_dir_all(project.join(".glovebox")).unwrap();
    run(&bench, &project);
    branch(&project, &[])
        .ends(6)
        .says("data.big: the filter `large` of git would change it")
        .says("without `--branch`");
    assert!(!ran.exists(), "no filter ran");
}
