//! Connections: how many, and how long each step may take.

use crate::server::Server;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::Semaphore;
use tokio::time::{Sleep, sleep};

/// Maximum number of connections. Another one waits until one of them ends.
pub const CONNECTIONS_MAX: usize = 256;
/// How long the head of a request may take to arrive.
pub const HEAD_WITHIN: Duration = Duration::from_secs(10);
/// Maximum length of the head of a request, bytes.
pub const HEAD_BYTES_MAX: usize = 16 << 10;
/// Maximum number of fields in the head of a request.
pub const HEAD_FIELDS_MAX: usize = 100;
/// How long a client may take no byte of an answer.
pub const READ_WITHIN: Duration = Duration::from_secs(30);

/// Answers requests on accepted connections.
pub struct Connections {
    server: Arc<Server>,
    room: Arc<Semaphore>,
}

impl Connections {
    /// Creates the place for the connections of a server.
    pub fn new(server: Arc<Server>) -> Self {
        Self { server, room: Arc::new(Semaphore::new(CONNECTIONS_MAX)) }
    }

    /// Waits until another connection has room, so that the caller accepts no more than can be answered.
    pub async fn ready(&self) -> Room {
        Room { permit: Arc::clone(&self.room).acquire_owned().await.ok() }
    }

    /// Answers the requests of one connection. Returns when it has ended.
    pub async fn serve(&self, connection: impl AsyncRead + AsyncWrite + Send + Unpin + 'static, room: Room) {
        let service = TowerToHyperService::new(self.server.router());
        let mut http = http1::Builder::new();
        http.timer(TokioTimer::new())
            .header_read_timeout(HEAD_WITHIN)
            .max_buf_size(HEAD_BYTES_MAX)
            .max_headers(HEAD_FIELDS_MAX)
            .half_close(false);
        let connection = TokioIo::new(Patient { connection, stalled: None });
        let _reset = http.serve_connection(connection, service).await;
        drop(room);
    }
}

/// The room of one connection.
pub struct Room {
    permit: Option<tokio::sync::OwnedSemaphorePermit>,
}

impl Room {
    /// Returns false if the server has ended.
    pub fn is_there(&self) -> bool {
        self.permit.is_some()
    }
}

/// A connection that ends when the client takes no byte for [`READ_WITHIN`].
struct Patient<C> {
    connection: C,
    stalled: Option<Pin<Box<Sleep>>>,
}

impl<C: AsyncRead + Unpin> AsyncRead for Patient<C> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.connection).poll_read(context, buffer)
    }
}

impl<C: AsyncWrite + Unpin> Patient<C> {
    fn timed<T>(&mut self, context: &mut Context<'_>, polled: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if polled.is_ready() {
            self.stalled = None;
            return polled;
        }
        let stalled = self.stalled.get_or_insert_with(|| Box::pin(sleep(READ_WITHIN)));
        match stalled.as_mut().poll(context) {
            Poll::Ready(()) => Poll::Ready(Err(io::ErrorKind::TimedOut.into())),
            Poll::Pending => Poll::Pending,
        }
    }
}

impl<C: AsyncWrite + Unpin> AsyncWrite for Patient<C> {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.connection).poll_write(context, bytes);
        self.timed(context, polled)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let polled = Pin::new(&mut self.connection).poll_flush(context);
        self.timed(context, polled)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let polled = Pin::new(&mut self.connection).poll_shutdown(context);
        self.timed(context, polled)
    }
}
