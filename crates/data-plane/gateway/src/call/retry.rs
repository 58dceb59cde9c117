//! The second try of a call whose server certainly did not act. A program may have ended before it
//! had read a byte of the call (E133). Or a server refused the headers, which follow from its
//! tools.

use std::{
    borrow::Cow,
    fmt,
    pin::{Pin, pin},
    sync::Arc,
};

use bytes::Bytes;
use narthex_policy::Payment;
use narthex_registry::ServerRow;
use narthex_upstream::{Doubt, Link};
use narthex_wire::Message;

use crate::{
    Answering, Caller,
    call::{
        clock::CallClock,
        connect::Target,
        identify::{Call, Identity},
        record::CallRecord,
        refusal::Refusal,
    },
    gateway::Shared,
    runs::run::{RunRow, RunRows},
    session::OpenCall,
    view::Handling,
};

/// A recorded call, through its tries.
pub(crate) struct Tried {
    pub(crate) record: CallRecord,
    /// The grants for a single call that the tries have used up.
    pub(crate) payment: Payment,
    pub(super) first: FirstTry,
    /// True if no further try is made.
    pub(super) is_last: bool,
}

/// The facts about the first try that a second one needs.
pub(super) struct FirstTry {
    row: RunRow,
    /// The link of the first try.
    pub(super) lost: Arc<Link>,
    /// True if the item is a tool with an output schema.
    is_shaped: bool,
}

/// The parts for a second try of a sent call.
pub(crate) struct Again {
    shared: Arc<Shared>,
    caller: Caller,
    handling: Handling,
    asked: Message,
    first: FirstTry,
}

/// A sent call that its server did not see.
pub(crate) struct Unseen {
    pub(crate) refusal: Refusal,
    pub(crate) record: CallRecord,
    pub(crate) open_call: Option<OpenCall>,
    pub(crate) clock: CallClock,
    pub(crate) payment: Payment,
}

/// A second try that has begun.
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

impl Tried {
    /// The first try of a recorded call.
    pub(crate) fn first(record: CallRecord, target: &Target) -> Self {
        let (row, lost) = (target.routed.row.clone(), Arc::clone(&target.link));
        let first = FirstTry { row, lost, is_shaped: target.routed.is_shaped };
        Self { record, payment: Payment::default(), first, is_last: false }
    }
}

impl Again {
    pub(super) fn new(
        shared: &Arc<Shared>,
        caller: &Caller,
        handling: Handling,
        asked: Message,
        first: FirstTry,
    ) -> Self {
        let (shared, caller) = (shared.clone(), caller.clone());
        Self { shared, caller, handling, asked, first }
    }

    /// Tries a call once more. `id` is the caller's, as JSON.
    pub(crate) fn begin(self, unseen: Unseen, id: Bytes, method: Cow<'static, str>) -> SecondTry {
        let identity = Identity { id, name: method };
        let Self { shared, caller, handling, asked, first } = self;
        let Unseen { refusal, record, open_call, clock, payment } = unseen;
        SecondTry(Box::pin(async move {
            let call = Call { caller: &caller, handling, asked, clock, open_call };
            let tried = Tried { record, payment, first, is_last: false };
            let answered = shared.retry(call, tried, refusal).await;
            answered.unwrap_or_else(|refusal| identity.refuse(&caller, refusal))
        }))
    }
}

impl SecondTry {
    /// Waits for the second try, and returns the call's answering. Cancel safe until then.
    pub(crate) async fn answering(&mut self) -> Answering {
        self.0.as_mut().await
    }
}

impl Shared {
    /// Tries a call once more if its server certainly did nothing; otherwise the call fails.
    ///
    /// # Errors
    /// When the call has failed. The failure is in the record.
    pub(crate) async fn retry(
        self: &Arc<Self>,
        call: Call<'_>,
        mut tried: Tried,
        refusal: Refusal,
    ) -> Result<Answering, Refusal> {
        tried.is_last = true;
        // A server that answered that it did nothing has seen it.
        let was_unsent = refusal.is_unsent();
        let target = {
            let finding = pin!(self.find_again(&call, &tried.first, refusal));
            call.unless_given_up(finding).await
        };
        let sent = match target {
            Ok(target) => self.send(&call, target, &mut tried).await,
            Err(refusal) => Err(refusal),
        };
        let refusal = match sent {
            Ok(sent) => return Ok(self.finish(call, tried, sent)),
            Err(refusal) => refusal.settled().shaped(tried.first.is_shaped),
        };
        tried.record.refused(&refusal);
        if was_unsent && refusal.is_unsent() {
            tried.payment.give_back(&call.caller.run.unused, &self.sealer.spent);
        }
        Err(refusal)
    }

    /// Finds the server of a call for a second try. A call that was counted is not counted again.
    ///
    /// # Errors
    /// With the refusal of the first try, if a second one could do harm or cannot succeed.
    async fn find_again(
        self: &Arc<Self>,
        call: &Call<'_>,
        first: &FirstTry,
        refusal: Refusal,
    ) -> Result<Target, Refusal> {
        match refusal {
            // A server that forgot its session, or was not reached, did not see the request.
            refusal if refusal.is_unseen() && !refusal.is_callers_fault() => {
                self.recovered(call, first).await;
            }
            Refusal::Mismatch => self.list_anew(&first.row, call.clock).await,
            refusal => return Err(refusal),
        }
        let routed = self.route(call).await?;
        self.connect(call, routed).await
    }

    /// Waits until a server that did not see a request can be called again: it has another link
    /// than the lost one, a check has shown that it works, or an attempt to reach it has failed.
    /// The wait ends with the time of the call.
    async fn recovered(&self, call: &Call<'_>, first: &FirstTry) {
        let FirstTry { row, lost, .. } = first;
        // A session's own link is not the row's, and is opened anew when it is asked for.
        let is_rows = row.link.as_ref().is_some_and(|link| Arc::ptr_eq(link, lost));
        let has_recovered = |rows: &RunRows| match rows.get(&row.name) {
            None => true,
            Some(row) => match &row.link {
                Some(link) if row.health.doubt() == Doubt::None => {
                    !is_rows || !Arc::ptr_eq(link, lost) || !lost.closed().is_cancelled()
                }
                Some(_) => false,
                None => row.is_decided(),
            },
        };
        let left = call.clock.left(self.timeout(row));
        self.wait_until(&call.caller.run, left, has_recovered).await;
    }

    /// Lists the server's tools anew: the headers of a call follow from them, and they may have
    /// changed.
    async fn list_anew(&self, row: &ServerRow, clock: CallClock) {
        let listing = self.registry.list_anew(row);
        if tokio::time::timeout(clock.left(self.timeout(row)), listing).await.is_err() {
            tracing::warn!(server.name = row.name, "listing the tools again took too long");
        }
    }
}
