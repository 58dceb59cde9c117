//! Files that agents share: opened without leaving the run's folder, copied, and stored by content.
//!
//! * [`Folder`] is the folder of a run. The kernel opens a path in it in one step that cannot leave
//!   the folder, whatever is renamed or linked meanwhile.
//! * [`Depot`] stores copies, each once per workspace under the hash of its content, within a
//!   quota.
//! * [`Snapshot`] lists the copied files, and the skipped parts.
//!
//! All functions wait for the disk: call them where blocking is allowed. The crate knows no id of a
//! share, no database and no call.

mod depot;
mod error;
mod folder;
mod hash;
mod kind;
mod leftovers;
mod snapshot;
mod stop;
mod transfer;

pub use depot::{Depot, Sweep, Taken};
pub use error::ShareError;
pub use folder::{Folder, path_spelling};
pub use hash::ContentHash;
pub use kind::{ShareKind, content_type};
pub use snapshot::{Limits, SharedFile, Skipped, Snapshot, Why};
pub use stop::Stop;
pub use transfer::{Destination, Transferred};
