//! Properties of the chain: any change to it is found.

#![expect(
    clippy::tests_outside_test_module,
    clippy::unwrap_used,
    reason = "this whole program is tests; clippy looks for the module of unit tests"
)]

mod chains;
mod reports;
