//! The stream of a fleet and the checks of its servers.

use crate::bench::{address, can_run, connect};
use crate::nats::NatsServers;
use glovebox_fleet::fleet::{Fleet, FleetError, Login};
use glovebox_fleet::init::Replication::{Cluster, SingleNode};
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpListener;

/// Returns the exit code and the text of an error.
fn refused<T: std::fmt::Debug>(result: Result<T, FleetError>) -> (u8, String) {
    let error = result.unwrap_err();
    (error.exit_code(), error.to_string())
}

#[tokio::test]
async fn a_fleet_on_one_server_is_allowed_by_name_only() {
    if !can_run("a fleet on one NATS server") {
        return;
    }
    let servers = NatsServers::start(1, "");
    let fleet = connect(servers.addresses()).await;
    let (code, text) = refused(fleet.check(SingleNode, None).await);
    assert_eq!(
        (code, text.as_str()),
        (3, "the stream `gb` does not exist\nhelp: create it once: `glovebox fleet init`")
    );
    let (code, text) = refused(fleet.init(Cluster).await);
    assert!(code == 3 && text.contains("replicas") && text.contains("--single-node"), "{text}");
    fleet.init(SingleNode).await.unwrap();
    // Again: nothing changes.
    fleet.init(SingleNode).await.unwrap();
    let (code, text) = refused(fleet.check(Cluster, None).await);
    assert!(code == 3 && text.contains("the stream `gb` has 1 replicas, expected 3"), "{text}");
    let hidden = fleet.check(SingleNode, None).await.unwrap().warnings;
    assert!(hidden.len() == 2 && hidden[1].contains("sync_interval: always"), "{hidden:?}");
    let seen = fleet.check(SingleNode, Some(&servers.monitor(0))).await.unwrap().warnings;
    assert!(seen.len() == 1 && seen[0].starts_with("one server stores every journal"), "{seen:?}");
    let elsewhere = fleet.check(SingleNode, Some("http://127.0.0.1:1")).await.unwrap().warnings;
    assert_eq!(elsewhere.len(), 2, "{elsewhere:?}");
}

#[tokio::test]
async fn a_fleet_on_three_servers_has_three_replicas() {
    if !can_run("a fleet on three NATS servers") {
        return;
    }
    let servers = NatsServers::start(3, "");
    let fleet = connect(servers.addresses()).await;
    fleet.init(Cluster).await.unwrap();
    assert_eq!(fleet.check(Cluster, Some(&servers.monitor(1))).await.unwrap().warnings, [""; 0]);
}

#[tokio::test]
async fn a_server_that_flushes_later_is_refused() {
    if !can_run("a NATS server that flushes later") {
        return;
    }
    let servers = NatsServers::start_syncing(1, "\"2m\"", "");
    let fleet = connect(servers.addresses()).await;
    fleet.init(SingleNode).await.unwrap();
    let (code, text) = refused(fleet.check(SingleNode, Some(&servers.monitor(0))).await);
    assert!(code == 3 && text.starts_with("the server flushes records each 120 s"), "{text}");
}

#[tokio::test]
async fn a_server_that_accepts_only_short_messages_is_refused() {
    if !can_run("a NATS server that accepts only short messages") {
        return;
    }
    let servers = NatsServers::start(1, "max_payload: 65536");
    let (code, text) = refused(connect(servers.addresses()).await.init(SingleNode).await);
    assert!(code == 3 && text.starts_with("the server accepts messages of 65536 bytes, expected 1048576"), "{text}");
}

#[tokio::test]
async fn a_wrong_password_and_a_missing_server_have_codes_of_their_own() {
    if !can_run("a NATS server with a password") {
        return;
    }
    let servers = NatsServers::start(1, "authorization { user: driver, password: secret }");
    let connect = async |password: Option<&str>| {
        let login = password.map(|password| Login { user: "driver".to_owned(), password: password.to_owned() });
        let connected = Fleet::connect(&crate::bench::with_login(servers.addresses(), login)).await;
        connected.map(drop)
    };
    connect(Some("secret")).await.unwrap();
    for wrong in [Some("guess"), None] {
        let (code, text) = refused(connect(wrong).await);
        assert!(code == 6 && text.contains("refuses this user") && !text.contains("guess"), "{text}");
    }
    let nobody = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let (code, text) = refused(Fleet::connect(&address(vec![format!("nats://{nobody}")])).await.map(drop));
    assert!(code == 9 && text.starts_with("no NATS server answers at `nats://127.0.0.1:"), "{text}");
    let (code, text) = refused(Fleet::connect(&address(vec!["nats://a b:x".to_owned()])).await.map(drop));
    assert!(code == 3 && text.contains("write `nats://HOST:4222`"), "{text}");
}

/// A server before 2.12 answers as every NATS server does, and says its version.
#[tokio::test]
async fn an_old_server_is_refused() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = address(vec![format!("nats://{}", listener.local_addr().unwrap())]);
    let server = tokio::spawn(async move {
        let (mut client, _) = listener.accept().await.unwrap();
        let info = r#"INFO {"server_id":"A","version":"2.11.9","max_payload":1048576,"jetstream":true,"headers":true,"proto":1}"#;
        client.write_all(format!("{info}\r\nPONG\r\n").as_bytes()).await.unwrap();
        std::future::pending::<()>().await;
    });
    let fleet = Fleet::connect(&address).await.unwrap();
    let (code, text) = refused(fleet.check(SingleNode, None).await);
    let expected = "the server has version 2.11.9, expected 2.12 or newer";
    assert!(code == 3 && text.starts_with(expected) && text.contains("\nhelp: "), "{text}");
    assert_eq!(refused(fleet.init(SingleNode).await), (code, text));
    server.abort();
}
