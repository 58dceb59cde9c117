//! A credential made by hand, which remembers each question.

use std::{
    collections::VecDeque,
    fmt,
    sync::{Arc, Mutex},
};

use http::HeaderValue;
use narthex_upstream::{AtHand, CredentialFault, Credentials, Obtaining, RefusedRequest};
use tokio::sync::watch;

/// The next answer to a refusal.
pub(crate) type Next = Result<Option<&'static str>, CredentialFault>;

/// A credential whose token a test sets.
#[derive(Default)]
pub(crate) struct FakeCredentials {
    state: Mutex<State>,
    refused: watch::Sender<usize>,
}

#[derive(Default)]
struct State {
    token: Option<&'static str>,
    /// The token that must be requested first.
    unobtained: Option<Next>,
    obtained: usize,
    refusals: Vec<RefusedRequest>,
    answers: VecDeque<Next>,
    hangs: bool,
}

impl fmt::Debug for FakeCredentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("FakeCredentials")
    }
}

impl FakeCredentials {
    /// A credential with this token.
    pub(crate) fn new(token: Option<&'static str>) -> Arc<Self> {
        let fake = Self::default();
        fake.state.lock().unwrap().token = token;
        Arc::new(fake)
    }

    /// A credential that must be requested first, with this outcome.
    pub(crate) fn to_obtain(next: Next) -> Arc<Self> {
        let fake = Self::default();
        fake.state.lock().unwrap().unobtained = Some(next);
        Arc::new(fake)
    }

    /// Adds an answer to a refusal. Without one, a refusal is final.
    pub(crate) fn answer(&self, next: Next) {
        self.state.lock().unwrap().answers.push_back(next);
    }

    /// Lets answers to refusals take for ever, or not any more.
    pub(crate) fn hang(&self, hangs: bool) {
        self.state.lock().unwrap().hangs = hangs;
    }

    pub(crate) fn refusals(&self) -> Vec<RefusedRequest> {
        self.state.lock().unwrap().refusals.clone()
    }

    pub(crate) fn obtained(&self) -> usize {
        self.state.lock().unwrap().obtained
    }

    /// Waits until so many requests were refused.
    pub(crate) async fn wait(&self, refusals: usize) {
        let mut refused = self.refused.subscribe();
        refused.wait_for(|count| *count >= refusals).await.unwrap();
    }
}

fn header(token: &str) -> HeaderValue {
    HeaderValue::from_str(&format!("Bearer {token}")).unwrap()
}

impl Credentials for FakeCredentials {
    fn at_hand(&self) -> AtHand {
        let state = self.state.lock().unwrap();
        match state.unobtained {
            Some(_) => AtHand::Ask,
            None => AtHand::Ready(state.token.map(header)),
        }
    }

    fn obtain(&self) -> Obtaining<'_> {
        let mut state = self.state.lock().unwrap();
        state.obtained += 1;
        let next = match state.unobtained.clone() {
            Some(Ok(token)) => {
                (state.token, state.unobtained) = (token, None);
                Ok(token.map(header))
            }
            Some(Err(fault)) => Err(fault),
            None => Ok(state.token.map(header)),
        };
        Box::pin(std::future::ready(next))
    }

    fn refused(&self, refusal: RefusedRequest) -> Obtaining<'_> {
        let mut state = self.state.lock().unwrap();
        let rejected = CredentialFault::Rejected { status: refusal.status };
        state.refusals.push(refusal);
        self.refused.send_replace(state.refusals.len());
        if state.hangs {
            return Box::pin(std::future::pending());
        }
        let next = state.answers.pop_front().unwrap_or(Err(rejected));
        if let Ok(token) = &next {
            state.token = *token;
        }
        Box::pin(std::future::ready(next.map(|token| token.map(header))))
    }
}
