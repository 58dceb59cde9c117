//! MCP servers as files: the namespace `/mnt/mcp/<pid>-<alias>/…` and its operations.
//!
//! Pure but for time: behind a mount is a [`Device`], which the caller provides and which checks
//! every call. FUSE, REST and the command line show the same tree.

mod device;
mod entry;
mod error;
mod file;
mod mounted;
pub mod name;
mod namespace;
mod node;
mod process;
mod tools;
mod trace;

pub use device::{Answer, Device, Kind};
pub use entry::{Entry, Stat};
pub use error::{Code, Failure, Operation, VfsError};
pub use namespace::{Limits, Mounted, Namespace};
pub use node::{MountName, Node, PATH_MAX, Place, ROOT};
pub use process::{Held, Lease, Process};
pub use tools::names;
pub use trace::{Done, Observer, Report};
