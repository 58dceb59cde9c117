//! Leads a client's user to one of narthex's pages (elicitation by URL).
//!
//! The client's answer decides nothing: it shows at most that the user has opened the page.

use std::{
    collections::HashSet,
    fmt,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use narthex_wire::{Era, Message, Payload, Raw, Revision, meta_key, method, rpc};
use serde_json::{Value, json};

use crate::{Caller, Session, gateway::Shared};

/// The key of the question in a result that asks for input.
const KEY: &str = "narthex_page";

/// Number of pages that one session waits for at a time.
const PAGES_MAX: usize = 32;

/// The pages whose end is reported to a session, by their ids.
#[derive(Debug, Default)]
pub(crate) struct Pages(Mutex<HashSet<String>>);

/// Outcome of a session's attempt to wait for a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Waited {
    /// The session waits for the page from now on.
    New,
    /// The session waits for the page already, and is notified once.
    Already,
    /// There is no room to wait for it.
    Full,
}

impl Pages {
    fn wait_for(&self, id: &str) -> Waited {
        let mut all = self.lock();
        if all.contains(id) {
            return Waited::Already;
        }
        if all.len() == PAGES_MAX {
            return Waited::Full;
        }
        all.insert(id.to_owned());
        Waited::New
    }

    fn done(&self, id: &str) {
        self.lock().remove(id);
    }

    fn lock(&self) -> MutexGuard<'_, HashSet<String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The page to which a client leads its user, and the reason.
pub struct ToPage {
    /// The id of the page, which the client sees.
    pub id: String,
    /// The page's address.
    pub url: String,
    /// The reason, for the user.
    pub message: String,
    /// Resolves to `true` when the page's purpose is reached or can never be, and to `false` when
    /// that cannot be known.
    pub done: Pin<Box<dyn Future<Output = bool> + Send>>,
}

impl ToPage {
    fn params(&self, id: Option<&str>) -> Value {
        let mut params = json!({"mode": "url", "message": self.message, "url": self.url});
        if let Some(id) = id {
            params["elicitationId"] = id.into();
        }
        params
    }

    /// For a modern client: it calls again when its user has been asked.
    pub(crate) fn result(&self) -> Vec<u8> {
        let question = json!({"method": method::ELICITATION_CREATE, "params": self.params(None)});
        let result = json!({
            "resultType": "input_required",
            "inputRequests": {KEY: question},
            "requestState": self.id,
        });
        result.to_string().into_bytes()
    }

    /// For a legacy client: a request, whose answer is ignored.
    pub(crate) fn question(&self, session: &Session) -> Payload {
        let (id, params) = (session.next_ask().to_string(), self.params(Some(&self.id)));
        let params = params.to_string();
        rpc::request(Raw::new(id.as_bytes()), method::ELICITATION_CREATE, Some(params.as_bytes()))
    }
}

impl fmt::Debug for ToPage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ToPage").field("id", &self.id).finish_non_exhaustive()
    }
}

impl Shared {
    /// The message that leads the user of a legacy client to a page. The client is notified when
    /// the page is done, as long as it is there. `None`, and the user is not led there, if the
    /// session waits for as many pages as it may.
    pub(crate) fn lead_to(
        self: &Arc<Self>,
        session: &Arc<Session>,
        page: ToPage,
    ) -> Option<Payload> {
        let waited = session.pages.wait_for(&page.id);
        let question = (waited != Waited::Full).then(|| page.question(session));
        if waited == Waited::New {
            self.tell_when_done(session, page);
        }
        question
    }

    fn tell_when_done(self: &Arc<Self>, session: &Arc<Session>, page: ToPage) {
        let (shared, session) = (self.clone(), session.clone());
        self.spawn(async move {
            let ToPage { id, done, .. } = page;
            let is_done = tokio::select! {
                biased;
                () = shared.stopping.cancelled() => false,
                () = session.closed().cancelled() => false,
                is_done = done => is_done,
            };
            session.pages.done(&id);
            if is_done {
                let params = json!({"elicitationId": id}).to_string();
                let notice = method::ELICITATION_COMPLETE;
                session.deliver(rpc::notification(notice, Some(params.as_bytes())));
            }
        });
    }
}

/// True if the client declares that it can lead its user to a page, and has not just done so.
pub(crate) fn leads_to_pages(caller: &Caller, request: &Message) -> bool {
    let by_url = |all: Raw<'_>| {
        let url = all.get("elicitation").and_then(|own| own.get("url"));
        url.is_some_and(Raw::is_object)
    };
    match (&caller.session, caller.era()) {
        (Some(session), Era::Legacy) => {
            session.revision >= Revision::V2025_11_25
                && by_url(Raw::new(&session.client.capabilities))
        }
        _ => {
            let answers = request.get("inputResponses");
            let is_first = answers.and_then(|answers| answers.get(KEY)).is_none();
            is_first && request.meta_value(meta_key::CLIENT_CAPABILITIES).is_some_and(by_url)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// X-M55: a session is notified once of the end of a page, and waits for a limited number of
    /// pages.
    #[test]
    fn a_session_waits_for_a_limited_number_of_pages() {
        let pages = Pages::default();
        for number in 0..PAGES_MAX {
            assert_eq!(pages.wait_for(&number.to_string()), Waited::New);
        }
        assert_eq!((pages.wait_for("0"), pages.wait_for("more")), (Waited::Already, Waited::Full));
        pages.done("0");
        assert_eq!((pages.wait_for("more"), pages.wait_for("0")), (Waited::New, Waited::Full));
    }
}
