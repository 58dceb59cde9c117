//! One request from a door to a server, in named steps.

use std::{borrow::Cow, pin::pin, sync::Arc, time::Duration};

use bytes::Bytes;
use narthex_audit::AuditFull;
use narthex_model::{Alias, CallErrorKind};
use narthex_policy::{Item, Payment, Request};
use narthex_registry::ServerRow;
use narthex_traffic::Admission;
use narthex_upstream::{Doubt, Hop, InUse, Link};
use narthex_wire::{Message, Raw, method, rpc};

use crate::view::exposed;
use crate::view::{Handling, check_decided, handling, is_like_known, known_name};
use crate::{
    Answering, Caller, Endpoint,
    again::Again,
    bridge::answerable,
    clock::CallClock,
    gateway::Shared,
    links::Chosen,
    open::{Failed, FirstTry, Open, open_call, unless_given_up},
    parked::ParkedId,
    record::CallRecord,
    refusal::Refusal,
    route::{Routed, not_found, own_item, with_cause},
    run::{Act, RunRows},
};

impl Shared {
    /// Answers one request: classify, route, authorize, prepare, forward; finish and record
    /// happen as the [`Answering`] is polled.
    pub(crate) async fn call(self: &Arc<Self>, caller: &Caller, request: Message) -> Answering {
        let era = caller.era();
        let (id, name, to) = (id_of(&request), name_of(&request), (era, caller.run.reader()));
        let refuse =
            |refusal: Refusal| refusal.explained(caller).into_answering(Raw::new(&id), &name, to);
        let Some(handling) = handling(&name, era) else {
            return refuse(self.unknown(caller, &request, &name));
        };
        // Recorded: a caller may try to get past a decision (S12).
        if let Err(fault) = check_decided(handling, &request) {
            let refusal = Refusal::invalid(fault.to_string());
            return refuse(self.refused(caller, handling, &request, refusal));
        }
        let is_act = !matches!(handling, Handling::Ping | Handling::Listen);
        let act = is_act.then(|| Act::of(&caller.run));
        let is_aggregated = caller.endpoint == Endpoint::Aggregated;
        let is_built_in = match own_alias(caller) {
            Some(alias) => caller.run.is_built_in(alias),
            None => self.is_built_in_call(caller, handling, &request),
        };
        let watched = (matches!(handling, Handling::List(_) | Handling::TaskList)
            && (is_aggregated || is_built_in))
            .then(|| self.watched(caller, own_alias(caller), &request, &Item::Server));
        let answered = match handling {
            _ if is_built_in => Box::pin(self.built_in(caller, handling, request)).await,
            Handling::List(_) | Handling::TaskList if is_aggregated => {
                self.answer_itself(caller, handling, request).await
            }
            Handling::List(_)
            | Handling::Tool
            | Handling::Prompt
            | Handling::Resource
            | Handling::Complete
            | Handling::Task
            | Handling::TaskList
            | Handling::Vendor => self.forward(caller, handling, request).await,
            Handling::Ping
            | Handling::Discover
            | Handling::SetLevel
            | Handling::Subscribe { .. }
            | Handling::Listen => self.answer_itself(caller, handling, request).await,
        };
        let is_ok = answered.is_ok();
        // A recorded request is reported to watchers where its record ends.
        answered.unwrap_or_else(refuse).with_act(act).told(watched.flatten(), is_ok)
    }

