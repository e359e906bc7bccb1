//! Who signed what: frames, statements about machines, and what the servers let each user write.
//!
//! A forger is a machine of another fleet of the same name, with servers of its own. What it wrote there is copied.

use crate::bench::{
    Bench, address, admission, append, can_run, establish, joined, machine, note, operator, run, texts, with_login,
};
use crate::nats::NatsServers;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use glovebox_fleet::fleet::{Fleet, FleetError, Login};
use glovebox_fleet::init::Replication::SingleNode;
use glovebox_fleet::roster::Place;
use glovebox_fleet::server_users::{ServerRole, server_config};
use glovebox_fleet::statement::Role;
use glovebox_fleet::subjects::FleetName;
use glovebox_journal::ports::{PortError, RunLog as _};
use glovebox_signing::envelope::PayloadType;
use glovebox_signing::key::SigningKey;
use std::time::Duration;

fn key(seed: u8) -> SigningKey {
    SigningKey::from_seed(&[seed; 32]).unwrap()
}

async fn client(bench: &Bench) -> async_nats::Client {
    async_nats::connect(bench.servers.addresses()).await.unwrap()
}

/// Returns the messages of a subject.
async fn messages(bench: &Bench, subject: &str) -> Vec<Vec<u8>> {
    let (client, mut messages, mut from) = (client(bench).await, Vec::new(), 1);
    loop {
        let query = serde_json::json!({ "seq": from, "next_by_subj": subject }).to_string();
        let answer = client.request("$JS.API.STREAM.MSG.GET.gb", query.into()).await.unwrap();
        let answer: serde_json::Value = serde_json::from_slice(&answer.payload).unwrap();
        let Some(data) = answer["message"]["data"].as_str() else { return messages };
        messages.push(STANDARD.decode(data).unwrap());
        from = answer["message"]["seq"].as_u64().unwrap() + 1;
    }
}

/// Stores a message as somebody who needs no permission.
async fn store(bench: &Bench, subject: &str, payload: &[u8]) {
    let answer = client(bench).await.request(subject.to_owned(), payload.to_vec().into()).await.unwrap();
    assert!(String::from_utf8_lossy(&answer.payload).contains("\"seq\""), "{answer:?}");
}

/// Returns the settings of a fleet, and the frames that a machine appends to a run on servers where it may.
async fn frames_of(first: SigningKey, then: SigningKey) -> (Vec<u8>, Vec<Vec<u8>>) {
    let elsewhere = Bench::start(1).await;
    let fleet = elsewhere.fleet().await;
    for (number, key) in [&first, &then].into_iter().enumerate() {
        let all = admission(&format!("m{number}"), &[Role::Submit, Role::Drive]);
        if key.public() != machine().public() {
            fleet.admit(&operator(), key.public(), all).await.unwrap();
        }
    }
    for (key, text) in [(first, "a"), (then, "b")] {
        let fleet = joined(&address(elsewhere.servers.addresses()), key).await;
        append(&fleet.log(elsewhere.blobs.clone()), &[], &[note(text)]).await.unwrap();
    }
    (messages(&elsewhere, "gb.f").await.remove(0), messages(&elsewhere, "gb.r.run").await)
}

/// Copies frames to a run of this fleet, and returns what a new machine reads there.
async fn copied(bench: &Bench, frames: &[Vec<u8>]) -> Result<Vec<String>, PortError> {
    for frame in frames {
        store(bench, "gb.r.run", frame).await;
    }
    let read = bench.log().await.read(&run(), 1, 10).await;
    read.map(|records| texts(&records).into_iter().map(str::to_owned).collect())
}

#[tokio::test]
async fn a_frame_counts_by_the_role_of_its_signer() {
    if !can_run("frames of signers with other roles") {
        return;
    }
    let foreign = |result: Result<Vec<String>, PortError>| match result {
        Err(PortError::Foreign { seq }) => seq,
        other => panic!("{other:?}"),
    };
    // Nobody admitted `stranger`.
    let (client, stranger, worker) = (|| key(3), || key(4), || key(5));
    for (first, then, expected) in [
        (client(), machine(), Ok(vec!["a", "b"])),
        (machine(), client(), Err(2)),
        (stranger(), machine(), Err(1)),
        (machine(), stranger(), Err(2)),
        (worker(), machine(), Err(1)),
    ] {
        let (settings, frames) = frames_of(first, then).await;
        let bench = Bench::start_with(1, Some(settings)).await;
        let fleet = bench.fleet().await;
        fleet.admit(&operator(), client().public(), admission("client", &[Role::Submit])).await.unwrap();
        fleet.admit(&operator(), worker().public(), admission("worker", &[Role::Build, Role::Verify])).await.unwrap();
        let read = copied(&bench, &frames).await;
        match expected {
            Ok(texts) => assert_eq!(read.unwrap(), texts),
            Err(seq) => {
                assert_eq!(foreign(read), seq);
                let refused = append(&bench.log().await, &[], &[note("c")]).await;
                assert!(matches!(refused, Err(PortError::Foreign { seq: found }) if found == seq), "{refused:?}");
                assert_eq!(messages(&bench, "gb.r.run").await.len(), 2, "nothing is appended after it");
            }
        }
    }
}

