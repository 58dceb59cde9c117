//! One mount.

use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use crate::{Device, MountName};

/// A server at its path.
#[derive(Debug)]
pub(crate) struct Mount {
    pub(crate) name: MountName,
    pub(crate) device: Arc<dyn Device>,
    /// Cancelled once it is unmounted.
    pub(crate) gone: CancellationToken,
}
