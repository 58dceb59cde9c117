//! A real mount, with real programs in it. Without `/dev/fuse` each test reports that it was
//! skipped.
#![cfg(target_os = "linux")]
#![expect(
    clippy::tests_outside_test_module,
    clippy::print_stderr,
    reason = "this whole program is tests; what is skipped is said aloud"
)]

mod device;
mod places;
mod programs;
mod safety;
mod sizes;
mod trees;
mod world;
