//! Questions of servers to one client, until it has answered.

use std::sync::{Arc, atomic::Ordering};

use bytes::Bytes;
use narthex_model::Alias;
use narthex_upstream::Link;
use narthex_wire::{Message, Payload, Raw, Rewrite, rpc};
use tokio::{sync::mpsc, time::Instant};

use super::{ASK_TIMEOUT, OpenCall, Session, State};
use crate::{Place, RunView, view::check_question};

/// Number of questions of servers that may wait for one client.
pub(crate) const ASKS_MAX: usize = 64;
/// The refusal of a question that its client may read otherwise than the gateway.
pub(crate) const TWO_MEANINGS: &str = "a parameter of the question is ambiguous (S12)";

/// A question of a server that waits for the client's answer.
#[derive(Debug)]
pub(crate) struct Ask {
    pub(crate) asker: Asker,
    /// The open calls that the question may belong to.
    pub(super) calls: Vec<u64>,
    /// True if all calls that the question may belong to have ended. An answer may still come, but
    /// the question takes no place from other questions.
    pub(super) is_over: bool,
    pub(super) since: Instant,
    /// The question's place among the questions of its run and of all, until the question is over.
    pub(super) place: Option<Place>,
}

/// The receiver of the answer to a question.
#[derive(Debug)]
pub(crate) enum Asker {
    /// A server, under its own id, as JSON.
    Server { link: Arc<Link>, id: Bytes },
    /// A call whose server asked in an answer, by the place of the question in it.
    Call { answers: mpsc::Sender<(usize, Message)>, place: usize },
}

impl Ask {
    /// True if a server waits for the answer.
    pub(super) fn is_of(&self, server: &Alias) -> bool {
        matches!(&self.asker, Asker::Server { link, .. } if link.alias() == server)
    }
}

impl Session {
    /// Registers a server's question under an id of the gateway, which the client's answer will
    /// name. A question without a known `call` may belong to any open call at the server.
    ///
    /// # Errors
    /// The code and the text for the server, if the question can be read in two ways, or too many
    /// wait: for this client, or for all of its run, its workspace or the daemon.
    pub(crate) fn ask(
        &self,
        link: &Arc<Link>,
        question: &Message,
        call: Option<&OpenCall>,
    ) -> Result<Payload, (i64, &'static str)> {
        check_question(question).map_err(|_fault| (rpc::code::INVALID_PARAMS, TWO_MEANINGS))?;
        let too_many = (rpc::code::INTERNAL_ERROR, "too many requests to this client are open");
        let id = Bytes::copy_from_slice(question.id().ok_or(too_many)?.as_bytes());
        let ours = self.next_ask();
        let mut state = self.state();
        if !state.has_room_for(1) {
            return Err(too_many);
        }
        let place = state.place_for_question(&self.run).ok_or(too_many)?;
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
        let asker = Asker::Server { link: link.clone(), id };
        state.asks.insert(ours, Ask { asker, calls, is_over: false, since, place });
        drop(state);
        let mut rewrite =
            Rewrite { id: Some(ours.to_string().into_bytes().into()), ..Rewrite::default() };
        self.task_owner(link.alias()).rename_related(question, &mut rewrite);
        Ok(rewrite.apply(question))
    }

    /// Takes questions that a call asks for its server, under ids of [`Session::next_ask`]. Each
    /// answer goes to `answers`, which has room for all. `false`, and none is taken, if too many
    /// are waiting: for this client, or for all of its run, its workspace or the daemon.
    pub(crate) fn ask_for(
        &self,
        call: &OpenCall,
        ids: &[u64],
        answers: &mpsc::Sender<(usize, Message)>,
    ) -> bool {
        let since = Instant::now();
        let mut state = self.state();
        if !state.has_room_for(ids.len()) {
            return false;
        }
        let places = ids.iter().map(|_| state.place_for_question(&self.run));
        let Some(places) = places.collect::<Option<Vec<_>>>() else { return false };
        for ((place, ours), slot) in ids.iter().enumerate().zip(places) {
            let asker = Asker::Call { answers: answers.clone(), place };
            let calls = vec![call.number];
            let ask = Ask { asker, calls, is_over: false, since, place: slot };
            state.asks.insert(*ours, ask);
        }
        true
    }

    /// Takes questions back; returns the ids of the open ones.
    pub(crate) fn take_back(&self, ids: impl Iterator<Item = u64>) -> Vec<u64> {
        let mut state = self.state();
        ids.filter(|ours| state.asks.remove(ours).is_some()).collect()
    }

    /// An id for a question to the client.
    pub(crate) fn next_ask(&self) -> u64 {
        self.next_ask.fetch_add(1, Ordering::Relaxed)
    }

    /// The question that a response answers; each is answered once.
    pub(crate) fn answered(&self, response: &Message) -> Option<Ask> {
        let ours = response.id().and_then(Raw::as_u64)?;
        let mut state = self.state();
        state.last_used = Instant::now();
        state.asks.remove(&ours)
    }

    /// The client's form of a server's `notifications/cancelled`: it names the question by the
    /// gateway's id. `None` if the question is not open.
    pub(crate) fn ask_cancelled(&self, link: &Arc<Link>, notice: &Message) -> Option<Payload> {
        let id = notice.get("requestId")?;
        let mut state = self.state();
        let is_it = |ask: &Ask| match &ask.asker {
            Asker::Server { link: own, id: asked } => {
                Arc::ptr_eq(own, link) && *asked == id.as_bytes()
            }
            Asker::Call { .. } => false,
        };
        let ours = state.asks.iter().find_map(|(ours, ask)| is_it(ask).then_some(*ours))?;
        state.asks.remove(&ours);
        drop(state);
        let mut rewrite = Rewrite::default();
        rewrite.body.set("requestId", ours.to_string().into_bytes());
        Some(rewrite.apply(notice))
    }
}

impl State {
    /// A place for a question among those of its run and of all; `None` if there is none. A session
    /// outside of the table needs no place yet.
    fn place_for_question(&self, run: &RunView) -> Option<Option<Place>> {
        let Some(places) = &self.questions else { return Some(None) };
        places.take(run, 1).ok().map(Some)
    }

    /// True if there is room for this number of questions. Removes questions of
    /// ended calls to make room, the oldest first.
    fn has_room_for(&mut self, count: usize) -> bool {
        self.asks.retain(|_, ask| ask.since.elapsed() < ASK_TIMEOUT);
        while self.asks.len() + count > ASKS_MAX {
            let over = self.asks.iter().filter(|(_, ask)| ask.is_over).map(|(ours, _)| *ours);
            let Some(oldest) = over.min() else { return false };
            self.asks.remove(&oldest);
        }
        true
    }
}