/// The same machines are admitted in both fleets, and the same people operate them.
#[tokio::test]
async fn a_frame_of_another_fleet_is_corrupt() {
    if !can_run("frames of other fleets") {
        return;
    }
    let (_, frames) = frames_of(machine(), machine()).await;
    let error = copied(&Bench::start(1).await, &frames).await.unwrap_err();
    assert_eq!(error.to_string(), "journal record 1 is corrupt: its frame is one of another fleet");
}

#[tokio::test]
async fn a_frame_of_another_run_or_with_another_header_is_corrupt() {
    if !can_run("frames that were moved") {
        return;
    }
    let bench = Bench::start(1).await;
    append(&bench.log().await, &[], &[note("a")]).await.unwrap();
    let frame = messages(&bench, "gb.r.run").await.remove(0);
    store(&bench, "gb.r.other", &frame).await;
    let error = bench.log().await.read(&"other".into(), 1, 10).await.unwrap_err();
    assert_eq!(error.to_string(), "journal record 1 is corrupt: its frame is one of the run `run`");
    let changed = String::from_utf8(frame).unwrap().replace("\"run\":\"run\"", "\"run\":\"third\"");
    store(&bench, "gb.r.third", changed.as_bytes()).await;
    let error = bench.log().await.read(&"third".into(), 1, 10).await.unwrap_err().to_string();
    assert!(error.contains("the signature of its frame is not that of ed25519:"), "{error}");
}

#[tokio::test]
async fn a_machine_that_is_not_admitted_appends_nothing() {
    if !can_run("machines that are not admitted") {
        return;
    }
    let bench = Bench::start(1).await;
    let servers = address(bench.servers.addresses());
    let stranger = joined(&servers, key(4)).await;
    let refused = append(&stranger.log(bench.blobs.clone()), &[], &[note("a")]).await.unwrap_err().to_string();
    assert!(refused.contains("is not admitted to submit or drive") && refused.contains("\nhelp: "), "{refused}");
    let error = stranger.require(&[Role::Drive]).await.unwrap_err();
    assert!(matches!(error, FleetError::NotAdmitted { .. }) && error.exit_code() == 6, "{error}");
    let mut reader = bench.fleet().await;
    reader.join(&operator().public(), None).await.unwrap();
    let refused = append(&reader.log(bench.blobs.clone()), &[], &[note("a")]).await.unwrap_err().to_string();
    assert!(refused.contains("no key for the fleet\nhelp: make one: `glovebox fleet key`"), "{refused}");
    let unknown = bench.fleet().await.log(bench.blobs.clone());
    let refused = unknown.read(&run(), 1, 1).await.map(drop);
    refused.unwrap();
    append(&bench.log().await, &[], &[note("a")]).await.unwrap();
    let refused = unknown.read(&run(), 1, 1).await.unwrap_err().to_string();
    assert!(refused.contains("the operator of the fleet is not known"), "{refused}");
}

#[tokio::test]
async fn what_a_machine_signed_before_it_was_expelled_still_counts() {
    if !can_run("machines that are expelled") {
        return;
    }
    let bench = Bench::start(1).await;
    let fleet = bench.fleet().await;
    let log = bench.log().await;
    append(&log, &[], &[note("a")]).await.unwrap();
    fleet.expel(&operator(), machine().public()).await.unwrap();
    tokio::time::sleep(Duration::from_millis(1100)).await;
    let refused = append(&log, &[], &[note("b")]).await.unwrap_err().to_string();
    assert!(refused.contains("is not admitted to drive"), "{refused}");
    assert_eq!(texts(&bench.records().await), ["a"]);
    let other = admission("other", &[Role::Drive, Role::Submit]);
    fleet.admit(&operator(), key(6).public(), other).await.unwrap();
    let again = joined(&address(bench.servers.addresses()), key(6)).await.log(bench.blobs.clone());
    append(&again, &[], &[note("c")]).await.unwrap();
    assert_eq!(texts(&bench.records().await), ["a", "c"]);
    // Admitted again, it may go on. What it signed in between stays foreign.
    let both = admission("machine", &[Role::Submit, Role::Drive]);
    fleet.admit(&operator(), machine().public(), both).await.unwrap();
    append(&bench.log().await, &[], &[note("d")]).await.unwrap();
    assert_eq!(texts(&bench.records().await), ["a", "c", "d"]);
    let members = fleet.members(&operator().public()).await.unwrap();
    assert_eq!(members.len(), 2);
}

