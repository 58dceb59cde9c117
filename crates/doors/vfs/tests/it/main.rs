//! Tests of the namespace with scripted devices.

#![expect(
    clippy::tests_outside_test_module,
    clippy::disallowed_methods,
    clippy::print_stderr,
    reason = "this whole program is tests, whose tasks end with their runtime; seeds are said"
)]

mod concurrent;
mod device;
mod model;
mod operations;
mod races;
