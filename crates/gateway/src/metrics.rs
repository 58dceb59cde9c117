//! Placeholder while this module is being written.
#[derive(Debug, Default)]
pub struct Metrics;
