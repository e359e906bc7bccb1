//! Tests which parts of a capability other capabilities cover.

use super::*;

fn entry(text: &str) -> Entry {
    Entry::parse(text).unwrap()
}

fn read(text: &str, except: &[&str]) -> Capability {
    Capability::Read(Region { entry: entry(text), except: except.iter().map(|text| entry(text)).collect() })
}

fn argv(text: &str) -> Capability {
    Capability::Argv(CommandWords(text.split(' ').map(str::to_owned).collect()))
}

fn minus(capability: &Capability, known: &[Capability]) -> Vec<String> {
    capability.minus(known.iter()).iter().map(ToString::to_string).collect()
}

#[test]
fn what_another_capability_covers_is_not_reported() {
    let reach = |host: &str| Capability::Reach(host.parse().unwrap());
    let machine = |folder: &str| Capability::ReadMachine(MachineFolder(folder.to_owned()));
    let shell = |text: &str| Capability::Shell(text.to_owned());
    for (capability, known, is_news) in [
        (read("src/a.rs", &[]), read("src/", &[]), false),
        (read("src/", &[]), read("src/a.rs", &[]), true),
        (read("src", &[]), read("src/", &[]), true),
        (argv("cargo test"), argv("cargo"), false),
        (argv("cargo"), argv("cargo test"), true),
        (argv("cargotest"), argv("cargo"), true),
        (shell("cargo ; evil …"), argv("cargo"), true),
        (shell("cargo …"), argv("cargo"), true),
        (argv("cargo"), Capability::AnyCommand, false),
        (shell("x"), Capability::AnyCommand, false),
        (Capability::AnyCommand, argv("cargo"), true),
        (reach("a.example.com"), reach("*.example.com"), false),
        (reach("example.com"), reach("*.example.com"), true),
        (reach("a.example.com:8443"), reach("*.example.com"), true),
        (reach("a.example.com"), Capability::FullNetwork, false),
        (Capability::FullNetwork, reach("*.example.com"), true),
        (machine("/opt/data/x"), machine("/opt/data"), false),
        (machine("/opt/database"), machine("/opt/data"), true),
        (Capability::SandboxTier(Tier::Full), Capability::SandboxTier(Tier::Landlock), false),
        (Capability::SandboxTier(Tier::Landlock), Capability::SandboxTier(Tier::Full), true),
        (Capability::Spend(Resource::Turns, 5), Capability::Spend(Resource::Turns, 5), false),
        (Capability::Spend(Resource::Turns, 6), Capability::Spend(Resource::Turns, 5), true),
        (Capability::Spend(Resource::Turns, 1), Capability::Spend(Resource::Steps, 5), true),
    ] {
        assert_eq!(
            !minus(&capability, std::slice::from_ref(&known)).is_empty(),
            is_news,
            "{capability} beside {known}"
        );
    }
}

#[test]
fn a_path_that_was_hidden_is_reported_as_far_as_it_is_open_now() {
    let open = read("./", &[".git/"]);
    let old = read("./", &[".git/", "scripts/scenarios/"]);
    assert_eq!(minus(&open, std::slice::from_ref(&old)), ["read scripts/scenarios/"]);
    assert!(minus(&old, std::slice::from_ref(&open)).is_empty());
    // If another node could already read the hidden part, nothing is new.
    assert!(minus(&open, &[old.clone(), read("scripts/", &[])]).is_empty());
    assert_eq!(minus(&open, &[old.clone(), read("scripts/scenarios/a/", &[])]), ["read scripts/scenarios/"]);
    assert_eq!(minus(&read("scripts/scenarios/a/", &[]), &[old]), ["read scripts/scenarios/a/"]);
}

#[test]
fn thousands_of_regions_that_hide_each_other_take_no_time_to_speak_of() {
    let names: Vec<String> = (0..400).map(|number| format!("d{number}/")).collect();
    let known: Vec<Capability> = names.iter().map(|name| read("./", &[name, ".git/"])).collect();
    assert_eq!(minus(&read("./", &[]), &known), ["read .git/"]);
}
