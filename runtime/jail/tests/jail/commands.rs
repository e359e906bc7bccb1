//! Commands: program, environment, input, working directory, session, and the stored part of their output.

use super::fixture::{argv, each, never, output, shell};
use glovebox_jail::exec::{Command, ExecError};
use glovebox_jail::jail::Bind;
use glovebox_jail::jail::ExecPolicy;
use glovebox_record::path::ScopePath;
use glovebox_record::{CommandEnding, Tier};
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::time::Duration;

#[test]
fn an_exit_code_a_signal_and_the_two_streams_are_told_apart() {
    each(|fixture| {
        let jail = fixture.jail();
        let exit = jail.run(&shell("echo out; echo err >&2; exit 3"), &never()).unwrap();
        assert_eq!((exit.how, exit.code), (CommandEnding::Exited, Some(3)));
        assert_eq!((output(&exit).as_str(), exit.stderr.head.as_slice()), ("out\n", b"err\n".as_slice()));
        let exit = jail.run(&shell("kill -SEGV $$"), &never()).unwrap();
        assert_eq!((exit.how, exit.code), (CommandEnding::Signaled, Some(11)));
        assert_eq!(jail.end().unwrap().commands, 2);
    });
}

#[test]
fn a_flood_is_drained_and_only_head_and_tail_are_kept() {
    each(|fixture| {
        let policy = ExecPolicy { output_bytes_max: 1 << 16, ..ExecPolicy::default() };
        let flood = "echo begin; head -c 100000000 /dev/zero; echo end";
        let exit = fixture.run_with(&policy, &shell(flood), &never()).unwrap();
        assert_eq!((exit.how, exit.code), (CommandEnding::Exited, Some(0)));
        assert_eq!(exit.stdout.total_bytes, 100_000_010);
        assert!(exit.stdout.truncated && exit.stdout.head.len() + exit.stdout.tail.len() == 1 << 16);
        assert!(exit.stdout.head.starts_with(b"begin\n") && exit.stdout.tail.ends_with(b"end\n"));
        let mut hasher = blake3::Hasher::new();
        hasher.update(b"begin\n").update(&vec![0; 100_000_000]).update(b"end\n");
        assert_eq!(exit.stdout.digest, hasher.finalize().into());
    });
}

#[test]
fn an_endless_flood_ends_with_its_time() {
    each(|fixture| {
        let exit = fixture.run(&Command { timeout: Duration::from_millis(300), ..argv(&["yes"]) }).unwrap();
        assert_eq!((exit.how, exit.code), (CommandEnding::TimedOut, None));
        assert!(exit.stdout.total_bytes > 1 << 20 && exit.stdout.head.len() + exit.stdout.tail.len() == 1 << 20);
    });
}

#[test]
fn nothing_of_the_callers_environment_arrives() {
    // The secrets of this test are the variables of the test runner. Cargo sets many.
    assert!(std::env::vars_os().count() > 5);
    each(|fixture| {
        let policy = ExecPolicy { env: [("ANSWER".to_owned(), "42".to_owned())].into(), ..ExecPolicy::default() };
        let command = Command { env: vec![("MODE".to_owned(), "fast".to_owned())], ..argv(&["env"]) };
        let exit = fixture.run_with(&policy, &command, &never()).unwrap();
        let text = output(&exit);
        let mut names: Vec<&str> = text.lines().filter_map(|line| line.split('=').next()).collect();
        names.sort_unstable();
        let of_user = |name: &str| matches!(name, "LOGNAME" | "USER");
        assert_eq!(names.iter().any(|name| of_user(name)), fixture.tier.has_own_root(), "{names:?}");
        names.retain(|name| !of_user(name));
        assert_eq!(
            names,
            ["ANSWER", "CI", "HOME", "LANG", "MODE", "NO_COLOR", "PATH", "SHELL", "TERM", "TMPDIR", "TZ"]
        );
        let refused = Command { env: vec![("LD_PRELOAD".to_owned(), "/x.so".to_owned())], ..argv(&["env"]) };
        assert!(matches!(fixture.run(&refused), Err(ExecError::Invalid(_))));
    });
}

#[test]
fn home_and_temporary_folders_are_the_commands_own() {
    each(|fixture| {
        let jail = fixture.jail();
        let text = "echo x > $HOME/a && echo y > $TMPDIR/b && ls -A $HOME $TMPDIR | tr '\\n' ' '";
        let exit = jail.run(&shell(text), &never()).unwrap();
        assert_eq!(exit.code, Some(0), "{exit:?}");
        assert!(output(&exit).contains('a') && output(&exit).contains('b'));
        let exit = jail.run(&argv(&["env"]), &never()).unwrap();
        let home = output(&exit).lines().find_map(|line| line.strip_prefix("HOME=").map(str::to_owned)).unwrap();
        if fixture.tier.has_own_root() {
            assert_eq!(home, "/home/glovebox");
            assert!(!std::path::Path::new("/home/glovebox/a").exists());
        } else {
            assert!(fixture.at("attempt/home/a").exists() && fixture.at("attempt/tmp/b").exists());
        }
    });
}

