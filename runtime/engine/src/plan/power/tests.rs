//! What is beyond a power and what is not.

use super::*;

fn entry(text: &str) -> Entry {
    Entry::parse(text).unwrap()
}

fn read(text: &str, except: &[&str]) -> Power {
    Power::Read(Region { entry: entry(text), except: except.iter().map(|text| entry(text)).collect() })
}

fn argv(text: &str) -> Power {
    Power::Argv(text.split(' ').map(str::to_owned).collect())
}

fn beyond(power: &Power, known: &[Power]) -> Vec<String> {
    power.beyond(known.iter()).iter().map(ToString::to_string).collect()
}

#[test]
fn what_lies_within_another_power_is_no_news() {
    let reach = |host: &str| Power::Reach(host.to_owned());
    let machine = |folder: &str| Power::Machine(folder.to_owned());
    let shell = |text: &str| Power::Shell(text.to_owned());
    for (power, known, is_news) in [
        (read("src/a.rs", &[]), read("src/", &[]), false),
        (read("src/", &[]), read("src/a.rs", &[]), true),
        (read("src", &[]), read("src/", &[]), true),
        (argv("cargo test"), argv("cargo"), false),
        (argv("cargo"), argv("cargo test"), true),
        (argv("cargotest"), argv("cargo"), true),
        (shell("cargo ; evil …"), argv("cargo"), true),
        (shell("cargo …"), argv("cargo"), true),
        (argv("cargo"), Power::AnyCommand, false),
        (shell("x"), Power::AnyCommand, false),
        (Power::AnyCommand, argv("cargo"), true),
        (reach("a.example.com"), reach("*.example.com"), false),
        (reach("example.com"), reach("*.example.com"), true),
        (reach("a.example.com:8443"), reach("*.example.com"), true),
        (reach("a.example.com"), Power::FullNetwork, false),
        (Power::FullNetwork, reach("*.example.com"), true),
        (machine("/opt/data/x"), machine("/opt/data"), false),
        (machine("/opt/database"), machine("/opt/data"), true),
        (Power::Walls(Tier::Full), Power::Walls(Tier::Landlock), false),
        (Power::Walls(Tier::Landlock), Power::Walls(Tier::Full), true),
        (Power::Spend("turns", 5), Power::Spend("turns", 5), false),
        (Power::Spend("turns", 6), Power::Spend("turns", 5), true),
        (Power::Spend("turns", 1), Power::Spend("steps", 5), true),
    ] {
        assert_eq!(!beyond(&power, std::slice::from_ref(&known)).is_empty(), is_news, "{power} beside {known}");
    }
}

#[test]
fn what_was_hidden_is_told_as_far_as_it_is_open_now() {
    let open = read("./", &[".git/"]);
    let old = read("./", &[".git/", "scripts/scenarios/"]);
    assert_eq!(beyond(&open, std::slice::from_ref(&old)), ["read scripts/scenarios/"]);
    assert!(beyond(&old, std::slice::from_ref(&open)).is_empty());
    // Somebody else could read it: together nothing is new.
    assert!(beyond(&open, &[old.clone(), read("scripts/", &[])]).is_empty());
    assert_eq!(beyond(&open, &[old.clone(), read("scripts/scenarios/a/", &[])]), ["read scripts/scenarios/"]);
    assert_eq!(beyond(&read("scripts/scenarios/a/", &[]), &[old]), ["read scripts/scenarios/a/"]);
}

#[test]
fn thousands_of_regions_that_hide_each_other_take_no_time_to_speak_of() {
    let names: Vec<String> = (0..400).map(|number| format!("d{number}/")).collect();
    let known: Vec<Power> = names.iter().map(|name| read("./", &[name, ".git/"])).collect();
    assert_eq!(beyond(&read("./", &[]), &known), ["read .git/"]);
}