/// A machine that does not look whether it is admitted appends all the same.
#[tokio::test]
async fn a_frame_after_the_expulsion_of_its_signer_never_counts() {
    if !can_run("frames after an expulsion") {
        return;
    }
    let (settings, frames) = frames_of(machine(), machine()).await;
    let bench = Bench::start_with(1, Some(settings)).await;
    let fleet = bench.fleet().await;
    assert_eq!(copied(&bench, &frames[..1]).await.unwrap(), ["a"]);
    fleet.expel(&operator(), machine().public()).await.unwrap();
    assert_eq!(copied(&bench, &[]).await.unwrap(), ["a"]);
    let late = copied(&bench, &frames[1..]).await;
    assert!(matches!(late, Err(PortError::Foreign { seq: 2 })), "{late:?}");
    let both = admission("machine", &[Role::Submit, Role::Drive]);
    fleet.admit(&operator(), machine().public(), both).await.unwrap();
    let late = copied(&bench, &[]).await;
    assert!(matches!(late, Err(PortError::Foreign { seq: 2 })), "{late:?}");
}

#[tokio::test]
async fn an_older_admission_cannot_be_brought_back() {
    if !can_run("admissions that are brought back") {
        return;
    }
    let bench = Bench::start(1).await;
    let fleet = bench.fleet().await;
    append(&bench.log().await, &[], &[note("a")]).await.unwrap();
    let subject = format!("gb.a.{}", machine().public().id().hex());
    let admitted = messages(&bench, &subject).await;
    assert_eq!(admitted.len(), 1);
    fleet.expel(&operator(), machine().public()).await.unwrap();
    store(&bench, &subject, &admitted[0]).await;
    let log = bench.log().await;
    let refused = append(&log, &[], &[note("b")]).await.unwrap_err();
    assert!(
        matches!(&refused, PortError::Corrupt { found, .. } if found.contains("an older statement was brought back")),
        "{refused}"
    );
    let refused = log.read(&run(), 1, 10).await.unwrap_err();
    assert!(matches!(refused, PortError::Corrupt { .. }), "{refused}");
    let error = fleet.members(&operator().public()).await.unwrap_err();
    assert_eq!(error.exit_code(), 11, "{error}");
    let again = fleet.admit(&operator(), machine().public(), admission("machine", &[Role::Drive])).await.unwrap_err();
    assert_eq!(again.exit_code(), 11, "{again}");
}

/// The same operator's admission in another fleet means nothing here. Neither does one that somebody else signed.
#[tokio::test]
async fn a_statement_of_another_fleet_or_operator_does_not_count() {
    if !can_run("statements of other fleets") {
        return;
    }
    let (elsewhere, bench) = (Bench::start(1).await, Bench::start(1).await);
    let (there, here) = (elsewhere.fleet().await, bench.fleet().await);
    there.admit(&operator(), key(7).public(), admission("spy", &[Role::Drive])).await.unwrap();
    let subject = format!("gb.a.{}", key(7).public().id().hex());
    let copied = messages(&elsewhere, &subject).await;
    store(&bench, &subject, &copied[0]).await;
    let error = here.members(&operator().public()).await.unwrap_err();
    assert!(error.to_string().contains("it is about another fleet") && error.exit_code() == 11, "{error}");
    let error = here.settings(&key(8).public()).await.unwrap_err();
    assert_eq!(error.exit_code(), 6, "{error}");
    let error = here.admit(&key(8), key(7).public(), admission("spy", &[Role::Drive])).await.unwrap_err();
    assert_eq!(error.exit_code(), 6, "{error}");
    let error = here.establish(&key(8), &"file:///elsewhere".parse().unwrap(), None).await.unwrap_err();
    assert_eq!(error.exit_code(), 6, "{error}");
    let error = here.establish(&operator(), &"file:///elsewhere".parse().unwrap(), None).await.unwrap_err();
    assert_eq!(error.exit_code(), 3, "{error}");
}

