//! Ids of the shares of runs, and of the comments on them.

use crate::ids::id;

id! {
    /// The id of a share, such as `shr_0a1b2c3d4e5f`; no secret.
    ShareId, "shr_", 6
}
id! {
    /// The id of a thread of comments, such as `thr_0a1b2c3d4e5f`; no secret.
    ThreadId, "thr_", 6
}
