//! A fault at a place of a text.

/// A reason and its place, before its line is counted.
#[derive(Debug)]
pub(super) struct Fault {
    pub(super) at: usize,
    pub(super) reason: String,
}

impl Fault {
    pub(super) fn new(at: usize, reason: impl Into<String>) -> Self {
        Self { at, reason: reason.into() }
    }
}
