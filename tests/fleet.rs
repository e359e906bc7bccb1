//! `glovebox fleet` and `glovebox doctor --nats`, with the real binary and real NATS servers on loopback.

use crate::workbench::nats::{NatsServers, nats_program};
use crate::workbench::{Answer, Workbench, not_run};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// A project, servers, and people with folders of their own for keys.
struct Fleet {
    bench: Workbench,
    servers: NatsServers,
}

impl Fleet {
    /// Returns `None` and says so if the server is not on this machine.
    fn start(test: &str, count: usize, settings: &str) -> Option<Self> {
        if nats_program().is_none() {
            not_run(test, "no nats-server: run `cargo xtask nats`");
            return None;
        }
        let bench = Workbench::new();
        std::fs::create_dir(bench.outside().join("shared")).unwrap();
        Some(Self { bench, servers: NatsServers::start(count, settings) })
    }

    fn state(&self, person: &str) -> PathBuf {
        self.bench.outside().join(person)
    }

    /// Runs a command as one person. `NATS` stands for the addresses of the servers, `STORE` for that of the blobs.
    fn run(&self, person: &str, line: &str) -> Answer {
        self.run_with(person, line, &[])
    }

    fn run_with(&self, person: &str, line: &str, variables: &[(&str, &str)]) -> Answer {
        let store = format!("file://{}", self.bench.outside().join("shared").display());
        let nats = self.servers.addresses().join(",");
        let words: Vec<String> =
            line.split_whitespace().map(|word| word.replace("NATS", &nats).replace("STORE", &store)).collect();
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let mut command = self.bench.bare(&words);
        command.env("GLOVEBOX_STATE_DIR", self.state(person)).envs(variables.iter().copied());
        Answer::of(&mut command)
    }

    /// Makes the fleet on one server. Returns the operator's public key.
    fn init(&self) -> String {
        let made = self.run("operator", "fleet init --single-node --nats NATS --store STORE");
        made.ends(0);
        made.stdout.trim().to_owned()
    }

    /// Returns the public key of a machine.
    fn key(&self, person: &str) -> String {
        let key = self.run(person, "fleet key");
        key.ends(0);
        key.stdout.trim().to_owned()
    }
}

#[test]
fn a_fleet_is_made_once_by_one_operator() {
    let Some(fleet) = Fleet::start("a fleet", 1, "") else { return };
    let none = fleet.run("operator", "fleet ls --nats NATS");
    none.ends(2).says("the operator of the fleet is not known");
    let refused = fleet.run("operator", "fleet init --nats NATS --store STORE");
    refused.ends(3).says("replicas").says("--single-node");
    let key = fleet.init();
    assert!(key.starts_with("ed25519:"), "{key}");
    let file = fleet.state("operator").join("fleet/operator.key");
    assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    // Again: the same key and nothing new.
    assert_eq!(fleet.init(), key);
    let elsewhere = fleet.run("operator", "fleet init --single-node --nats NATS --store file:///tmp");
    elsewhere.ends(3).says("the fleet has its blobs at `file:///");
    let other = fleet.run("other", "fleet init --single-node --nats NATS --store STORE");
    other.ends(6).says("is not that of the given operator");
    fleet.run("operator", "fleet init --single-node --nats NATS --store ftp://x").ends(2).says("its scheme is `ftp`");
    let missing = fleet.run("operator", "fleet init --single-node --nats NATS --store file:///missing/folder");
    missing.ends(3).says("the folder `/missing/folder` of the fleet's blobs");
    fleet.run("operator", "fleet init --store STORE").ends(2).says("--nats nats://HOST:4222");
}

#[test]
fn machines_are_admitted_listed_and_expelled() {
    let Some(fleet) = Fleet::start("machines of a fleet", 1, "") else { return };
    let operator = fleet.init();
    let (one, two) = (fleet.key("one"), fleet.key("two"));
    assert_eq!(fleet.key("one"), one, "a key is made once");
    assert_ne!(one, two);
    let admit = |key: &str, rest: &str| fleet.run("operator", &format!("fleet admit {key} --nats NATS {rest}"));
    admit(&one, "--name builder-1 --may drive,build --label gpu --label big --tier full --until 2099-01-31").ends(0);
    admit(&two, "--name builder-1 --may build").ends(3).says("another machine has the name `builder-1`");
    admit(&two, "--name checker --may verify").ends(0);
    // The same machine again: changed.
    admit(&one, "--name builder-1 --may build --label gpu --until 2099-01-31").ends(0);
    // Everybody who knows the operator's key may look.
    let ls = |person: &str, rest: &str| fleet.run(person, &format!("fleet ls --nats NATS {rest}"));
    let text = ls("one", &format!("--operator {operator}"));
    text.ends(0).says("builder-1: build; labels gpu; since ").says("; until 2099-01-31\n").says(&format!("  {two}\n"));
    fleet.bench.write("glovebox.toml", &format!("[fleet]\noperator = \"{operator}\"\n"));
    let json = ls("two", "--json");
    let machines = json.ends(0).json()["machines"].clone();
    assert_eq!(machines[0]["name"], "builder-1");
    assert_eq!(machines[0]["may"], serde_json::json!(["build"]));
    assert_eq!((machines[0]["state"].as_str(), machines[1]["state"].as_str()), (Some("admitted"), Some("admitted")));
    assert_eq!(machines[1]["key"], two.as_str());
    // Only the operator admits and expels.
    for line in
        [format!("fleet admit {two} --nats NATS --name x --may drive"), "fleet expel checker --nats NATS".to_owned()]
    {
        fleet.run("two", &line).ends(6).says("does not have the key of the fleet's operator");
    }
    fleet.run("operator", "fleet expel nobody --nats NATS").ends(2).says("no machine `nobody` is admitted");
    fleet.run("operator", "fleet expel checker --nats NATS").ends(0);
    fleet.run("operator", &format!("fleet expel {one} --nats NATS")).ends(0);
    let left = ls("two", "--json").json();
    assert!(left["machines"].as_array().unwrap().iter().all(|machine| machine["state"] == "expelled"), "{left}");
    assert_eq!(left["machines"][1]["name"], "checker", "it keeps its name in the list");
    ls("two", "").ends(0).says("builder-1: expelled\n");
    // The name is free again.
    admit(&two, "--name builder-1 --may build").ends(0);
}

