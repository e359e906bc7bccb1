//! Names in the output of a command: programs, hosts, files and variables. Each name has only the characters that such
//! a name needs, because the output comes from the project's code.

use glovebox_record::Network;
use std::borrow::Cow;

/// The folders of programs that every command sees.
pub const SYSTEM: [&str; 3] = ["/usr/local/bin", "/usr/bin", "/bin"];
/// Maximum number of characters of a name.
const NAME_CHARACTERS_MAX: usize = 200;

/// Escapes the characters of a path that could deceive a reader, for a message.
pub fn shown(path: &str) -> Cow<'_, str> {
    crate::terminal::visible::line(path)
}

fn is_program(text: &str) -> bool {
    let is_plain = |character: char| character.is_ascii_alphanumeric() || "._+-".contains(character);
    !text.is_empty() && text.len() <= NAME_CHARACTERS_MAX && text.chars().all(is_plain) && !text.starts_with(['-', '.'])
}

/// Returns the program that a shell or another program did not find.
pub fn missing_program(output: &str) -> Option<&str> {
    output.lines().rev().find_map(|line| {
        let line = line.trim();
        let before = [": command not found", ": not found", ": No such file or directory\")"]
            .iter()
            .find_map(|sign| line.strip_suffix(sign));
        let by_shell = before.and_then(|before| before.rsplit([' ', ':']).next());
        let by_node = line.split_once("spawn ").and_then(|(_, rest)| rest.split_once(" ENOENT")).map(|(name, _)| name);
        let by_make = line.split_once("make: ").and_then(|(_, rest)| rest.strip_suffix(": No such file or directory"));
        let by_python = line.split_once("No such file or directory: '").and_then(|(_, rest)| rest.strip_suffix('\''));
        // Python names a missing program like a missing file.
        let by_python = by_python.filter(|_| output.contains("_execute_child"));
        let by_env = line.split_once("env: ").map(|(_, rest)| rest.trim_start_matches(['‘', '\'']));
        let by_env =
            by_env.and_then(|rest| rest.split(['’', '\'', ':']).next()).filter(|_| line.contains("No such file"));
        [by_shell, by_node, by_make, by_python, by_env].into_iter().flatten().find(|name| is_program(name))
    })
}

/// Returns the words of a command that could be programs.
pub fn words(command: &str) -> impl Iterator<Item = &str> {
    let is_name = |character: char| character.is_ascii_alphanumeric() || "._+-".contains(character);
    command.split(move |character| !is_name(character)).filter(|word| is_program(word))
}

/// Returns the host of a target such as `api.example.com:443`, if the proxy could allow it.
pub fn host(target: &str) -> Option<String> {
    let (name, port) = target.split_once(':').map_or((target, None), |(name, port)| (name, Some(port)));
    let is_usual = port.is_none_or(|port| port == "443" || port == "80");
    let text = if is_usual { name.to_ascii_lowercase() } else { target.to_ascii_lowercase() };
    let is_name = name.contains('.') && name.chars().any(|character| character.is_ascii_alphabetic());
    (is_name && !name.contains('*') && format!("proxy:{text}").parse::<Network>().is_ok()).then_some(text)
}

/// Returns the host that a command could not reach.
pub fn unreachable_host(output: &str) -> Option<String> {
    const SIGNS: [&str; 9] = [
        "Could not resolve host: ",
        "getaddrinfo EAI_AGAIN ",
        "getaddrinfo ENOTFOUND ",
        "Failed to resolve '",
        "(host='",
        "dial tcp: lookup ",
        "unable to resolve host address '",
        "Could not resolve '",
        "Failed to connect to ",
    ];
    let is_host = |character: char| character.is_ascii_alphanumeric() || ".-".contains(character);
    SIGNS.iter().find_map(|sign| {
        let mut after = output.match_indices(sign).map(|(at, _)| &output[at + sign.len()..]);
        after.find_map(|rest| {
            let end = rest.find(|character| !is_host(character)).unwrap_or(rest.len());
            host(rest[..end].trim_end_matches('.'))
        })
    })
}

/// Returns the paths in lines that say that a file does not exist, relative to the project. `project` is the absolute
/// path of the project, which commands may use for its files.
pub fn missing_files<'o>(output: &'o str, project: &'o str) -> impl Iterator<Item = &'o str> {
    let says = |line: &&str| {
        ["No such file or directory", "ENOENT", "FileNotFoundError", "not found"].iter().any(|sign| line.contains(sign))
    };
    let lines = output.lines().filter(says);
    let words = lines.flat_map(|line| line.split([' ', '\'', '"', '`', '(', ')', ',', ':', '‘', '’', '=']));
    let below = move |word: &'o str| {
        let inside = word.strip_prefix(project).and_then(|rest| rest.strip_prefix('/'));
        let inside = inside.or_else(|| word.strip_prefix("/workspace/"));
        inside.or_else(|| word.strip_prefix("./")).unwrap_or(word)
    };
    words.map(below).filter(|word| is_path(word))
}

