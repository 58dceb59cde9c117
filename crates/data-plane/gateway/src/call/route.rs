//! Finds the server of a request, and the server's own name for its item (the `route` step).

mod expected;
pub(crate) mod own_tasks;
pub(crate) mod shapes;

use std::{borrow::Cow, sync::Arc};

use narthex_model::{Alias, CallErrorKind, ServerState};
use narthex_policy::{Item, Request};
use narthex_registry::ServerRow;
use narthex_wire::{Era, Message, Raw, json::encode_string, meta_key, rpc, with_member};

use crate::{
    Caller, Endpoint, RunView,
    call::{identify::Call, routed::Routed},
    clock::CallClock,
    names::text,
    refusal::{Refusal, not_found, unknown_server, unusable, with_cause},
    runs::run::{RunRow, RunRows},
    shared::Shared,
    standing::Standing,
    view::{Handling, OwnTool, View},
};

/// A request found in a view, and the gateway's own tool that it came from.
type Found = (Request, Option<OwnTool>);

impl Shared {
    /// Finds the server of a call's item, if the server's rules show the item.
    pub(crate) async fn route(self: &Arc<Self>, call: &Call<'_>) -> Result<Routed, Refusal> {
        let &Call { caller, handling, clock, .. } = call;
        let routed = self.routed(caller, handling, call.asked.clone(), clock).await?;
        routed.visible(&caller.run, handling)
    }

    /// Finds the server of a request's item, and the server's own name for it.
    pub(crate) async fn routed(
        self: &Arc<Self>,
        caller: &Caller,
        handling: Handling,
        request: Message,
        clock: CallClock,
    ) -> Result<Routed, Refusal> {
        if handling == Handling::Task && caller.era() == Era::Modern {
            declares_tasks(&request)?;
        }
        match &caller.endpoint {
            Endpoint::Transparent(alias) => {
                let row = self.settled_by(&caller.run, alias, clock).await?;
                let item = own_item(handling, &request)?;
                if let Item::Task(id) = &item
                    && !self.tasks.owns(caller.run.id, &caller.run.key(alias), id)
                {
                    return Err(not_found(handling, id));
                }
                if handling == Handling::Listen {
                    own_tasks::owns_tasks(&self.tasks, caller, alias, &request)?;
                }
                let mut request = Request::new(alias.clone(), request, item);
                own_tasks::know_origin(&self.tasks, caller, &mut request);
                let listening = match handling {
                    Handling::Listen => {
                        Box::pin(self.permit_listening(caller, &row, &mut request)).await
                    }
                    _ => Standing::default(),
                };
                Ok(Routed::new(row, request, None, listening))
            }
            Endpoint::Aggregated => {
                let (request, own_tool) =
                    self.aggregated_anyhow(caller, handling, request, clock).await?;
                let snapshot = self.snapshot(&caller.run);
                let row = snapshot.get(request.alias.as_str());
                let row = row.ok_or_else(|| not_found(handling, request.item.name()))?;
                Ok(Routed::new(row, request, own_tool, Standing::default()))
            }
        }
    }

    /// The row of a server, once its state is known. A server that is not attached is answered like
    /// one that does not exist (D5).
    pub(crate) async fn settled(&self, run: &RunView, alias: &Alias) -> Result<RunRow, Refusal> {
        self.settled_by(run, alias, CallClock::start()).await
    }

    /// As [`Self::settled`], and waits no longer than an open call may take.
    pub(crate) async fn settled_by(
        &self,
        run: &RunView,
        alias: &Alias,
        clock: CallClock,
    ) -> Result<RunRow, Refusal> {
        match self.snapshot(run).get(alias.as_str()) {
            Some(row) if row.is_ready() => Ok(row),
            Some(row) if row.is_decided() && !row.is_probed => Err(unusable(&row)),
            Some(row) => Box::pin(self.wait_for(run, alias, &row, clock)).await,
            None => Err(unknown_server(alias)),
        }
    }

    /// Waits for a server that is being connected, until the current or next attempt has ended. A
    /// failed server that is probed is tried first.
    async fn wait_for(
        &self,
        run: &RunView,
        alias: &Alias,
        row: &ServerRow,
        clock: CallClock,
    ) -> Result<RunRow, Refusal> {
        let left = || clock.left(self.options.timeout(row));
        if row.is_probed {
            self.registry.probe(row, left()).await;
        }
        let is_settled =
            |rows: &RunRows| rows.get(alias.as_str()).is_none_or(|row| row.is_decided());
        let snapshot = self.wait_until(run, left(), is_settled).await;
        match snapshot.get(alias.as_str()) {
            Some(row) if row.is_ready() => Ok(row),
            Some(row) => Err(unusable(&row)),
            None => Err(unknown_server(alias)),
        }
    }

