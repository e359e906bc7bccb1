//! Hold-outs and the repository in a stage's jail: which stages see them, that no stage can change them, and what `git`
//! shows.

use glovebox_jail::exec::{Command, Exit, Program};
use glovebox_jail::jail::ExecPolicy;
use glovebox_jail::jail::{Bind, Jail, JailSetting};
use glovebox_record::path::ScopePath;
use glovebox_record::scope::{Entry, Scope};
use glovebox_record::{Limits, Network, Tier};
use glovebox_workspace::holdout::{Seal, seal};
use glovebox_workspace::project::{self, Include};
use glovebox_workspace::protect::Protected;
use glovebox_workspace::repository::{self, RepositoryFacts, RepositorySource, TagKind};
use glovebox_workspace::stage::{ChangeLimits, ViewOverrides, WorkspaceView};
use glovebox_workspace::tree::remove_all;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

const SCENARIO: &str = "scripts/scenarios/check.sh";
const SECRET: &str = "exit $(( $(cat answer.txt) + 41 ))";

/// Parts of a stage's view that do not come from its scope: overrides of its files, and mounts in its jail.
#[derive(Default)]
struct Reach {
    overrides: ViewOverrides,
    inner: Vec<Bind>,
}

impl Reach {
    fn mounted(path: &str, source: PathBuf, inside: PathBuf) -> Self {
        let bind = Bind::read_only(source, inside.join(path));
        let mount_points = vec![ScopePath::parse(path).unwrap()];
        Self { overrides: ViewOverrides { mount_points, ..ViewOverrides::default() }, inner: vec![bind] }
    }
}

/// A project with a repository and a hold-out, and a run of the project.
struct Fixture {
    dir: tempfile::TempDir,
    seal: Seal,
}

impl Fixture {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let root = fs::canonicalize(dir.path()).unwrap();
        for (path, text) in
            [(SCENARIO, SECRET), ("scripts/build.sh", "true\n"), ("answer.txt", "1\n"), (".git/HEAD", "secret")]
        {
            let file = root.join("project").join(path);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, text).unwrap();
        }
        let folders = vec![Entry::parse("scripts/scenarios/").unwrap()];
        fs::create_dir(root.join("run")).unwrap();
        let seal = seal(&root.join("project"), &folders, &root.join("run/holdouts")).unwrap();
        let include = Include { leave_out: folders, ..Include::default() };
        project::copy(&root.join("project"), &root.join("run/workspace"), &include).unwrap();
        Self { dir, seal }
    }

    fn at(&self, path: &str) -> PathBuf {
        fs::canonicalize(self.dir.path()).unwrap().join(path)
    }

    fn open(&self, view: &WorkspaceView, inner: Vec<Bind>, tier: Tier) -> Jail {
        let folder = self.at("run/attempt");
        fs::create_dir_all(&folder).unwrap();
        let setting = JailSetting {
            tier,
            policy: ExecPolicy::default(),
            network: Network::None,
            limits: Limits::default(),
            inside: self.at("project"),
            inner,
            kept: Vec::new(),
            hidden: vec![self.at("project"), self.at("run")],
            folder,
            pulse: glovebox_jail::pulse::Pulse::default(),
        };
        Jail::open(&setting, view.source().unwrap()).unwrap()
    }

    /// Returns the view of a verifier, with the hold-outs.
    fn mounted(&self) -> Reach {
        let source = self.seal.files().join("scripts/scenarios");
        Reach::mounted("scripts/scenarios", source, self.at("project"))
    }

    /// Runs a command in a stage over a copy and in a stage over an overlay. Returns its exit and the changes that each
    /// stage would commit.
    fn stages(&self, scope: &Scope, reach: &Reach, command: &str) -> Vec<(Exit, Vec<String>)> {
        let stage = |is_overlay: bool| {
            let (workspace, at) = (self.at("run/workspace"), self.at("run").join(format!("stage-{is_overlay}")));
            let view = match is_overlay {
                true => WorkspaceView::overlay(&workspace, &at, scope, &reach.overrides).unwrap(),
                false => WorkspaceView::copy(&workspace, &at, scope, &reach.overrides).unwrap(),
            };
            let jail = self.open(&view, reach.inner.clone(), Tier::Full);
            let exit = jail.run(&shell(command), &AtomicBool::new(false)).unwrap();
            jail.end().unwrap();
            let found = view.changes(&ChangeLimits::default(), &Protected::new(&["scripts/scenarios/"])).unwrap();
            let allowed = found.iter().filter(|found| found.is_allowed()).map(|found| found.path.clone()).collect();
            view.remove().unwrap();
            (exit, allowed)
        };
        vec![stage(false), stage(true)]
    }
}

