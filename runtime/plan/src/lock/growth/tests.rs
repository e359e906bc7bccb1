//! Growth: a table of single changes, and random updates against an oracle that lists what lines allow one by one.

use super::*;
use crate::lock::LockSource;
use crate::lock::line::grant_lines;
use glovebox_host::grants::{FileTier, Grants};
use glovebox_pipeline::ir::Role;
use glovebox_record::path::ScopePath;
use glovebox_record::scope::Entry;
use glovebox_record::{Digest, LimitName, LimitSettings};
use glovebox_signing::trust::Signer;
use proptest::prelude::*;
use std::collections::BTreeSet;

const PATHS: [&str; 7] = ["a", "a/b", "a/b/c", "a/d", "ab", "e", "e/f"];
const COMMANDS: [&str; 5] = ["cargo", "cargo test", "cargo test --lib", "git", "git status"];
const IMPORTS: [&str; 5] = [
    "glovebox:plugin/control",
    "glovebox:plugin/exec",
    "glovebox:plugin/llm",
    "wasi:filesystem/types",
    "wasi:cli/stdout",
];

/// Keys as digits. Nobody trusts the last one.
const KEYS: [u8; 3] = [1, 2, 3];

fn signer(key: u8) -> Signer {
    let text = format!("sha256:{} key {key}", key.to_string().repeat(64));
    text.parse().expect("a signer")
}

fn plugin(wants: &Grants, offered: &Grants) -> LockedPlugin {
    LockedPlugin {
        name: "a.one".to_owned(),
        version: None,
        source: LockSource::File("a.wasm".to_owned()),
        digest: Digest::ZERO,
        signer: None,
        bytes: 1,
        world: "handler".to_owned(),
        imports: Vec::new(),
        wants: grant_lines(wants, Role::Builder),
        offered: grant_lines(offered, Role::Builder),
        grants: grant_lines(&wants.intersect(offered), Role::Builder),
    }
}

#[test]
fn another_signer_is_growth_and_a_first_one_is_not() {
    let with = |signer| LockedPlugin { signer, ..plugin(&Grants::default(), &Grants::default()) };
    let found = |before, after| growth(&with(before), &with(after)).iter().map(ToString::to_string).collect::<Vec<_>>();
    assert_eq!(found(None, Some(signer(1))).len(), 0);
    assert_eq!(found(Some(signer(1)), Some(signer(1))).len(), 0);
    let renamed = Signer { name: "another name".to_owned(), ..signer(1) };
    assert_eq!(found(Some(signer(1)), Some(renamed)).len(), 0);
    assert!(found(Some(signer(1)), Some(signer(2)))[0].contains("is signed by key 2"));
    assert!(found(Some(signer(1)), None)[0].contains("is not signed by a trusted key any more"));
}

#[test]
fn single_changes() {
    let check = |before: &[&str], after: &[&str], expected: &[&str]| {
        let lines = |lines: &[&str]| lines.iter().map(|line| (*line).to_owned()).collect::<Vec<_>>();
        let base = plugin(&Grants::default(), &Grants::default());
        let (before, after) =
            (LockedPlugin { offered: lines(before), ..base.clone() }, LockedPlugin { offered: lines(after), ..base });
        let found: Vec<String> = growth(&before, &after).iter().map(ToString::to_string).collect();
        assert_eq!(found.len(), expected.len(), "{found:?}");
        for (found, expected) in found.iter().zip(expected) {
            assert!(found.contains(expected), "{found}: {expected}");
        }
    };
    check(&["read src/"], &["read src/a/", "read src/b"], &[]);
    check(&["read src/"], &["read ./"], &["is offered `read ./` in `glovebox.toml`"]);
    check(&["run cargo"], &["run cargo test"], &[]);
    check(&["run cargo test"], &["run cargo"], &["`run cargo`"]);
    check(&["limit turns 5"], &["limit turns 6"], &["`limit turns 6`"]);
    check(&["limit turns 5"], &[], &["no longer has the `limit turns 5`"]);
    check(&[], &["limit turns 5"], &["`limit turns 5`"]);
    check(&["a line of another version"], &["a line of another version"], &[]);
}

#[test]
fn limits_of_the_author_only_lower() {
    let base = plugin(&Grants::default(), &Grants::default());
    let limited = |line: &str| LockedPlugin { wants: vec![line.to_owned()], ..base.clone() };
    let unlimited = LockedPlugin { wants: Vec::new(), ..base.clone() };
    assert_eq!(growth(&unlimited, &limited("limit turns 5")), []);
    assert_eq!(growth(&limited("limit turns 5"), &unlimited), [Growth::Unlimited(Line::Limit(LimitName::Turns, 5))]);
    assert_eq!(growth(&limited("limit turns 5"), &limited("limit turns 6")).len(), 1);
}

#[test]
fn imports_and_worlds() {
    let base = plugin(&Grants::default(), &Grants::default());
    let importing = |names: &[&str]| LockedPlugin {
        imports: names.iter().map(|name| (*name).to_owned()).collect(),
        ..base.clone()
    };
    let before = importing(&["glovebox:plugin/files@0.1.0"]);
    assert_eq!(growth(&before, &importing(&["glovebox:plugin/files@0.1.1", "wasi:io/poll@0.2.6"])), []);
    let grown = growth(&before, &importing(&["glovebox:plugin/exec@0.1.0"]));
    assert_eq!(grown, [Growth::Import("glovebox:plugin/exec@0.1.0".to_owned())]);
    let other = LockedPlugin { world: "agent".to_owned(), ..base.clone() };
    assert_eq!(growth(&base, &other), [Growth::World("agent".to_owned())]);
}