    /// Answers requests that need no server. Boxed: a call that is forwarded should not carry the
    /// room that these need.
    fn answer_itself<'a>(
        self: &'a Arc<Self>,
        caller: &'a Caller,
        handling: Handling,
        request: Message,
    ) -> Boxed<'a, Result<Answering, Refusal>> {
        Box::pin(async move {
            match handling {
                Handling::Ping => Ok(result(&request, &Bytes::from_static(b"{}"))),
                Handling::Discover => self.discover(caller, &request).await,
                Handling::List(kind) => self.list(caller, kind, &request).await,
                Handling::SetLevel => self.set_level(caller, request).await,
                Handling::Subscribe { is_start } => self.subscribe(caller, is_start, request).await,
                Handling::Listen => self.listen(caller, request).await,
                Handling::TaskList => self.task_list(caller, &request).await,
                Handling::Tool
                | Handling::Prompt
                | Handling::Resource
                | Handling::Complete
                | Handling::Task
                | Handling::Vendor => self.forward(caller, handling, request).await,
            }
        })
    }

    /// Routes, authorizes, prepares and forwards one request.
    pub(crate) async fn forward(
        self: &Arc<Self>,
        caller: &Caller,
        handling: Handling,
        request: Message,
    ) -> Result<Answering, Refusal> {
        let clock = CallClock::start();
        let asked = request.clone();
        let refused = |refusal| self.refused(caller, handling, &asked, refusal);
        let open_call = open_call(caller, &asked).map_err(refused)?;
        let search = Search { clock, is_counted: false };
        let found = {
            let finding = pin!(self.find(caller, handling, request, search));
            unless_given_up(caller, open_call.as_ref(), finding).await.map_err(refused)??
        };
        let (routed, chosen, hop, admission) = match found {
            Found::Anew(found) => found,
            Found::Parked(parked) => {
                let (routed, id) = *parked;
                return Box::pin(self.resume(caller, routed, id)).await.map_err(refused);
            }
        };
        let row = routed.row.clone();
        let lost = Arc::clone(&chosen.link);
        if let Some(call) = &open_call {
            call.goes_to(&routed.request.alias);
        }
        let first = FirstTry { asked, row, lost, is_shaped: routed.is_shaped };
        let record = self.record(caller, &routed.request);
        let mut record = record.map_err(|refusal| refusal.shaped(first.is_shaped))?;
        if let Some(admission) = admission {
            record.admitted(admission);
        }
        let open = Open { record, open_call, clock, payment: Payment::default() };
        match self.forward_on(caller, routed, chosen.link, hop, open).await {
            // It is written, and yet a program may end before it reads it.
            Ok(answering) if first.lost.is_one_channel() => {
                Ok(answering.or_again(|| Again::new(self, caller, handling, first)))
            }
            Ok(answering) => Ok(answering),
            Err(failed) => Box::pin(self.forward_again(caller, handling, first, *failed)).await,
        }
    }

    /// Tries once more where the server certainly did nothing; otherwise the call has failed.
    pub(crate) async fn forward_again(
        self: &Arc<Self>,
        caller: &Caller,
        handling: Handling,
        first: FirstTry,
        failed: Failed,
    ) -> Result<Answering, Refusal> {
        let (Failed { refusal, open }, is_shaped) = (failed, first.is_shaped);
        // A server that answered that it did nothing has seen it.
        let was_unsent = refusal.is_unsent();
        let clock = open.clock;
        let finding = async {
            match refusal {
                // A server that forgot its session, or was not reached, did not see the request.
                refusal if refusal.is_unseen() && !refusal.is_callers_fault() => {
                    self.recovered(caller, (&first.row, &first.lost), clock).await;
                }
                Refusal::Mismatch => self.list_anew(&first.row, clock).await,
                refusal => return Err(refusal),
            }
            self.find(caller, handling, first.asked, Search { clock, is_counted: true }).await?
        };
        let found = unless_given_up(caller, open.open_call.as_ref(), pin!(finding)).await;
        let Failed { refusal, mut open } = match found {
            Err(refusal) => Failed { refusal, open },
            // A call that limits have counted is made, and is never a parked one.
            Ok(Found::Parked(_)) => Failed { refusal: Refusal::Cancelled, open },
            Ok(Found::Anew((routed, chosen, hop, _counted))) => {
                match self.forward_on(caller, routed, chosen.link, hop, open).await {
                    Ok(answering) => return Ok(answering),
                    Err(failed) => *failed,
                }
            }
        };
        let refusal = refusal.settled().shaped(is_shaped);
        open.record.refused(&refusal);
        if was_unsent && refusal.is_unsent() {
            open.payment.give_back(&caller.run.unused, &self.sealer.spent);
        }
        Err(refusal)
    }

    /// Waits until a server can be called that did not see a request: until it has another link
    /// than the one that was lost, a check has shown that it works, or an attempt to reach it has
    /// failed. Not longer than the call may take.
    async fn recovered(
        &self,
        caller: &Caller,
        (row, lost): (&ServerRow, &Arc<Link>),
        clock: CallClock,
    ) {
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
        self.wait_until(&caller.run, clock.left(self.timeout(row)), has_recovered).await;
    }

    /// The headers of a call follow from the server's list of tools, which may have changed.
    async fn list_anew(&self, row: &ServerRow, clock: CallClock) {
        let listing = self.registry.list_anew(row);
        if tokio::time::timeout(clock.left(self.timeout(row)), listing).await.is_err() {
            tracing::warn!(server.name = row.name, "listing anew took too long");
        }
    }

    /// Finds the target of a request, and counts it unless it is counted already. One that a limit
    /// refuses is recorded: that is the inner error.
    async fn find(
        self: &Arc<Self>,
        caller: &Caller,
        handling: Handling,
        request: Message,
        Search { clock, is_counted }: Search,
    ) -> Result<Result<Found, Refusal>, Refusal> {
        let mut routed = self.route(caller, handling, request, clock).await?.visible(handling)?;
        if !is_counted && let Some(id) = self.parked_call(caller, &routed)? {
            return Ok(Ok(Found::Parked(Box::new((routed, id)))));
        }
        let admission = match is_counted {
            true => None,
            false => match self.admitted(caller, &routed) {
                Ok(admission) => Some(admission),
                Err(refusal) => return Ok(Err(refusal)),
            },
        };
        let chosen = self.choose_link_by(caller, &routed.row, clock).await?;
        let is_cross = caller.session.is_none() && !chosen.link.facts().revision.is_modern();
        let chosen = match is_cross {
            true => Box::pin(self.bridged_or(chosen, caller, &mut routed, clock)).await?,
            false => chosen,
        };
        routed.row.clone_from(&chosen.row);
        let is_frozen = routed.row.is_pinned() || caller.run.is_frozen(&routed.request.alias);
        routed.frozen = is_frozen.then(|| chosen.inventory.clone());
        let (hop, is_shaped) = hop(&chosen, handling, &routed)?;
        routed.is_shaped = is_shaped;
        Ok(Ok(Found::Anew((routed, chosen, hop, admission))))
    }

    /// The link of a modern call to a legacy server: one on which the server may ask its client, if
    /// the request declares that the client can be asked.
    async fn bridged_or(
        self: &Arc<Self>,
        chosen: Chosen,
        caller: &Caller,
        routed: &mut Routed,
        clock: CallClock,
    ) -> Result<Chosen, Refusal> {
        let answerable = answerable(&routed.request.message);
        if answerable.is_none() {
            return Ok(chosen);
        }
        // The shared link is not used by this call.
        let Chosen { row, link, .. } = chosen;
        drop(link);
        let (bridged, turn) = self.bridged(caller, &row, answerable, clock).await?;
        routed.turn = Some((answerable, turn));
        Ok(bridged)
    }

    /// Counts a call against the limits of traffic, before it is sent (O100). A refused one is
    /// recorded.
    fn admitted(&self, caller: &Caller, routed: &Routed) -> Result<Admission, Refusal> {
        // A stream has no end of its own: it would keep its place for ever.
        let is_stream = routed.request.message.method() == method::SUBSCRIPTIONS_LISTEN;
        let row = &routed.row;
        let configured = || row.definition.as_ref().map(|one| one.traffic).unwrap_or_default();
        self.admit(caller, row.alias.as_ref(), configured, !is_stream).map_err(|refusal| {
            let Request { alias, item, message, .. } = &routed.request;
            let is_shaped = matches!(item, Item::Tool(name) if row.is_shaped(name));
            let refusal = refusal.shaped(is_shaped);
            let item = self.clean_item(caller, item);
            match self.begin_record(caller, Some(alias.clone()), message, item, None) {
                Ok(mut record) => {
                    record.refused(&refusal);
                    refusal
                }
                Err(full) => unrecorded(full).shaped(is_shaped),
            }
        })
    }

    /// The refusal of an unknown method. A method that nearly spells a known one is recorded: the
    /// caller may try to get past a check (S12).
    fn unknown(&self, caller: &Caller, request: &Message, name: &str) -> Refusal {
        let refusal = Refusal::unknown_method(name);
        match known_name(name).is_none() && is_like_known(name) {
            true => self.refused(caller, Handling::Vendor, request, refusal),
            false => refusal,
        }
    }

    /// Records a call that finds no server (S32). The name is the caller's own word.
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

    async fn forward_on(
        self: &Arc<Self>,
        caller: &Caller,
        routed: Routed,
        link: InUse,
        mut hop: Hop,
        mut open: Open,
    ) -> Result<Answering, Box<Failed>> {
        let mut routed = routed;
        self.trace(caller, &link, &mut routed.request, &mut hop, &mut open.record);
        // Until it is known to be unsent: a call that is given up meanwhile counts as made.
        open.record.set_sent(true);
        let rounds = self.rounds(caller, &routed, &link, &hop);
        let booked = match open.record.booked() {
            Ok(booked) => booked,
            Err(refusal) => return Err(Box::new(Failed { refusal, open })),
        };
        let link = (link, hop, booked);
        let sent = {
            let sending = pin!(self.send(caller, routed, link, open.clock, &mut open.payment));
            unless_given_up(caller, open.open_call.as_ref(), sending).await
        };
        match sent {
            Ok(sent) => {
                open.record.allowed(sent.finish.basis());
                Ok(Answering::forwarded(sent.into_call(open, rounds)))
            }
            Err(refusal) => {
                open.record.set_sent(!refusal.is_unsent());
                Err(Box::new(Failed { refusal, open }))
            }
        }
    }

    pub(crate) fn timeout(&self, row: &ServerRow) -> Duration {
        let configured = row.definition.as_ref().and_then(|definition| definition.timeout);
        configured.unwrap_or(self.options.call_timeout)
    }

    fn record(&self, caller: &Caller, request: &Request) -> Result<CallRecord, Refusal> {
        let is_stream = request.message.method() == method::SUBSCRIPTIONS_LISTEN;
        let server = Some(request.alias.clone());
        let item = self.clean_found(caller, &request.item);
        // Streams have no end of their own, so drain does not wait for them.
        let open = (!is_stream).then(|| self.calls.token());
        self.begin_record(caller, server, &request.message, item, open).map_err(unrecorded)
    }
}

