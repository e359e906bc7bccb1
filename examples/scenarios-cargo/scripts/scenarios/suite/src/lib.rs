//! Nothing: the scenarios are in `tests/`, and depend on no crate of the project.
