//! One call's place in the audit record and in the counters, from before it is sent to its end.

use std::{borrow::Cow, time::Duration};

use narthex_audit::{AuditSlot, Outcome};
use narthex_model::{Alias, ErrorKind, GrantId};
use narthex_policy::Basis;
use narthex_run_events::Open;
use narthex_traffic::Admission;
use narthex_upstream::Booked;
use narthex_wire::Payload;
use tokio_util::task::task_tracker::TaskTrackerToken;

use crate::{
    CallSpan,
    call::contents::Keeping,
    metrics::Metrics,
    refusal::{Refusal, outcome_of_refusal},
};

/// The record of an open call. It ends exactly once: a dropped record ends as abandoned.
#[derive(Debug)]
pub(crate) struct CallRecord {
    pub(super) slot: Option<AuditSlot>,
    pub(super) metrics: Metrics,
    /// The server under which the call is counted.
    pub(super) server: Option<Alias>,
    pub(super) method: Cow<'static, str>,
    pub(super) last: Duration,
    pub(super) span: Option<Box<dyn CallSpan>>,
    /// The call's place among the limited open calls.
    pub(super) admission: Option<Admission>,
    /// Records the call's contents, if its workspace has this turned on.
    pub(super) keeping: Option<Box<Keeping>>,
    /// Reports the call to the run's watchers, if there are any.
    pub(super) watched: Option<Box<Open>>,
    /// Token that drain waits for.
    pub(super) _open: Option<TaskTrackerToken>,
}

impl CallRecord {
    /// Ties the span of a try to the call's end. The span of an earlier try ends here.
    pub(crate) fn trace(&mut self, span: Box<dyn CallSpan>) {
        if let Some(mut earlier) = self.span.replace(span) {
            earlier.end("retried", true);
        }
    }

    pub(crate) fn elapsed(&self) -> Duration {
        self.slot.as_ref().map_or(self.last, AuditSlot::elapsed)
    }

    /// Holds the call's admission by the limits until the call ends.
    pub(crate) fn admitted(&mut self, admission: Admission) {
        self.admission = Some(admission);
    }

    /// Proof that the call is recorded and counted. Nothing can be sent without it.
    ///
    /// # Errors
    /// When the call has not been counted, or its record has ended.
    pub(crate) fn booked(&self) -> Result<Booked, Refusal> {
        match (&self.slot, &self.admission) {
            (Some(slot), Some(admission)) => Ok(Booked::new(slot, admission)),
            _ => {
                let text =
                    "an uncounted call, or a call whose record has ended, was about to be sent";
                Err(Refusal::Kind(ErrorKind::Bug, text.to_owned()))
            }
        }
    }

    /// Notes the grants by which the call is allowed.
    pub(crate) fn allowed(&mut self, basis: &Basis) {
        if let Some(slot) = self.slot.as_mut().filter(|_| !basis.is_empty()) {
            let ids: Vec<_> = basis.ids().map(GrantId::to_text).collect();
            slot.update(|record| record.granted_via = ids.join(" ").into());
        }
    }

    /// Notes if the call has been sent, or may have been.
    pub(crate) fn set_sent(&mut self, is_sent: bool) {
        if let Some(admission) = &mut self.admission {
            admission.set_sent(is_sent);
        }
    }

    /// Notes that the result was cut.
    pub(crate) fn result_cut(&self) {
        self.metrics.result_cut(self.server.as_ref());
    }

    /// Notes the end with this answer.
    pub(crate) fn answered(&mut self, outcome: Outcome, answer: &Payload) {
        if let (Some(keeping), Some(slot)) = (&self.keeping, &mut self.slot) {
            keeping.answered(answer, slot);
        }
        if let Some(watched) = &mut self.watched {
            watched.answered(answer.len());
        }
        self.finish(outcome);
    }

    /// Notes the end of a call that the gateway answers itself, and which check refused it.
    pub(crate) fn refused(&mut self, refusal: &Refusal) {
        self.checked(refusal);
        if let (Some(keeping), Some(slot)) = (&self.keeping, &mut self.slot) {
            keeping.refused(refusal, &self.method, slot);
        }
        self.finish(outcome_of_refusal(refusal));
    }

    /// Notes which check refused the call, if one did.
    pub(crate) fn checked(&mut self, refusal: &Refusal) {
        if let (Some(slot), Some(check)) = (&mut self.slot, refusal.check()) {
            slot.update(|record| {
                record.refused_by = Some(check);
                record.rule = refusal.rule().cloned();
            });
        }
    }

    /// Notes that the call is made again, as a further round.
    pub(crate) fn made_again(&mut self) {
        if let Some(slot) = &mut self.slot {
            slot.update(|record| record.rounds += 1);
        }
    }

    /// Notes the end. Further ends of the same call are ignored.
    pub(crate) fn finish(&mut self, outcome: Outcome) {
        if let Some(mut slot) = self.slot.take() {
            if let Some(keeping) = &self.keeping {
                keeping.end(&mut slot);
            }
            self.last = slot.elapsed();
            self.metrics.call_finished(self.server.as_ref(), &self.method, outcome, self.last);
            if let Some(span) = &mut self.span {
                span.end(outcome.as_str(), outcome != Outcome::Ok);
            }
            slot.commit(outcome);
            if let Some(watched) = self.watched.take() {
                watched.end(outcome.as_str());
            }
            self.admission = None;
        }
    }
}

impl Drop for CallRecord {
    fn drop(&mut self) {
        self.finish(Outcome::Abandoned);
    }
}
