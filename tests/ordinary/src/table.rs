//! All behaviours, by group.

use crate::behaviour::Behaviour;

/// Number of behaviours.
pub const COUNT: usize = 200;

/// Embeds the file of each behaviour.
macro_rules! behaviours {
    ($($id:literal),* $(,)?) => { [$(($id, include_str!(concat!("../behaviours/", $id, ".sh")))),*] };
}

/// The id and the file of each behaviour. The groups are in the order of reports.
const FILES: [(&str, &str); COUNT] = behaviours![
    "git/add",
    "git/apply-patch",
    "git/archive",
    "git/bisect",
    "git/blame",
    "git/branch-name",
    "git/cherry-pick",
    "git/clean",
    "git/clone-local",
    "git/commit-amend",
    "git/commit-identity",
    "git/commit",
    "git/config-write",
    "git/describe-tag",
    "git/detached-head",
    "git/diff-uncommitted",
    "git/hook-runs",
    "git/linked-worktree",
    "git/list-untracked",
    "git/log-history",
    "git/merge",
    "git/mv",
    "git/new-repository",
    "git/other-branches",
    "git/parent-commit",
    "git/rebase",
    "git/remote-url",
    "git/reset-hard",
    "git/restore-file",
    "git/rm",
    "git/shallow-clone",
    "git/sparse-checkout",
    "git/stash",
    "git/status-porcelain",
    "git/submodule",
    "git/switch-branch",
    "git/tag-create",
    "git/worktree-add",
    "files/atomic-replace",
    "files/bytes-kept",
    "files/change-owner-to-self",
    "files/devices",
    "files/edit-editor-settings",
    "files/extended-attributes",
    "files/flock",
    "files/hard-link-project-file",
    "files/hard-link",
    "files/home-writable",
    "files/ignored-settings",
    "files/make-executable",
    "files/mode-444-kept",
    "files/mode-600-kept",
    "files/mode-between-stages",
    "files/move-from-tmp",
    "files/open-4096-files",
    "files/private-folder-between-stages",
    "files/process-substitution",
    "files/record-lock",
    "files/remove-tree",
    "files/rename-folder",
    "files/rename-ignored-folder",
    "files/replace-file-by-folder",
    "files/shared-mapping",
    "files/sparse-8g",
    "files/swap-folder-of-other-stage",
    "files/symbolic-link",
    "files/times",
    "files/tmp-200-megabytes",
    "files/tmp-and-here-documents",
    "files/tmpdir",
    "files/umask",
    "files/unpack-archive",
    "files/users-and-services",
    "files/watch-changes",
    "files/write-new-file",
    "processes/background-jobs",
    "processes/daemon",
    "processes/debugger",
    "processes/kernel-settings",
    "processes/large-output",
    "processes/list",
    "processes/lock-memory",
    "processes/long-command-line",
    "processes/machine-facts",
    "processes/many-processes",
    "processes/many-threads",
    "processes/orphans-reaped",
    "processes/priority-and-affinity",
    "processes/proc-of-self",
    "processes/process-group",
    "processes/reserve-64g",
    "processes/run-memory-file",
    "processes/shebang-env",
    "processes/signals",
    "processes/stale-pid-file",
    "processes/standard-input",
    "processes/trace-system-calls",
    "processes/system-tree",
    "processes/user-variables",
    "ipc/abstract-socket",
    "ipc/gpg-sign",
    "ipc/message-queue",
    "ipc/named-pipe",
    "ipc/pass-descriptor",
    "ipc/process-lock",
    "ipc/process-pool",
    "ipc/shared-memory",
    "ipc/ssh-agent",
    "ipc/system-v-memory",
    "ipc/unix-socket-in-project",
    "ipc/unix-socket",
    "network/all-addresses",
    "network/asyncio-server",
    "network/fixed-port",
    "network/http-server-and-curl",
    "network/ipv6-loopback",
    "network/large-body",
    "network/list-interfaces",
    "network/localhost-name",
    "network/many-connections",
    "network/name-fails-fast",
    "network/node-server",
    "network/own-host-name",
    "network/port-free-in-next-stage",
    "network/refused-at-once",
    "network/socket-table",
    "network/tcp-loopback",
    "network/tls-loopback",
    "network/udp-loopback",
    "toolchains/address-sanitizer",
    "toolchains/c-program",
    "toolchains/c-shared-library",
    "toolchains/cargo-test",
    "toolchains/checksums-and-archives",
    "toolchains/cmake-ctest",
    "toolchains/coverage",
    "toolchains/cxx-threads",
    "toolchains/go-test",
    "toolchains/go-version-stamp",
    "toolchains/java-local-host",
    "toolchains/java-program",
    "toolchains/java-zgc",
    "toolchains/leak-sanitizer",
    "toolchains/make-incremental",
    "toolchains/make-parallel",
    "toolchains/node-program",
    "toolchains/node-test",
    "toolchains/npm-install-local",
    "toolchains/npm-run-script",
    "toolchains/perl",
    "toolchains/pip-in-project-environment",
    "toolchains/pip-install-project",
    "toolchains/pkg-config",
    "toolchains/python-modules",
    "toolchains/python-unittest",
    "toolchains/python-venv",
    "toolchains/rustc-rename",
    "toolchains/thread-sanitizer",
    "toolchains/undefined-behaviour-sanitizer",
    "toolchains/valgrind",
    "databases/mariadb",
    "databases/postgres",
    "databases/redis",
    "databases/sqlite-wal",
    "browsers/chromium-page",
    "browsers/chromium-version",
    "browsers/firefox-page",
    "terminals/editor-script",
    "terminals/job-control",
    "terminals/no-terminal",
    "terminals/python-pty",
    "terminals/script",
    "terminals/terminfo",
    "terminals/tmux",
    "terminals/window-size",
    "locale-time/clock",
    "locale-time/convert-encoding",
    "locale-time/machine-name",
    "locale-time/python-text",
    "locale-time/sort-order",
    "locale-time/time-zones",
    "locale-time/timers",
    "locale-time/utf8",
    "trees/absolute-link",
    "trees/case-and-composition",
    "trees/deep-folders",
    "trees/empty-folder",
    "trees/link-to-the-outside",
    "trees/many-files",
    "trees/name-that-is-not-utf8",
    "trees/name-with-line-end",
    "trees/new-files-2000",
    "trees/read-only-folder",
    "trees/unusual-names",
    "leftovers/absolute-link",
    "leftovers/background-process",
    "leftovers/editor-lock",
    "leftovers/named-pipe",
    "leftovers/odd-name",
    "leftovers/socket",
];

