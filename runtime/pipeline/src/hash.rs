//! Maps and sets over names, with a fast hasher.
//!
//! A pipeline has some thousand short names, and `check` looks each of them up several times. The standard hasher took an eighth of its
//! time. This one is seeded by the process, as the standard one is, so a file cannot choose names that collide.

use foldhash::fast::RandomState;

pub(crate) type HashMap<K, V> = std::collections::HashMap<K, V, RandomState>;
pub(crate) type HashSet<T> = std::collections::HashSet<T, RandomState>;
