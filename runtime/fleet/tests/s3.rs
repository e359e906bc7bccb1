//! Blobs in a service with the protocol of S3: the server of `moto`, on loopback.

use crate::not_run::not_run;
use glovebox_fleet::blobs::ObjectBlobs;
use glovebox_journal::event::Digest;
use glovebox_journal::ports::{BlobStore as _, PortError};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Sizes around that of a part.
const SIZES: [usize; 4] = [0, 5, 300_000, 9 * 1024 * 1024];

/// A running server with the bucket `blobs`. It ends with the value.
struct Moto {
    child: Child,
    endpoint: String,
}

impl Moto {
    /// Starts the server, or says that it was not brought.
    async fn start() -> Option<Self> {
        let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/moto/bin/moto_server");
        if !program.is_file() {
            not_run("blobs in S3", "no moto_server: run `cargo xtask moto`");
            return None;
        }
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let mut command = Command::new(program);
        command.args(["-H", "127.0.0.1", "-p", &port.to_string()]);
        let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let moto = Self { child, endpoint: format!("http://127.0.0.1:{port}") };
        let begin = Instant::now();
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            assert!(begin.elapsed() < Duration::from_secs(120), "moto_server does not start");
            std::thread::sleep(Duration::from_millis(50));
        }
        moto.put("blobs", Vec::new()).await;
        Some(moto)
    }

    /// Stores an object, or creates a bucket, without the client under test.
    async fn put(&self, path: &str, bytes: Vec<u8>) {
        let client = reqwest::Client::builder().tls_backend_preconfigured(tls()).build().unwrap();
        // The server wants a signature and does not verify it.
        let signed =
            "AWS4-HMAC-SHA256 Credential=key/20260101/us-east-1/s3/aws4_request, SignedHeaders=host, Signature=0";
        let request = client.put(format!("{}/{path}", self.endpoint)).header("authorization", signed);
        let answer = request.body(bytes).send().await.unwrap();
        assert!(answer.status().is_success(), "{answer:?}");
    }

    fn blobs(&self, more: &[(&str, &str)]) -> Result<ObjectBlobs, String> {
        let options = [
            ("aws_endpoint", self.endpoint.as_str()),
            ("aws_region", "us-east-1"),
            ("aws_access_key_id", "key"),
            ("aws_secret_access_key", "secret"),
        ];
        let options = options.iter().chain(more).map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        ObjectBlobs::in_s3("blobs", &options.collect::<Vec<_>>()).map_err(|error| error.to_string())
    }
}

impl Drop for Moto {
    fn drop(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

fn tls() -> rustls::ClientConfig {
    rustls::ClientConfig::builder_with_provider(rustls::crypto::ring::default_provider().into())
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(rustls::RootCertStore::empty())
        .with_no_client_auth()
}

fn bytes(size: usize) -> Vec<u8> {
    (0..251).cycle().take(size).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn blobs_in_s3_are_read_back_and_verified() {
    let Some(moto) = Moto::start().await else { return };
    let blobs = moto.blobs(&[("aws_allow_http", "true")]).unwrap();
    for bytes in SIZES.map(bytes) {
        let digest = Digest::hash(&bytes);
        for _ in 0..2 {
            assert_eq!(blobs.put_bytes(&bytes).unwrap(), digest);
        }
        let another_machine = moto.blobs(&[("aws_allow_http", "true")]).unwrap();
        assert!(another_machine.read_all(&digest, bytes.len() as u64).unwrap() == bytes, "{}", bytes.len());
    }
    let missing = blobs.open(&Digest::hash(b"never stored")).err().unwrap();
    assert!(matches!(&missing, PortError::Corrupt { found, .. } if found == "it is missing"), "{missing}");
    for size in [5, 9 * 1024 * 1024] {
        let (mut bytes, digest) = (bytes(size), Digest::hash(&bytes(size)));
        let path = format!("blobs/blobs/{}/{}", &digest.hex()[..2], digest.hex());
        bytes[0] ^= 1;
        moto.put(&path, bytes.clone()).await;
        let rotten = blobs.open(&digest).err().unwrap().to_string();
        assert_eq!(rotten, format!("blob {digest} is corrupt: its bytes have another digest"));
        bytes[0] ^= 1;
        moto.put(&path, bytes[..size - 1].to_vec()).await;
        assert_eq!(blobs.put_bytes(&bytes).unwrap(), digest);
        assert!(blobs.read_all(&digest, size as u64).unwrap() == bytes, "what was cut off is replaced");
    }
}

#[tokio::test]
async fn an_option_without_effect_is_refused() {
    let open = |option: (&str, &str)| {
        let option = (option.0.to_owned(), option.1.to_owned());
        ObjectBlobs::in_s3("blobs", &[option]).err().map(|error| error.to_string()).unwrap_or_default()
    };
    assert!(open(("aws_colour", "blue")).starts_with("option `aws_colour` of the object store:"));
    assert_eq!(
        open(("allow_invalid_certificates", "true")),
        "option `allow_invalid_certificates` of the object store: this client does not have it"
    );
}

/// Without leave, keys and blobs do not cross a network in plain text.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn plain_http_must_be_allowed() {
    let Some(moto) = Moto::start().await else { return };
    let refused = moto.blobs(&[]).map(|blobs| blobs.put_bytes(b"hello"));
    assert!(!matches!(refused, Ok(Ok(_))), "{refused:?}");
}