/// A result, or a claim, is an envelope of one kind by a machine with a role.
#[tokio::test]
async fn a_signed_message_is_of_one_kind_and_one_machine() {
    if !can_run("signed messages") {
        return;
    }
    let bench = Bench::start(1).await;
    let fleet = bench.fleet().await;
    let worker = admission("worker", &[Role::Build]);
    fleet.admit(&operator(), key(5).public(), worker.clone()).await.unwrap();
    let servers = address(bench.servers.addresses());
    let (signer, driver, stranger) =
        (joined(&servers, key(5)).await, joined(&servers, machine()).await, joined(&servers, key(4)).await);
    let kind = PayloadType::FLEET_RESULT;
    let message = signer.sign(kind, b"made").unwrap();
    let open = async |message: &[u8], kind, roles: &[Role]| driver.open(kind, message, Place::now(), roles, 7).await;
    let found = open(&message, kind, &[Role::Build, Role::Verify]).await.unwrap();
    assert_eq!((found.payload.as_slice(), found.machine, found.admission), (&b"made"[..], key(5).public(), worker));
    let other_kind = open(&message, PayloadType::FLEET_FRAME, &[Role::Build]).await;
    assert!(matches!(other_kind, Err(PortError::Corrupt { .. })), "{other_kind:?}");
    let changed =
        String::from_utf8(message.clone()).unwrap().replace(&STANDARD.encode("made"), &STANDARD.encode("fake"));
    let changed = open(changed.as_bytes(), kind, &[Role::Build]).await;
    assert!(matches!(changed, Err(PortError::Corrupt { .. })), "{changed:?}");
    let other_role = open(&message, kind, &[Role::Verify]).await;
    assert!(matches!(other_role, Err(PortError::Foreign { seq: 7 })), "{other_role:?}");
    let strange = open(&stranger.sign(kind, b"made").unwrap(), kind, &[Role::Build]).await;
    assert!(matches!(strange, Err(PortError::Foreign { seq: 7 })), "{strange:?}");
    // At a place before the admission it counts as little as after the expulsion.
    let early = driver.open(kind, &message, Place::new(1, jiff::Timestamp::now()), &[Role::Build], 7).await;
    assert!(matches!(early, Err(PortError::Foreign { .. })), "{early:?}");
    fleet.expel(&operator(), key(5).public()).await.unwrap();
    tokio::time::sleep(Duration::from_millis(1100)).await;
    let late = open(&message, kind, &[Role::Build]).await;
    assert!(matches!(late, Err(PortError::Foreign { .. })), "{late:?}");
}

#[tokio::test]
async fn two_machines_do_not_have_one_name() {
    if !can_run("two machines with one name") {
        return;
    }
    let bench = Bench::start(1).await;
    let fleet = bench.fleet().await;
    let error = fleet.admit(&operator(), key(7).public(), admission("machine", &[Role::Build])).await.unwrap_err();
    assert!(error.to_string().contains("another machine has the name `machine`"), "{error}");
    // An admission of the same machine replaces the earlier one.
    fleet.admit(&operator(), machine().public(), admission("machine", &[Role::Build])).await.unwrap();
    let members = fleet.members(&operator().public()).await.unwrap();
    let found = members[0].last.admission.as_ref().unwrap();
    assert!(members.len() == 1 && found.may == [Role::Build].into(), "{found:?}");
}

