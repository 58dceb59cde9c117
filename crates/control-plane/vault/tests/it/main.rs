//! The vault over rows in memory: values, refusals, and crashes at every step.

#![expect(
    clippy::tests_outside_test_module,
    clippy::unwrap_used,
    reason = "this whole program is tests; clippy looks for the module of unit tests"
)]

mod documents;
mod rotation;
mod secrets;
mod simulation;
mod starting;
mod world;
