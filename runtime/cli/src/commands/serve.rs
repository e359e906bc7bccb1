//! `glovebox serve`: runs over HTTP, for programs and for a page in a browser.
//!
//! This file knows sockets, certificates and token files; `glovebox_serve` answers the requests, and
//! [`super::desk`] has the documents.

use crate::arguments::ServeArguments;
use crate::commands::desk::OwnDesk;
use crate::exit::{CommandResult, Exit, Stop};
use crate::exports::otlp::send::Collector;
use crate::exports::otlp::{exporter, headers};
use crate::terminal::{self, Silence};
use crate::token_file::{self, Owner};
use glovebox_serve::connection::Connections;
use glovebox_serve::guard::OwnNames;
use glovebox_serve::server::Server;
use glovebox_serve::token::{StoredToken, Tokens};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use schemars::JsonSchema;
use serde::Serialize;
use std::convert::Infallible;
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, UnixListener};
use tokio::signal::unix::{SignalKind, signal};
use tokio_rustls::TlsAcceptor;

/// Threads for requests that read files, and for the readers of followed runs.
const BLOCKING_THREADS_MAX: usize = 24;
/// How long a TLS handshake may take.
const HANDSHAKE_WITHIN: Duration = Duration::from_secs(10);
/// Interval at which the tokens are read again.
const TOKENS_AGAIN: Duration = Duration::from_secs(1);
/// Pause after a connection could not be accepted, for example because too many files are open.
const ACCEPT_AGAIN: Duration = Duration::from_millis(100);

/// The document that `serve --json` prints.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(title = "serve.json")]
pub struct ServeFile {
    /// Version of this document.
    schema_version: u32,
    /// Where the server listens: a URL, or the path of a socket.
    address: String,
    /// A link to the page, which can be used once within a minute; absent for a socket.
    #[serde(skip_serializing_if = "Option::is_none")]
    link: Option<String>,
    /// File with the token of the owner, which has every right.
    token_file: String,
}

/// Serves the runs of a project until a signal ends it.
pub fn serve(arguments: &ServeArguments) -> CommandResult {
    refuse_open_address(arguments)?;
    let project = std::path::absolute(&arguments.workdir).map_err(|error| Stop::io("find the project", &error))?;
    let runs_dir = std::path::absolute(&arguments.runs.runs_dir).map_err(|error| Stop::io("find the runs", &error))?;
    if !project.is_dir() {
        return Err(Stop::new(Exit::Usage, format!("`{}` is not a folder", project.display())));
    }
    let owner = token_file::owner()?;
    let tokens = accepted(arguments, &owner)?;
    let collector = collector(arguments)?;
    let tls = tls(arguments)?;
    let desk = Arc::new(OwnDesk::new(project.clone(), runs_dir.clone(), arguments.labels.clone())?);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .max_blocking_threads(BLOCKING_THREADS_MAX)
        .enable_all()
        .build()
        .map_err(|error| Stop::io("start the server", &error))?;
    runtime.block_on(async {
        let listener = listen(arguments, &project, &runs_dir).await?;
        let (names, address) = names(arguments, &listener, tls.is_some())?;
        let server = Server::new(names, Tokens::new(tokens), desk);
        // Before a client knows the address: a run that it starts is one that ends while the server works.
        collector.map(|collector| exporter::begin(collector, runs_dir.clone())).transpose()?;
        announce(arguments, &server, &address, &owner)?;
        // Notes that commands print for a person would be lost here, and their order with other threads is arbitrary.
        let _silence = Silence::begin();
        let connections = Arc::new(Connections::new(Arc::clone(&server)));
        let exit = tokio::select! {
            exit = accept(&listener, tls, &connections) => exit?,
            never = read_tokens_again(arguments, &owner, server.tokens()) => match never {},
        };
        if let Some(file) = &arguments.socket {
            let _gone = std::fs::remove_file(file);
        }
        Ok(exit)
    })
}

