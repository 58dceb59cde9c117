//! Sign-ins against authorization servers that behave, and against those that misbehave.

#![expect(
    clippy::tests_outside_test_module,
    clippy::unwrap_used,
    reason = "this whole program is tests; clippy looks for the module of unit tests"
)]

mod attacks;
mod devices;
mod embedding;
mod exchanges;
mod flow;
mod humans;
mod leaks;
mod machines;
mod processes;
mod quirks;
mod refusals;
mod renewals;
mod scopes;
mod world;
