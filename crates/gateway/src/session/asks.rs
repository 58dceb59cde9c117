//! What servers ask one client, until it has answered.

use std::sync::{Arc, atomic::Ordering};

use bytes::Bytes;
use narthex_upstream::Link;
use narthex_wire::{Message, Payload, Raw, Rewrite};
use tokio::time::Instant;

use super::{ASK_TIMEOUT, OpenCall, Session};

/// How many questions of servers may wait for one client.
const ASKS_MAX: usize = 64;

/// A question of a server that waits for the client's answer.
#[derive(Debug)]
pub(crate) struct Ask {
    pub(crate) link: Arc<Link>,
    /// The server's own id, as JSON.
    pub(crate) id: Bytes,
    /// The open calls that it may belong to.
    pub(super) calls: Vec<u64>,
    /// All calls that it may belong to have ended: an answer may still come, but it keeps no place
    /// from other questions.
    pub(super) is_over: bool,
    pub(super) since: Instant,
}

impl Session {
    /// Takes a server's question: gives it an id of ours, under which the answer will come. Where
    /// nothing says to which `call` it belongs, it may be any that is open at the server. `None` if
    /// too many are waiting.
    pub(crate) fn ask(
        &self,
        link: &Arc<Link>,
        question: &Message,
        call: Option<&OpenCall>,
    ) -> Option<Payload> {
        let id = Bytes::copy_from_slice(question.id()?.as_bytes());
        let ours = self.next_ask.fetch_add(1, Ordering::Relaxed);
        let mut state = self.state();
        state.asks.retain(|_, ask| ask.since.elapsed() < ASK_TIMEOUT);
        if state.asks.len() >= ASKS_MAX {
            let over = state.asks.iter().filter(|(_, ask)| ask.is_over).map(|(ours, _)| *ours);
            let oldest = over.min()?;
            state.asks.remove(&oldest);
        }
        let calls = match call {
            Some(call) => vec![call.number],
            None => {
                let open = state
                    .open_calls
                    .values()
                    .filter(|call| call.server.as_ref() == Some(link.alias()));
                open.map(|call| call.number).collect()
            }
        };
        let since = Instant::now();
        state.asks.insert(ours, Ask { link: link.clone(), id, calls, is_over: false, since });
        drop(state);
        let mut rewrite =
            Rewrite { id: Some(ours.to_string().into_bytes().into()), ..Rewrite::default() };
        self.task_owner(link.alias()).rename_related(question, &mut rewrite);
        Some(rewrite.apply(question))
    }

    /// An id for a question of our own, whose answer nobody waits for; as JSON.
    pub(crate) fn new_ask(&self) -> String {
        self.next_ask.fetch_add(1, Ordering::Relaxed).to_string()
    }

    /// The question that a response answers; each is answered once.
    pub(crate) fn answered(&self, response: &Message) -> Option<Ask> {
        let ours = response.id().and_then(Raw::as_u64)?;
        let mut state = self.state();
        state.last_used = Instant::now();
        state.asks.remove(&ours)
    }

    /// What a server's `notifications/cancelled` means to the client: its question under our id.
    /// `None` if the question is not open.
    pub(crate) fn ask_cancelled(&self, link: &Arc<Link>, notice: &Message) -> Option<Payload> {
        let id = notice.get("requestId")?;
        let mut state = self.state();
        let is_it = |ask: &Ask| Arc::ptr_eq(&ask.link, link) && ask.id == id.as_bytes();
        let ours = state.asks.iter().find_map(|(ours, ask)| is_it(ask).then_some(*ours))?;
        state.asks.remove(&ours);
        drop(state);
        let mut rewrite = Rewrite::default();
        rewrite.body.set("requestId", ours.to_string().into_bytes());
        Some(rewrite.apply(notice))
    }
}
