//! Attacks on `glovebox serve`: its port, its socket, and the file with the owner's token, which has every right.

use crate::row::{Payload, Row, Source};

#[rustfmt::skip]
pub(super) const ROWS: &[Row] = &[
    Row::new("server-port", Source::Review(22), "connect to the port of `glovebox serve`", "network namespace", Payload::Program(&["tcp", "{server}"])),
    Row::new("server-socket", Source::Review(22), "connect to the socket of `glovebox serve --socket`", "view", Payload::Program(&["unix", "{server_socket}"])),
    Row::new("server-token", Source::Review(22), "read the owner's token of the server", "view", Payload::Program(&["read", "{server_token}"])),
    Row::new("server-token-by-root", Source::Review(22), "read the owner's token by `/proc/self/root`", "view", Payload::Program(&["read", "/proc/self/root{server_token}"])),
    Row::new("server-token-by-link", Source::Review(22), "read the owner's token through a symbolic link", "view", Payload::Program(&["symlink-read", "{server_token}", "{out}/to-owner-token"])),
    Row::new("server-token-folder", Source::Review(22), "list the folder of the owner's token", "view", Payload::Program(&["list", "{server_folder}"])),
    Row::new("server-token-replace", Source::Review(22), "remove the owner's token, so that the attacker can replace it", "view", Payload::Program(&["unlink", "{server_token}"])),
];
