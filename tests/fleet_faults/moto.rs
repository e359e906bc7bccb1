//! A service with the protocol of S3 on loopback, with one bucket. It ends with the value.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const READY: Duration = Duration::from_secs(120);

pub(super) struct Moto {
    child: Child,
    address: String,
    pub(super) port: u16,
}

impl Moto {
    /// Starts the service at an address of this machine. `None` if the program is not here.
    pub(super) fn start(address: String) -> Option<Self> {
        let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/moto/bin/moto_server");
        if !program.is_file() {
            return None;
        }
        let port = TcpListener::bind((&*address, 0)).unwrap().local_addr().unwrap().port();
        let mut command = Command::new(program);
        command.args(["-H", &address, "-p", &port.to_string()]);
        let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let moto = Self { child, address, port };
        let begun = Instant::now();
        while !moto.makes_bucket() {
            assert!(begun.elapsed() < READY, "moto_server does not start");
            std::thread::sleep(Duration::from_millis(50));
        }
        Some(moto)
    }

    fn makes_bucket(&self) -> bool {
        let Ok(mut stream) = TcpStream::connect((&*self.address, self.port)) else { return false };
        // The service wants a signature and does not verify it.
        let request = "PUT /blobs HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\nConnection: close\r\n\
                       Authorization: AWS4-HMAC-SHA256 Credential=key/20260101/us-east-1/s3/aws4_request, \
                       SignedHeaders=host, Signature=0\r\n\r\n";
        let mut answer = String::new();
        let is_sent = stream.write_all(request.as_bytes()).is_ok();
        is_sent && stream.read_to_string(&mut answer).is_ok() && answer.starts_with("HTTP/1.1 200")
    }

    pub(super) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Returns the address of the store for `fleet init`.
    pub(super) fn store(&self) -> String {
        format!("s3://blobs?endpoint=http://{}:{}&region=us-east-1&allow_http=true", self.address, self.port)
    }
}

impl Drop for Moto {
    fn drop(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}