/// Returns the collector of telemetry, if there is one.
fn collector(arguments: &ServeArguments) -> Result<Option<Collector>, Stop> {
    let Some(address) = &arguments.otlp else {
        return match arguments.headers.otlp_header.is_empty() {
            true => Ok(None),
            false => Err(Stop::new(Exit::Usage, "`--otlp-header` needs `--otlp`")),
        };
    };
    let not_an_address = || {
        Stop::new(Exit::Usage, format!("`--otlp {address}`: this is not the address of a collector"))
            .with_help("`glovebox export RUN --otlp FILE` writes a file")
    };
    let collector = Collector::parse(address).ok_or_else(not_an_address)??;
    Ok(Some(collector.with_headers(headers::read(&arguments.headers.otlp_header)?)))
}

/// Returns the tokens that the server accepts.
fn accepted(arguments: &ServeArguments, owner: &Owner) -> Result<Vec<StoredToken>, Stop> {
    let others = match &arguments.tokens {
        Some(file) => token_file::read(file)?,
        None => token_file::own()?,
    };
    Ok([vec![owner.stored.clone()], others].concat())
}

/// Reads the tokens again and again, so that a removed token is not accepted any more. If the file cannot be read, only the
/// owner's token is accepted.
async fn read_tokens_again(arguments: &ServeArguments, owner: &Owner, tokens: &Tokens) -> Infallible {
    loop {
        tokio::time::sleep(TOKENS_AGAIN).await;
        tokens.replace(accepted(arguments, owner).unwrap_or_else(|_| vec![owner.stored.clone()]));
    }
}

/// Where connections come from.
enum Listener {
    Tcp(TcpListener),
    Socket(UnixListener),
}

/// Refuses to listen on an address that other machines reach, unless the connection is encrypted and every token was made
/// for it.
fn refuse_open_address(arguments: &ServeArguments) -> Result<(), Stop> {
    if arguments.socket.is_some() || arguments.listen.ip().is_loopback() {
        return Ok(());
    }
    let missing: Vec<&str> = [("--tls-cert", arguments.tls_cert.is_none()), ("--tokens", arguments.tokens.is_none())]
        .into_iter()
        .filter_map(|(flag, is_missing)| is_missing.then_some(flag))
        .collect();
    if missing.is_empty() {
        return Ok(());
    }
    let message = format!("other machines reach `{}`, which needs `{}`", arguments.listen, missing.join("` and `"));
    Err(Stop::new(Exit::Usage, message).with_help("or listen on this machine only: `--listen 127.0.0.1:0`"))
}

async fn listen(arguments: &ServeArguments, project: &Path, runs_dir: &Path) -> Result<Listener, Stop> {
    let Some(file) = &arguments.socket else {
        let address = arguments.listen;
        let listener = TcpListener::bind(address).await;
        return listener.map(Listener::Tcp).map_err(|error| Stop::io(format!("listen on `{address}`"), &error));
    };
    let file = std::path::absolute(file).map_err(|error| Stop::io("find the socket", &error))?;
    if file.starts_with(project) || file.starts_with(runs_dir) {
        let message = format!("the socket `{}` would be in the project or among its runs", file.display());
        return Err(Stop::new(Exit::Usage, message).with_help("name a file elsewhere, such as in `$XDG_RUNTIME_DIR`"));
    }
    let failed = |error: std::io::Error| Stop::io(format!("listen on `{}`", file.display()), &error);
    let bound = UnixListener::bind(&file);
    let listener = bound.map_err(|error| match error.kind() {
        ErrorKind::AddrInUse => failed(error).with_help("remove the file if no server uses it any more"),
        _ => failed(error),
    })?;
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).map_err(failed)?;
    Ok(Listener::Socket(listener))
}

/// Returns the names of this server, and its address as clients write it.
fn names(arguments: &ServeArguments, listener: &Listener, is_tls: bool) -> Result<(OwnNames, String), Stop> {
    let scheme = if is_tls { "https" } else { "http" };
    let Listener::Tcp(listener) = listener else {
        let file = arguments.socket.clone().unwrap_or_default();
        return Ok((OwnNames { scheme, hosts: vec!["localhost".to_owned()] }, file.display().to_string()));
    };
    let at: SocketAddr = listener.local_addr().map_err(|error| Stop::io("find the address of the server", &error))?;
    let mut hosts = vec![at.to_string()];
    if at.ip().is_loopback() {
        hosts.push(format!("localhost:{}", at.port()));
    }
    for name in &arguments.name {
        hosts.push(if name.contains(':') { name.clone() } else { format!("{name}:{}", at.port()) });
        // Browsers leave out the port of `https`.
        hosts.extend((is_tls && at.port() == 443).then(|| name.clone()));
    }
    let address = format!("{scheme}://{}/", arguments.name.first().map_or(&hosts[0], |_| &hosts[hosts.len() - 1]));
    Ok((OwnNames { scheme, hosts }, address))
}