#[test]
fn an_admission_that_means_nothing_is_refused() {
    let Some(fleet) = Fleet::start("admissions", 1, "") else { return };
    fleet.init();
    let key = fleet.key("one");
    for (rest, code, says) in [
        ("--name A --may build", 2, "expected 1 to 63 characters"),
        ("--name a --may fly", 2, "expected `submit`, `drive`, `build`, `verify`"),
        ("--name a", 2, "--may"),
        ("--name a --may build --label=-x", 2, "the first a letter or a digit"),
        ("--name a --may build --tier none", 2, "expected `full`, `bwrap` or `landlock`"),
        ("--name a --may build --until 2020-01-31", 2, "the day of `--until` has passed"),
        ("--name a --may build --until soon", 2, "--until"),
    ] {
        fleet.run("operator", &format!("fleet admit {key} --nats NATS {rest}")).ends(code).says(says);
    }
    fleet.run("operator", "fleet admit ed25519:AAAA --name a --may build --nats NATS").ends(2);
    fleet.run("operator", "fleet ls --nats NATS").ends(0).says("no machine was admitted yet");
}

#[test]
fn a_fleet_of_another_operator_is_refused() {
    let Some(fleet) = Fleet::start("fleets of other operators", 1, "") else { return };
    fleet.init();
    let stranger = fleet.key("stranger");
    fleet
        .run("one", &format!("fleet ls --nats NATS --operator {stranger}"))
        .ends(6)
        .says("is not that of the given operator");
    fleet.bench.write("glovebox.toml", &format!("[fleet]\noperator = \"{stranger}\"\n"));
    fleet.run("one", "fleet ls --nats NATS").ends(6).says("ask the operator for the public key");
    let doctor = fleet.run("one", "doctor --nats NATS --single-node");
    doctor.ends(3).says("settings   problem  the fleet `gb` is not that of the given operator");
    // Another operator's key on the command line counts more than the file.
    fleet.run("operator", &format!("fleet expel x --nats NATS --operator {stranger}")).ends(6);
    fleet.bench.write("glovebox.toml", "[fleet]\noperator = \"ed25519:x\"\n");
    fleet.run("one", "fleet ls --nats NATS").ends(3).says("32 bytes of a public key in base64");
}

#[test]
fn each_failure_to_connect_has_its_code() {
    let settings = "authorization { user: ann, password: secret }";
    let Some(fleet) = Fleet::start("passwords of a fleet", 1, settings) else { return };
    let init = "fleet init --single-node --nats NATS --store STORE";
    fleet.run("operator", init).ends(6).says("refuses this user");
    let user = format!("{init} --nats-user ann");
    fleet.run("operator", &user).ends(2).says("GLOVEBOX_NATS_PASSWORD is not set");
    let wrong = fleet.run_with("operator", &user, &[("GLOVEBOX_NATS_PASSWORD", "guess")]);
    wrong.ends(6).says("refuses this user").never_says("guess");
    let right = [("GLOVEBOX_NATS_PASSWORD", "secret")];
    fleet.run_with("operator", &user, &right).ends(0);
    fleet
        .run("operator", "fleet ls --nats nats://ann:secret@127.0.0.1:1")
        .ends(2)
        .never_says("secret")
        .says("--nats-user");
    fleet.run_with("operator", "fleet ls --nats NATS --nats-user ann", &right).ends(0);
    let doctor = fleet.run_with("operator", "doctor --nats NATS --nats-user ann --single-node", &right);
    doctor.ends(0).says("user       warning  `ann` can write every journal");
    fleet
        .run_with("operator", "fleet ls --nats NATS --nats-user ann --fleet other", &right)
        .ends(3)
        .says("does not exist");
    let nobody = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    fleet.run("operator", &format!("fleet ls --nats nats://{nobody}")).ends(9).says("no NATS server answers");
    fleet.run("operator", "fleet ls --nats NATS --fleet a.b").ends(2).says("1 to 32 characters");
}

