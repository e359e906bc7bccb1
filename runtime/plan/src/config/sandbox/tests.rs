//! What `[sandbox]` accepts and refuses. Each refusal has its place.

use super::*;
use crate::config::Config;

fn read(table: &str) -> SandboxSetting {
    let text = format!("[sandbox]\n{table}\n");
    Config::parse(&text, "glovebox.toml").unwrap_or_else(|problems| panic!("{text}{problems:#?}")).sandbox
}

/// Expects exactly one problem, in the second line, with this field, this part of the message and this help.
fn refused(table: &str, field: &str, part: &str, help: Option<&str>) {
    let text = format!("[sandbox]\n{table}\n");
    let problems = Config::parse(&text, "glovebox.toml").expect_err(&text);
    assert_eq!(problems.len(), 1, "{text}{problems:#?}");
    let problem = &problems[0];
    assert_eq!((problem.field.as_str(), problem.line), (field, 2), "{text}{problem:#?}");
    assert!(problem.message.contains(part), "{text}{}", problem.message);
    assert_eq!(problem.help.as_deref(), help, "{text}{problem:#?}");
}

#[test]
fn an_absent_table_denies_everything() {
    let setting = read("");
    assert_eq!(setting, Config::default().sandbox);
    assert_eq!((setting.require, &setting.network), (Tier::Full, &Network::None));
    assert!(setting.read.is_empty() && setting.scratch.is_empty() && setting.cache.is_empty());
}

#[test]
fn a_full_table_is_read() {
    let setting = read(
        "require = \"landlock\"\nnetwork = { proxy = [\"api.example.com\", \"*.crates.io\", \"api.example.com\"] }\n\
         read = [\"/opt/data/\", \"/srv\"]\nscratch = [\"node_modules/.cache/\"]\ncache = [\"target/\"]",
    );
    assert_eq!(setting.require, Tier::Landlock);
    assert_eq!(setting.network.to_string(), "proxy:api.example.com,*.crates.io");
    assert_eq!(setting.read, ["/opt/data", "/srv"]);
    assert_eq!(setting.scratch[0].to_string(), "node_modules/.cache/");
    assert_eq!(setting.cache[0].to_string(), "target/");
    assert_eq!(read("network = \"full\"").network, Network::Full);
    assert_eq!(read("network = \"none\"").network, Network::None);
    assert_eq!(read("require = \"bwrap\"").require, Tier::Bwrap);
}

#[test]
fn words_are_checked_and_the_near_one_is_offered() {
    refused("require = \"ful\"", "sandbox.require", "`full`, `bwrap` or `landlock`", Some("did you mean `full`?"));
    refused(
        "require = \"none\"",
        "sandbox.require",
        "is `none`",
        Some("commands run without a sandbox only with `glovebox run --dangerously-no-sandbox`"),
    );
    refused("require = 3", "sandbox.require", "of type integer", None);
    refused("network = \"ful\"", "sandbox.network", "is `ful`", Some("did you mean `full`?"));
    refused(
        "network = \"proxy\"",
        "sandbox.network",
        "is `proxy`",
        Some("name the domains: `network = { proxy = [\"api.example.com\"] }`"),
    );
    refused("network = true", "sandbox.network", "of type boolean", None);
    refused("network = {}", "sandbox.network", "an empty table", None);
    refused("network = { hosts = [\"a.b\"] }", "sandbox.network.hosts", "unknown field", None);
    refused("limits = {}", "sandbox.limits", "unknown field `sandbox.limits`", None);
    refused(
        "network = { proxy = [] }",
        "sandbox.network.proxy",
        "names no domain",
        Some("to allow no host, write `network = \"none\"`"),
    );
}

#[test]
fn domains_are_host_names() {
    let check = |domain: &str, part: &str, help: Option<&str>| {
        refused(&format!("network = {{ proxy = [\"{domain}\"] }}"), "sandbox.network.proxy", part, help);
    };
    check("API.example.com", "capitals", Some("write `api.example.com`"));
    for address in ["10.0.0.1", "[::1]", "fe80::1", "127.0.0.0x1"] {
        check(address, "is an IP address", None);
    }
    check("a.example.com:0", "no valid port", None);
    check("a.*.com", "only `*.` in front", None);
    check("*a.com", "only `*.` in front", None);
    for other in ["https://a.example.com", "*.com", "localhost", "a..b", "-a.b", "a_b.c", "a.b.", "ä.example", "", "*."]
    {
        check(other, "is not a host name", None);
    }
    let many = (0..300).map(|n| format!("\"h{n}.example.com\"")).collect::<Vec<_>>().join(", ");
    refused(&format!("network = {{ proxy = [{many}] }}"), "sandbox.network.proxy", "300 entries", None);
}

#[test]
fn read_folders_are_absolute_and_never_the_machine_itself() {
    let check = |folder: &str, part: &str| {
        let help = part.starts_with("cannot").then_some("name the folders that are needed");
        refused(&format!("read = [\"{folder}\"]"), "sandbox.read", part, help);
    };
    for folder in [
        "/",
        "//",
        "/etc/chromium.d",
        "/tmp",
        "/home",
        "/home/glovebox",
        "/proc",
        "/proc/self",
        "/sys/",
        "/dev",
        "/dev/shm",
        "/run",
        "/run/docker",
    ] {
        check(folder, "cannot be made visible");
    }
    for folder in ["opt/data", "", "/opt/../etc", "/opt/./x", "/opt//x", "~/data", "/a\\u0000b"] {
        check(folder, "an absolute path");
    }
    assert_eq!(read("read = [\"/process\", \"/devel\", \"/tmp/x\"]").read, ["/process", "/devel", "/tmp/x"]);
}

#[test]
fn scratch_and_cache_are_subtrees_of_the_workspace() {
    for field in ["scratch", "cache"] {
        let check = |entry: &str, part: &str, help: Option<&str>| {
            refused(&format!("{field} = [\"{entry}\"]"), &format!("sandbox.{field}"), part, help);
        };
        check("target", "a folder is expected", Some("write `target/`"));
        check("./", "the whole workspace", None);
        check("../x/", "not a path of a scope", None);
        check("/tmp/", "not a path of a scope", None);
        check(".git/", "is protected", None);
        check("sub/.GIT/hooks/", "is protected", None);
        check(".github/", "is protected", None);
        check("a/.vscode/", "is protected", None);
    }
}
