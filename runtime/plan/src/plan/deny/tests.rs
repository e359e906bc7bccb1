//! Which capabilities a rule refuses, and which texts are not a rule.

use super::*;
use glovebox_record::HookKind;

fn entry(text: &str) -> Entry {
    Entry::parse(text).unwrap()
}

fn region(text: &str, except: &[&str]) -> Region {
    Region { entry: entry(text), except: except.iter().map(|text| entry(text)).collect() }
}

#[test]
fn a_rule_meets_whatever_has_anything_of_it() {
    let argv = |text: &str| Capability::Argv(CommandWords(text.split(' ').map(str::to_owned).collect()));
    let shell = |text: &str| Capability::Shell(text.to_owned());
    let reach = |host: &str| Capability::Reach(host.parse().unwrap());
    let machine = |folder: &str| Capability::ReadMachine(MachineFolder(folder.to_owned()));
    for (rule, capability, is_met) in [
        ("run=*", shell("true"), true),
        ("run=*", argv("cargo test"), true),
        ("run=*", Capability::Hook(HookKind::Pre, "true".to_owned()), true),
        ("run=cargo publish", Capability::Hook(HookKind::Post, "cargo publish".to_owned()), true),
        ("run=*", Capability::Model, false),
        ("run=cargo publish", Capability::AnyCommand, true),
        ("run=cargo publish", argv("cargo"), true),
        ("run=cargo publish", argv("cargo publish --dry-run"), true),
        ("run=cargo publish", argv("cargo --locked"), true),
        ("run=cargo publish", argv("/usr/bin/cargo +nightly publish"), true),
        ("run=cargo publish", argv("cargo test"), false),
        ("run=cargo publish", argv("npm"), false),
        ("run=cargo publish", shell("cd x && FOO=1 cargo --locked 'publish' | tee log"), true),
        ("run=cargo publish", shell("sh -c \"$(cargo publish)\""), true),
        ("run=cargo publish", shell("cargo test && npm publish"), false),
        ("reach=*", reach("a.example.com"), true),
        ("reach=*", Capability::FullNetwork, true),
        ("reach=a.example.com", Capability::FullNetwork, true),
        ("reach=a.example.com", reach("*.example.com"), true),
        ("reach=*.example.com", reach("a.b.example.com:8443"), true),
        ("reach=*.example.com", reach("example.com"), false),
        ("reach=example.com", reach("badexample.com"), false),
        ("network-full", reach("*.example.com"), false),
        ("network-full", Capability::FullNetwork, true),
        ("write=src/", Capability::Write(region("src/a/b.rs", &[])), true),
        ("write=src/a/b.rs", Capability::Write(region("src/", &[])), true),
        ("write=src", Capability::Write(region("src/a.rs", &[])), true),
        ("write=./src/", Capability::Write(region("./", &[])), true),
        ("write=*", Capability::Write(region("x", &[])), true),
        ("write=src/", Capability::Write(region("srcs/", &[])), false),
        ("write=src/", Capability::Read(region("src/", &[])), false),
        ("write=target/", Capability::Cache(entry("target/x/")), true),
        ("read=secrets/", Capability::Read(region("./", &[".git/"])), true),
        ("read=secrets/", Capability::Read(region("./", &["secrets/"])), false),
        ("read=secrets/", Capability::Read(region("./", &["secrets/a/"])), true),
        ("read=secrets/a/b", Capability::Read(region("./", &["secrets/"])), false),
        ("read=/opt/data/", machine("/opt/data/x"), true),
        ("read=/opt/data", machine("/opt"), true),
        ("read=/opt/data", machine("/opt/database"), false),
        ("read=/", machine("/opt"), true),
        ("plugin=*", Capability::Plugin("acme.review".to_owned()), true),
        ("plugin=acme.other", Capability::Plugin("acme.review".to_owned()), false),
        ("model", Capability::Model, true),
    ] {
        assert_eq!(Deny::parse(rule).unwrap().meets(&capability), is_met, "{rule} and {capability}");
    }
}

#[test]
fn what_is_no_rule_says_what_was_meant() {
    let check = |rule: &str, message: &str, help: Option<&str>| {
        let error = Deny::parse(rule).unwrap_err();
        assert!(error.to_string().contains(message), "{rule}: {error}");
        assert_eq!(error.help().as_deref(), help, "{rule}");
    };
    check("wirte=src/", "`wirte=src/` is not a rule", Some("did you mean `write=src/`?"));
    check("widend", "is not a rule", Some("did you mean `widened`?"));
    check("sorcery", "is not a rule", None);
    check("", "is not a rule", None);
    check("run", "`run=*` or `run=` and the first words", None);
    check("write=", "needs a value", None);
    check("model=gpt", "takes no value", None);
    check("write=../x", "the rule `write=../x`", None);
    check("write=/etc", "the rule `write=/etc`", None);
    check("reach=EXAMPLE.com", "capitals", None);
}