#[test]
fn doctor_examines_one_server_line_by_line() {
    let Some(fleet) = Fleet::start("the doctor of a fleet", 1, "") else { return };
    let none = fleet.run("operator", "doctor --nats NATS --single-node");
    none.ends(3).says("stream     problem  the stream `gb` does not exist\n  create it once: `glovebox fleet init`");
    fleet.init();
    let monitor = fleet.servers.monitor(0);
    let seen = fleet.run("operator", &format!("doctor --nats NATS --single-node --nats-monitor {monitor}"));
    seen.ends(0)
        .says("server     ok       nats-server 2.")
        .says("encryption ok       none: the servers are on this machine");
    seen.says("user       warning  everybody who reaches the server can write every journal");
    seen.says("stream     ok       `gb`, stored in a file").says("replicas   warning  1: if the disk");
    seen.says("clock      ok       this machine is ").says("sync       ok       each record is flushed");
    seen.says("settings   ok       signed by the operator; blobs at file:///");
    let hidden = fleet.run("operator", "doctor --nats NATS --single-node");
    hidden.ends(0).says("sync       warning  it is not known whether").says("--nats-monitor http://HOST:8222");
    let cluster = fleet.run("operator", "doctor --nats NATS --json");
    let findings = cluster.ends(3).json()["findings"].clone();
    let replicas = findings.as_array().unwrap().iter().find(|finding| finding["name"] == "replicas").unwrap();
    assert_eq!(replicas["state"], "problem", "{replicas}");
    assert!(replicas["help"].as_str().unwrap().contains("--single-node"), "{replicas}");
    let stranger = fleet.run("stranger", "doctor --nats NATS --single-node");
    stranger.ends(0).says("settings   warning  the operator of the fleet is not known");
    fleet.run("operator", "doctor --single-node").ends(2);
}

#[test]
fn doctor_is_content_with_three_servers() {
    let Some(fleet) = Fleet::start("a fleet on three servers", 3, "") else { return };
    fleet.run("operator", "fleet init --nats NATS --store STORE").ends(0);
    let monitor = fleet.servers.monitor(1);
    // A replica may need a moment until it has the first records.
    let begun = Instant::now();
    loop {
        let seen = fleet.run("operator", &format!("doctor --nats NATS --nats-monitor {monitor} --json"));
        let findings = seen.ends(0).json()["findings"].clone();
        let found = findings.as_array().unwrap();
        let weak = found.iter().filter(|finding| finding["state"] != "ok");
        let weak: Vec<&str> = weak.filter_map(|finding| finding["name"].as_str()).collect();
        if weak == ["user"] {
            assert_eq!(found.len(), 9, "{findings}");
            return;
        }
        assert!(weak == ["user", "replicas"] && begun.elapsed() < Duration::from_secs(30), "{findings}");
    }
}

/// The printed block makes servers on which the operator needs no other user.
#[test]
fn the_printed_permissions_are_a_configuration() {
    if nats_program().is_none() {
        return not_run("permissions of a fleet", "no nats-server: run `cargo xtask nats`");
    }
    let bench = Workbench::new();
    let printed = bench.glovebox(&["fleet", "permissions", "--role", "operator", "--role", "worker"]);
    printed.ends(0).says("user: worker, password: $WORKER_PASSWORD").says("\"gb.x.*.*\"").never_says("user: driver");
    bench.glovebox(&["fleet", "permissions", "--role", "king"]).ends(2).says("`operator`, `client`, `driver`");
    let passwords = "OPERATOR_PASSWORD: \"first\"\nWORKER_PASSWORD: \"second\"\n".to_owned();
    let Some(fleet) = Fleet::start("permissions", 1, &(passwords + &printed.stdout)) else { return };
    let first = [("GLOVEBOX_NATS_PASSWORD", "first")];
    let init = "fleet init --single-node --nats NATS --nats-user operator --store STORE";
    fleet.run_with("operator", init, &first).ends(0);
    let admit = format!("fleet admit {} --nats NATS --name one --may build", fleet.key("one"));
    fleet.run_with("operator", &format!("{admit} --nats-user operator"), &first).ends(0);
    let second = [("GLOVEBOX_NATS_PASSWORD", "second")];
    let refused = fleet.run_with("operator", &format!("{admit} --nats-user worker"), &second);
    refused.ends(6).says("does not let this user do it").says("Permissions Violation");
    fleet.run_with("operator", "fleet ls --nats NATS --nats-user worker", &second).ends(0).says("one: build");
    let doctor = fleet.run_with("operator", "doctor --nats NATS --nats-user worker --single-node", &second);
    doctor
        .ends(0)
        .says("user       ok       `worker` can write: results; cannot write: journals, statements about machines");
}
