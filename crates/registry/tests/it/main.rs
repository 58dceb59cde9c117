//! The registry's crate tests: one binary.

#[cfg(test)]
mod config;
