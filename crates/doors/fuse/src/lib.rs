//! The namespace of one process at a folder: tools are files that any program can use.
//!
//! Thin: what a path means and what an operation does is `narthex-vfs`'s. Here is how the
//! kernel's requests become such operations, and what programs of a shell need besides: one
//! descriptor that is written to and read from, and a result that `cat` finds after `echo`. Linux
//! alone.
#![cfg(target_os = "linux")]

mod callers;
mod cpu_latency;
mod errno;
mod filesystem;
mod handle;
mod inline_task;
mod interrupt_timer;
mod kernel;
mod lists;
pub mod mounter;
mod mountinfo;
mod mounting;
mod next;
mod request_text;
mod result_cache;
mod running;
mod sizes;
mod tree;
mod waiting;

pub use kernel::free;
pub use mounting::{MountError, MountOptions, Mounted, check_free, clean_up, resolved, threads};
