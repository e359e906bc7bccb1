//! A proxy between a client and its server that can lose answers: what the client sends arrives, what the server answers
//! does not, and then the connection ends. Or it falls silent: nothing arrives any more, and no connection ends.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};

/// How long a connection stays open that loses answers, so that what the client sent arrives.
const LAST: Duration = Duration::from_millis(300);

/// A running proxy. It ends with the value.
pub(crate) struct Proxy {
    pub(crate) address: String,
    loses: Arc<AtomicBool>,
    is_silent: Arc<AtomicBool>,
    accepting: JoinHandle<()>,
}

impl Proxy {
    pub(crate) async fn start(server: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("nats://{}", listener.local_addr().unwrap());
        let server = server.strip_prefix("nats://").unwrap().to_owned();
        let loses = Arc::new(AtomicBool::new(false));
        let flag = Arc::clone(&loses);
        let is_silent = Arc::new(AtomicBool::new(false));
        let silent = Arc::clone(&is_silent);
        let accepting = tokio::spawn(async move {
            let mut kept = Vec::new();
            loop {
                let (client, _) = listener.accept().await.unwrap();
                if silent.load(Ordering::SeqCst) {
                    kept.push(client);
                    continue;
                }
                // The server may be down. The client then tries again.
                let Ok(server) = TcpStream::connect(&server).await else { continue };
                let ((from_client, to_client), (from_server, to_server)) = (client.into_split(), server.into_split());
                let sending = tokio::spawn(copy(from_client, to_server));
                tokio::spawn(answers(from_server, to_client, Arc::clone(&flag), Arc::clone(&silent), sending));
            }
        });
        Self { address, loses, is_silent, accepting }
    }

    /// Passes on no answer from now on. Connections stay, and new ones are accepted.
    pub(crate) fn fall_silent(&self) {
        self.is_silent.store(true, Ordering::SeqCst);
    }

    /// Passes on what comes from now on. What was lost stays lost.
    pub(crate) fn speak(&self) {
        self.is_silent.store(false, Ordering::SeqCst);
    }

    /// Loses the next answer, and ends its connection. A new connection loses none.
    pub(crate) fn lose_next(&self) {
        self.loses.store(true, Ordering::SeqCst);
    }

    /// Returns true until an answer was lost.
    pub(crate) fn will_lose(&self) -> bool {
        self.loses.load(Ordering::SeqCst)
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

async fn copy(mut from: OwnedReadHalf, mut to: OwnedWriteHalf) {
    let _ = tokio::io::copy(&mut from, &mut to).await;
}

/// Passes answers on until one must be lost.
async fn answers(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    loses: Arc<AtomicBool>,
    is_silent: Arc<AtomicBool>,
    sending: JoinHandle<()>,
) {
    let mut bytes = vec![0; 65_536];
    while let Ok(read @ 1..) = from.read(&mut bytes).await {
        if is_silent.load(Ordering::SeqCst) {
            continue;
        }
        if loses.swap(false, Ordering::SeqCst) {
            let _ = timeout(LAST, async { while matches!(from.read(&mut bytes).await, Ok(1..)) {} }).await;
            sleep(Duration::from_millis(10)).await;
            break;
        }
        if to.write_all(&bytes[..read]).await.is_err() {
            break;
        }
    }
    sending.abort();
}
