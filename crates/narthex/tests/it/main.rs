//! The built program against the fixture server: what it prints, returns and leaves behind.

#![expect(
    clippy::tests_outside_test_module,
    clippy::unwrap_used,
    reason = "this whole program is tests; clippy looks for the module of unit tests"
)]

mod app;
mod attacks;
mod call;
mod connect;
mod documents;
mod exhaustion;
mod fidelity;
mod identity;
mod outcomes;
mod recorder;
mod settings;
mod support;
mod template;
mod trace;
mod trust;
mod up;
mod world;
