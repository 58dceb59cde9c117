//! A call that is made once more after it was sent: its server certainly did not see it, as a
//! program that ended before it had read a byte of it (E133).

use std::{borrow::Cow, fmt, pin::Pin, sync::Arc};

use bytes::Bytes;
use narthex_wire::Raw;

use crate::view::Handling;
use crate::{
    Answering, Caller,
    gateway::Shared,
    open::{Failed, FirstTry},
};

/// The parts that a second try of a call is made from.
pub(crate) struct Again {
    shared: Arc<Shared>,
    caller: Caller,
    handling: Handling,
    first: FirstTry,
}

/// A second try on its way.
pub(crate) struct SecondTry(Pin<Box<dyn Future<Output = Answering> + Send>>);

impl fmt::Debug for Again {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Again").finish_non_exhaustive()
    }
}

impl fmt::Debug for SecondTry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SecondTry").finish_non_exhaustive()
    }
}

impl Again {
    pub(crate) fn new(
        shared: &Arc<Shared>,
        caller: &Caller,
        handling: Handling,
        first: FirstTry,
    ) -> Self {
        let (shared, caller) = (shared.clone(), caller.clone());
        Self { shared, caller, handling, first }
    }

    /// Tries a failed call once more. `id` is the caller's, as JSON.
    pub(crate) fn begin(
        self,
        failed: Failed,
        (id, method): (Bytes, Cow<'static, str>),
    ) -> SecondTry {
        let Self { shared, caller, handling, first } = self;
        SecondTry(Box::pin(async move {
            let tried = shared.forward_again(&caller, handling, first, failed).await;
            tried.unwrap_or_else(|refusal| {
                let refusal = refusal.explained(&caller);
                let to = (caller.era(), caller.run.reader());
                refusal.into_answering(Raw::new(&id), &method, to)
            })
        }))
    }
}

impl SecondTry {
    /// The call's answering, once the second try has got it. Safe to drop and call again, until it
    /// is there.
    pub(crate) async fn answering(&mut self) -> Answering {
        self.0.as_mut().await
    }
}
