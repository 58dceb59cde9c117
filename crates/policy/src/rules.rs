//! The rules of one run, and the decision.

use std::{collections::BTreeSet, ops::Deref};

use narthex_model::{Alias, AliasError, ErrorKind, Exposed};

use crate::{Item, Request};

/// The name that stands for every server.
const EVERY: &str = "*";

/// Which servers a run has, and what it may do with them. A run that asks for none has none (E17).
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
    /// The server's rules hide this from everybody; it looks like an absent one (D5).
    #[error("`{}` is not to be seen here", .0.name())]
    Hidden(Item),
}

impl Denial {
    /// The kind that doors turn into their numbers.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::NotAttached(_) | Self::Hidden(_) => ErrorKind::NotFound,
        }
    }
}

impl Default for RunPolicy {
    fn default() -> Self {
        Self::Attached(BTreeSet::new())
    }
}

impl RunPolicy {
    /// The rule that a list of servers' names stands for; `*` is every server, also one that is
    /// added later (E17, E150).
    ///
    /// # Errors
    /// When a name can be no server's.
    pub fn of<T: AsRef<str>>(names: &[T]) -> Result<Self, AliasError> {
        if names.iter().any(|name| name.as_ref() == EVERY) {
            return Ok(Self::AllAttached);
        }
        let aliases: Result<_, _> = names.iter().map(|name| Alias::new(name.as_ref())).collect();
        aliases.map(Self::Attached)
    }

    /// Whether `alias` is visible to the run. Lists and calls ask the same question (D5).
    #[must_use]
    pub fn is_attached(&self, alias: &Alias) -> bool {
        match self {
            Self::AllAttached => true,
            Self::Attached(aliases) => aliases.contains(alias),
        }
    }

    /// Decides on one request, and seals it if it may go. `exposed` are the rules of its server.
    ///
    /// # Errors
    /// The reason for a refusal; the request is given up.
    pub fn authorize(
        &self,
        request: Request,
        exposed: &Exposed,
    ) -> Result<Permitted<Request>, Denial> {
        if !self.is_attached(&request.alias) {
            return Err(Denial::NotAttached(request.alias));
        }
        if !request.item.is_exposed(exposed) {
            return Err(Denial::Hidden(request.item));
        }
        Ok(Permitted(request))
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use narthex_model::NameRule;
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
        let open = Exposed::default();
        assert_eq!(policy.authorize(sent, &open).unwrap().into_inner().message.bytes(), &bytes);
        let denial = policy.authorize(request("time"), &open).unwrap_err();
        assert_eq!(denial.kind(), ErrorKind::NotFound);
        assert!(RunPolicy::AllAttached.authorize(request("time"), &open).is_ok());
    }

    /// D5, E151: what a server's rules hide is not permitted, whatever the run has.
    #[test]
    fn d5_permits_nothing_that_a_rule_hides() {
        let deny = |pattern| NameRule::new(None, &[pattern]);
        let hides_tool = Exposed { tools: deny("x"), ..Exposed::default() };
        let denial = RunPolicy::AllAttached.authorize(request("git"), &hides_tool).unwrap_err();
        assert_eq!(
            (denial.kind(), denial),
            (ErrorKind::NotFound, Denial::Hidden(Item::Tool("x".into())))
        );
        let hides_all = Exposed { tools: deny("*"), resources: deny("*"), prompts: deny("*") };
        for (item, is_exposed) in [
            (Item::Tool("a".into()), false),
            (Item::Prompt("a".into()), false),
            (Item::Resource("a:b".into()), false),
            (Item::Task("a".into()), true),
            (Item::Server, true),
        ] {
            assert_eq!(item.is_exposed(&hides_all), is_exposed, "{item:?}");
        }
    }

    /// E17, E91, E150: names, a wildcard for all, and nothing for who asks for nothing.
    #[test]
    fn e17_a_run_has_the_servers_that_it_asks_for() {
        let (git, time) = (Alias::new("git").unwrap(), Alias::new("time").unwrap());
        let has = |policy: &RunPolicy| [policy.is_attached(&git), policy.is_attached(&time)];
        assert_eq!(has(&RunPolicy::of(&["git"]).unwrap()), [true, false]);
        assert_eq!(has(&RunPolicy::of(&["git", "*"]).unwrap()), [true, true]);
        assert_eq!(has(&RunPolicy::of::<&str>(&[]).unwrap()), [false, false]);
        assert_eq!(RunPolicy::of::<&str>(&[]).unwrap(), RunPolicy::default());
        assert!(RunPolicy::of(&["Git Hub"]).is_err());
    }
}
