//! A run on many machines: the storage ports over NATS JetStream and an object store.
//!
//! [`fleet`] connects to the servers. [`log`] has the journals and the claim queues: an append is one `frame` under one
//! compare-and-set on the run's subject, and `run` is the fold of a run's frames. `jetstream` has the requests and
//! [`subjects`] the names on the server. [`blobs`] has the blobs in an object store, and [`s3`] its client for services
//! with the protocol of S3. [`init`] creates the stream and checks the settings of servers.
//!
//! The crate holds adapters of the ports of `glovebox-journal` and decides nothing about a run. It is the only one that
//! names `async-nats` and `object_store`. No command uses it yet, so the program contains nothing of it.

#![forbid(unsafe_code)]
#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

pub mod blobs;
mod consumer;
pub mod drive;
pub mod executors;
pub mod fleet;
mod frame;
pub mod init;
mod jetstream;
pub mod log;
pub mod machine;
pub mod mail;
mod run;
pub mod s3;
pub mod subjects;
mod wire;
