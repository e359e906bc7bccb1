//! Finds paths in commands that lead out of the workspace (decision tool-command-guard): a `~`, a `..` segment, or an absolute
//! path. Each is reported with its span.
//!
//! A path below `/tmp` is reported only as a remark, because each stage has a separate `/tmp`. If another stage names the same
//! path, it is reported as an error, because the second stage does not see the file of the first one, unless both stages write the
//! file before they read it. Security never depends on this search; the sandbox decides.

use super::reader::Findings;
use crate::diagnostic::Diagnostic;
use crate::ir::{Attribute, HandlerKind, Node};
use crate::span::Span;
use std::ops::Range;

/// The folder for temporary files. Each stage has its own.
const TEMPORARY: &str = "/tmp";
/// Devices that every sandbox has.
const DEVICES: [&str; 7] =
    ["/dev/null", "/dev/zero", "/dev/random", "/dev/urandom", "/dev/stdin", "/dev/stdout", "/dev/stderr"];

/// A path below `/tmp` in a command.
struct Temporary<'a> {
    node: &'a Node,
    path: &'a str,
    /// True if the command begins with writing the file.
    is_written: bool,
    span: Span,
}

/// Checks the commands of all nodes.
pub(super) fn check(nodes: &[Node], findings: &mut Findings<'_>) {
    let mut temporaries = Vec::new();
    for node in nodes.iter().flat_map(Node::stages) {
        let Some((attribute, is_tool)) = command(node) else { continue };
        let places = findings.places(attribute);
        for range in temporary_paths(&attribute.value) {
            let path = attribute.value[range.clone()].trim_end_matches('/');
            let is_known = |known: &Temporary<'_>| known.node.id == node.id && known.path == path;
            if !temporaries.iter().any(is_known) {
                let is_written = is_written(&attribute.value[..range.start]);
                temporaries.push(Temporary { node, path, is_written, span: places.span(range) });
            }
        }
        let Some((range, fault)) = command_fault(&attribute.value).filter(|_| is_tool) else { continue };
        let message = format!("tool_command rejected by guardrail: contains {fault}");
        let error = Diagnostic::error("tool_command_guard", message, places.span(range));
        findings.push(error.with_help("use paths relative to the workspace").with_node(node.id.as_str()));
    }
    for found in temporary_findings(&temporaries) {
        findings.push(found);
    }
}

/// Returns the command of a tool or verify stage, and whether it is a tool stage.
fn command(node: &Node) -> Option<(&Attribute, bool)> {
    let kind = node.handler.kind();
    Some((node.attributes.get(kind.command()?)?, kind == HandlerKind::Tool))
}

/// Returns one finding for each path and stage: an error at the second stage that names the path, otherwise a remark.
fn temporary_findings(all: &[Temporary<'_>]) -> Vec<Diagnostic> {
    let mut found = Vec::new();
    for (number, one) in all.iter().enumerate() {
        let before = &all[..number];
        let (id, path) = (&one.node.id, one.path);
        let is_shared = |other: &&Temporary<'_>| {
            let is_read = !one.is_written || !other.is_written || path != other.path;
            other.node.id != *id && meet(other.path, path) && is_read
        };
        let error = before.iter().find(is_shared).map(|other| {
            let message = format!(
                "`{path}` of `{id}` is not the same file as in `{}`: each stage has its own `/tmp`",
                other.node.id
            );
            let error =
                Diagnostic::error("tool_command_guard", message, one.span).with_label(other.span, "also named here");
            error.with_help("pass the file on in the workspace, which is kept between stages")
        });
        let is_used_later = all[number..].iter().any(|other| is_shared(&other));
        let remark = || {
            let message = format!("`{path}` is private to `{id}`, and removed after it");
            let name = path.strip_prefix(TEMPORARY).unwrap_or_default();
            Diagnostic::info("private_tmp", message, one.span).with_help(format!("write `$TMPDIR{name}`"))
        };
        match error {
            Some(error) => found.push(error.with_node(id.as_str())),
            None if is_used_later => {}
            None => found.push(remark().with_node(id.as_str())),
        }
    }
    found
}

/// Returns true if a command writes the file whose path follows this text: after `>`, but not after `>>`, which keeps the content.
fn is_written(before: &str) -> bool {
    let before = before.trim_end_matches(['"', '\'']).trim_end();
    before.ends_with('>') && !before.ends_with(">>")
}

