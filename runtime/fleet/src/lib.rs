//! A run on many machines: the storage ports over NATS JetStream and an object store.
//!
//! [`fleet`] connects to the servers. [`log`] has the journals and the claim queues: an append is one `frame` under one
//! compare-and-set on the run's subject, and `run` is the fold of a run's frames. `jetstream` has the requests and
//! [`subjects`] the names on the server. [`blobs`] has the blobs in an object store, and [`s3`] its client for services
//! with the protocol of S3. [`init`] creates the stream and checks the settings of servers, [`examine`] reports
//! them one by one. [`settings`] says who operates the fleet, where its blobs are ([`store_url`]) and how long its machines may be
//! silent ([`lease`]).
//! [`statement`] is what the operator says about one machine, [`roster`] knows who may do what at each place of the stream, and
//! [`server_users`] has the permissions of users of the servers.
//!
//! The crate holds adapters of the ports of `glovebox-journal` and decides nothing about a run. It is the only one that
//! names `async-nats` and `object_store`.

#![forbid(unsafe_code)]
#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

pub mod blobs;
mod caller;
mod consumer;
mod desk;
pub mod drive;
mod eligibility;
pub mod examine;
mod exchanges;
pub mod executors;
pub mod fleet;
pub mod frame;
mod held;
pub mod init;
mod jetstream;
pub mod lease;
pub mod log;
pub mod machine;
pub mod mail;
mod permissions;
pub mod presence;
mod question;
mod repetition;
mod result;
pub mod roster;
mod run;
pub mod run_key;
pub mod s3;
pub mod server_users;
pub mod settings;
pub mod statement;
pub mod store_url;
pub mod subjects;
mod wire;
