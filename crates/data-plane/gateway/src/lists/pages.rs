//! Leads a client's user to one of narthex's pages (elicitation by URL).
//!
//! The client's answer decides nothing: it shows at most that the user has opened the page.

use std::{fmt, pin::Pin, sync::Arc};

use narthex_wire::{Era, Message, Payload, Raw, Revision, meta_key, method, rpc};
use serde_json::{Value, json};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::awaited_pages::Waited;
use crate::{Caller, Session};

/// The key of the question in a result that asks for input.
const KEY: &str = "narthex_page";

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

    /// Leads the user of a legacy client to the page: returns the message for the client. When the
    /// page is done, the client is notified if it is still connected, and `tasks` waits for that.
    /// `None`, and no message for the client, if the session waits for as many pages as it may.
    pub(crate) fn lead(
        self,
        session: &Arc<Session>,
        tasks: &TaskTracker,
        stopping: &CancellationToken,
    ) -> Option<Payload> {
        let waited = session.pages.wait_for(&self.id);
        let question = (waited != Waited::Full).then(|| self.question(session));
        if waited == Waited::New {
            tasks.spawn(tell_when_done(session.clone(), self, stopping.clone()));
        }
        question
    }

    /// The result for a modern client, which calls again when its user was asked.
    pub(crate) fn result(&self) -> Vec<u8> {
        let mut result = self.asking();
        result["requestState"] = self.id.as_str().into();
        result.to_string().into_bytes()
    }

    /// As [`Self::result`], for a call that a server gets when the client calls again: the client
    /// repeats no state.
    pub(crate) fn result_of_call(&self) -> Vec<u8> {
        self.asking().to_string().into_bytes()
    }

    fn asking(&self) -> Value {
        let question = json!({"method": method::ELICITATION_CREATE, "params": self.params(None)});
        json!({"resultType": "input_required", "inputRequests": {KEY: question}})
    }

    /// The request to a legacy client, whose answer the gateway ignores.
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

async fn tell_when_done(session: Arc<Session>, page: ToPage, stopping: CancellationToken) {
    let ToPage { id, done, .. } = page;
    let is_done = tokio::select! {
        biased;
        () = stopping.cancelled() => false,
        () = session.closed().cancelled() => false,
        is_done = done => is_done,
    };
    session.pages.done(&id);
    if is_done {
        let params = json!({"elicitationId": id}).to_string();
        let notice = method::ELICITATION_COMPLETE;
        session.deliver(rpc::notification(notice, Some(params.as_bytes())));
    }
}

/// True if the client has just led its user to a page of narthex.
pub(crate) fn was_led(request: &Message) -> bool {
    request.get("inputResponses").and_then(|answers| answers.get(KEY)).is_some()
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
            !was_led(request)
                && request.meta_value(meta_key::CLIENT_CAPABILITIES).is_some_and(by_url)
        }
    }
}
