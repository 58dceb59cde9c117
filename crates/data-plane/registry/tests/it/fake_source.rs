//! A source of credentials made by hand.

use std::{
    collections::HashMap,
    fmt,
    sync::{Arc, Mutex},
};

use http::HeaderValue;
use narthex_model::{Alias, Secret};
use narthex_registry::{CredentialSource, FinishFault, Holder, SignInRedirect};
use narthex_upstream::{
    AtHand, CredentialFault, CredentialQuery, Credentials, Finishing, Obtaining, RefusedRequest,
};

/// Gives each server and holder a credential, which tests find by the same parts.
#[derive(Debug, Default)]
pub(crate) struct FakeSource(Mutex<HashMap<Key, Arc<FakeCredentials>>>);

/// The server and the holder of a credential.
type Key = (Alias, Option<Holder>);

impl FakeSource {
    pub(crate) fn of(&self, name: &str, holder: Option<&Holder>) -> Arc<FakeCredentials> {
        let key = (Alias::new(name).unwrap(), holder.cloned());
        self.0.lock().unwrap().entry(key).or_default().clone()
    }

    /// The shared credential of a server.
    pub(crate) fn shared(&self, name: &str) -> Arc<FakeCredentials> {
        self.of(name, None)
    }

    /// The holders for whom a credential was asked; a shared one has the empty name.
    pub(crate) fn holders(&self) -> Vec<String> {
        let all = self.0.lock().unwrap();
        let mut users: Vec<_> =
            all.keys().map(|(_, one)| one.clone().unwrap_or_else(|| holder("")).user).collect();
        users.sort_unstable();
        users
    }
}

impl CredentialSource for FakeSource {
    fn credentials(&self, query: CredentialQuery<'_>) -> Option<Arc<dyn Credentials>> {
        Some(self.of(query.alias.as_str(), query.holder))
    }

    /// Takes each code for a token.
    fn finish_auth(&self, redirect: SignInRedirect) -> Finishing<'_> {
        let SignInRedirect { query, server } = redirect;
        let server = server.unwrap();
        let ended = match query.expose().strip_prefix("code=") {
            Some(token) => {
                self.shared(&server).set(Some(token));
                Ok(server)
            }
            None => Err(FinishFault::Refused { why: "it was refused".to_owned() }),
        };
        Box::pin(std::future::ready(ended))
    }
}

/// A human in the workspace `w`.
pub(crate) fn holder(user: &str) -> Holder {
    Holder { workspace: "w".to_owned(), user: user.to_owned() }
}

/// A credential whose token and fault a test sets.
#[derive(Default)]
pub(crate) struct FakeCredentials(Mutex<State>);

#[derive(Default)]
struct State {
    token: Option<Secret>,
    /// The fault after a refusal; without one a person must sign in.
    fault: Option<CredentialFault>,
    /// The fault of each attempt to get a token.
    away: Option<CredentialFault>,
    refused: usize,
}

impl fmt::Debug for FakeCredentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("FakeCredentials")
    }
}

impl FakeCredentials {
    pub(crate) fn set(&self, token: Option<&str>) {
        let mut state = self.0.lock().unwrap();
        (state.token, state.away) = (token.map(Secret::new), None);
    }

    /// Sets the fault after refusals.
    pub(crate) fn fail(&self, fault: CredentialFault) {
        self.0.lock().unwrap().fault = Some(fault);
    }

    /// Lets no token be had, for this reason.
    pub(crate) fn go_away(&self, fault: CredentialFault) {
        self.0.lock().unwrap().away = Some(fault);
    }

    pub(crate) fn refused_requests(&self) -> usize {
        self.0.lock().unwrap().refused
    }
}

/// The wish for the sign-in of a person.
pub(crate) fn consent(scopes: &[&str]) -> CredentialFault {
    CredentialFault::NeedsConsent {
        why: "a person must sign in".to_owned(),
        address: Some(ADDRESS.to_owned()),
        scopes: scopes.iter().map(|&scope| scope.to_owned()).collect(),
    }
}

/// The address of that sign-in.
pub(crate) const ADDRESS: &str = "https://as.example.com/authorize?state=s";

impl Credentials for FakeCredentials {
    fn at_hand(&self) -> AtHand {
        let state = self.0.lock().unwrap();
        match (&state.away, &state.token) {
            (Some(_), _) => AtHand::Ask,
            (None, token) => AtHand::Ready(token.as_ref().map(|token| {
                HeaderValue::from_str(&format!("Bearer {}", token.expose())).unwrap()
            })),
        }
    }

    fn obtain(&self) -> Obtaining<'_> {
        let fault = self.0.lock().unwrap().away.clone();
        Box::pin(std::future::ready(fault.map_or(Ok(None), Err)))
    }

    fn refused(&self, refusal: RefusedRequest) -> Obtaining<'_> {
        let mut state = self.0.lock().unwrap();
        state.refused += 1;
        if refusal.status == 401 {
            state.token = None;
        }
        let fault = state.fault.clone().unwrap_or_else(|| consent(&[]));
        Box::pin(std::future::ready(Err(fault)))
    }
}
