//! Begins the records of calls (the `record` step), without the secrets that names may have.

use std::{borrow::Cow, sync::Arc, time::Duration};

use narthex_audit::{AuditFull, AuditRecord, TOOL};
use narthex_model::{Alias, CallErrorKind};
use narthex_policy::{Item, Request};
use narthex_run_events::{Call as WatchedCall, Open};
use narthex_traffic::Admission;
use narthex_wire::{
    Message, Raw, method,
    notification::{RESOURCES_FILTER, TASKS_FILTER},
};
use tokio_util::task::task_tracker::TaskTrackerToken;

use crate::{
    Caller,
    call::{
        admit::{Unfound, admit},
        again::Tried,
        connect::Target,
        contents::Keeping,
        identify::Call,
        record::CallRecord,
        review_refusal::held_back,
        route::{own_item, shapes::is_shaped},
        routed::Routed,
    },
    names::{id_of, name_of, own_alias},
    refusal::Refusal,
    shared::Shared,
    view::Handling,
};

/// Number of resources and tasks that the record of a stream of changes names at most; the second
/// constant limits the characters of each name.
const NAMED_MAX: usize = 20;
const NAMED_LENGTH: usize = 200;

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
        let (row, link) = (target.routed.row.clone(), Arc::clone(&target.link));
        Ok(Tried::first(record, row, link, is_shaped))
    }

    /// Counts a routed call against the limits of traffic, before the call is sent (O100).
    ///
    /// # Errors
    /// When a limit is reached. The refused call is in the record, under its server.
    pub(crate) fn admitted(&self, caller: &Caller, routed: &Routed) -> Result<Admission, Unfound> {
        // A stream has no end of its own, and would never free its place.
        let is_stream = routed.request.message.method() == method::SUBSCRIPTIONS_LISTEN;
        let row = &routed.row;
        let configured = || row.definition.as_ref().map(|one| one.traffic).unwrap_or_default();
        admit(
            &self.options.meters,
            &self.metrics,
            caller,
            row.alias.as_ref(),
            configured,
            !is_stream,
        )
        .map_err(|refusal| {
            let Request { alias, item, message, .. } = &routed.request;
            let is_shaped = matches!(item, Item::Tool(name) if row.is_shaped(name));
            let refusal = refusal.shaped(is_shaped);
            let item = self.clean_item(caller, item);
            let refusal = match self.begin_record(caller, Some(alias.clone()), message, item, None)
            {
                Ok(mut record) => {
                    record.refused(&refusal);
                    refusal
                }
                Err(full) => unrecorded(full).shaped(is_shaped),
            };
            Unfound { refusal: Box::new(refusal), is_recorded: true }
        })
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
        let (rows, limit) = (self.snapshot(&caller.run), self.options.name_limit);
        let on_links = || self.pool.held(caller);
        let held = refusal
            .is_absence()
            .then(|| held_back(&rows, limit, caller, handling, asked, on_links));
        let is_shaped = is_shaped(limit, &rows, caller, handling, asked);
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
        // The names of runs' own servers, which come and go, would fill the metrics.
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

impl Shared {
    /// Starts to record the contents of a call, if its workspace has this turned on.
    pub(crate) fn keeping(&self, caller: &Caller, request: &Message) -> Option<Box<Keeping>> {
        if !caller.run.contents.are_kept() {
            return None;
        }
        self.keeping_of(caller, request)
    }

    #[cold]
    fn keeping_of(&self, caller: &Caller, request: &Message) -> Option<Box<Keeping>> {
        let run = caller.run.clone();
        let redactor = run.contents.redactor(&self.snapshot(&run));
        // A run that has ended sees no servers any more, and so knows none of their secrets.
        if run.has_ended() {
            return None;
        }
        Some(Box::new(Keeping { run, redactor, id: id_of(request), era: caller.era() }))
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