fn is_path(text: &str) -> bool {
    let is_plain = |character: char| character.is_ascii_alphanumeric() || "._-/".contains(character);
    let has_parents = text.split('/').any(|part| part.is_empty() || part == ".." || part == ".");
    !text.is_empty() && text.len() <= NAME_CHARACTERS_MAX && text.chars().all(is_plain) && !has_parents
}

/// Returns the variable that a command misses.
pub fn missing_variable(output: &str) -> Option<&str> {
    const BEFORE: [&str; 6] = [
        "KeyError: '",
        "environment variable ",
        "environment variable: ",
        "environment variable '",
        "environment variable `",
        "nvironment variable \"",
    ];
    const AFTER: [&str; 6] = [
        ": unbound variable",
        ": parameter not set",
        " must be set",
        " is not set",
        " is required",
        ": parameter null or not set",
    ];
    let lines = || output.lines().rev();
    let first = |rest: &'_ str| rest.find(|character| !is_variable_character(character)).unwrap_or(rest.len());
    let by_text = lines().find_map(|line| {
        BEFORE.iter().filter_map(|sign| line.split_once(sign)).find_map(|(_, rest)| {
            let name = &rest[..first(rest)];
            is_variable(name).then_some(name)
        })
    });
    by_text.or_else(|| {
        lines().find_map(|line| {
            AFTER.iter().filter_map(|sign| line.split_once(sign)).find_map(|(before, _)| {
                let name = before.trim_end_matches(['\'', '"', '`']);
                let name = name.rsplit(|character| !is_variable_character(character)).next()?;
                is_variable(name).then_some(name)
            })
        })
    })
}

fn is_variable_character(character: char) -> bool {
    character.is_ascii_uppercase() || character.is_ascii_digit() || character == '_'
}

fn is_variable(name: &str) -> bool {
    name.len() >= 2
        && name.len() <= NAME_CHARACTERS_MAX
        && name.starts_with(|first: char| first.is_ascii_uppercase())
        && name.chars().all(is_variable_character)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_program_is_named_in_many_ways() {
        for (output, name) in [
            ("sh: 1: go: not found", "go"),
            ("bash: line 1: protoc: command not found", "protoc"),
            ("a\nmake: protoc: No such file or directory\nmake: *** [x] Error 127", "protoc"),
            ("Error: spawn pnpm ENOENT\n    at x", "pnpm"),
            ("/usr/bin/env: ‘node’: No such file or directory", "node"),
            (
                "  File \"subprocess.py\", in _execute_child\nFileNotFoundError: [Errno 2] No such file or directory: 'jq'",
                "jq",
            ),
        ] {
            assert_eq!(missing_program(output), Some(name), "{output}");
        }
        for output in ["", "not found", "x: $(id): not found", "sh: 1: ../../x: not found", "404 Not Found"] {
            assert_eq!(missing_program(output), None, "{output}");
        }
    }

    #[test]
    fn a_host_has_the_form_of_a_name() {
        for (output, name) in [
            ("curl: (6) Could not resolve host: api.example.com", "api.example.com"),
            ("getaddrinfo EAI_AGAIN registry.npmjs.org", "registry.npmjs.org"),
            ("HTTPSConnectionPool(host='pypi.org', port=443)", "pypi.org"),
            ("dial tcp: lookup proxy.golang.org: no such host", "proxy.golang.org"),
        ] {
            assert_eq!(unreachable_host(output).as_deref(), Some(name), "{output}");
        }
        for output in
            ["Could not resolve host: localhost", "Could not resolve host: $(x)", "Could not resolve host: *.com"]
        {
            assert_eq!(unreachable_host(output), None, "{output}");
        }
        assert_eq!(host("api.example.com:443").as_deref(), Some("api.example.com"));
        assert_eq!(host("git.example.com:22").as_deref(), Some("git.example.com:22"));
        for target in ["10.0.0.1:80", "*.com", "a\"]", "x:y:z"] {
            assert_eq!(host(target), None, "{target}");
        }
    }

    #[test]
    fn files_and_variables_are_plain_names() {
        let files = |output| missing_files(output, "/home/me/app").collect::<Vec<_>>();
        assert!(files("No such file or directory: '/home/me/app/conf/a'").contains(&"conf/a"));
        assert!(files("cat: .env: No such file or directory").contains(&".env"));
        assert!(
            files("Error: ENOENT: no such file or directory, open '/workspace/conf/a.json'").contains(&"conf/a.json")
        );
        assert!(files("open ../x: No such file or directory").iter().all(|path| !path.contains("..")));
        assert_eq!(files("all is well: .env"), [""; 0]);
        for (output, name) in [
            ("KeyError: 'DATABASE_URL'", Some("DATABASE_URL")),
            ("run.sh: line 2: TZ: unbound variable", Some("TZ")),
            ("sh: 1: API_KEY: parameter not set", Some("API_KEY")),
            ("Error: the environment variable `HOST_NAME` is missing", Some("HOST_NAME")),
            ("thread panicked: API_KEY must be set", Some("API_KEY")),
            ("KeyError: 'name'", None),
            ("it is not set", None),
        ] {
            assert_eq!(missing_variable(output), name, "{output}");
        }
    }
}
