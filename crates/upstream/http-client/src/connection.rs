//! One HTTP/1.1 connection, driven by its user instead of by a task of its own.
//!
//! hyper splits a connection into a sender and a driver and leaves it to users to spawn the driver.
//! Here both are in one value: a caller polls the driver, then checks if its answer or its next
//! chunk has arrived. Only the driver can make those ready, so they are polled with a waker that
//! does nothing. Otherwise each arrival would wake the very task that is being polled.

use std::{
    future::{Future, poll_fn},
    pin::Pin,
    sync::Arc,
    task::{Context, Waker},
};

use http::{Request, Response};
use hyper::{
    body::Incoming,
    client::conn::{
        TrySendError,
        http1::{self, SendRequest},
    },
};
use hyper_util::rt::TokioIo;
use narthex_wire::Payload;
use tokio::{
    runtime::{Handle, Id},
    task::unconstrained,
};

use super::{connect::Stream, relay::Relay};

type Driver = http1::Connection<TokioIo<Stream>, Payload>;

/// A connection, in use or idle.
#[derive(Debug)]
pub(super) struct Connection {
    sender: SendRequest<Payload>,
    /// `None` once the connection has ended.
    driver: Option<Driver>,
    /// Wakes the task that last polled the driver; `waker` is the same relay as a waker.
    relay: Arc<Relay>,
    waker: Waker,
    home: Id,
}

/// A request that its connection has taken.
pub(super) type Begun = Pin<
    Box<dyn Future<Output = Result<Response<Incoming>, TrySendError<Request<Payload>>>> + Send>,
>;

/// The reason why an attempt on one connection gave no answer.
#[derive(Debug)]
pub(super) struct SendFailure {
    /// The request, if nothing of it was written.
    pub(super) unsent: Option<Request<Payload>>,
    pub(super) cause: hyper::Error,
}

impl Connection {
    pub(super) async fn handshake(
        builder: &http1::Builder,
        stream: Stream,
    ) -> hyper::Result<Box<Self>> {
        let (sender, driver) = builder.handshake(TokioIo::new(stream)).await?;
        let relay = Arc::<Relay>::default();
        let waker = Waker::from(Arc::clone(&relay));
        let home = Handle::current().id();
        Ok(Box::new(Self { sender, driver: Some(driver), relay, waker, home }))
    }

    /// The runtime that opened the connection, and gets its events.
    pub(super) fn home(&self) -> Id {
        self.home
    }

    /// Moves bytes. How the connection ended, if it did, is reported by the answer or body.
    pub(super) fn drive(&mut self, cx: &mut Context<'_>) {
        let Some(driver) = &mut self.driver else { return };
        self.relay.register(cx.waker());
        if Pin::new(driver).poll(&mut Context::from_waker(&self.waker)).is_ready() {
            // Dropping it also fails whatever still waits for it.
            self.driver = None;
        }
    }

    /// True if the last exchange is over and another may begin.
    pub(super) fn is_reusable(&self) -> bool {
        self.driver.is_some() && self.sender.is_ready()
    }

    /// Ends the bond with the last user. What happens meanwhile comes to light at the next drive.
    pub(super) fn rest(&self) {
        self.relay.clear();
    }

    /// Starts to send a request. The future is boxed at once: it is large, and its holders are
    /// moved.
    pub(super) fn begin(&mut self, request: Request<Payload>) -> Begun {
        // Unconstrained, since a spent budget would ask the waker that does nothing to try again.
        Box::pin(unconstrained(self.sender.try_send_request(request)))
    }

    /// Sends the started request and waits for the head of its answer.
    pub(super) async fn answer(
        &mut self,
        mut begun: Begun,
    ) -> Result<Response<Incoming>, SendFailure> {
        poll_fn(|cx| {
            self.drive(cx);
            begun.as_mut().poll(&mut Context::from_waker(Waker::noop()))
        })
        .await
        .map_err(|mut error| SendFailure {
            unsent: error.take_message(),
            cause: error.into_error(),
        })
    }
}
