//! Plugins in OCI registries.
