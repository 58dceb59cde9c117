//! Tests of the crate with small servers that the tests make, and with the fixture server.

#![expect(
    clippy::tests_outside_test_module,
    clippy::unwrap_used,
    reason = "this whole program is tests; clippy looks for the module of unit tests"
)]

mod calls;
mod credentials;
mod eras;
mod fake_credentials;
mod fixture_process;
mod hidden_refusals;
mod large;
mod lists;
mod peer;
mod secrets;
mod sessions;
mod stdio;
mod streams;
mod transports;
mod unruly;
mod world;

/// The server that tests start as a separate process.
#[test]
fn fixture_over_stdio() {
    fixture_process::run();
}

/// The misbehaving server that tests start as a separate process.
#[test]
fn unruly_child() {
    narthex_testkit::unruly::run_if_asked();
}
