//! The journal of an encrypted run: who can read it, and who cannot.

use crate::bench::{Bench, address, admission, append, can_run, joined, machine, note, operator, run, texts};
use glovebox_fleet::statement::Role;
use glovebox_journal::event::StreamKey;
use glovebox_journal::ports::{BlobStore as _, PortError, RunLog as _};
use glovebox_signing::key::SigningKey;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_is_read_and_continued_by_those_for_whom_it_was_encrypted() {
    if !can_run("an encrypted run") {
        return;
    }
    let bench = Bench::start(1).await;
    let servers = bench.servers.addresses();
    let [second, third] = [3, 4].map(|seed| SigningKey::from_seed(&[seed; 32]).unwrap());
    for (name, key) in [("second", &second), ("third", &third)] {
        let fleet = bench.fleet().await;
        fleet.admit(&operator(), key.public(), admission(name, &[Role::Drive])).await.unwrap();
    }
    let client = joined(&address(servers.clone()), machine()).await;
    client.encrypt(&run(), &[second.public()]).unwrap();
    let log = client.log(bench.blobs.clone());
    // The second frame is too large for a message.
    let large = "x".repeat(1 << 20);
    append(&log, &[(StreamKey::Run, 0)], &[note("first")]).await.unwrap();
    append(&log, &[(StreamKey::Run, 1)], &[note(large.clone())]).await.unwrap();
    let digest = log.blobs_of(&run()).await.unwrap().put_bytes(b"content").unwrap();

    let reader = joined(&address(servers.clone()), second).await.log(bench.blobs.clone());
    assert_eq!(reader.blobs_of(&run()).await.unwrap().read_all(&digest, 9).unwrap(), b"content");
    append(&reader, &[(StreamKey::Run, 2)], &[note("third")]).await.unwrap();
    assert_eq!(texts(&bench.records().await), ["first", &large, "third"]);
    assert!(bench.blobs.open(&digest).is_err(), "the blob has its usual name");

    let stranger = joined(&address(servers.clone()), third).await.log(bench.blobs.clone());
    let no_key =
        |error: PortError| assert!(matches!(&error, PortError::NoKey { run } if run.as_str() == "run"), "{error}");
    no_key(stranger.read(&run(), 1, 1).await.unwrap_err());
    no_key(stranger.blobs_of(&run()).await.err().unwrap());
    // It would write what nobody else expects to be open.
    no_key(append(&stranger, &[(StreamKey::Run, 3)], &[note("fourth")]).await.unwrap_err());
    assert_eq!(bench.records().await.len(), 3);
}