/// The result of the search for a request's target.
#[expect(clippy::large_enum_variant, reason = "it lives for a moment, and the large one is usual")]
enum Found {
    /// A request for a server.
    Anew((Routed, Chosen, Hop, Option<Admission>)),
    /// It belongs to a call that waits for its client.
    Parked(Box<(Routed, ParkedId)>),
}

/// The state of a search for a request's target.
#[derive(Debug, Clone, Copy)]
struct Search {
    /// Since when its call is open.
    clock: CallClock,
    /// True if limits of traffic have counted the call.
    is_counted: bool,
}

/// A future of its own.
type Boxed<'a, T> = std::pin::Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// A call that cannot be recorded is not made (D25).
pub(crate) fn unrecorded(full: AuditFull) -> Refusal {
    let kind = match full {
        AuditFull::Full | AuditFull::SpoolFull => CallErrorKind::LimitExceeded,
        AuditFull::Failed | AuditFull::Closed => CallErrorKind::TransportError,
    };
    Refusal::call(kind, full.to_string())
}

/// The caller's id, as JSON, shared with the message.
pub(crate) fn id_of(message: &Message) -> Bytes {
    let id = message.id().map(|id| message.bytes().slice_ref(id.as_bytes()));
    id.unwrap_or_else(|| Bytes::from_static(b"null"))
}

