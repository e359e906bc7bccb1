//! Tests of needs: which texts are one, what two needs ask for together, and what a machine lacks.

use crate::placement::{Arch, ENTRIES_MAX, LABEL_BYTES_MAX, Label, MachineFacts, Need};
use crate::tier::Tier;

fn need(text: &str) -> Need {
    Need::parse(text).unwrap()
}

#[test]
fn a_need_is_a_list_of_labels_arch_tier_and_programs() {
    for (text, entries) in [
        ("", ""),
        (" ", ""),
        ("gpu", "gpu"),
        (" ssd ,gpu, gpu", "gpu, ssd"),
        ("arch=arm64", "arch=aarch64"),
        ("arch = amd64, arch=x86_64", "arch=x86_64"),
        ("tier=bwrap, tier=landlock", "tier=bwrap"),
        ("tier=full,zone.eu-1_a,arch=aarch64", "zone.eu-1_a, arch=aarch64, tier=full"),
        ("1", "1"),
        ("program=g++, tier=full, gpu, program = Rscript,program=g++", "gpu, tier=full, program=Rscript, program=g++"),
    ] {
        let found = need(text);
        assert_eq!((found.to_string().as_str(), found.is_empty()), (entries, entries.is_empty()), "{text}");
        assert_eq!(need(entries), found);
        let json = serde_json::to_string(&found).unwrap();
        assert_eq!(serde_json::from_str::<Need>(&json).unwrap(), found, "{json}");
    }
    assert_eq!(serde_json::to_string(&need("gpu, arch=arm64")).unwrap(), r#"["gpu","arch=aarch64"]"#);
    assert!(serde_json::from_str::<Need>(r#"["GPU"]"#).is_err() && serde_json::from_str::<Label>("\"arm64\"").is_err());
}

#[test]
fn what_is_wrong_is_named_with_its_place() {
    let long = "a".repeat(LABEL_BYTES_MAX + 1);
    let many = vec!["x"; ENTRIES_MAX + 1].join(",");
    let form = "1 to 63 characters of a-z, 0-9, `-`, `_` and `.` are expected, the first a letter or a digit";
    let of_long = format!("`{long}` is not a label: {form}");
    for (text, at, message) in [
        ("GPU", "GPU", "`GPU` is not a label"),
        ("ok, -x", "-x", form),
        ("two words", "two words", "`two words` is not a label"),
        (long.as_str(), long.as_str(), of_long.as_str()),
        ("gpu,,x", "", "an entry is empty"),
        ("gpu,", "", "an entry is empty"),
        ("arm64", "arm64", "`arm64` is not a label: `arch=aarch64` is expected"),
        ("gpu, full", "full", "`full` is not a label: `tier=full` is expected"),
        ("os=linux", "os=linux", "unknown key `os`: `arch`, `program` or `tier` is expected"),
        ("program=/bin/sh", "program=/bin/sh", "`/bin/sh` is not the name of a program"),
        ("program=..", "program=..", "`..` is not the name of a program"),
        ("program=", "program=", "`` is not the name of a program"),
        ("arch=sparc", "arch=sparc", "unknown architecture `sparc`: `x86_64` or `aarch64` is expected"),
        ("arch=", "arch=", "unknown architecture ``"),
        ("tier=unconfined", "tier=unconfined", "unknown tier `unconfined`"),
        ("arch=amd64, arch=arm64", "arch=arm64", "no machine has both `arch=x86_64` and `arch=aarch64`"),
        (many.as_str(), "x", "there are more than 16 entries"),
    ] {
        let error = Need::parse(text).unwrap_err();
        assert_eq!(&text[error.range.clone()], at, "{text}");
        assert!(error.to_string().contains(message), "{text}: {error}");
    }
    assert_eq!(Need::parse("gpu,,x").unwrap_err().range, 4..4);
    assert_eq!(need(&vec!["x"; ENTRIES_MAX].join(",")).labels.len(), 1);
}

#[test]
fn two_needs_ask_for_all_of_both() {
    let both = |one: &str, other: &str| need(one).and(&need(other)).map(|both| both.to_string());
    assert_eq!(both("gpu, tier=full", "arch=arm64, tier=landlock").unwrap(), "gpu, arch=aarch64, tier=full");
    assert_eq!(both("", "gpu").unwrap(), "gpu");
    assert_eq!(both("program=a, program=b", "program=b, program=c").unwrap(), "program=a, program=b, program=c");
    assert_eq!(both("arch=arm64", "arch=aarch64").unwrap(), "arch=aarch64");
    let conflict = both("arch=arm64", "arch=amd64").unwrap_err();
    assert_eq!((conflict.0, conflict.1), (Arch::Arm, Arch::X86));
}

#[test]
fn a_machine_lacks_what_it_does_not_have() {
    let machine = MachineFacts {
        labels: ["gpu", "ssd"].map(|label| label.parse().unwrap()).into(),
        arch: Some(Arch::X86),
        tier: Some(Tier::Bwrap),
        programs: [("cargo", true), ("go", false)].map(|(name, is_here)| (name.parse().unwrap(), is_here)).into(),
    };
    let lacking = |machine: &MachineFacts, text: &str| -> Vec<String> {
        machine.lacking(&need(text)).iter().map(ToString::to_string).collect()
    };
    for met in ["", "gpu", "ssd, gpu, arch=amd64, tier=bwrap", "tier=landlock", "program=cargo"] {
        assert!(lacking(&machine, met).is_empty(), "{met}");
    }
    assert_eq!(
        lacking(&machine, "gpu, tpu, arch=arm64, tier=full"),
        ["label `tpu`", "arch `aarch64` (this machine is `x86_64`)", "tier `full` (this machine has `bwrap`)"]
    );
    let programs = "program=cargo, program=go, program=zig";
    assert_eq!(lacking(&machine, programs), ["program `go`", "program `zig`"]);
    assert_eq!(machine.unknown(&need(programs)), ["zig".parse().unwrap()].into());
    let bare = MachineFacts { tier: Some(Tier::Unconfined), ..MachineFacts::default() };
    assert_eq!(lacking(&bare, "tier=landlock"), ["tier `landlock` (this machine has `unconfined`)"]);
    assert_eq!(lacking(&MachineFacts::default(), "tier=landlock, gpu").len(), 2);
}
