//! Attacks on a view from inside, with a witness outside that examines the disk.
//!
//! `attacks` is the table of escapes, run with and without `openat2`. `objects` has links, FIFOs, devices and holes.
//! `race` swaps directories during the walk. `model` performs random operations and compares the results with a model.
//! `layer` performs them on a layer and on a copied folder and expects the same results.

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