/// The method's name, without an allocation where it is a known one.
pub(crate) fn name_of(message: &Message) -> Cow<'static, str> {
    match known_name(message.method()) {
        Some(name) => Cow::Borrowed(name),
        None => Cow::Owned(message.method().to_owned()),
    }
}

/// Checks that the server has the tool or prompt, and finds what belongs to its hop.
///
/// Returns `true` as well if it is a tool with an output schema.
fn hop(chosen: &Chosen, handling: Handling, routed: &Routed) -> Result<(Hop, bool), Refusal> {
    let name = match &routed.request.item {
        Item::Tool(name) => name,
        // Where some are hidden, those that do not exist get the same answer as hidden ones.
        Item::Prompt(name)
            if (routed.frozen.is_some() || !exposed(&routed.row).prompts.is_open())
                && !chosen.inventory.has_prompt(name) =>
        {
            return Err(not_found(handling, name));
        }
        Item::Resource(uri) if chosen.inventory.withholds(uri) => {
            return Err(match (routed.own_tool, handling) {
                (Some(tool), _) => tool.absent(uri).into(),
                (None, Handling::Complete) => not_found(Handling::Resource, uri),
                (None, handling) => not_found(handling, uri),
            });
        }
        Item::Prompt(_) | Item::Resource(_) | Item::Task(_) | Item::Server => {
            return Ok((Hop::default(), false));
        }
    };
    let Some(tool) = chosen.inventory.tool(name) else {
        return Err(with_cause(not_found(handling, name), &routed.row));
    };
    let hop = Hop { header_params: tool.header_params.clone(), ..Hop::default() };
    Ok((hop, tool.is_shaped()))
}

pub(crate) fn result(request: &Message, body: &Bytes) -> Answering {
    let id = request.id().unwrap_or(Raw::new(b"null"));
    Answering::ready(rpc::result_response(id, body), 200)
}

/// The alias of a transparent endpoint.
pub(crate) fn own_alias(caller: &Caller) -> Option<&Alias> {
    match &caller.endpoint {
        Endpoint::Transparent(alias) => Some(alias),
        Endpoint::Aggregated => None,
    }
}
