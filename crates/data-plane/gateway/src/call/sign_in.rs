//! Leads the user of a client to the sign-in for which a server waits (R9).

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use narthex_model::ServerState;
use narthex_wire::{Message, Raw, rpc};

use crate::{
    Answering, Caller, RunView, ToPage, call::identify::Identity, lists::pages::leads_to_pages,
    refusal::Refusal, runs::run::RunRows, shared::Shared, view::has_rounds,
};

/// Longest wait until the row of a server shows what its call has found.
const SHOWN_MAX: Duration = Duration::from_secs(10);
/// Longest wait for a person at an authorization server.
const SIGN_IN_MAX: Duration = Duration::from_secs(600);

impl Shared {
    /// The answer to a refused request. If its server waits for the sign-in of a person, a client
    /// that can lead its user there is asked to.
    pub(super) fn refuse(
        self: &Arc<Self>,
        caller: &Caller,
        asked: &Message,
        identity: &Identity,
        refusal: Refusal,
    ) -> Answering {
        let Some(page) = self.sign_in_page(caller, asked, &refusal) else {
            return identity.refuse(caller, refusal);
        };
        match &caller.session {
            Some(session) => {
                let first = page.lead(session, &self.tracker, &self.stopping);
                identity.refuse(caller, refusal).after(first)
            }
            None => {
                let result = Bytes::from(page.result_of_call());
                Answering::ready(rpc::result_response(Raw::new(&identity.id), &result), 200)
            }
        }
    }

    /// The page of the sign-in, if the caller may know its address and can lead a user there.
    fn sign_in_page(
        self: &Arc<Self>,
        caller: &Caller,
        asked: &Message,
        refusal: &Refusal,
    ) -> Option<ToPage> {
        let (server, wanted) = refusal.sign_in()?;
        if let Some(row) = self.snapshot(&caller.run).get(server) {
            self.registry.wake(&row);
        }
        let url = wanted.address_for(caller.run.reader())?.to_owned();
        if !has_rounds(asked.method()) || !leads_to_pages(caller, asked) {
            return None;
        }
        let (shared, run, name) = (self.clone(), caller.run.clone(), server.to_owned());
        let done = Box::pin(async move { shared.has_signed_in(&run, &name).await });
        let message = format!("The server `{server}` needs a sign-in. Sign in on this page.");
        Some(ToPage { id: format!("sign-in-{server}"), url, message, done })
    }

    /// Waits until a person has signed in to a server. False if that cannot be known: only one
    /// operation needs more, which no row shows, or the wait was too long.
    async fn has_signed_in(&self, run: &RunView, server: &str) -> bool {
        let waits = |rows: &RunRows| {
            rows.get(server).is_some_and(|row| row.state == ServerState::Authenticating)
        };
        if !waits(&self.wait_until(run, SHOWN_MAX, waits).await) {
            return false;
        }
        let is_over = |rows: &RunRows| !waits(rows);
        is_over(&self.wait_until(run, SIGN_IN_MAX, is_over).await)
    }
}
