//! The second try of a call whose server certainly did not act. A program may have ended before it
//! had read a byte of the call (E133). Or a server refused the headers, which follow from its
//! tools.

use std::{borrow::Cow, pin::pin, sync::Arc};

use bytes::Bytes;
use narthex_registry::ServerRow;
use narthex_upstream::Doubt;

use crate::{
    Answering,
    call::{
        again::{Again, FirstTry, Tried, Unseen},
        connect::Target,
        identify::{Call, Identity},
    },
    clock::CallClock,
    refusal::Refusal,
    runs::run::RunRows,
    shared::Shared,
};

impl Shared {
    /// Tries a sent call once more. `id` is the caller's, as JSON.
    pub(super) async fn try_again(
        self: Arc<Self>,
        again: Again,
        unseen: Unseen,
        id: Bytes,
        method: Cow<'static, str>,
    ) -> Answering {
        let Again { caller, handling, asked, first, .. } = again;
        let Unseen { refusal, record, open_call, clock, payment } = unseen;
        let call = Call { caller: &caller, handling, asked, clock, open_call };
        let tried = Tried { record, payment, first, is_last: false };
        let answered = self.retry(call, tried, refusal).await;
        let identity = Identity { id, name: method };
        answered.unwrap_or_else(|refusal| identity.refuse(&caller, refusal))
    }

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
        // A server that answered that it did nothing has seen the call.
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
        // The row does not have a session's own link, which is opened anew when the call asks for
        // it.
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
        let left = call.clock.left(self.options.timeout(row));
        self.wait_until(&call.caller.run, left, has_recovered).await;
    }

    /// Lists the server's tools anew: the headers of a call follow from them, and they may have
    /// changed.
    async fn list_anew(&self, row: &ServerRow, clock: CallClock) {
        let listing = self.registry.list_anew(row);
        if tokio::time::timeout(clock.left(self.options.timeout(row)), listing).await.is_err() {
            tracing::warn!(server.name = row.name, "listing the tools again took too long");
        }
    }
}