fn announce(arguments: &ServeArguments, server: &Server, address: &str, owner: &Owner) -> Result<(), Stop> {
    let code = server.tokens().code(&owner.stored.name, Instant::now());
    let code = code.map_err(|error| Stop::io("make a one-time code", &error))?;
    // The code is in the fragment, which a browser sends to nobody.
    let link = arguments.socket.is_none().then(|| format!("{address}#code={code}"));
    let token_file = owner.file.display().to_string();
    if arguments.json {
        return terminal::print_json_line(&ServeFile {
            schema_version: 1,
            address: address.to_owned(),
            link,
            token_file,
        });
    }
    terminal::print(format_args!("listening  {address}\n"));
    if let Some(link) = link {
        terminal::print(format_args!("page       {link}   (once, within a minute)\n"));
    }
    terminal::print(format_args!("token      {token_file}   (every right; others: `glovebox tokens add`)\n"));
    Ok(())
}

/// Accepts connections until a signal arrives.
async fn accept(listener: &Listener, tls: Option<TlsAcceptor>, connections: &Arc<Connections>) -> CommandResult {
    let failed = |error: std::io::Error| Stop::io("wait for signals", &error);
    let (mut interrupt, mut terminate) =
        (signal(SignalKind::interrupt()).map_err(failed)?, signal(SignalKind::terminate()).map_err(failed)?);
    loop {
        tokio::select! {
            _ = interrupt.recv() => return Ok(Exit::Interrupted),
            _ = terminate.recv() => return Ok(Exit::Terminated),
            () = accept_one(listener, tls.as_ref(), connections) => {}
        }
    }
}

async fn accept_one(listener: &Listener, tls: Option<&TlsAcceptor>, connections: &Arc<Connections>) {
    let room = connections.ready().await;
    if !room.is_there() {
        return;
    }
    let connections = Arc::clone(connections);
    match listener {
        Listener::Socket(listener) => match listener.accept().await {
            Ok((stream, _)) => drop(tokio::spawn(async move { connections.serve(stream, room).await })),
            Err(_) => tokio::time::sleep(ACCEPT_AGAIN).await,
        },
        Listener::Tcp(listener) => match (listener.accept().await, tls.cloned()) {
            (Ok((stream, _)), None) => {
                let _slower = stream.set_nodelay(true);
                tokio::spawn(async move { connections.serve(stream, room).await });
            }
            (Ok((stream, _)), Some(tls)) => {
                let _slower = stream.set_nodelay(true);
                tokio::spawn(async move {
                    if let Some(stream) = encrypted(&tls, stream).await {
                        connections.serve(stream, room).await;
                    }
                });
            }
            (Err(_), _) => tokio::time::sleep(ACCEPT_AGAIN).await,
        },
    }
}

async fn encrypted(
    tls: &TlsAcceptor,
    stream: tokio::net::TcpStream,
) -> Option<impl AsyncRead + AsyncWrite + Send + Unpin + 'static> {
    tokio::time::timeout(HANDSHAKE_WITHIN, tls.accept(stream)).await.ok()?.ok()
}

fn tls(arguments: &ServeArguments) -> Result<Option<TlsAcceptor>, Stop> {
    let (Some(chain), Some(key)) = (&arguments.tls_cert, &arguments.tls_key) else { return Ok(None) };
    let bad = |file: &PathBuf, why: String| Stop::new(Exit::Usage, format!("`{}`: {why}", file.display()));
    let certificates = CertificateDer::pem_file_iter(chain)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .map_err(|error| bad(chain, error.to_string()))?;
    let private = PrivateKeyDer::from_pem_file(key).map_err(|error| bad(key, error.to_string()))?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| bad(chain, error.to_string()))?
        .with_no_client_auth()
        .with_single_cert(certificates, private)
        .map_err(|error| bad(chain, error.to_string()))?;
    Ok(Some(TlsAcceptor::from(Arc::new(config))))
}