/// The block that `fleet permissions` prints, on a real server.
#[tokio::test]
async fn a_worker_cannot_write_a_journal() {
    if !can_run("permissions of the roles") {
        return;
    }
    let passwords: String = ServerRole::ALL
        .iter()
        .map(|role| format!("{}_PASSWORD: \"secret-{}\"\n", role.as_str().to_uppercase(), role.as_str()))
        .collect();
    let settings = passwords + &server_config(&FleetName::default(), &ServerRole::ALL);
    let servers = NatsServers::start(1, &settings);
    let login = |role: ServerRole| {
        let (user, password) = (role.as_str().to_owned(), format!("secret-{}", role.as_str()));
        with_login(servers.addresses(), Some(Login { user, password }))
    };
    let fleet = Fleet::connect(&login(ServerRole::Operator)).await.unwrap();
    fleet.init(SingleNode).await.unwrap();
    establish(&fleet).await;
    let both = admission("machine", &[Role::Submit, Role::Drive]);
    fleet.admit(&operator(), machine().public(), both).await.unwrap();
    let blobs = glovebox_fleet::blobs::ObjectBlobs::in_memory().unwrap();
    let append_as = async |role, text: &str| {
        let log = joined(&login(role), machine()).await.log(blobs.clone());
        append(&log, &[], &[note(text)]).await
    };
    append_as(ServerRole::Client, "a").await.unwrap();
    append_as(ServerRole::Driver, "b").await.unwrap();
    // The key of an admitted machine does not help a user who may not write.
    for role in [ServerRole::Worker, ServerRole::Reader, ServerRole::Operator] {
        let refused = append_as(role, "c").await.unwrap_err().to_string();
        assert!(refused.contains("the server does not let this user do it"), "{role:?}: {refused}");
    }
    let worker = login(ServerRole::Worker);
    for role in [ServerRole::Client, ServerRole::Driver, ServerRole::Worker, ServerRole::Reader] {
        let user = Fleet::connect(&login(role)).await.unwrap();
        let refused = user.expel(&operator(), machine().public()).await.unwrap_err();
        assert!(matches!(refused, FleetError::Forbidden { .. }), "{role:?}: {refused}");
        let finding = user.examine(SingleNode, None).await.unwrap();
        let found = &finding.iter().find(|finding| finding.name == "user").unwrap().found;
        let writes = matches!(role, ServerRole::Client | ServerRole::Driver);
        assert_eq!(found.contains("can write: journals"), writes, "{found}");
    }
    let reader = joined(&worker, machine()).await.log(blobs.clone());
    assert_eq!(texts(&reader.read(&run(), 1, 10).await.unwrap()), ["a", "b"]);
    let raw = raw_client(&servers, "worker").await;
    let forged = tokio::time::timeout(Duration::from_secs(2), raw.request("gb.r.run", "x".into())).await;
    assert!(!matches!(forged, Ok(Ok(_))), "{forged:?}");
    // Nothing of the stream can be removed, an expulsion neither.
    for role in ["driver", "operator", "client"] {
        let user = raw_client(&servers, role).await;
        let removed = user.request("$JS.API.STREAM.MSG.DELETE.gb", r#"{"seq":1}"#.into());
        let removed = tokio::time::timeout(Duration::from_secs(1), removed).await;
        assert!(!matches!(removed, Ok(Ok(_))), "{role}: {removed:?}");
    }
    has_only_its_own_queue(&raw).await;
    let stored = raw.request("gb.x.run.one", "x".into()).await.unwrap();
    assert!(String::from_utf8_lossy(&stored.payload).contains("\"seq\""), "a worker stores results: {stored:?}");
    assert_eq!(texts(&reader.read(&run(), 1, 10).await.unwrap()), ["a", "b"]);
}

/// Checks what a worker may ask about queues.
async fn has_only_its_own_queue(raw: &async_nats::Client) {
    // A queue of its own would deliver stored results as messages of people, or take the runs of drivers.
    let own = r#"{"stream_name":"gb","config":{"durable_name":"own","filter_subject":"gb.x.>","deliver_subject":"gb.m.run.one",
        "ack_policy":"none","deliver_policy":"all"}}"#;
    for (subject, request) in [
        ("$JS.API.CONSUMER.CREATE.gb.own.gb.x.>", own),
        ("$JS.API.CONSUMER.CREATE.gb.own", own),
        ("$JS.API.CONSUMER.DURABLE.CREATE.gb.own", own),
        ("$JS.API.CONSUMER.CREATE.gb.drivers.gb.q.drive.*", "{}"),
        ("$JS.API.CONSUMER.MSG.NEXT.gb.drivers", r#"{"batch":1}"#),
        ("$JS.API.CONSUMER.DELETE.gb.stages", ""),
    ] {
        let asked = tokio::time::timeout(Duration::from_secs(1), raw.request(subject, request.into())).await;
        assert!(!matches!(asked, Ok(Ok(_))), "{subject}: {asked:?}");
    }
    // What `work` asks for is allowed.
    let queue = r#"{"stream_name":"gb","config":{"durable_name":"stages","filter_subject":"gb.q.stage.any.*.*",
        "ack_policy":"explicit","deliver_policy":"all"}}"#;
    let made = raw.request("$JS.API.CONSUMER.CREATE.gb.stages.gb.q.stage.any.*.*", queue.into()).await.unwrap();
    assert!(String::from_utf8_lossy(&made.payload).contains("\"name\":\"stages\""), "{made:?}");
}

/// Connects as a user of the servers, without anything of the fleet.
async fn raw_client(servers: &NatsServers, user: &str) -> async_nats::Client {
    let options = async_nats::ConnectOptions::new().custom_inbox_prefix(format!("_INBOX_{user}"));
    let options = options.user_and_password(user.to_owned(), format!("secret-{user}"));
    options.connect(servers.addresses()).await.unwrap()
}
