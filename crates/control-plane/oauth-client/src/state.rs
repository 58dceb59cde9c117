//! The credential of one server as requests read it, and the decision about the next request.

use std::{fmt, sync::Arc, time::Duration};

use http::HeaderValue;
use narthex_oauth::{
    client::{Freshness, shown_url},
    scopes::Scopes,
};
use narthex_upstream::CredentialFault;
use url::Url;

use crate::{
    grant_row::{GrantValue, Held},
    store::GrantFacts,
};

/// The credential of one server.
#[derive(Debug, Clone, Default)]
pub(crate) struct State {
    /// The time at which the store was read, in seconds since 1970; `None` before the first time.
    pub(crate) read_at: Option<u64>,
    /// The grant.
    pub(crate) held: Option<Arc<Held>>,
    /// The generation of a grant whose token the server has refused.
    pub(crate) refused: Option<u64>,
    /// The open attempt.
    pub(crate) attempt: Option<Arc<OpenAttempt>>,
    /// The time from which another attempt may be opened, after one that has ended without tokens.
    pub(crate) reopens_at: Option<u64>,
    /// The latest failure, if no success has followed.
    pub(crate) trouble: Option<Trouble>,
    /// The facts of the grant, or of the last one.
    pub(crate) facts: GrantFacts,
    /// A renewed grant that the store did not take yet.
    pub(crate) unsaved: Option<Arc<Unsaved>>,
    /// The time until which a person signs in, as an exchange was refused for good, in seconds
    /// since 1970.
    pub(crate) fallback_until: Option<u64>,
    /// Scopes that the server has asked for, for a consent that the human begins.
    pub(crate) wanted: Scopes,
}

/// A renewed grant that the store did not take. It is not used before.
#[derive(Debug)]
pub(crate) struct Unsaved {
    /// The generation that it replaces.
    pub(crate) generation: u64,
    pub(crate) value: GrantValue,
    pub(crate) facts: GrantFacts,
}

/// An open attempt.
#[derive(Clone)]
pub(crate) struct OpenAttempt {
    /// The address for the browser.
    pub(crate) url: Url,
    pub(crate) state_hash: String,
    pub(crate) expires_at: u64,
    pub(crate) redirect_uri: Url,
    pub(crate) scopes: Scopes,
    /// Hash of the login session of the browser that may finish it.
    pub(crate) session: Option<String>,
}

/// A failure, and the time of the next try.
#[derive(Debug, Clone)]
pub(crate) struct Trouble {
    pub(crate) fault: CredentialFault,
    /// Before this time nothing is tried again, in seconds since 1970.
    pub(crate) until: u64,
    /// Number of failures in a row.
    pub(crate) failures: u32,
}

/// The properties of a server that decide about requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A person signs in after a refusal.
    Person,
    /// A token is requested before the first request.
    EagerMachine,
    /// A token is requested after a refusal, which leads to the authorization server (C1).
    LazyMachine,
    /// The settings cannot be used.
    Faulty,
}

/// The next step before a request.
#[derive(Debug)]
pub(crate) enum Need {
    /// Send the request with this header.
    Send {
        header: Option<HeaderValue>,
        /// True if the token should be renewed meanwhile.
        is_due: bool,
    },
    /// Do not send the request.
    Fault(CredentialFault),
    /// Do not send the request: the settings cannot be used.
    Settings,
    /// Read the store.
    Load,
    /// Renew the tokens.
    Renew,
    /// Request a token.
    Request,
}

impl State {
    /// Decides about the next request. `now` in seconds since 1970.
    pub(crate) fn need(&self, kind: Kind, now: u64) -> Need {
        if kind == Kind::Faulty {
            return Need::Settings;
        }
        let Some(read_at) = self.read_at else { return Need::Load };
        if let Some(held) = self.usable(now) {
            let is_due = held.value.grant.freshness(now) == Freshness::Due
                && self.active_trouble(now).is_none();
            return Need::Send { header: Some(held.header.clone()), is_due };
        }
        let trouble = self.active_trouble(now).map(|trouble| Need::Fault(trouble.fault_at(now)));
        if self.is_renewable() {
            return trouble.unwrap_or(Need::Renew);
        }
        // Where an exchange gives the tokens again, an attempt that is open hinders nothing.
        if kind == Kind::Person
            && let Some(attempt) = self.open_attempt(now)
        {
            // Another process may have finished it.
            return match read_at < now {
                true => Need::Load,
                false => Need::Fault(consent_at(attempt, &Scopes::default())),
            };
        }
        if let Some(trouble) = trouble {
            return trouble;
        }
        match (&self.held, kind) {
            // The server has refused the token once; a new one may be taken.
            (Some(held), _) if held.value.grant.can_renew() => Need::Renew,
            (_, Kind::EagerMachine) => Need::Request,
            (_, Kind::Person | Kind::LazyMachine | Kind::Faulty) => {
                Need::Send { header: None, is_due: false }
            }
        }
    }

    /// True if the grant can be renewed, and the server has not refused its token.
    fn is_renewable(&self) -> bool {
        let held = self.held.as_ref();
        held.is_some_and(|held| {
            self.refused != Some(held.generation) && held.value.grant.can_renew()
        })
    }