impl Drop for Fixture {
    fn drop(&mut self) {
        let _ = remove_all(self.dir.path());
    }
}

fn shell(text: &str) -> Command {
    let program = Program::Shell(text.to_owned());
    Command { program, cwd: ScopePath::root(), env: Vec::new(), stdin: None, timeout: Duration::from_secs(60) }
}

fn said(exit: &Exit) -> String {
    let text = |stream: &glovebox_jail::exec::CapturedOutput| {
        String::from_utf8([stream.head.clone(), stream.tail.clone()].concat()).unwrap()
    };
    text(&exit.stdout) + &text(&exit.stderr)
}

#[test]
fn a_verifier_reads_the_sealed_copy_and_changes_nothing_of_it() {
    let fixture = Fixture::new();
    let reach = fixture.mounted();
    let command = "cat scripts/scenarios/check.sh; echo; sh scripts/scenarios/check.sh; echo code $?\n\
        for act in 'echo x > scripts/scenarios/check.sh' 'rm -rf scripts/scenarios' 'touch scripts/scenarios/new' \
        'chmod 777 scripts/scenarios/check.sh' 'mv scripts old' 'mv scripts/scenarios scripts/old'; do \
        (eval \"$act\") 2>/dev/null && echo did \"$act\"; done; echo 2 > out.txt";
    for (exit, allowed) in fixture.stages(&Scope::everything(), &reach, command) {
        let said = said(&exit);
        assert!(said.contains(SECRET) && said.contains("code 42"), "{said}");
        assert!(!said.contains("did"), "{said}");
        assert_eq!(allowed, ["out.txt"]);
    }
    assert_eq!(fixture.seal.verify(&fixture.seal.root(), &fixture.seal.files()).unwrap(), []);
}

#[test]
fn a_builder_finds_no_name_of_them() {
    let fixture = Fixture::new();
    let scope = Scope { hidden: vec![Entry::parse("scripts/scenarios/").unwrap()], ..Scope::everything() };
    let command = "ls -a scripts; cat scripts/scenarios/check.sh; find / -path /proc -prune -o -path /usr -prune -o -name '*scenario*' -print; \
        grep -rls 'answer.txt) + 41' / --include='*' --exclude-dir=proc --exclude-dir=sys --exclude-dir=usr; \
        cat /proc/self/mountinfo | grep -o 'scenarios\\|holdouts'; git log 2>&1; cat .git/HEAD; \
        mkdir -p scripts/scenarios; echo 'exit 0' > scripts/scenarios/check.sh";
    for (exit, allowed) in fixture.stages(&scope, &Reach::default(), command) {
        let said = said(&exit);
        let lines: Vec<&str> =
            said.lines().filter(|line| line.contains("scenario") || line.contains("holdout")).collect();
        assert!(lines.iter().all(|line| line.contains("No such file")), "{said}");
        assert!(!said.contains("+ 41") && said.contains("build.sh"), "{said}");
        assert_eq!(allowed, [] as [&str; 0], "what it plants is not committed");
    }
}

