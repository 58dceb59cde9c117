//! Files that agents share: opened without leaving the run's folder, copied, and stored by content.
//!
//! * [`Folder`] is the folder of a run. A path in it is opened by the kernel in one step that
//!   cannot leave the folder, whatever is renamed or linked meanwhile.
//! * [`Depot`] keeps copies, each once per workspace under the hash of its content, within a quota.
//! * [`Snapshot`] lists the copied files, and the parts that were passed over.
//!
//! All functions here wait for the disk: call them where waiting is allowed. Knows no share by its
//! id, no database and no call.

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
