//! The walls of a view, attacked from inside, with a witness outside that looks at the disk.
//!
//! `attacks` is the table of escapes, run with `openat2` and without; `objects` are links, pipes, devices and holes; `race` swaps
//! directories under the walk; `model` plays random operations against a model of what should have happened; `layer` plays them on a
//! layer and on a copied folder, and expects the same.

#![allow(clippy::unwrap_used)]

#[path = "view/attacks.rs"]
mod attacks;
#[path = "view/fixture.rs"]
mod fixture;
#[path = "view/layer.rs"]
mod layer;
#[path = "view/model.rs"]
mod model;
#[path = "view/objects.rs"]
mod objects;
#[path = "view/race.rs"]
mod race;
#[path = "view/swap.rs"]
mod swap;
#[path = "view/table.rs"]
mod table;
