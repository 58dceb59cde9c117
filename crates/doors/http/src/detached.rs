//! A call that continues after the HTTP request that started it.
//!
//! In legacy revisions a closed connection does not cancel a call: only `notifications/cancelled`
//! does. So a call continues when its request is dropped.

use std::{
    pin::Pin,
    task::{Context, Poll},
};

use narthex_gateway::{Answering, Caller, Gateway, Step};
use narthex_wire::Message;
use tokio::runtime::Handle;
use tokio_util::task::TaskTracker;

/// A call that has started, and its first step.
pub(crate) type Opened = (Answering, Option<Step>);
/// A call that is being started.
pub(crate) type Opening = Pin<Box<dyn Future<Output = Opened> + Send>>;

/// The state of a call when its answer becomes a stream.
pub(crate) enum Start {
    /// The call has given no step yet.
    Opening(Opening),
    /// The call has given a step that is not its answer.
    Opened(Box<Opened>),
}

/// Starts a call. The future owns all that it needs, so it can move from a request into a stream.
pub(crate) fn open(gateway: &Gateway, caller: Caller, request: Message) -> Opening {
    let gateway = gateway.clone();
    in_place(move || async move {
        let mut answering = gateway.call(&caller, request).await;
        let first = answering.next().await;
        (answering, first)
    })
}

/// Builds a future directly in its box. `Box::pin` would copy the future's full size, which is
/// several kilobytes and mostly unused: a future that was not polled yet uses only the variables
/// that it captured.
#[inline(always)]
fn in_place<F: Future>(make: impl FnOnce() -> F) -> Pin<Box<F>> {
    let place = Box::new_uninit();
    Box::into_pin(Box::write(place, make()))
}

/// A call up to its first step. If it is dropped before that step, the call continues as a task.
pub(crate) struct Detached {
    opening: Option<Opening>,
    tasks: TaskTracker,
}

impl Detached {
    pub(crate) fn new(gateway: &Gateway, caller: Caller, request: Message) -> Self {
        let opening = Some(open(gateway, caller, request));
        Self { opening, tasks: gateway.tasks().clone() }
    }

    /// Hands over the call that is still being started; `None` if the first step was returned.
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
        // Without a runtime the program is ending, and the call ends with it.
        let Ok(runtime) = Handle::try_current() else { return };
        let rest = async move {
            let (mut answering, mut step) = opening.await;
            while step.is_some_and(|step| !matches!(step, Step::Answer(_))) {
                step = answering.next().await;
            }
        };
        // Only the tracker waits for this task.
        drop(self.tasks.spawn_on(rest, &runtime));
    }
}