    /// True if tokens of an entry with an exchange and a fallback come from a person now: they came
    /// from one and are not gone, or the exchange was refused.
    pub(crate) fn is_of_person(&self, now: u64) -> bool {
        let is_signed_in = |held: &Arc<Held>| !held.value.grant.origin.is_repeatable();
        let lives = self.usable(now).is_some() || self.is_renewable();
        (lives && self.held.as_ref().is_some_and(is_signed_in)) || self.has_fallen_back(now)
    }

    /// True if the exchange was refused for good, a short time ago.
    pub(crate) fn has_fallen_back(&self, now: u64) -> bool {
        self.fallback_until.is_some_and(|until| now < until)
    }

    /// The grant, if its access token can be sent.
    pub(crate) fn usable(&self, now: u64) -> Option<&Arc<Held>> {
        let is_usable = |held: &&Arc<Held>| {
            self.refused != Some(held.generation)
                && held.value.grant.freshness(now) != Freshness::Ended
        };
        self.held.as_ref().filter(is_usable)
    }

    /// The attempt, if a person can still finish it.
    pub(crate) fn open_attempt(&self, now: u64) -> Option<&Arc<OpenAttempt>> {
        self.attempt.as_ref().filter(|attempt| now < attempt.expires_at)
    }

    pub(crate) fn active_trouble(&self, now: u64) -> Option<&Trouble> {
        self.trouble.as_ref().filter(|trouble| now < trouble.until)
    }

    /// Number of failures in a row.
    pub(crate) fn failures(&self) -> u32 {
        self.trouble.as_ref().map_or(0, |trouble| trouble.failures)
    }
}

impl Trouble {
    /// The fault, with the rest of the delay.
    pub(crate) fn fault_at(&self, now: u64) -> CredentialFault {
        match &self.fault {
            CredentialFault::Unavailable { why, retry_after: _ } => CredentialFault::Unavailable {
                why: why.clone(),
                retry_after: Some(Duration::from_secs(self.until.saturating_sub(now))),
            },
            fault => fault.clone(),
        }
    }
}

/// Shows the address without its query, as that has the state.
impl fmt::Debug for OpenAttempt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "OpenAttempt({}, until {})", shown_url(&self.url), self.expires_at)
    }
}

/// The fault of a server to which a person must sign in.
pub(crate) fn consent_at(attempt: &OpenAttempt, scopes: &Scopes) -> CredentialFault {
    let why = match scopes.is_empty() {
        true => "a person must sign in to this server".to_owned(),
        false => format!("a person must allow further scopes ({scopes}) at this server"),
    };
    CredentialFault::NeedsConsent {
        why,
        address: Some(attempt.url.to_string()),
        scopes: scopes.iter().map(str::to_owned).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attempt(expires_at: u64) -> Arc<OpenAttempt> {
        Arc::new(OpenAttempt {
            url: Url::parse("https://as.example/authorize?state=x").unwrap(),
            state_hash: "h".to_owned(),
            expires_at,
            redirect_uri: Url::parse("http://127.0.0.1:1/oauth/callback/a").unwrap(),
            scopes: Scopes::default(),
            session: None,
        })
    }

    #[test]
    fn oauth_c1_the_first_request_goes_without_a_token() {
        let state = State { read_at: Some(1), ..State::default() };
        let need = |kind| state.need(kind, 1);
        assert!(matches!(State::default().need(Kind::Person, 1), Need::Load));
        assert!(matches!(need(Kind::Person), Need::Send { header: None, .. }));
        assert!(matches!(need(Kind::LazyMachine), Need::Send { header: None, .. }));
        assert!(matches!(need(Kind::EagerMachine), Need::Request));
    }

    #[test]
    fn e30_an_open_attempt_is_named_and_the_store_is_asked_for_its_end() {
        let state = State { read_at: Some(5), attempt: Some(attempt(10)), ..State::default() };
        let Need::Fault(CredentialFault::NeedsConsent { address, .. }) =
            state.need(Kind::Person, 5)
        else {
            panic!("no consent is asked for")
        };
        assert_eq!(address.as_deref(), Some("https://as.example/authorize?state=x"));
        assert!(matches!(state.need(Kind::Person, 6), Need::Load));
        assert!(matches!(state.need(Kind::Person, 10), Need::Send { header: None, .. }));
    }

    #[test]
    fn oauth_c25_nothing_is_tried_before_the_delay_is_over() {
        let fault = CredentialFault::Unavailable { why: "no".to_owned(), retry_after: None };
        let trouble = Trouble { fault, until: 10, failures: 2 };
        let state = State { read_at: Some(1), trouble: Some(trouble), ..State::default() };
        let Need::Fault(CredentialFault::Unavailable { retry_after, .. }) =
            state.need(Kind::EagerMachine, 7)
        else {
            panic!("a request is made")
        };
        assert_eq!(retry_after, Some(Duration::from_secs(3)));
        assert!(matches!(state.need(Kind::EagerMachine, 10), Need::Request));
    }
}