#[test]
fn programs_come_from_the_fixed_path_only() {
    each(|fixture| {
        // The file is created in the workspace and, so that the host can see it too, in the user's project.
        for folder in [fixture.root(), fixture.at("project")] {
            let fake = folder.join("git");
            fs::write(&fake, format!("#!/bin/sh\necho x > {}\n", fixture.witness_inside())).unwrap();
            fs::set_permissions(&fake, fs::Permissions::from_mode(0o755)).unwrap();
        }
        let absolute = fixture.inside().join("git").display().to_string();
        // A link outside of the workspace that leads into it, in a folder that the operator listed.
        let tools = fixture.at("tools");
        fs::create_dir(&tools).unwrap();
        symlink(fixture.inside().join("git"), tools.join("hijacked")).unwrap();
        let bind = Bind::read_only(tools.clone(), tools.clone());
        let jail = fixture
            .open(|setting| {
                setting.policy.path = vec![tools.clone(), "/usr/bin".into()];
                setting.policy.binds = vec![bind];
            })
            .unwrap();
        let run = |words: &[&str]| jail.run(&argv(words), &never());
        let linked = tools.join("hijacked").display().to_string();
        for words in [
            vec!["./git"],
            vec![absolute.as_str()],
            vec!["hijacked"],
            vec![linked.as_str()],
            vec!["../root/git"],
            vec![],
            vec![""],
            vec!["no-such"],
            vec!["/no/such"],
        ] {
            let refused = run(&words);
            assert!(matches!(refused, Err(ExecError::Invalid(_) | ExecError::NotFound(_))), "{words:?}: {refused:?}");
        }
        // Refused requests do not change the jail. By name, the real program is found, although the working directory
        // contains a file of that name.
        assert!(output(&run(&["env", "printf", "%s", "fine"]).unwrap()).contains("fine"));
        let _ = run(&["git", "--version"]);
        assert!(!fixture.witness().exists(), "a program of the workspace was started");
        for path in [fixture.inside(), ".".into()] {
            assert!(fixture.open(|setting| setting.policy.path = vec![path.clone()]).is_err(), "{path:?}");
        }
    });
}

#[test]
fn the_working_directory_is_inside_and_no_link() {
    each(|fixture| {
        fs::create_dir_all(fixture.root().join("a/b")).unwrap();
        symlink("/", fixture.root().join("out")).unwrap();
        let jail = fixture.jail();
        let at = |path: &str| jail.run(&Command { cwd: ScopePath::parse(path).unwrap(), ..argv(&["pwd"]) }, &never());
        assert_eq!(output(&at("a/b").unwrap()).trim_end(), fixture.inside().join("a/b").display().to_string());
        for path in ["out", "out/etc", "missing"] {
            assert!(matches!(at(path), Err(ExecError::Invalid(_))), "{path}");
        }
    });
}

#[test]
fn standard_input_is_empty_or_what_was_given() {
    each(|fixture| {
        let jail = fixture.jail();
        assert_eq!(output(&jail.run(&argv(&["cat"]), &never()).unwrap()), "");
        let bytes = vec![b'x'; 500_000];
        let given = Command { stdin: Some(bytes.clone()), ..argv(&["cat"]) };
        assert_eq!(output(&jail.run(&given, &never()).unwrap()).len(), bytes.len());
        // A program that does not read its input must not block the host.
        let exit = jail.run(&Command { stdin: Some(bytes), ..argv(&["true"]) }, &never()).unwrap();
        assert_eq!(exit.code, Some(0));
    });
}

#[test]
fn a_command_has_its_own_session_no_terminal_and_no_core_file() {
    each(|fixture| {
        let text = "cut -d' ' -f6 /proc/$$/stat; echo $$; ulimit -c; (: < /dev/tty) 2>/dev/null && echo tty";
        let exit = fixture.run(&shell(text)).unwrap();
        let text = output(&exit);
        let numbers: Vec<&str> = text.split_whitespace().collect();
        assert_eq!(numbers.len(), 3, "{text}");
        assert_eq!(numbers[0], numbers[1], "the shell leads its own session: {text}");
        assert_eq!(numbers[2], "0");
    });
}

#[test]
fn commands_of_one_jail_see_each_others_files_and_so_do_we() {
    each(|fixture| {
        fs::write(fixture.root().join("given"), "given").unwrap();
        let jail = fixture.jail();
        assert_eq!(jail.run(&shell("cat given > made && mkdir d && echo x > d/f"), &never()).unwrap().code, Some(0));
        assert_eq!(output(&jail.run(&shell("cat made d/f"), &never()).unwrap()), "givenx\n");
        assert_eq!(fs::read_to_string(jail.root().join("d/f")).unwrap(), "x\n");
        fs::write(jail.root().join("ours"), "ours").unwrap();
        assert_eq!(output(&jail.run(&shell("cat ours"), &never()).unwrap()), "ours");
        jail.end().unwrap();
        assert_eq!(fs::read_to_string(fixture.written("made")).unwrap(), "given");
        assert_eq!(fixture.root().join("made").exists(), fixture.tier != Tier::Full, "layers below stay as they are");
    });
}

#[test]
fn in_full_walls_nothing_else_of_the_host_exists() {
    let fixture = super::fixture::Fixture::new(Tier::Full);
    fs::write(fixture.at("secret"), "secret").unwrap();
    fs::write(fixture.at("project/secret"), "secret").unwrap();
    let jail = fixture.jail();
    let text = format!(
        "cat {0}/secret {0}/project/secret; ls {0}; ls / /home; id -u; cat /proc/net/route | wc -l; ls /proc | grep -c '^[0-9]'",
        fixture.at("").display()
    );
    let exit = jail.run(&shell(&text), &never()).unwrap();
    let text = output(&exit);
    assert!(!text.contains("secret") && !text.contains("root\n"), "{text}");
    assert!(!text.lines().any(|line| line == "0"), "no root inside: {text}");
}