    /// Finds the item at the aggregated endpoint. An item of a server that is being connected is
    /// not taken for absent: the call waits for the server, as at the server's own endpoint. An
    /// item is looked for once more if its server changed during the search.
    async fn aggregated_anyhow(
        self: &Arc<Self>,
        caller: &Caller,
        handling: Handling,
        request: Message,
        clock: CallClock,
    ) -> Result<(Request, Option<OwnTool>), Refusal> {
        loop {
            let before = self.snapshot(&caller.run);
            let found = self.aggregated_now(caller, handling, request.clone(), &before).await;
            let Err(refusal) = found else { return found };
            let now = self.snapshot(&caller.run);
            let Some((row, alias)) = expected::expected(&caller.run, handling, &request, &now)
            else {
                return Err(refusal);
            };
            let is_as_before = || before.get(alias.as_str()).is_some_and(|b| Arc::ptr_eq(&b, row));
            if !row.is_decided() {
                Box::pin(self.wait_for(&caller.run, alias, row, clock)).await?;
            } else if is_as_before() {
                let taken_away = shapes::taken_away(
                    self.options.name_limit,
                    caller,
                    row,
                    alias,
                    handling,
                    &request,
                );
                if taken_away.is_some() && row.is_probed {
                    Box::pin(self.wait_for(&caller.run, alias, row, clock)).await?;
                    continue;
                }
                let away = row.is_backing_off.then(|| unusable(row));
                let refusal = cut_off(row).or(taken_away).or(away).unwrap_or(refusal);
                return Err(with_cause(refusal, row));
            }
        }
    }

    /// Searches the existing views first: the client's latest view, or the shared view. Building a
    /// view for one client may send requests to servers, and no call should wait for another server
    /// than its own. The client's right to see the item is checked once more on the link of the
    /// call.
    async fn aggregated_now(
        self: &Arc<Self>,
        caller: &Caller,
        handling: Handling,
        request: Message,
        snapshot: &RunRows,
    ) -> Result<Found, Refusal> {
        let Some(session) = caller.session.as_ref().filter(|session| session.can_be_asked()) else {
            let view = self.run_view(&caller.run, snapshot);
            return self.aggregated(caller, &view, handling, request);
        };
        // Names of another profile could lead to other tools.
        let profile = caller.run.profile();
        let at_hand = session.last_view().filter(|view| view.is_by(profile.as_ref()));
        let at_hand = at_hand.unwrap_or_else(|| self.run_view(&caller.run, snapshot));
        match self.aggregated(caller, &at_hand, handling, request.clone()) {
            Err(_) => {
                let view = self.view(caller).await;
                self.aggregated(caller, &view, handling, request)
            }
            routed => routed,
        }
    }

    fn aggregated(
        &self,
        caller: &Caller,
        view: &View,
        handling: Handling,
        request: Message,
    ) -> Result<Found, Refusal> {
        if handling == Handling::Tool
            && let Some((alias, tool)) = view.own_tool(&text(&request, "name")?)
        {
            let request = tool.request(alias, &request)?;
            return match &request.item {
                Item::Prompt(name) if !view.has_prompt(alias, name) => {
                    Err(tool.absent(name).into())
                }
                _ => Ok((request, Some(tool))),
            };
        }
        self.found(caller, view, handling, request).map(|request| (request, None))
    }

    fn found(
        &self,
        caller: &Caller,
        view: &View,
        handling: Handling,
        request: Message,
    ) -> Result<Request, Refusal> {
        match handling {
            Handling::Tool | Handling::Prompt => {
                let name = text(&request, "name")?;
                let found = match handling {
                    Handling::Tool => view.tool(&name),
                    _ => view.prompt(&name),
                };
                let Some((alias, original)) = found else {
                    return Err(not_found(handling, &name));
                };
                let item = match handling {
                    Handling::Tool => Item::Tool(original.clone()),
                    _ => Item::Prompt(original.clone()),
                };
                let mut routed = Request::new(alias.clone(), request, item);
                routed.rewrite.body.set("name", encode_string(original));
                Ok(routed)
            }
            Handling::Resource | Handling::Subscribe { .. } => {
                let uri = text(&request, "uri")?;
                let Some((alias, original)) = view.resource(&uri) else {
                    return Err(not_found(handling, &uri));
                };
                let is_same = original.as_ref() == uri;
                let mut routed = Request::new(alias, request, Item::Resource(original.clone()));
                if !is_same {
                    routed.rewrite.body.set("uri", encode_string(&original));
                }
                Ok(routed)
            }
            Handling::Complete => completion(view, request),
            Handling::Task => {
                let shown = text(&request, "taskId")?;
                let Some((alias, id)) = self.tasks.route(caller.run.id, &shown) else {
                    return Err(not_found(handling, &shown));
                };
                let is_same = *id == *shown;
                let mut routed = Request::new(alias, request, Item::Task(id.clone()));
                own_tasks::know_origin(&self.tasks, caller, &mut routed);
                if !is_same {
                    routed.rewrite.body.set("taskId", encode_string(&id));
                }
                Ok(routed)
            }
            Handling::Ping
            | Handling::Discover
            | Handling::List(_)
            | Handling::SetLevel
            | Handling::Listen
            | Handling::TaskList
            | Handling::Vendor => Err(Refusal::unknown_method(request.method())),
        }
    }
}

