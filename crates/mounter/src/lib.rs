//! A process that has the files of a run at a folder: the kernel asks it by FUSE, and it asks the
//! daemon by HTTP, with the run's token. Linux alone.
//!
//! It holds nothing that the daemon does not know: what is kept of results is what a shell needs
//! between `echo` and `cat`. It ends with the run, with the daemon, with the folder, or when it is
//! told to, and the folder is free then; a second process sees to that where it is killed itself.
#![cfg(target_os = "linux")]

pub mod background;
mod daemon;
mod descriptors;
mod device;
mod following;
mod mounting;
mod reports;
mod watcher;

pub use daemon::{Daemon, DaemonError};
pub use following::Ended;
pub use mounting::{Mounting, MountingError, MountingOptions};
pub use narthex_fuse::threads;
pub use watcher::run_if_asked;