#[test]
fn what_a_stage_planted_there_is_not_what_a_verifier_runs() {
    let fixture = Fixture::new();
    let planted = fixture.at("run/workspace").join(SCENARIO);
    fs::create_dir_all(planted.parent().unwrap()).unwrap();
    fs::write(&planted, "echo planted; exit 0\n").unwrap();
    fs::write(planted.with_file_name("more.sh"), "echo planted\n").unwrap();
    let reach = fixture.mounted();
    for (exit, _) in fixture.stages(
        &Scope::everything(),
        &reach,
        "sh scripts/scenarios/check.sh; echo code $?; ls scripts/scenarios",
    ) {
        assert_eq!(said(&exit), "code 42\ncheck.sh\n");
    }
}

#[test]
fn where_nothing_can_be_mounted_they_are_laid_into_the_copy() {
    let fixture = Fixture::new();
    let reach = Reach {
        overrides: ViewOverrides { layers: vec![fixture.seal.files()], ..ViewOverrides::default() },
        ..Reach::default()
    };
    let view = WorkspaceView::copy(
        &fixture.at("run/workspace"),
        &fixture.at("run/stage"),
        &Scope::everything(),
        &reach.overrides,
    )
    .unwrap();
    let jail = fixture.open(&view, Vec::new(), Tier::Landlock);
    let exit = jail
        .run(
            &shell("sh scripts/scenarios/check.sh; echo code $?; echo x > scripts/scenarios/check.sh"),
            &AtomicBool::new(false),
        )
        .unwrap();
    jail.end().unwrap();
    assert!(said(&exit).contains("code 42"), "{}", said(&exit));
    let found = view.changes(&ChangeLimits::default(), &Protected::new(&["scripts/scenarios/"])).unwrap();
    assert!(found.iter().all(|found| !found.is_allowed()), "{found:?}");
    assert_eq!(fixture.seal.verify(&fixture.seal.root(), &fixture.seal.files()).unwrap(), []);
}

#[test]
fn git_knows_one_commit_of_what_the_stage_sees() {
    let fixture = Fixture::new();
    let scope = Scope { hidden: vec![Entry::parse("scripts/build.sh").unwrap()], ..Scope::everything() };
    let into = fixture.at("run/repository");
    fs::write(fixture.at("run/workspace/big [1].bin"), vec![0; (32 << 20) + 1]).unwrap();
    let facts = RepositoryFacts {
        branch: Some("work".to_owned()),
        tags: [("v1".to_owned(), TagKind::Annotated)].into(),
        ..RepositoryFacts::default()
    };
    let source = RepositorySource { facts, ..RepositorySource::default() };
    repository::make(&fixture.at("run/workspace"), &scope, &into, &source).unwrap();
    let names: Vec<_> = fs::read_dir(&into).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names, ["stored"], "nothing unfinished stays");
    let reach = Reach::mounted(".git", into.join("stored"), fixture.at("project"));
    let command = "git log --format=%s%n%P --all; git ls-files; git status --porcelain; echo 5 > answer.txt; git diff --stat; \
        git stash list; git fsck --strict --full 2>&1; touch .git/planted || echo read-only; git commit -qam x || echo no commit";
    for (exit, _) in fixture.stages(&scope, &reach, command) {
        let said = said(&exit);
        assert!(said.starts_with("the workspace of this run\n\nanswer.txt\n answer.txt | 2 +-"), "{said}");
        assert!(said.contains("read-only") && said.contains("no commit"), "{said}");
        assert!(!said.contains("scenario") && !said.contains("build.sh") && !said.contains("secret"), "{said}");
    }
}

