//! A real mount, with real programs in it. Without `/dev/fuse` each test says that it was skipped.
#![cfg(target_os = "linux")]

mod device;
mod programs;
mod safety;
mod world;
