//! The permission of a stream or subscription that stays open.

use narthex_policy::{Basis, Permitted, Request};
use tokio_util::sync::{CancellationToken, DropGuard};

/// Permission for a stream or subscription that stays open: its grants, and the requests that the
/// rules of the workspace may refuse later.
#[derive(Debug, Clone, Default)]
pub(crate) struct Standing {
    pub(crate) basis: Basis,
    pub(crate) requests: Vec<Request>,
}

/// Cancels its token when a permission has ended. Dropping this value stops the watch.
#[derive(Debug)]
pub(crate) struct Over {
    pub(crate) token: CancellationToken,
    pub(crate) _kept: DropGuard,
}

impl Standing {
    /// The permission of the request that was just decided on.
    pub(crate) fn of(permitted: &Permitted<Request>) -> Self {
        Self { basis: permitted.basis().clone(), requests: vec![Request::clone(permitted)] }
    }

    /// Adds the permission for another subject.
    pub(crate) fn join(&mut self, other: Self) {
        self.basis.join(&other.basis);
        self.requests.extend(other.requests);
    }
}
