//! Host programs in a jail. Every claim has a witness outside: a file that must not appear, or a process that must be
//! dead.

mod cached;
mod commands;
mod ends;
mod fixture;
mod limits;
mod probed;
mod proxied;
mod settings;
