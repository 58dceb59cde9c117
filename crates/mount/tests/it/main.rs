//! The namespace with devices that do as they are told.

#![expect(
    clippy::tests_outside_test_module,
    clippy::disallowed_methods,
    reason = "this whole program is tests, whose tasks end with their runtime"
)]

mod device;
mod model;
mod operations;
mod races;
