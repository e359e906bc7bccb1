//! Settings that are refused before a jail exists.

use super::fixture::{Fixture, argv, never, output, shell};
use glovebox_jail::jail::{Bind, JailError};
use glovebox_record::Tier;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

fn bind(source: &str, at: &str) -> Bind {
    Bind::read_only(source.into(), at.into())
}

#[test]
fn what_would_show_the_record_the_project_or_the_kernel_is_not_bound() {
    let fixture = Fixture::new(Tier::Full);
    let text = |name: &str| fixture.at(name).to_str().unwrap().trim_end_matches('/').to_owned();
    fs::create_dir_all(fixture.at("project/scenarios")).unwrap();
    fs::create_dir(fixture.at("fine")).unwrap();
    symlink(fixture.at("project"), fixture.at("way")).unwrap();
    symlink("/proc", fixture.at("kernel")).unwrap();
    let _socket = UnixListener::bind(fixture.at("socket")).unwrap();
    let shown = |bind: Bind| fixture.open(|setting| setting.policy.binds = vec![bind]).map(drop);
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

/// The system's secrets are files directly in `/etc`, or files that not every user may read.
#[test]
fn of_etc_only_configuration_that_every_user_may_read_is_shown() {
    let folder = Path::new("/etc/glovebox-test-configuration");
    let is_made = fs::create_dir(folder).is_ok();
    let shown = |file: &Path| {
        Fixture::new(Tier::Full).open(|setting| setting.policy.configuration = vec![file.to_owned()]).map(drop)
    };
    let mut refused: Vec<PathBuf> =
        ["/etc/passwd", "/etc/shadow", "/etc", "/etc/ssl", "/etc/../etc/ssl/openssl.cnf", "/usr/bin/env"]
            .map(PathBuf::from)
            .to_vec();
    if is_made {
        let of_mode = |name: &str, mode: u32| {
            let file = folder.join(name);
            fs::write(&file, "x").unwrap();
            fs::set_permissions(&file, fs::Permissions::from_mode(mode)).unwrap();
            file
        };
        let open = of_mode("open", 0o644);
        refused.push(of_mode("secret", 0o640));
        symlink("/etc/shadow", folder.join("link")).unwrap();
        refused.push(folder.join("link"));
        let fixture = Fixture::new(Tier::Full);
        let jail = fixture.open(|setting| setting.policy.configuration = vec![open.clone()]).unwrap();
        let exit =
            jail.run(&shell("cd /etc/glovebox-test-configuration; ls -A; cat open; echo y > open"), &never()).unwrap();
        assert_eq!((output(&exit).as_str(), exit.code), ("open\nx", Some(2)), "{exit:?}");
    }
    let results: Vec<_> = refused.iter().map(|file| (file.clone(), shown(file))).collect();
    if is_made {
        fs::remove_dir_all(folder).unwrap();
    }
    for (file, result) in results {
        assert!(matches!(result, Err(JailError::Setting(_))), "{}: {result:?}", file.display());
    }
}

#[test]
fn mounts_in_the_workspace_stay_in_it_and_do_not_show_the_record() {
    let fixture = Fixture::new(Tier::Full);
    let text = |name: &str| fixture.at(name).to_str().unwrap().trim_end_matches('/').to_owned();
    fs::create_dir_all(fixture.root().join("scenarios")).unwrap();
    fs::create_dir(fixture.at("sealed")).unwrap();
    let open = |bind: Bind| fixture.open(|setting| setting.inner = vec![bind]).map(drop);
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

/// `/usr` is visible completely, so a hidden folder below it is covered by an empty folder, or the jail is refused.
#[test]
fn a_project_in_a_folder_of_the_system_cannot_be_seen() {
    let listed = |fixture: &Fixture| {
        let jail = fixture.open(|setting| setting.hidden.push("/usr/bin/../share/".into())).unwrap();
        let exit = jail.run(&shell("ls -A /usr/share; ls /usr/bin | head -1"), &never()).unwrap();
        (output(&exit), exit.stderr.head)
    };
    assert!(fs::read_dir("/usr/share").unwrap().next().is_some());
    let (text, said) = listed(&Fixture::new(Tier::Full));
    assert_eq!((text.lines().count(), said.len()), (1, 0), "{text}");
    let fixture = Fixture::new(Tier::Landlock);
    let refused = fixture.open(|setting| setting.hidden.push("/usr/share".into())).map(drop);
    assert!(matches!(refused, Err(JailError::Setting(_))));
}

/// A host that is not in the list is refused without any lookup or connection, and the refusal is recorded.
#[test]
fn a_proxy_stands_where_commands_are_told() {
    let fixture = Fixture::new(Tier::Full);
    let jail = fixture.open(|setting| setting.network = "proxy:api.example.com".parse().unwrap()).unwrap();
    let text = "exec 3<>/dev/tcp/127.0.0.1/3128; printf 'CONNECT example.com:443 HTTP/1.1\\r\\nHost: example.com:443\\r\\n\\r\\n' >&3; head -1 <&3; echo $HTTPS_PROXY";
    let exit = jail.run(&argv(&["bash", "-c", text]), &never()).unwrap();
    let said = output(&exit);
    assert!(said.starts_with("HTTP/1.1 403") && said.ends_with("http://127.0.0.1:3128\n"), "{said} {exit:?}");
    let traffic = jail.end().unwrap().traffic.unwrap();
    assert_eq!((traffic.traffic.refused(), traffic.refusals.len()), (1, 1), "{traffic:?}");
}
