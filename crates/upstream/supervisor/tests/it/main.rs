//! The supervisor with real children, most of them badly behaved.

#![expect(
    clippy::tests_outside_test_module,
    clippy::unwrap_used,
    reason = "this whole program is tests; clippy looks for the module of unit tests"
)]

#[cfg(target_os = "linux")]
mod confinement;
mod drop_and_daemon;
mod environment;
mod logs;
mod missing;
mod simulation;
mod stop;
mod support;
#[cfg(target_os = "linux")]
mod trees;
