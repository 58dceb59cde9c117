//! A call that outlives the request it came with.
//!
//! In legacy revisions a closed connection says nothing about the call: only
//! `notifications/cancelled` gives it up. So what a dropped request leaves behind runs on.

use std::{
    pin::Pin,
    task::{Context, Poll},
};

use narthex_gateway::{Answering, Caller, Gateway, Step};
use narthex_wire::Message;
use tokio::runtime::Handle;
use tokio_util::task::TaskTracker;

/// An open call and its first step.
pub(crate) type Opened = (Answering, Option<Step>);
/// A call that is being opened.
pub(crate) type Opening = Pin<Box<dyn Future<Output = Opened> + Send>>;

/// The state of a call when its answer becomes a stream.
pub(crate) enum Start {
    /// Nothing has come yet.
    Opening(Opening),
    /// Something has come that is no answer.
    Opened(Box<Opened>),
}

/// Begins a call. It owns what it needs, so that it can move from a request into a stream.
pub(crate) fn open(gateway: &Gateway, caller: Caller, request: Message) -> Opening {
    let gateway = gateway.clone();
    in_place(move || async move {
        let mut answering = gateway.call(&caller, request).await;
        let first = answering.next().await;
        (answering, first)
    })
}

/// Boxes a future where it will stay. `Box::pin` would copy all of it, which is some kilobytes of
/// nothing: a future that was not polled yet is only what it has captured.
#[inline(always)]
fn in_place<F: Future>(make: impl FnOnce() -> F) -> Pin<Box<F>> {
    let place = Box::new_uninit();
    Box::into_pin(Box::write(place, make()))
}

/// A call up to its first step. Dropped before that, it runs to its end as a task.
pub(crate) struct Detached {
    opening: Option<Opening>,
    tasks: TaskTracker,
}

impl Detached {
    pub(crate) fn new(gateway: &Gateway, caller: Caller, request: Message) -> Self {
        let opening = Some(open(gateway, caller, request));
        Self { opening, tasks: gateway.tasks().clone() }
    }

    /// Hands over what is not done yet; `None` if the first step was given.
    pub(crate) fn take(&mut self) -> Option<Opening> {
        self.opening.take()
    }
}

impl Future for Detached {
    type Output = Opened;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Opened> {
        let Some(opening) = &mut self.opening else { return Poll::Pending };
        let opened = std::task::ready!(opening.as_mut().poll(cx));
        self.opening = None;
        Poll::Ready(opened)
    }
}

impl Drop for Detached {
    fn drop(&mut self) {
        let Some(opening) = self.opening.take() else { return };
        // Without a runtime the program is ending, and the call with it.
        let Ok(runtime) = Handle::try_current() else { return };
        let rest = async move {
            let (mut answering, mut step) = opening.await;
            while step.is_some_and(|step| !matches!(step, Step::Answer(_))) {
                step = answering.next().await;
            }
        };
        // Only the tracker waits for the task.
        drop(self.tasks.spawn_on(rest, &runtime));
    }
}