#[test]
fn stages_that_see_the_same_files_share_a_repository() {
    let fixture = Fixture::new();
    let (workspace, all) = (fixture.at("run/workspace"), fixture.at("run/repositories"));
    let entries = |texts: &[&str]| texts.iter().map(|text| Entry::parse(text).unwrap()).collect::<Vec<_>>();
    let kept = |read: &[&str], write: &[&str], hidden: &[&str], scratch: &[&str]| {
        let scope = Scope::new(entries(read), entries(write), entries(hidden)).with_scratch(entries(scratch));
        repository::open_or_make(&workspace, &scope, &all, RepositorySource::default).unwrap()
    };
    let whole = kept(&["./"], &[], &[], &[]);
    for (read, write, scratch) in [
        (&["./"][..], &["src/"][..], &[][..]),
        (&["docs/", "./", "docs/"], &["src/a.rs"], &["tmp/"]),
        (&[], &["./"], &[]),
    ] {
        assert_eq!(kept(read, write, &[], scratch), whole, "{read:?} {write:?}");
    }
    let others = [
        kept(&["src/"], &[], &[], &[]),
        kept(&["src/"], &["docs/"], &[], &[]),
        kept(&["src/"], &[], &[], &["tmp/"]),
        kept(&["./"], &[], &["answer.txt"], &[]),
        kept(&["src/a.rs"], &[], &[], &[]),
    ];
    for (index, other) in others.iter().enumerate() {
        assert!(*other != whole && !others[..index].contains(other), "{index}");
    }
}

#[test]
fn a_repository_has_every_kind_of_file_as_git_would_record_it() {
    let fixture = Fixture::new();
    let workspace = fixture.at("run/workspace");
    let write = |path: &str, text: &[u8]| fs::write(workspace.join(path), text).unwrap();
    fs::create_dir_all(workspace.join("a/b/c")).unwrap();
    fs::create_dir_all(workspace.join("empty")).unwrap();
    write("a.txt", b"1");
    write("a/b/c/deep.txt", b"same\n");
    write("a/same.txt", b"same\n");
    write("a-b", b"");
    write("binary", &[0, 1, 2, 255]);
    write("long.txt", "a line\n".repeat(300_000).as_bytes());
    write("\u{fc}ml\u{e4}ut \"quoted\".txt", b"x");
    fs::set_permissions(workspace.join("a.txt"), fs::Permissions::from_mode(0o755)).unwrap();
    std::os::unix::fs::symlink("a/same.txt", workspace.join("link")).unwrap();
    let into = fixture.at("run/repository");
    repository::make(&workspace, &Scope::everything(), &into, &RepositorySource::default()).unwrap();
    // The output of `git` on the host for the same files is the oracle.
    let git = |words: &[&str]| {
        let mut git = std::process::Command::new("git");
        git.args([
            "-c",
            "safe.directory=*",
            "-c",
            "core.autocrlf=false",
            "-c",
            "user.name=x",
            "-c",
            "user.email=x@localhost",
        ]);
        let output = git.args(words).current_dir(&workspace).output().unwrap();
        assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    let ours = |words: &[&str]| {
        let folder = format!("--git-dir={}", into.join("stored").display());
        git(&[&[folder.as_str(), "--work-tree=."], words].concat())
    };
    assert_eq!(ours(&["fsck", "--strict", "--full"]), "");
    assert_eq!(ours(&["status", "--porcelain"]), "");
    let (tree, staged) = (ours(&["rev-parse", "HEAD^{tree}"]), ours(&["ls-files", "--stage", "-z"]));
    git(&["init", "-q"]);
    git(&["add", "-A"]);
    git(&["commit", "-q", "-m", "x"]);
    assert_eq!(tree, git(&["rev-parse", "HEAD^{tree}"]));
    assert_eq!(staged, git(&["ls-files", "--stage", "-z"]));
}

#[test]
fn a_repository_that_cannot_be_made_leaves_nothing() {
    let fixture = Fixture::new();
    let into = fixture.at("run/repository");
    repository::make(&fixture.at("run/nowhere"), &Scope::everything(), &into, &RepositorySource::default())
        .unwrap_err();
    assert!(!into.exists());
}
