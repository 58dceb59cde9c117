//! The verbs of a registry: their answers, their limits, and the order in which they count.

mod applies;
mod drains;
mod subscriptions;
mod switches;

use std::sync::{Arc, Mutex};

use narthex_policy::{Item, Request};
use narthex_upstream::{Booked, Frame, Hop, InUse, Link, LinkError};
use narthex_wire::{Limits, Message};
use serde_json::json;
use tokio::sync::mpsc;
use tokio_util::task::TaskTracker;

use crate::{
    peer::{Peer, event, events, result},
    world::{booking, in_time, permitted},
};

/// The id of a call, and the stream on which it is answered.
type OpenCall = (serde_json::Value, mpsc::Sender<String>);

/// A server whose calls are answered when the test decides.
pub(crate) struct Slow {
    pub(crate) peer: Peer,
    open: Arc<Mutex<Vec<OpenCall>>>,
}

impl Slow {
    pub(crate) async fn start() -> Self {
        let open = Arc::<Mutex<Vec<OpenCall>>>::default();
        let calls = open.clone();
        let peer = Peer::legacy(move |seen| match seen.rpc() {
            "tools/list" => Some(result(seen, &json!({"tools": [{"name": "x"}]}))),
            "tools/call" => {
                let (sender, stream) = events();
                calls.lock().unwrap().push((seen.body["id"].clone(), sender));
                Some(stream)
            }
            _ => None,
        })
        .await;
        Self { peer, open }
    }

    /// Waits until a call has arrived.
    pub(crate) async fn called(&self) {
        self.peer.wait(|seen| seen.rpc() == "tools/call").await;
    }

    /// Answers every call that is open.
    pub(crate) fn answer(&self) {
        for (id, stream) in self.open.lock().unwrap().drain(..) {
            let answer = json!({"jsonrpc": "2.0", "id": id, "result": {"content": []}});
            stream.try_send(event(&answer)).unwrap();
        }
    }
}

/// Makes a call over a link, and returns its answer.
pub(crate) async fn call(link: &Link) -> Result<Frame, LinkError> {
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "x"}});
    let message = Message::parse(body.to_string().into(), &Limits::default()).unwrap();
    let request = Request::new(link.alias().clone(), message, Item::Tool("x".into()));
    let (slot, admission) = booking();
    let booked = Booked::new(&slot, &admission);
    let forwarding = link.forward(permitted(request), Hop::default(), booked);
    let mut forwarded = in_time(forwarding).await?;
    in_time(forwarded.next()).await
}

/// A call that keeps its link in use until it has its answer.
pub(crate) fn call_in_background(link: InUse) -> tokio::task::JoinHandle<Result<Frame, LinkError>> {
    TaskTracker::new().spawn(async move { call(&link).await })
}
