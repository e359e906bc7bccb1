//! Attacks on a view from inside, with a witness outside that examines the disk.
//!
//! `attacks` is the table of escapes, run with and without `openat2`. `objects` has links, FIFOs, devices and holes.
//! `race` swaps directories during the walk. `model` performs random operations and compares the results with a model.
//! `layer` performs them on a layer and on a copied folder and expects the same results.

mod attacks;
mod fixture;
mod layer;
mod model;
mod objects;
mod race;
mod swap;
mod table;
