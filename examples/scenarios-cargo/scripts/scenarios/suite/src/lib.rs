//! Empty: the scenarios are in `tests/`, and do not depend on any crate of the project.
