//! One call's place in the audit record and in the counters, from before it is sent to its end.

use std::{borrow::Cow, sync::Arc, time::Duration};

use narthex_audit::{AuditFull, AuditRecord, AuditSlot, Outcome, TOOL};
use narthex_model::{Alias, CallErrorKind, ErrorKind, GrantId};
use narthex_policy::{Basis, Item};
use narthex_run_events::{Call as WatchedCall, Open};
use narthex_traffic::Admission;
use narthex_upstream::Booked;
use narthex_wire::{
    Message, Payload, Raw, method,
    notification::{RESOURCES_FILTER, TASKS_FILTER},
};
use tokio_util::task::task_tracker::TaskTrackerToken;

use crate::{
    CallSpan, Caller,
    call::{
        admit::Unfound,
        connect::Target,
        contents::Keeping,
        finish::outcome_of_refusal,
        identify::{Call, name_of, own_alias},
        refusal::Refusal,
        retry::Tried,
        route::own_item,
    },
    gateway::Shared,
    metrics::Metrics,
    view::Handling,
};

/// Number of resources and tasks that the record of a stream of changes names at most; the second
/// constant limits the characters of each name.
const NAMED_MAX: usize = 20;
const NAMED_LENGTH: usize = 200;

/// The record of an open call. It ends exactly once: a dropped record ends as abandoned.
#[derive(Debug)]
pub(crate) struct CallRecord {
    slot: Option<AuditSlot>,
    metrics: Metrics,
    /// The server under which the call is counted.
    server: Option<Alias>,
    method: Cow<'static, str>,
    last: Duration,
    span: Option<Box<dyn CallSpan>>,
    /// The call's place among the limited open calls.
    admission: Option<Admission>,
    /// Records the call's contents, if its workspace has this turned on.
    keeping: Option<Box<Keeping>>,
    /// Reports the call to the run's watchers, if there are any.
    watched: Option<Box<Open>>,
    /// Token that drain waits for.
    _open: Option<TaskTrackerToken>,
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

impl Shared {
    /// Begins the record of a call to a server, and holds the call's admission.
    ///
    /// # Errors
    /// When the call cannot be recorded: then it is not made (D25).
    pub(crate) fn record(
        &self,
        call: &Call<'_>,
        target: &Target,
        admission: Admission,
    ) -> Result<Tried, Refusal> {
        let (request, is_shaped) = (&target.routed.request, target.routed.is_shaped);
        let is_stream = request.message.method() == method::SUBSCRIPTIONS_LISTEN;
        let item = self.clean_found(call.caller, &request.item);
        // Streams have no end of their own, so drain does not wait for them.
        let open = (!is_stream).then(|| self.calls.token());
        let alias = Some(request.alias.clone());
        let record = self.begin_record(call.caller, alias, &request.message, item, open);
        let mut record = record.map_err(|full| unrecorded(full).shaped(is_shaped))?;
        record.admitted(admission);
        Ok(Tried::first(record, target))
    }

    /// Records a call that finds no server, unless the record has it already.
    pub(crate) fn unfound(&self, call: &Call<'_>, unfound: Unfound) -> Refusal {
        let Unfound { refusal, is_recorded } = unfound;
        match is_recorded {
            true => *refusal,
            false => self.refused(call.caller, call.handling, &call.asked, *refusal),
        }
    }

    /// Records a call that finds no server (S32), under the name that the caller used.
    pub(crate) fn refused(
        &self,
        caller: &Caller,
        handling: Handling,
        asked: &Message,
        refusal: Refusal,
    ) -> Refusal {
        let held = refusal.is_absence().then(|| self.held_back(caller, handling, asked));
        let is_shaped = self.is_shaped(caller, handling, asked);
        let refusal = held.flatten().unwrap_or(refusal).shaped(is_shaped);
        let item = own_item(handling, asked).unwrap_or(Item::Server);
        let item = self.clean_item(caller, &item);
        match self.begin_record(caller, own_alias(caller).cloned(), asked, item, None) {
            Ok(mut record) => {
                record.refused(&refusal);
                refusal
            }
            Err(full) => unrecorded(full).shaped(is_shaped),
        }
    }

    /// Begins the record of a call whose item is known. `item` must be free of secrets: see
    /// [`Shared::clean_item`].
    ///
    /// # Errors
    /// When the record cannot be written: the call must not be made (D25).
    pub(crate) fn begin_record(
        &self,
        caller: &Caller,
        server: Option<Alias>,
        message: &Message,
        item: Item,
        open: Option<TaskTrackerToken>,
    ) -> Result<CallRecord, AuditFull> {
        let method = match name_of(message) {
            // A method that MCP does not know may consist of the caller's own words.
            Cow::Owned(name) => Cow::Owned(self.clean(caller, name.into()).as_ref().to_owned()),
            known @ Cow::Borrowed(_) => known,
        };
        // A run's own servers come and go, and would fill the metrics with their names.
        let is_counted = |alias: &&Alias| !caller.run.owns(alias);
        let counted = server.as_ref().filter(is_counted).cloned();
        // A request about no single item, such as a list, has no stored contents.
        let keeping = (!matches!(item, Item::Server)).then(|| self.keeping(caller, message));
        let keeping = keeping.flatten();
        let watched = self.watched(caller, server.as_ref(), message, &item);
        let mut slot = self.audit.reserve(AuditRecord {
            workspace: caller.run.workspace.clone(),
            run: caller.run.id,
            user: caller.run.authority.actors().user.clone(),
            session: caller.session.as_ref().map(|session| session.id.clone()),
            endpoint: own_alias(caller).cloned(),
            server,
            method: method.clone(),
            item: recorded(item).or_else(|| self.listened(caller, message)),
            granted_via: Box::default(),
            refused_by: None,
            rule: None,
            rounds: 0,
        })?;
        if let Some(keeping) = &keeping {
            keeping.asked(message, &mut slot);
        }
        Ok(CallRecord {
            slot: Some(slot),
            metrics: self.metrics.clone(),
            server: counted,
            method,
            last: Duration::ZERO,
            span: None,
            admission: None,
            keeping,
            watched,
            _open: open,
        })
    }

