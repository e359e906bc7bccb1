//! What is refused before a jail exists.

use crate::place::Place;
use glovebox_sandbox::jail::{Bind, Jail, JailError, Network, Tier};
use std::fs;
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;

fn bind(source: &str, at: &str) -> Bind {
    Bind { source: source.to_owned(), at: at.to_owned(), writable: false, optional: false }
}

#[test]
fn what_would_show_the_record_the_project_or_the_kernel_is_not_bound() {
    let place = Place::new(Tier::Full);
    let text = |name: &str| place.at(name).to_str().unwrap().trim_end_matches('/').to_owned();
    fs::create_dir_all(place.at("project/scenarios")).unwrap();
    fs::create_dir(place.at("fine")).unwrap();
    symlink(place.at("project"), place.at("way")).unwrap();
    symlink("/proc", place.at("kernel")).unwrap();
    let _socket = UnixListener::bind(place.at("socket")).unwrap();
    let shown = |bind: Bind| place.open(|setting| setting.policy.binds = vec![bind]).map(drop);
    for source in [
        "/".to_owned(),
        "/proc".to_owned(),
        "/proc/1".to_owned(),
        "/sys".to_owned(),
        "/dev".to_owned(),
        "/run".to_owned(),
        text(""),
        text("attempt"),
        text("project"),
        text("project/scenarios"),
        text("way"),
        text("way/scenarios"),
        text("kernel"),
        text("socket"),
        text("missing"),
        "relative".to_owned(),
        format!("{}/../project", text("fine")),
    ] {
        for at in [source.as_str(), "/opt/elsewhere"] {
            let refused = shown(bind(&source, at));
            assert!(matches!(refused, Err(JailError::Setting(_))), "{source} at {at}: {refused:?}");
        }
    }
    for at in ["/", "/etc", "/etc/passwd", "/proc/x", &format!("{}/sub", text("project")), "/opt/../etc"] {
        assert!(matches!(shown(bind(&text("fine"), at)), Err(JailError::Setting(_))), "{at}");
    }
    assert!(shown(bind(&text("fine"), &text("fine"))).is_ok());
    assert!(shown(Bind { optional: true, ..bind(&text("missing"), "/opt/x") }).is_ok());
}

#[test]
fn mounts_in_the_workspace_stay_in_it_and_do_not_show_the_record() {
    let place = Place::new(Tier::Full);
    let text = |name: &str| place.at(name).to_str().unwrap().trim_end_matches('/').to_owned();
    fs::create_dir_all(place.root().join("scenarios")).unwrap();
    fs::create_dir(place.at("sealed")).unwrap();
    let open = |bind: Bind| place.open(|setting| setting.inner = vec![bind]).map(drop);
    assert!(open(bind(&text("sealed"), &text("project/scenarios"))).is_ok());
    for (source, at) in [
        (text("sealed"), text("project")),
        (text("sealed"), text("elsewhere")),
        (text("sealed"), text("project/../elsewhere")),
        (text(""), text("project/scenarios")),
        (text("attempt"), text("project/scenarios")),
        ("/proc".to_owned(), text("project/scenarios")),
    ] {
        assert!(matches!(open(bind(&source, &at)), Err(JailError::Setting(_))), "{source} at {at}");
    }
}

#[test]
fn a_project_in_a_folder_of_the_system_is_refused() {
    let place = Place::new(Tier::Full);
    let mut setting = place.setting();
    setting.hidden.push("/usr/share".into());
    assert!(matches!(Jail::open(&setting, place.source()), Err(JailError::Setting(_))));
}

#[test]
fn a_bad_list_of_domains_is_refused() {
    let place = Place::new(Tier::Full);
    let open = |domain: &str| place.open(|setting| setting.network = Network::Proxy(vec![domain.to_owned()])).map(drop);
    assert!(matches!(open("*.com"), Err(JailError::Setting(_))));
    assert!(open("api.example.com").is_ok());
}