/// The refusal for a server that an operator has revoked from a run (D10), or where a person has to
/// sign in first (D17).
fn cut_off(row: &ServerRow) -> Option<Refusal> {
    let is_told = match row.error.as_ref()?.kind {
        CallErrorKind::SecretCleared
        | CallErrorKind::ServerDisabled
        | CallErrorKind::PermissionRequired => true,
        CallErrorKind::AuthUnavailable => row.state == ServerState::Authenticating,
        _ => false,
    };
    is_told.then(|| unusable(row))
}

/// Refuses requests about tasks of a client that does not declare tasks in the request.
pub(crate) fn declares_tasks(request: &Message) -> Result<(), Refusal> {
    let declared = request.meta_value(meta_key::CLIENT_CAPABILITIES);
    let extensions = declared.and_then(|declared| declared.get("extensions"));
    let tasks = extensions.and_then(|all| all.get(meta_key::TASKS_EXTENSION));
    if tasks.is_some_and(Raw::is_object) {
        return Ok(());
    }
    let required =
        br#"{"requiredCapabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}}}}"#;
    Err(Refusal::Rpc {
        code: rpc::code::MISSING_CLIENT_CAPABILITY,
        message: "this request must declare the tasks extension".to_owned(),
        data: Some(bytes::Bytes::from_static(required)),
    })
}

/// The item of a request to one server, by the caller's name for it.
pub(crate) fn own_item(handling: Handling, request: &Message) -> Result<Item, Refusal> {
    Ok(match handling {
        Handling::Tool => Item::Tool(text(request, "name")?.into()),
        Handling::Prompt => Item::Prompt(text(request, "name")?.into()),
        Handling::Resource | Handling::Subscribe { .. } => {
            Item::Resource(text(request, "uri")?.into())
        }
        Handling::Task => Item::Task(text(request, "taskId")?.into()),
        Handling::Complete => match reference(request)? {
            (Reference::Prompt, name) => Item::Prompt(name.into()),
            (Reference::Resource, uri) => Item::Resource(uri.into()),
        },
        Handling::Ping
        | Handling::Discover
        | Handling::List(_)
        | Handling::SetLevel
        | Handling::Listen
        | Handling::TaskList
        | Handling::Vendor => Item::Server,
    })
}

fn completion(view: &View, request: Message) -> Result<Request, Refusal> {
    let (kind, name) = reference(&request)?;
    let whole = request.get("ref").map(Raw::as_bytes).unwrap_or_default();
    let whole = bytes::Bytes::copy_from_slice(whole);
    match kind {
        Reference::Prompt => {
            let Some((alias, original)) = view.prompt(&name) else {
                return Err(not_found(Handling::Prompt, &name));
            };
            let renamed = with_member(&whole, "name", original);
            let mut routed = Request::new(alias.clone(), request, Item::Prompt(original.clone()));
            routed.rewrite.body.set("ref", renamed.to_vec());
            Ok(routed)
        }
        Reference::Resource => {
            let Some((alias, original)) = view.template(&name) else {
                return Err(not_found(Handling::Resource, &name));
            };
            Ok(Request::new(alias, request, Item::Resource(original)))
        }
    }
}

enum Reference {
    Prompt,
    Resource,
}

fn reference(request: &Message) -> Result<(Reference, String), Refusal> {
    let reference = request.get("ref");
    let member = |name| {
        let found = reference.and_then(|reference| reference.get(name)).and_then(Raw::as_str);
        found.map(Cow::into_owned)
    };
    match member("type").as_deref() {
        Some("ref/prompt") => member("name").map(|name| (Reference::Prompt, name)),
        Some("ref/resource") => member("uri").map(|uri| (Reference::Resource, uri)),
        _ => None,
    }
    .ok_or_else(|| Refusal::invalid("`params.ref` must name a prompt or a resource template"))
}
