//! The store of used-up grants, as calls see it.

use std::{fmt::Debug, pin::Pin};

use narthex_model::GrantId;

use crate::RunView;

/// Stores which grants for a single call are used up, for all daemons on one store.
pub trait GrantLedger: Debug + Send + Sync {
    /// Uses up all of these grants for one call, or none of them. A caller that stops waiting does
    /// not stop the write.
    fn consume<'a>(&'a self, run: &'a RunView, grants: Vec<GrantId>) -> Consuming<'a>;
}

/// Future of a ledger's answer.
pub type Consuming<'a> = Pin<Box<dyn Future<Output = Result<Consumed, LedgerError>> + Send + 'a>>;

/// The outcome of using grants up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Consumed {
    /// All grants were used up for this call.
    All,
    /// No grant was used up, since these grants do not count any more.
    Gone(Vec<GrantId>),
}

/// The ledger cannot be asked. The text names the remedy, and nothing secret.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{0}")]
pub struct LedgerError(pub String);
