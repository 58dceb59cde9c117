//! A process that has the files of a run at a folder: the kernel asks it by FUSE, and it asks the
//! daemon by HTTP, with the run's token. Linux alone.
//!
//! It holds no state that the daemon does not know: of results it keeps only the part that a shell
//! needs between `echo` and `cat`. It ends with the run, with the daemon, with the folder, or on
//! request, and then frees the folder. A second process frees the folder if this one is killed.
//!
//! A layer above the rest of the crate, which imports nothing of it.

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
pub use watcher::run_if_asked;
