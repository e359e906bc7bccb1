//! Which powers a rule meets, and what is no rule.

use super::*;

fn entry(text: &str) -> Entry {
    Entry::parse(text).unwrap()
}

fn region(text: &str, except: &[&str]) -> Region {
    Region { entry: entry(text), except: except.iter().map(|text| entry(text)).collect() }
}

#[test]
fn a_rule_meets_whatever_has_anything_of_it() {
    let argv = |text: &str| Power::Argv(text.split(' ').map(str::to_owned).collect());
    let shell = |text: &str| Power::Shell(text.to_owned());
    let reach = |host: &str| Power::Reach(host.to_owned());
    let machine = |folder: &str| Power::Machine(folder.to_owned());
    for (rule, power, is_met) in [
        ("run=*", shell("true"), true),
        ("run=*", argv("cargo test"), true),
        ("run=*", Power::Model, false),
        ("run=cargo publish", Power::AnyCommand, true),
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
        ("reach=*", Power::FullNetwork, true),
        ("reach=a.example.com", Power::FullNetwork, true),
        ("reach=a.example.com", reach("*.example.com"), true),
        ("reach=*.example.com", reach("a.b.example.com:8443"), true),
        ("reach=*.example.com", reach("example.com"), false),
        ("reach=example.com", reach("badexample.com"), false),
        ("network-full", reach("*.example.com"), false),
        ("network-full", Power::FullNetwork, true),
        ("write=src/", Power::Write(region("src/a/b.rs", &[])), true),
        ("write=src/a/b.rs", Power::Write(region("src/", &[])), true),
        ("write=src", Power::Write(region("src/a.rs", &[])), true),
        ("write=./src/", Power::Write(region("./", &[])), true),
        ("write=*", Power::Write(region("x", &[])), true),
        ("write=src/", Power::Write(region("srcs/", &[])), false),
        ("write=src/", Power::Read(region("src/", &[])), false),
        ("write=target/", Power::Cache(entry("target/x/")), true),
        ("read=secrets/", Power::Read(region("./", &[".git/"])), true),
        ("read=secrets/", Power::Read(region("./", &["secrets/"])), false),
        ("read=secrets/", Power::Read(region("./", &["secrets/a/"])), true),
        ("read=secrets/a/b", Power::Read(region("./", &["secrets/"])), false),
        ("read=/opt/data/", machine("/opt/data/x"), true),
        ("read=/opt/data", machine("/opt"), true),
        ("read=/opt/data", machine("/opt/database"), false),
        ("read=/", machine("/opt"), true),
        ("plugin=*", Power::Plugin("acme.review".to_owned()), true),
        ("plugin=acme.other", Power::Plugin("acme.review".to_owned()), false),
        ("model", Power::Model, true),
    ] {
        assert_eq!(Deny::parse(rule).unwrap().meets(&power), is_met, "{rule} and {power}");
    }
}

#[test]
fn what_is_no_rule_says_what_was_meant() {
    let check = |rule: &str, message: &str, help: Option<&str>| {
        let error = Deny::parse(rule).unwrap_err();
        assert!(error.to_string().contains(message), "{rule}: {error}");
        assert_eq!(error.help().as_deref(), help, "{rule}");
    };
    check("wirte=src/", "`wirte=src/` is no rule", Some("did you mean `write=src/`?"));
    check("widend", "is no rule", Some("did you mean `widened`?"));
    check("sorcery", "is no rule", None);
    check("", "is no rule", None);
    check("run", "`run=*` or the first words", None);
    check("write=", "says nothing it is about", None);
    check("model=gpt", "stands alone", None);
    check("write=../x", "the rule `write=../x`", None);
    check("write=/etc", "the rule `write=/etc`", None);
    check("reach=EXAMPLE.com", "capitals", None);
}