    /// Starts to report a call to the watchers of its run; `None` if the run has none.
    pub(crate) fn watched(
        &self,
        caller: &Caller,
        server: Option<&Alias>,
        message: &Message,
        item: &Item,
    ) -> Option<Box<Open>> {
        self.options.tap.begin(caller.run.id, || WatchedCall {
            alias: server.cloned(),
            method: name_of(message),
            item: recorded(item.clone()).map(|(kind, name)| (kind, self.clean(caller, name))),
            size: message.get("arguments").map(|arguments| arguments.as_bytes().len() as u64),
        })
    }
}

impl Shared {
    /// The item of a call for records. A URI or another text of the caller may contain the value of
    /// a secret, which is removed (S27). Names from the server's own lists need no such check.
    pub(crate) fn clean_item(&self, caller: &Caller, item: &Item) -> Item {
        match item {
            Item::Tool(name) => Item::Tool(self.clean(caller, name.clone())),
            Item::Prompt(name) => Item::Prompt(self.clean(caller, name.clone())),
            Item::Resource(uri) => Item::Resource(self.clean_uri(caller, uri)),
            Item::Task(id) => Item::Task(self.clean(caller, id.clone())),
            Item::Server => Item::Server,
        }
    }

    /// The resources or tasks of a stream of changes; `None` for any other request.
    fn listened(&self, caller: &Caller, message: &Message) -> Option<(&'static str, Arc<str>)> {
        if message.method() != method::SUBSCRIPTIONS_LISTEN {
            return None;
        }
        let wanted = message.get("notifications")?;
        let named = |member| wanted.get(member).map(Raw::items).unwrap_or_default();
        let (uris, tasks) = (named(RESOURCES_FILTER), named(TASKS_FILTER));
        let item = |text: &str, is_task: bool| {
            let name: Arc<str> = text.chars().take(NAMED_LENGTH).collect::<String>().into();
            let item = if is_task { Item::Task(name) } else { Item::Resource(name) };
            match is_task {
                true => format!("task {}", self.clean_item(caller, &item).name()),
                false => self.clean_item(caller, &item).name().to_owned(),
            }
        };
        let all = uris.len() + tasks.len();
        let uris = uris.into_iter().filter_map(Raw::as_str).map(|uri| item(&uri, false));
        let tasks = tasks.into_iter().filter_map(Raw::as_str).map(|id| item(&id, true));
        let mut named: Vec<_> = uris.chain(tasks).take(NAMED_MAX).collect();
        if all > named.len() {
            named.push(format!("and {} more", all - named.len()));
        }
        (!named.is_empty()).then(|| ("subscription", named.join(", ").into()))
    }

    /// As [`Shared::clean_item`], for a call whose tool was found in the server's list.
    pub(crate) fn clean_found(&self, caller: &Caller, item: &Item) -> Item {
        match item {
            Item::Tool(_) => item.clone(),
            item => self.clean_item(caller, item),
        }
    }

    /// A URI without secrets. An encoded URI with a secret is recorded in the server's reading.
    fn clean_uri(&self, caller: &Caller, uri: &Arc<str>) -> Arc<str> {
        let redactor = caller.run.contents.redactor(&self.snapshot(&caller.run));
        let clean = match redactor.text(uri) {
            Cow::Borrowed(_) => uri.clone(),
            Cow::Owned(clean) => clean.into(),
        };
        let spellings = narthex_model::uri::spellings(&clean);
        spellings
            .iter()
            .find(|text| redactor.is_in(text.as_bytes()))
            .map_or_else(|| clean.clone(), |text| redactor.text(text).as_ref().into())
    }

    /// A name without the values of secrets that the run and its servers know.
    fn clean(&self, caller: &Caller, name: Arc<str>) -> Arc<str> {
        let redactor = caller.run.contents.redactor(&self.snapshot(&caller.run));
        match redactor.text(&name) {
            Cow::Borrowed(_) => name,
            Cow::Owned(clean) => clean.into(),
        }
    }
}

/// The item of a call in the form that the audit records.
fn recorded(item: Item) -> Option<(&'static str, Arc<str>)> {
    match item {
        Item::Tool(name) => Some((TOOL, name)),
        Item::Prompt(name) => Some(("prompt", name)),
        Item::Resource(name) => Some(("resource", name)),
        Item::Task(name) => Some(("task", name)),
        Item::Server => None,
    }
}

/// A call that cannot be recorded is not made (D25).
pub(crate) fn unrecorded(full: AuditFull) -> Refusal {
    let kind = match full {
        AuditFull::Full | AuditFull::SpoolFull => CallErrorKind::LimitExceeded,
        AuditFull::Failed | AuditFull::Closed => CallErrorKind::TransportError,
    };
    Refusal::call(kind, full.to_string())
}
