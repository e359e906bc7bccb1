//! Hints for the output of a failed command which usually means that the command misses something in the sandbox.
//!
//! The output is text of a stage. It only selects one of these fixed sentences, with a host name that has been checked. A hint is not a
//! remedy: the text may have another cause, so each sentence says what it depends on.

use glovebox_record::Network;

/// Phrases of a program that misses a network, and the host that it usually needs. If the line names a host, that one is meant.
const LOOKUPS: [(&str, &str); 15] = [
    ("could not resolve", "example.com"),
    ("eai_again", "example.com"),
    ("enotfound", "example.com"),
    ("name or service not known", "example.com"),
    ("name does not resolve", "example.com"),
    ("temporary failure in name resolution", "example.com"),
    ("no such host", "example.com"),
    ("failed to lookup address", "example.com"),
    ("unknownhostexception", "example.com"),
    ("dns error", "example.com"),
    ("enotcached", "registry.npmjs.org"),
    ("but --offline was specified", "*.crates.io"),
    ("ignoring indexes", "pypi.org"),
    ("(from versions: none)", "pypi.org"),
    ("network connectivity is disabled", "pypi.org"),
];

/// Phrases of output, and what they usually mean.
const HINTS: [(&[&str], &str); 5] = [
    (
        &[
            "no usable sandbox",
            "failed to move to new namespace",
            "setuid sandbox",
            "no permissions to create new namespace",
        ],
        "a program of this command builds a sandbox of its own, which is not possible inside of Glovebox's; the machine is not the cause. \
         Switch that sandbox off, for example with `--no-sandbox`: docs/my-tool-needs.md",
    ),
    (
        &["too many open files"],
        "if the program has reached its limit of open files, raise `descriptors` under `[limits]` in glovebox.toml, or its own soft limit \
         with `ulimit -n`",
    ),
    (
        &["cannot open display", "missing x server", "unable to open display"],
        "the sandbox has no display: start one in the command with `xvfb-run -a COMMAND`, or use the program without a window",
    ),
    (
        &["unknown revision", "no names found", "bad revision"],
        "commands see one commit: if this one needs earlier commits, add `git = \"history\"` under `[workspace]` in glovebox.toml",
    ),
    (
        &["cannot connect to the docker daemon", "docker.sock"],
        "the sandbox has no access to Docker, because its socket controls the machine: start services in the command \
         (docs/my-tool-needs.md)",
    ),
];

/// Phrase of git for a submodule that it could not clone. Git prints a failed lookup before it.
const SUBMODULE: &str = "into submodule path";
const SUBMODULE_HINT: &str = "a submodule that is empty in the project stays empty in a stage, because git can fetch nothing there: run \
                              `git submodule update --init --recursive` in the project, outside of the sandbox";

/// Returns the hint for lines of output. `has_network` is true if commands could reach every host: a failed lookup then has
/// another cause, and gets no hint.
pub fn for_lines(lines: &[String], has_network: bool) -> Option<String> {
    let plain: Vec<String> = lines.iter().map(|line| line.to_lowercase()).collect();
    if plain.iter().any(|line| line.contains(SUBMODULE)) {
        return Some(SUBMODULE_HINT.to_owned());
    }
    let usual = |line: &String| LOOKUPS.iter().find(|(phrase, _)| line.contains(phrase)).map(|(_, usual)| *usual);
    let lookups = || plain.iter().filter_map(|line| Some((host_in(line), usual(line)?)));
    // Clients print several such lines. One of them names the host.
    let lookup = || lookups().find(|(host, _)| host.is_some()).or_else(|| lookups().next());
    if let Some((host, usual)) = lookup().filter(|_| !has_network) {
        let asked = host.map_or_else(|| "a host".to_owned(), |host| format!("the host `{host}`"));
        let host = host.unwrap_or(usual);
        return Some(format!(
            "commands have no network, and this one looked for {asked}. To allow it: `network = {{ proxy = [\"{host}\"] }}` under \
             `[sandbox]` in glovebox.toml"
        ));
    }
    let is_in = |phrases: &[&str]| phrases.iter().any(|phrase| plain.iter().any(|line| line.contains(phrase)));
    HINTS.iter().find(|(phrases, _)| is_in(phrases)).map(|(_, hint)| (*hint).to_owned())
}

