//! The parts of a call that a second try needs.

use std::{borrow::Cow, fmt, pin::Pin, sync::Arc};

use bytes::Bytes;
use narthex_policy::Payment;
use narthex_upstream::Link;
use narthex_wire::Message;

use crate::{
    Answering, Caller, call::record::CallRecord, clock::CallClock, refusal::Refusal,
    runs::run::RunRow, session::OpenCall, shared::Shared, view::Handling,
};

/// A recorded call, through its tries.
pub(crate) struct Tried {
    pub(crate) record: CallRecord,
    /// The grants for a single call that the tries have used up.
    pub(crate) payment: Payment,
    pub(super) first: FirstTry,
    /// True if the gateway makes no further try.
    pub(super) is_last: bool,
}

/// The facts about the first try that a second one needs.
pub(super) struct FirstTry {
    pub(super) row: RunRow,
    /// The link of the first try.
    pub(super) lost: Arc<Link>,
    /// True if the item is a tool with an output schema.
    pub(super) is_shaped: bool,
}

/// The parts for a second try of a sent call.
pub(crate) struct Again {
    shared: Arc<Shared>,
    pub(super) caller: Caller,
    pub(super) handling: Handling,
    pub(super) asked: Message,
    pub(super) first: FirstTry,
}

/// A sent call that its server did not see.
pub(crate) struct Unseen {
    pub(crate) refusal: Refusal,
    pub(crate) record: CallRecord,
    pub(crate) open_call: Option<OpenCall>,
    pub(crate) clock: CallClock,
    pub(crate) payment: Payment,
}

/// A second try that has started.
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
    pub(crate) fn first(record: CallRecord, row: RunRow, lost: Arc<Link>, is_shaped: bool) -> Self {
        let first = FirstTry { row, lost, is_shaped };
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
        let shared = self.shared.clone();
        SecondTry(Box::pin(async move { shared.try_again(self, unseen, id, method).await }))
    }
}

impl SecondTry {
    /// Waits for the second try, and returns the call's answering. Cancel safe until then.
    pub(crate) async fn answering(&mut self) -> Answering {
        self.0.as_mut().await
    }
}
