//! The rules of one run, and the decision.

use std::{collections::BTreeSet, ops::Deref};

use narthex_model::{Alias, ErrorKind};

use crate::Request;

/// Which servers a run has, and what it may do with them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RunPolicy {
    /// Live mode: whatever is registered at the moment is attached (decision D11).
    AllAttached,
    /// These servers and no others.
    Attached(BTreeSet<Alias>),
}

/// Proof that policy allowed this one value. Cannot be made, changed or taken apart outside.
#[derive(Debug)]
pub struct Permitted<T>(T);

impl<T> Permitted<T> {
    /// Hands over what was allowed, whole, to be sent.
    #[must_use]
    pub fn into_inner(self) -> T {
        self.0
    }
}

impl<T> Deref for Permitted<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

/// Why a request is not forwarded.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Denial {
    /// The server is not attached to the run; it looks like an absent one (D5).
    #[error("server `{0}` is not attached to this run")]
    NotAttached(Alias),
}

impl Denial {
    /// The kind that doors turn into their numbers.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::NotAttached(_) => ErrorKind::NotFound,
        }
    }
}

impl RunPolicy {
    /// Whether `alias` is visible to the run. Lists and calls ask the same question (D5).
    #[must_use]
    pub fn is_attached(&self, alias: &Alias) -> bool {
        match self {
            Self::AllAttached => true,
            Self::Attached(aliases) => aliases.contains(alias),
        }
    }

    /// Decides on one request, and seals it if it may go.
    ///
    /// # Errors
    /// The reason for a refusal; the request is given up.
    pub fn authorize(&self, request: Request) -> Result<Permitted<Request>, Denial> {
        if !self.is_attached(&request.alias) {
            return Err(Denial::NotAttached(request.alias));
        }
        Ok(Permitted(request))
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use narthex_wire::{Limits, Message};

    use super::*;
    use crate::Item;

    fn request(alias: &str) -> Request {
        let text = br#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x"}}"#;
        let message = Message::parse(Bytes::from_static(text), &Limits::default()).unwrap();
        Request::new(Alias::new(alias).unwrap(), message, Item::Tool("x".into()))
    }

    /// D13: only an attached server's requests get through, and with the bytes that were checked.
    #[test]
    fn d13_permits_attached_servers_only() {
        let policy = RunPolicy::Attached([Alias::new("git").unwrap()].into());
        let sent = request("git");
        let bytes = sent.message.bytes().clone();
        assert_eq!(policy.authorize(sent).unwrap().into_inner().message.bytes(), &bytes);
        let denial = policy.authorize(request("time")).unwrap_err();
        assert_eq!(denial.kind(), ErrorKind::NotFound);
        assert!(RunPolicy::AllAttached.authorize(request("time")).is_ok());
    }
}