/// Returns true if the paths are equal, or if one contains the other. `/tmp` itself is ignored.
fn meet(one: &str, other: &str) -> bool {
    let (short, long) = if one.len() <= other.len() { (one, other) } else { (other, one) };
    let is_known = short != TEMPORARY && !long.contains(['$', '*', '?', '`']);
    is_known && long.strip_prefix(short).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Returns the ranges of the paths below `/tmp` in a command.
fn temporary_paths(command: &str) -> Vec<Range<usize>> {
    let in_path =
        |c: char| c.is_alphanumeric() || matches!(c, '/' | '.' | '_' | '-' | '+' | '@' | '%' | '$' | '*' | '?');
    let mut found = Vec::new();
    for (start, _) in command.match_indices(TEMPORARY) {
        let begins = command[..start].chars().next_back().is_none_or(|before| !in_path(before) && before != '}');
        let rest = &command[start + TEMPORARY.len()..];
        if !begins || rest.starts_with(|c: char| c != '/' && in_path(c)) {
            continue;
        }
        let length = rest.find(|c: char| !in_path(c)).unwrap_or(rest.len());
        found.push(start..start + TEMPORARY.len() + length);
    }
    found
}

/// Returns the first forbidden path in a tool command, with the reason: `~`, a `..` segment or an absolute path. `None`
/// if there is none.
fn command_fault(command: &str) -> Option<(Range<usize>, &'static str)> {
    for word in command.split_whitespace() {
        let token = word.trim_matches(['"', '\'', '`', ';', ')']);
        let start = token.as_ptr() as usize - command.as_ptr() as usize;
        let range = start..start + token.len();
        if names_home(word) {
            return Some((range, "~"));
        }
        let outside_name = |c: char| !c.is_alphanumeric() && !matches!(c, '.' | '_' | '-');
        if token.split(outside_name).any(|segment| segment == "..") {
            return Some((range, ".."));
        }
        let is_temporary = temporary_paths(token).first().is_some_and(|path| path.start == 0);
        let path = token.split([';', '|', '&', '<', '>']).next().unwrap_or(token);
        if path.starts_with('/') && !DEVICES.contains(&path) && !is_temporary {
            return Some((range, "absolute path"));
        }
    }
    None
}

/// Returns true for a word with a `~` that a shell expands to a home directory: at the start, or after `=`, `:`, a quote or an
/// operator. In other places `~` is an ordinary character: `HEAD~1`, `main.go~`, awk's `$3!~/x/`, bash's `=~`.
fn names_home(word: &str) -> bool {
    const BEGINS: &[char] = &['=', ':', '"', '\'', '`', '(', '<', '>', '|', '&', ';'];
    let begins = |(at, _): (usize, &str)| word[..at].chars().next_back().is_none_or(|before| BEGINS.contains(&before));
    word != "=~" && word.match_indices('~').any(begins)
}

#[cfg(test)]
mod tests {
    use super::{command_fault, temporary_paths};

    fn fault(command: &str) -> Option<(&str, &'static str)> {
        command_fault(command).map(|(range, fault)| (&command[range], fault))
    }

    #[test]
    fn a_tilde_is_refused_where_a_shell_expands_it() {
        for (command, token) in [
            ("ls ~", "~"),
            ("cat ~/.netrc", "~/.netrc"),
            ("cat ~root/x", "~root/x"),
            ("HOME=~ make", "HOME=~"),
            ("PATH=bin:~/bin make", "PATH=bin:~/bin"),
            ("make --prefix=~/x", "--prefix=~/x"),
            ("cat \"~/x\"", "~/x"),
            ("cat '~/x';", "~/x"),
            ("make >~/log", ">~/log"),
            ("make&&~/run", "make&&~/run"),
            ("echo $(~/run)", "$(~/run"),
            ("echo `~/run`", "~/run"),
            ("awk '$3 ~ /x/' a", "~"),
        ] {
            assert_eq!(fault(command), Some((token, "~")), "{command}");
        }
    }

    #[test]
    fn a_tilde_inside_a_word_is_an_ordinary_character() {
        for command in [
            "awk '$3!~/^completed$/ {print}' list.tsv",
            "awk '$3~/x/' a",
            "[[ $name =~ ^v ]]",
            "git diff HEAD~1 HEAD~",
            "rm -f main.go~",
            "cat notes/~draft",
        ] {
            assert_eq!(fault(command), None, "{command}");
        }
    }

    #[test]
    fn an_absolute_token_is_shown_without_its_delimiter_and_devices_are_allowed() {
        assert_eq!(fault("make 2>&1 | tee (log /srv/build.log);"), Some(("/srv/build.log", "absolute path")));
        assert_eq!(fault("test -s '/etc/passwd'"), Some(("/etc/passwd", "absolute path")));
        assert_eq!(fault("cat /dev/nullify"), Some(("/dev/nullify", "absolute path")));
        assert_eq!(fault("cat /tmpfile"), Some(("/tmpfile", "absolute path")));
        for allowed in
            ["grep -q x a > /dev/null; sh run.sh >/dev/null 2> /dev/null", "echo x > /dev/stderr; cat /dev/null; true"]
        {
            assert_eq!(fault(allowed), None, "{allowed}");
        }
        assert_eq!(fault("make >/tmp/b.log 2>&1; tail /tmp/b.log"), None);
        assert_eq!(fault("cat /tmp/../etc/passwd"), Some(("/tmp/../etc/passwd", "..")));
    }

    #[test]
    fn temporary_paths_are_found_wherever_they_begin() {
        let found = |command: &'static str| {
            temporary_paths(command).into_iter().map(|range| &command[range]).collect::<Vec<_>>()
        };
        assert_eq!(found("make >/tmp/b.log 2>&1; tail '/tmp/c d'"), ["/tmp/b.log", "/tmp/c"]);
        assert_eq!(found("cd /tmp && TMPDIR=/tmp/ x --to=/tmp/a/b;"), ["/tmp", "/tmp/", "/tmp/a/b"]);
        assert!(found("ls /var/tmp x/tmp/a /tmpfs ${T}/tmp/x").is_empty());
    }
}