/// Returns the last word of a line that is the name of a host with a dot.
fn host_in(line: &str) -> Option<&str> {
    let words = line.split(|one: char| !one.is_ascii_alphanumeric() && one != '.' && one != '-');
    let words = words.map(|word| word.trim_matches(|one| one == '.' || one == '-'));
    // A name without letters is an address or a number.
    let is_host = |word: &&str| {
        let last = word.rsplit('.').next().unwrap_or_default();
        word.contains('.')
            && last.len() > 1
            && last.bytes().all(|one| one.is_ascii_alphabetic())
            && format!("proxy:{word}").parse::<Network>().is_ok()
    };
    words.rev().find(is_host)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(line: &str, expected: &str) {
        let hint = for_lines(&["first".to_owned(), line.to_owned()], false).unwrap_or_default();
        assert!(hint.contains(expected), "{line}: {hint}");
    }

    #[test]
    fn a_lookup_names_its_host() {
        for line in [
            "curl: (6) Could not resolve host: api.example.com",
            "npm error request to https://api.example.com/left-pad failed, reason: getaddrinfo EAI_AGAIN api.example.com",
            "dial tcp: lookup api.example.com: no such host",
            "fatal: unable to access 'https://api.example.com/x.git/': Could not resolve host: api.example.com",
            "urlopen error [Errno -3] Temporary failure in name resolution: api.example.com",
        ] {
            check(line, "the host `api.example.com`");
            check(line, "`network = { proxy = [\"api.example.com\"] }`");
        }
        check(
            "[Errno -2] Name or service not known",
            "looked for a host. To allow it: `network = { proxy = [\"example.com\"] }`",
        );
        check("Could not resolve host: \u{1b}]0;x\u{7}", "looked for a host.");
        assert_eq!(for_lines(&["Could not resolve host: a.example".to_owned()], true), None);
        let clone = [
            "fatal: unable to access 'https://example.com/lib/': Could not resolve host: example.com",
            "fatal: clone of 'https://example.com/lib' into submodule path '/workspace/lib' failed",
        ];
        assert_eq!(for_lines(&clone.map(str::to_owned), false).as_deref(), Some(SUBMODULE_HINT));
        // Package managers that were told to stay offline.
        check(
            "npm error request to https://registry.npmjs.org/left-pad failed: ENOTCACHED",
            "`network = { proxy = [\"registry.npmjs.org\"] }`",
        );
        check(
            "  attempting to make an HTTP request, but --offline was specified",
            "`network = { proxy = [\"*.crates.io\"] }`",
        );
        check(
            "ERROR: Could not find a version that satisfies the requirement x (from versions: none)",
            "looked for a host. To allow it: `network = { proxy = [\"pypi.org\"] }`",
        );
        let npm =
            ["npm error errno ENOTFOUND".to_owned(), "reason: getaddrinfo ENOTFOUND registry.npmjs.org".to_owned()];
        assert!(for_lines(&npm, false).unwrap().contains("the host `registry.npmjs.org`"));
        check("java.net.UnknownHostException: repo.example.org", "the host `repo.example.org`");
    }

    #[test]
    fn programs_that_miss_something_get_a_sentence_about_it() {
        check(
            "[1:1] FATAL:zygote_host_impl_linux.cc(126)] No usable sandbox! Update your kernel",
            "the machine is not the cause",
        );
        check("OSError: [Errno 24] Too many open files", "`descriptors` under `[limits]`");
        check("Error: cannot open display: :0", "`xvfb-run -a COMMAND`");
        check("fatal: No names found, cannot describe anything.", "`git = \"history\"`");
        check("Cannot connect to the Docker daemon at unix:///var/run/docker.sock.", "no access to Docker");
        assert_eq!(for_lines(&["assertion failed".to_owned()], false), None);
    }
}