/// Returns all behaviours.
///
/// # Errors
///
/// Returns the problem of the first file that [`Behaviour::parse`] refuses.
pub fn all() -> Result<Vec<Behaviour>, String> {
    FILES.iter().map(|(id, text)| Behaviour::parse(id, text)).collect()
}

/// Returns the names of the groups in their order.
pub fn groups() -> Vec<&'static str> {
    let mut groups: Vec<&str> = FILES.iter().filter_map(|(id, _)| id.split('/').next()).collect();
    groups.dedup();
    groups
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::project;
    use std::collections::BTreeSet;
    use std::path::Path;

    /// A longer program tests more than one behaviour.
    const LINES_MAX: usize = 16;

    fn names(folder: &Path) -> BTreeSet<String> {
        let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
        entries.map(|name| name.trim_end_matches(".sh").to_owned()).collect()
    }

    #[test]
    fn the_table_has_each_file_of_the_folder_once() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("behaviours");
        let in_group =
            |group: String| names(&folder.join(&group)).into_iter().map(move |name| format!("{group}/{name}"));
        let files: BTreeSet<String> = names(&folder).into_iter().flat_map(in_group).collect();
        let listed: BTreeSet<String> = FILES.iter().map(|(id, _)| (*id).to_owned()).collect();
        assert_eq!((listed.len(), &listed), (COUNT, &files));
        let unique: BTreeSet<&str> = groups().into_iter().collect();
        assert_eq!(unique.len(), groups().len(), "the rows of a group are together");
    }

    #[test]
    fn each_behaviour_has_a_header_and_is_small() {
        for behaviour in all().unwrap() {
            let lines: usize = behaviour.parts.iter().map(|part| part.lines().count()).sum();
            assert!(lines <= LINES_MAX, "{}: {lines} lines", behaviour.id);
            assert!(
                project::find(&behaviour.project).is_some(),
                "{}: no project `{}`",
                behaviour.id,
                behaviour.project
            );
            for setting in &behaviour.settings {
                assert!(setting.contains(" = ") && setting.contains('.'), "{}: `{setting}`", behaviour.id);
            }
        }
    }
}