/// Returns everything that a plugin may do, one concrete request each.
fn requests(plugin: &LockedPlugin) -> BTreeSet<String> {
    let mut allowed: BTreeSet<String> = BTreeSet::new();
    let lists = [("granted", &plugin.grants), ("offered", &plugin.offered), ("wanted", &plugin.wants)];
    for (list, lines) in lists {
        for line in lines {
            let (word, operand) = line.split_once(' ').unwrap_or((line, ""));
            let names: Vec<String> = match word {
                "read" | "write" => {
                    let entry = Entry::parse(operand).expect("a path");
                    let paths = PATHS.iter().filter(|path| entry.contains(&ScopePath::parse(path).expect("a path")));
                    paths.map(|path| (*path).to_owned()).collect()
                }
                "run" => {
                    let starts =
                        |command: &&&str| operand == "*" || format!("{command} ").starts_with(&format!("{operand} "));
                    COMMANDS.iter().filter(starts).map(|command| (*command).to_owned()).collect()
                }
                "filesystem" => {
                    let tiers: &[&str] = match operand {
                        "posix" => &["workspace", "posix"],
                        "workspace" => &["workspace"],
                        _ => &[],
                    };
                    tiers.iter().map(|tier| (*tier).to_owned()).collect()
                }
                _ => vec![operand.to_owned()],
            };
            allowed.extend(names.into_iter().filter(|_| word != "limit").map(|name| format!("{list} {word} {name}")));
        }
        // Without a limit, the amount has no bound that the lock file knows.
        let limit = lines.iter().find_map(|line| line.strip_prefix("limit turns ")?.parse::<u64>().ok());
        allowed.extend((0..=limit.unwrap_or(9)).map(|turns| format!("{list} turns {turns}")));
    }
    allowed.extend(
        plugin.imports.iter().filter(|name| !name.starts_with("wasi:cli/")).map(|name| format!("import {name}")),
    );
    allowed.insert(format!("world {}", plugin.world));
    // Without a signer, anyone may have made the bytes.
    let makers = KEYS.iter().filter(|key| plugin.signer.as_ref().is_none_or(|it| it.key == signer(**key).key));
    allowed.extend(makers.map(|key| format!("made by {key}")));
    allowed
}

fn grants() -> impl Strategy<Value = Grants> {
    let entries = || {
        let entry = (0..PATHS.len(), any::<bool>()).prop_map(|(path, is_folder)| {
            let slash = if is_folder { "/" } else { "" };
            Entry::parse(&format!("{}{slash}", PATHS[path])).expect("a path")
        });
        proptest::collection::vec(prop_oneof![8 => entry, 1 => Just(Entry::whole())], 0..4)
    };
    let command = prop_oneof![8 => (0..COMMANDS.len()).prop_map(|n| COMMANDS[n]), 1 => Just("*")];
    let commands = proptest::collection::vec(command.prop_map(str::to_owned), 0..3);
    let tier = prop_oneof![Just(FileTier::Workspace), Just(FileTier::Posix)];
    (tier, entries(), entries(), commands, any::<bool>(), proptest::option::of(0u64..9)).prop_map(
        |(filesystem, read, write, commands, model, turns)| Grants {
            filesystem,
            read,
            write,
            commands,
            model,
            limits: LimitSettings::from_iter(turns.map(|turns| (LimitName::Turns, turns))),
        },
    )
}

fn plugins() -> impl Strategy<Value = LockedPlugin> {
    let imports = proptest::sample::subsequence(IMPORTS.to_vec(), 0..=IMPORTS.len());
    let world = prop_oneof![6 => Just("handler"), 1 => Just("agent")];
    let key = proptest::option::of(0..KEYS.len() - 1);
    (grants(), grants(), imports, world, key).prop_map(|(wants, offered, imports, world, key)| LockedPlugin {
        signer: key.map(|key| signer(KEYS[key])),
        imports: imports.into_iter().map(str::to_owned).collect(),
        world: world.to_owned(),
        ..plugin(&wants, &offered)
    })
}

/// An update as they are: one list of an earlier plugin is replaced by that of another one.
fn updates() -> impl Strategy<Value = (LockedPlugin, LockedPlugin)> {
    (plugins(), plugins(), 0..8usize).prop_map(|(before, other, change)| {
        let kept = before.clone();
        let after = match change {
            0 => LockedPlugin { wants: other.wants, ..kept },
            1 => LockedPlugin { offered: other.offered, ..kept },
            2 => LockedPlugin { grants: other.grants, ..kept },
            3 => LockedPlugin { imports: other.imports, ..kept },
            4 => LockedPlugin { world: other.world, ..kept },
            5 => kept,
            6 => LockedPlugin { signer: other.signer, ..kept },
            _ => other,
        };
        (before, after)
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn growth_is_never_unseen((before, after) in updates()) {
        let (earlier, now) = (requests(&before), requests(&after));
        let new: Vec<&String> = now.difference(&earlier).collect();
        let found = growth(&before, &after);
        prop_assert!(new.is_empty() || !found.is_empty(), "unseen: {new:?}");
        prop_assert!(before != after || found.is_empty(), "nothing changed, but: {found:?}");
    }
}
